"""Bounds of the cables' tensions in one control period: floors, the tensions that are desired, and a reserve above the
floors that follows from what was measured.

Commands keep the floors. Whatever lets tensions fall below the commanded ones (pushes, other cables than stated, late
commands, coarse sensors) does so again, so the floors are raised by the shortfall that was seen; and by what it will
have grown by until the next command has changed the tensions, since a push unloads a cable within a few periods.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.types import Array

from ..optimization.motion_program import MotionProgram
from .cable_stretch import CableStretch

COMMANDS_KEPT = 64
"""Commands whose tensions are remembered, to compare them with those that are measured later."""
RESERVE_TIME = 0.5
"""s in which the reserve fades."""
LEAST_RESERVE = 0.5
"""Largest reserve in parts of the floor, where the desired tensions leave less than that above the floors."""
TENSION_LEVEL = 1.1
"""Lowest desired tension in parts of the floor."""
KEPT_OF_START = 0.97
"""Part of a tension at the start that is its floor at first, where it starts below its floor."""


@allocation_free
def fill_tensions(floor, start, ceiling, margin, level, left, low, desired, scale):
    """Fill lowest and desired tensions (c,) [N], and the scale (c,) [N] by which the program weighs them.

    Args:
        floor, start, ceiling: (c,) N; start is the tension at the start. margin: part of the floor that is added to it.
        level: desired tension [N], 0 for that of the start. left: part of the transition from the start still to come.
    """
    for c in range(floor.shape[0]):
        least = (1.0 + margin) * floor[c]
        least += left * min(
            KEPT_OF_START * start[c] - least, 0.0
        )  # from above it may fall, as a lighter robot needs it
        low[c] = least
        desired[c] = min(max(level if level > 0.0 else start[c], TENSION_LEVEL * least), ceiling[c])
        scale[c] = max(floor[c], 1e-3)


@allocation_free
def update_reserve(reserve, short, left, commanded, seen, floor, low, desired, lag, ahead, elapsed):
    """Let the reserve (c,) [N] fade to a part that is left, and raise it to the present shortfall of the tensions plus
    what this grows by until the next command has changed them.

    Args:
        short: (c,) N, the shortfall `elapsed` s ago, overwritten; infinite where it is not known.
        floor, low, desired: (c,) N: floors, lowest tensions with their margin, desired tensions. The reserve is at most
            desired - low, or `LEAST_RESERVE` of the floor where that is more.
        lag: (c,) s in which tensions follow commands. ahead: s from the measurement until the next command acts.
    """
    for c in range(reserve.shape[0]):
        now = commanded[c] - seen[c]
        growth = max(now - short[c], 0.0) * (ahead + lag[c]) / elapsed
        short[c] = now
        most = max(LEAST_RESERVE * floor[c], desired[c] - low[c])
        reserve[c] = min(max(reserve[c] * left, now + growth), most)


class TensionBounds:
    """Bounds of the tensions that one `MotionProgram` keeps.

    Args:
        program: its desired tensions and their scale are filled in. floor: (c,) N of the robot's driven cables.

    Attributes:
        floor: (c,) N in force. start: (c,) N, tensions at the start of the control. low: (c,) N, lowest tensions at
            present, margin included. reserve: (c,) N by which `low` is raised, as tensions were seen to fall short.
        shortfall: (c,) N, commanded less measured tensions at the last look; infinite before.
    """

    def __init__(self, program: MotionProgram, floor: Array) -> None:
        self.program, self.floor, self.start = program, floor, floor.copy()
        self.low, self.reserve = np.array(floor), np.zeros(floor.size)
        self.shortfall = np.full(floor.size, np.inf)
        self._commanded: deque[tuple[float, Array]] = deque(maxlen=COMMANDS_KEPT)
        self._fill, self._update = QuickCall(fill_tensions), QuickCall(update_reserve)

    def forget_commands(self) -> None:
        """Nothing that was commanded before is compared with what is measured from now on."""
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
        """Update the reserve by the tensions measured at `time` and those commanded for then, and remember the present.

        Args:
            time: s, when `stretch.seen` was measured. acts: s, when the present command acts, whose tensions are
                `stretch.elastic`. ahead: s from `time` until the next command acts. elapsed: s since the last look.
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
