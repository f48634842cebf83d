"""Largest rates and accelerations of the output within the rates and efforts of the actuators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.motor_limits import MotorLimits

from .free_motions import FreeMotions
from .output_task import Limits, OutputTask
from .timing.loop_bandwidth import LAGS

SHARED = 2.0
"""Factor on the actuator rates that the output needs: free motions and tensions need actuator motion, too."""
STRENGTH = 0.2
"""Fraction of the acceleration by full efforts that motions use; the rest holds the robot and corrects errors."""
STALLED = 1e-3
"""Least fraction of its rate limit for an actuator close to motor stall; its goals then take long."""
UNMOVED = 1e-7
"""Smallest effect of efforts on an output axis, relative to the strongest one, that counts as control of that axis."""


class OutputLimits:
    """Limits of the output at the last state of the equations, see `update`.

    Positions and rotations have separate limits. Where both are controlled, a rotation counts as the displacement that
    takes the actuators the same time.

    Args:
        equations: of the robot. task: of its output. free_motions: of the robot.
        rate_margin: fraction of the actuators' rate limits that motions use.

    Attributes:
        motion: largest speed and acceleration [m/s, m/s²], or [rad/s, rad/s²] of an output that only rotates.
        turn: largest rate and acceleration of rotations [rad/s, rad/s²].
        weights: (k,) metres that a unit of each controlled row counts.
        fastest, strongest: (k,) largest rates and accelerations of each row.
        words: what determines the speed.

    Raises:
        TensegrityError: the actuators do not move the output, or do not rotate it about a controlled axis.
    """

    def __init__(self, equations: TightCables, task: OutputTask, free_motions: FreeMotions, rate_margin: float) -> None:
        self._equations, self._task, self._free_motions, self._rate_margin = equations, task, free_motions, rate_margin
        self._actuators = actuators = equations.robot.actuators
        self._motors = MotorLimits(actuators)
        self._rate = np.array([each.rate for each in actuators])
        self._effort = np.array([each.effort for each in actuators])
        self.motion = self.turn = (1.0, 1.0)
        count = equations.parts.axes.size
        self.weights, self.fastest, self.strongest = np.ones((3, count))
        self.words = "the actuators' rates allow"
        self._refuse_unmoved()

    def update(self, pace: float, effort: Array) -> None:
        """Find the limits at the last state of the equations.

        Args:
            pace: 1/s, rate at which the output follows. effort: (a,) present holding efforts [N or N m].
        """
        task = self._task
        both = [
            self._limits_of(rows, pace, effort) if rows.size else None
            for rows in (task.translation_rows, task.turn_rows)
        ]
        translations, turns = both
        self.motion = translations or turns or self.motion
        self.turn = turns or self.turn
        self.fastest, self.strongest = np.where(
            self._equations.parts.axes < 3, np.array(self.motion)[:, None], np.array(self.turn)[:, None]
        )
        if translations and turns:
            self.weights[task.turn_rows] = translations[0] / turns[0]

    def efforts_for(self, output: Array) -> Array:
        """(a, k) efforts that move the output as (k, a) efforts do, and nothing else: the least ones, or, where motors
        drive more joints than the output needs, those with the least joint motion, see `free_motions`."""
        arrays = self._equations.arrays
        if not self._free_motions.driven or output.shape[0] >= output.shape[1]:
            return np.asarray(np.linalg.pinv(output, rcond=1e-3))
        _, size, efforts = np.linalg.svd(arrays.joint_1)
        easy = efforts.T / np.maximum(size, 1e-6 * size[0])  # efforts for unit joint motion
        return np.asarray(easy @ np.linalg.pinv(output @ easy, rcond=1e-3))

    def _limits_of(self, rows: NDArray[np.int64], pace: float, effort: Array) -> Limits:
        """Limits of some rows [m/s, m/s²] or [rad/s, rad/s²]."""
        arrays = self._equations.arrays
        size = np.sqrt(np.diagonal(arrays.mobility))  # rows of one unit, so that small ones are not neglected
        needed = self.efforts_for(arrays.output_1 / size[:, None]) / size
        needed = needed[:, rows]
        turned = arrays.joint_1 @ needed  # actuator rates for it
        # the speed of a goal is limited by motor speed at the present holding effort
        able = self._motors.rates(np.abs(effort), np.ones_like(effort))
        able = np.maximum(np.minimum(self._rate, able), STALLED * self._rate)
        speeds = able / np.maximum(np.linalg.norm(turned, axis=1), 1e-9)
        slowest = int(np.argmin(speeds))
        actuator = self._actuators[slowest]
        if actuator.motor is not None and able[slowest] < self._rate[slowest]:
            self.words = f"{actuator.motor.name} of {actuator.name} allows"
        strength = float(np.min(self._effort / np.maximum(np.linalg.norm(needed, axis=1), 1e-9)))
        rate = self._rate_margin * float(speeds[slowest]) / SHARED
        return rate, min(STRENGTH * strength, rate * pace / LAGS**2)

    def _refuse_unmoved(self) -> None:
        arrays, output = self._equations.arrays, self._equations.robot.output
        assert output is not None
        size = np.sqrt(np.diagonal(arrays.mobility))
        reached = np.linalg.norm(arrays.output_1, axis=1) / np.where(size > 0.0, size, np.inf)
        if not np.any(reached > 0.0):
            sagging = next((each.name for each in self._equations.mechanism.routes if each.line_mass), "")
            why = f"cable {sagging} sags, and its catenary carries no effort at once" if sagging else "springs carry it"
            raise TensegrityError(
                f"no actuator accelerates the output {output.name} directly ({why}); "
                "use joint_position, which moves it through equilibria."
            )
        idle = [k for k in self._task.turn_rows if not reached[k] > UNMOVED * float(np.max(reached))]
        if idle:
            axes = ", ".join(output.controlled[k] for k in idle)
            raise TensegrityError(
                f"output {output.name} controls {axes}, about which no actuator turns it at its start; "
                "remove them from `controlled`."
            )
