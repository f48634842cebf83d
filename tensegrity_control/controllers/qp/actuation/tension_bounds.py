"""Bounds of the cable tensions in one control period: floors, desired tensions, and a measured reserve above the
floors.

Commands keep the floors. Disturbances, differences between cables and model, late commands and coarse sensors let
actual tensions fall below the commanded ones. So the floors are raised by the measured shortfall, plus its expected
growth until the next command has changed the tensions, since a disturbance unloads a cable within a few periods.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.types import Array

from ....optimization.motion_program import MotionProgram
from ....trajectories.quintic import remaining
from .cable_stretch import CableStretch

FADE = 1.0
"""Time in which tensions change from their initial to their desired values [s]."""
RETREAT = 0.1
"""Time in which raised floors fall back to initial tensions where efforts come to their limits [s]."""
SPARING, SPARED_LESS = 0.8, 0.9
"""Fractions of effort limits up to which floors rise from lower initial tensions, and from which on they fall back."""
COMMANDS_KEPT = 64
"""Number of commands whose tensions are stored for the comparison with later measurements."""
RESERVE_TIME = 0.5
"""s, time constant of the decay of the reserve."""
LEAST_RESERVE = 0.5
"""Bound of the reserve as a fraction of the floor, if the desired tensions are nearer to the floors than that."""
TENSION_LEVEL = 1.1
"""Smallest desired tension, as a multiple of the floor."""
KEPT_OF_START = 0.97
"""Fraction of a tension at the start that is its initial floor, if it starts below its floor."""


@allocation_free
def fill_tensions(floor, start, ceiling, margin, level, left, low, desired, scale):
    """Fill lowest and desired tensions (c,) [N], and their scale (c,) [N] in the cost of the program.

    Args:
        floor, start, ceiling: (c,) N; start is the tension at the start.
        margin: fraction of the floor that is added to it.
        level: desired tension [N]; 0 for that of the start.
        left: remaining fraction of the transition from the start.
    """
    for c in range(floor.shape[0]):
        least = (1.0 + margin) * floor[c]
        least += left * min(
            KEPT_OF_START * start[c] - least, 0.0
        )  # tensions above the floor may decrease, for example for a lighter robot
        low[c] = least
        desired[c] = min(max(level if level > 0.0 else start[c], TENSION_LEVEL * least), ceiling[c])
        scale[c] = max(floor[c], 1e-3)


@allocation_free
def update_reserve(reserve, short, left, commanded, seen, floor, low, desired, lag, ahead, elapsed):
    """Let the reserve (c,) [N] decay to a fraction `left`, and raise it to the present shortfall of the tensions plus
    its growth until the next command has changed them.

    Args:
        short: (c,) N, shortfall `elapsed` s ago, overwritten; infinite if unknown.
        floor, low, desired: (c,) N: floors, lowest tensions with their margin, desired tensions. The reserve is at most
            desired - low, or `LEAST_RESERVE` times the floor if that is larger.
        lag: (c,) s, lag of tensions behind commands.
        ahead: s from the measurement until the next command acts.
    """
    for c in range(reserve.shape[0]):
        now = commanded[c] - seen[c]
        growth = max(now - short[c], 0.0) * (ahead + lag[c]) / elapsed
        short[c] = now
        most = max(LEAST_RESERVE * floor[c], desired[c] - low[c])
        reserve[c] = min(max(reserve[c] * left, now + growth), most)


class TensionBounds:
    """Tension bounds of one `MotionProgram`.

    Args:
        program: program whose desired tensions and scale are filled.
        floor: (c,) N of the driven cables of the robot.

    Attributes:
        floor: (c,) N, present floors.
        start: (c,) N, tensions at the start of the control.
        low: (c,) N, present lowest tensions, including the margin.
        reserve: (c,) N, increase of `low` because of measured shortfalls.
        shortfall: (c,) N, commanded minus measured tensions at the last update; infinite before.
        rising: whether floors still rise from lower tensions at the start.
    """

    def __init__(self, program: MotionProgram, floor: Array) -> None:
        self.program, self.floor, self.start = program, floor, floor.copy()
        self.low, self.reserve = np.array(floor), np.zeros(floor.size)
        self.shortfall = np.full(floor.size, np.inf)
        self._commanded: deque[tuple[float, Array]] = deque(maxlen=COMMANDS_KEPT)
        self._fill, self._update = QuickCall(fill_tensions), QuickCall(update_reserve)
        self._begun, self._rises = 0.0, False

    def begin(self) -> None:
        """Begin the transition from the tensions at the start."""
        self._begun, self._rises = 0.0, bool(np.any(self.start < self.floor))
        self.reserve[:] = 0.0

    @property
    def rising(self) -> bool:
        return self._rises and self._begun < 1.0

    def left_of_start(self, effort: Array | None, limit: Array, elapsed: float) -> float:
        """Fraction of the transition from the tensions at the start that remains, `elapsed` s after the last call.

        Floors above these tensions rise only as far as the efforts allow: they cost all cables tension, and a robot
        whose actuators are at their limits is held no more.

        Args:
            effort: (a,) of the last command, None before the first. limit: (a,) largest efforts.
        """
        used = 0.0 if effort is None or not self._rises else float(np.max(np.abs(effort) / limit))
        if used < SPARING or not self._rises:
            self._begun = min(self._begun + elapsed / FADE, 1.0)
        elif used > SPARED_LESS:
            self._begun = max(self._begun - elapsed / RETREAT, 0.0)
        return remaining(self._begun)

    def forget_commands(self) -> None:
        """Forget earlier commands, which are not compared with later measurements."""
        self._commanded.clear()
        self.shortfall[:] = np.inf

    def fill(self, margin: float, level: float, left: float) -> None:
        """Fill `low` and the program's desired tensions, see `fill_tensions`."""
        program = self.program
        self._fill(
            self.floor, self.start, program.tension_high, margin, level, left, self.low, program.desired_tension,
            program.tension_scale,
        )  # fmt: skip

    def watch(self, time: float, acts: float, ahead: float, elapsed: float, stretch: CableStretch) -> None:
        """Update the reserve from the tensions measured at `time` and those commanded for that time, and store the
        present command.

        Args:
            time: s, time of the measurement `stretch.seen`.
            acts: s, time at which the present command acts, with tensions `stretch.elastic`.
            ahead: s from `time` until the next command acts.
            elapsed: s since the last update.
        """
        if not self.floor.size:
            return
        self._commanded.append((acts, stretch.elastic.copy()))
        left = math.exp(-elapsed / RESERVE_TIME)
        for begin, commanded in reversed(self._commanded):
            if begin <= time:
                self._update(
                    self.reserve, self.shortfall, left, commanded, stretch.seen, self.floor, self.low,
                    self.program.desired_tension, stretch.lag, ahead, elapsed,
                )  # fmt: skip
                return
        self.reserve *= left
