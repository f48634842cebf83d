"""Actuators of a robot and their limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import TensegrityError, unknown_name

UNITS = {"tendon": ("m", "m/s", "N"), "prismatic": ("m", "m/s", "N"), "revolute": ("rad", "rad/s", "N m")}


@dataclass(frozen=True)
class Motor:
    """Motor of an actuator. Its speed against a load decreases linearly from `free_rate` at zero effort to zero at
    stall.

    If the load drives the motor, its largest speed is `free_rate`. A current limit of the motor is given as the
    `effort` of the actuator.

    Args:
        name: name in error messages, such as "servo 3 (XM430-W350)".
        free_rate: no-load speed [m/s or rad/s of the actuator], above zero.
        stall_effort: effort at zero speed [N or N m of the actuator], above zero.
        inertia: inertia of rotor and gear [kg or kg m² of the actuator], in addition to the inertias in the robot file;
            0: unknown.
    """

    name: str
    free_rate: float
    stall_effort: float
    inertia: float = 0.0

    def __post_init__(self) -> None:
        if not (0.0 < self.free_rate < np.inf and 0.0 < self.stall_effort < np.inf):
            raise TensegrityError(
                f"{self.name}: free rate {self.free_rate:g} and stall effort {self.stall_effort:g} must be above zero."
            )


@dataclass(frozen=True)
class Actuator:
    """Drive of a tendon or joint, with the limits that the command gate and the planners enforce.

    Args:
        name: name of the actuator.
        drives: tendon or joint that it moves.
        position: (lowest, highest) rest length [m] of a tendon, or joint position [m or rad].
        rate: largest speed [m/s or rad/s], above zero.
        effort: largest tension [N] of a tendon, or joint effort [N or N m], above zero.
        minimum_tension: least tension [N] of the tendon or cable in planned motions; zero for other joints.
        motion: "tendon" (the position is a rest length), or the kind of joint: "revolute" or "prismatic".
        motor: speed-torque line of the motor, if known; used by `motor_limits`.
    """

    name: str
    drives: str
    position: tuple[float, float]
    rate: float
    effort: float
    minimum_tension: float = 0.0
    motion: str = "tendon"
    motor: Motor | None = None

    def __post_init__(self) -> None:
        if self.motion not in UNITS:
            raise TensegrityError(f"actuator {self.name}: " + unknown_name("motion", self.motion, UNITS))
        low, high = self.position
        numbers = (low, high, self.rate, self.effort, self.minimum_tension)
        if not np.all(np.isfinite(numbers)):
            raise TensegrityError(f"actuator {self.name}: every limit must be a finite number, found {numbers}.")
        if not low < high:
            raise TensegrityError(
                f"actuator {self.name}: position limits {low:g} to {high:g} are an empty range; "
                "give the lower limit first."
            )
        if self.rate <= 0.0 or self.effort <= 0.0:
            raise TensegrityError(
                f"actuator {self.name}: rate {self.rate:g} and effort {self.effort:g} must be above zero."
            )
        if not 0.0 <= self.minimum_tension < (self.effort if self.motion == "tendon" else np.inf):
            raise TensegrityError(
                f"actuator {self.name}: minimum tension {self.minimum_tension:g} must lie between 0 and its effort "
                f"{self.effort:g}."
            )

    @property
    def units(self) -> tuple[str, str, str]:
        """Units of position, rate and effort as text."""
        return UNITS[self.motion]
