"""What the motors of a robot can do: speed over torque, which plans ask before they promise a motion.

Against its load a motor is the slower the more it pulls, along the straight line of direct-current motors,

    rate <= free_rate (1 - effort / stall_effort),   effort <= stall_effort (1 - rate / free_rate),

and with its load it has `free_rate`. An actuator whose motor is unknown has its own limits alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .actuator import Actuator

LEAST_MARGIN = 0.02
"""Part of its stall effort that a motor must have left to count as one that moves."""


@dataclass(frozen=True)
class MotorUse:
    """The motor that a motion asks most of.

    Attributes:
        factor: what it asks over what the motor can do; above 1 it is too fast by that. Infinite where it stalls.
        row: of its actuator. words: what it can do there.
    """

    factor: float
    row: int
    words: str


class MotorLimits:
    """The limits of all motors of a robot.

    Args:
        actuators: of the robot.

    Attributes:
        any_motor: whether any motor is stated; where none is, everything can be done.
        free_rates: (a,) m/s or rad/s without load; infinite where a motor is unknown.
        inertia: (a,) kg or kg m² that a motor accelerates itself; negative where it acts against the position, as a
            tendon's effort does, and 0 where it is unknown.
    """

    def __init__(self, actuators: Sequence[Actuator]) -> None:
        self._actuators = tuple(actuators)
        motors = [each.motor for each in actuators]
        self.any_motor = any(motor is not None for motor in motors)
        self.free_rates = np.array([np.inf if motor is None else motor.free_rate for motor in motors])
        self._stall = np.array([np.inf if motor is None else motor.stall_effort for motor in motors])
        # a tendon is wound against its tension where its rest length falls
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
        """What a motion asks of its motors at most.

        Args:
            rates: (k, a) m/s or rad/s along it. efforts: (k, a) N or N m there; None: not known, and taken as none.
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
