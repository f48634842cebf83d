"""Speed-torque limits of the motors of a robot, which motion planning checks.

Against a load, the largest speed of a motor decreases linearly with its effort, as for DC motors,

    rate <= free_rate (1 - effort / stall_effort),   effort <= stall_effort (1 - rate / free_rate),

and if the load drives the motor, the largest speed is `free_rate`. An actuator without motor data has only its own
limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .actuator import Actuator

LEAST_MARGIN = 0.02
"""Least remaining effort relative to the stall effort; below it the motor counts as stalled."""


@dataclass(frozen=True)
class MotorUse:
    """Motor with the highest load during a motion.

    Attributes:
        factor: required speed divided by the possible speed of the motor; above 1 the motion is too fast by this
            factor. Infinite if the motor stalls.
        row: index of its actuator. words: text on the limit of the motor there.
    """

    factor: float
    row: int
    words: str


class MotorLimits:
    """Limits of all motors of a robot.

    Args:
        actuators: actuators of the robot.

    Attributes:
        any_motor: whether any motor is defined; without motors there are no limits.
        free_rates: (a,) no-load speeds [m/s or rad/s]; infinite for actuators without motor.
        inertia: (a,) inertia of the motor itself [kg or kg m²]; negative if the effort acts against the position, as
            for tendons, and 0 if it is unknown.
    """

    def __init__(self, actuators: Sequence[Actuator]) -> None:
        self._actuators = tuple(actuators)
        motors = [each.motor for each in actuators]
        self.any_motor = any(motor is not None for motor in motors)
        self.free_rates = np.array([np.inf if motor is None else motor.free_rate for motor in motors])
        self._stall = np.array([np.inf if motor is None else motor.stall_effort for motor in motors])
        # a tendon is wound against its tension when its rest length decreases
        self._sense = np.array([-1.0 if each.motion == "tendon" else 1.0 for each in actuators])
        self.inertia = self._sense * [0.0 if motor is None else motor.inertia for motor in motors]

    def rates(self, efforts: ArrayLike, rates: ArrayLike) -> NDArray[np.float64]:
        """(..., a) largest rates [m/s or rad/s] in the directions of rates (..., a) at efforts (..., a) [N or N m]."""
        effort = np.asarray(efforts, dtype=np.float64)
        against = np.where(self._sense * np.asarray(rates) * effort > 0.0, np.abs(effort), 0.0)
        return np.asarray(self.free_rates * np.maximum(0.0, 1.0 - against / self._stall))

    def efforts(self, rates: ArrayLike) -> NDArray[np.float64]:
        """(..., a) largest efforts [N or N m] in the direction of motion at rates (..., a); tensions of tendons."""
        return np.asarray(
            self._stall * np.maximum(0.0, 1.0 - np.abs(np.asarray(rates, dtype=np.float64)) / self.free_rates)
        )

    def use(self, rates: ArrayLike, efforts: ArrayLike | None = None) -> MotorUse:
        """Highest motor load of a motion.

        Args:
            rates: (k, a) rates along the motion [m/s or rad/s].
            efforts: (k, a) efforts along the motion [N or N m]; None: unknown, zero is used.
        """
        if not self.any_motor:
            return MotorUse(0.0, 0, "")
        speed = np.atleast_2d(np.asarray(rates, dtype=np.float64))
        effort = np.zeros_like(speed) if efforts is None else np.atleast_2d(np.asarray(efforts, dtype=np.float64))
        able = self.rates(effort, speed)
        stalls = np.abs(effort) > (1.0 - LEAST_MARGIN) * self._stall
        factor = np.abs(speed) / np.maximum(able, 1e-300)
        factor[stalls] = np.inf
        k, row = (int(each) for each in np.unravel_index(int(np.argmax(factor)), factor.shape))
        actuator, motor = self._actuators[row], self._actuators[row].motor
        if motor is None:
            return MotorUse(0.0, row, "")
        _, rate_unit, effort_unit = actuator.units
        if stalls[k, row]:
            words = (
                f"{motor.name} of {actuator.name}, which stalls at {motor.stall_effort:.4g} {effort_unit} and would "
                f"have to hold {abs(effort[k, row]):.4g} {effort_unit}"
            )
        else:
            words = f"{motor.name} of {actuator.name}, which does {able[k, row]:.4g} {rate_unit} at most" + (
                "" if efforts is None else f" where it bears {abs(effort[k, row]):.4g} {effort_unit}"
            )
        return MotorUse(float(factor[k, row]), row, words)
