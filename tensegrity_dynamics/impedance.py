"""Impedance at an actuator: what torque-controlled robots send to joints so that they survive a late computer.

    tau = k_p (q_d - q) + k_d (v_d - v) + tau_ff

is closed at the plant's own rate, by the simulator in every step, by a servo in its own loop. Between two commands the
set point moves on with its velocity, for a stated time, then it brakes and stands still: when commands stop, the joint
stays where it is, with its stiffness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import TensegrityError

EXTRAPOLATED_PERIODS = 6.0
"""Periods of the sender for which a set point moves on with its velocity; for twice as long it then brakes."""
EXTRAPOLATION = 0.05
"""s of the same where the sender's period is not known."""


@dataclass(frozen=True)
class ImpedanceSetPoint:
    """What one actuator is told in impedance mode.

    Args:
        position: q_d [m or rad]. velocity: v_d [m/s or rad/s] with which it moves on until the next command.
        effort: feed-forward tau_ff [N or N m].
        stiffness: k_p [N/m or N m/rad], damping: k_d [N s/m or N m s/rad], neither below zero.

    Raises:
        TensegrityError: a number is not finite, or a gain is below zero.
    """

    position: float
    velocity: float = 0.0
    effort: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not math.isfinite(value):
                raise TensegrityError(f"{name} of an impedance set point is {value}; give a finite number.")
        for name in ("stiffness", "damping"):
            if getattr(self, name) < 0.0:
                raise TensegrityError(f"{name} of an impedance set point is {getattr(self, name):g}, below zero.")


def travelled(age: float, lead: float) -> float:
    """s for which a set point has moved on at its rate: all of `lead`, and half of the twice as long brake after it."""
    if lead <= 0.0:
        return 0.0
    beyond = min(max(age - lead, 0.0), 2.0 * lead)
    return min(age, lead) + beyond - 0.25 * beyond * beyond / lead


FIELDS = ("position", "velocity", "effort", "stiffness", "damping")


def impedance_set_points(names: Sequence[str], columns: Mapping[str, Sequence[float]]) -> dict[str, ImpedanceSetPoint]:
    """Set points by actuator name, from one list for each of `FIELDS`.

    Raises:
        TensegrityError: a list is missing or has another length than the names, or a number is no set point.
    """
    for field in FIELDS:
        if len(columns.get(field, ())) != len(names):
            raise TensegrityError(
                f"{len(columns.get(field, ()))} of {field} for {len(names)} names; impedance needs one of "
                f"{', '.join(FIELDS)} for each name."
            )
    made = {}
    for k, name in enumerate(names):
        try:
            made[name] = ImpedanceSetPoint(*(float(columns[field][k]) for field in FIELDS))
        except TensegrityError as error:
            raise TensegrityError(f"{name}: {error}") from error
    return made
