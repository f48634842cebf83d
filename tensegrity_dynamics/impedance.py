"""Set points that tolerate late commands: extrapolated positions, and impedance set points of an actuator.

    tau = k_p (q_d - q) + k_d (v_d - v) + tau_ff

This loop is closed at the rate of the plant: by the simulator in every step, or by a servo in its internal loop.
Between two commands the set point is extrapolated with its velocity for a stated time. Then it brakes and stops: when
the commands stop, the joint stays at its position and keeps its stiffness. A position can be extrapolated in the same
way (`MovingPosition`). A plain position is a step command, which the actuator follows at its rate limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import TensegrityError

CATCH_UP = 0.1
"""Fraction of an actuator's rate limit at which an extrapolated set point converges to the commanded one."""
EXTRAPOLATED_PERIODS = 6.0
"""Number of periods of the sender for which a set point is extrapolated. Then it brakes for twice this time."""
EXTRAPOLATION = 0.06
"""Minimum extrapolation time [s]. The delay of a late computer does not depend on its period, and braking within
0.06 s (six periods of 5 ms: 0.03 s and a brake of twice that) let the cables of a cable-driven platform go slack."""


@dataclass(frozen=True)
class ImpedanceSetPoint:
    """Command of one actuator in impedance mode.

    Args:
        position: q_d [m or rad].
        velocity: v_d [m/s or rad/s], used to extrapolate the position until the next command.
        effort: feed-forward tau_ff [N or N m].
        stiffness: k_p >= 0 [N/m or N m/rad]. damping: k_d >= 0 [N s/m or N m s/rad].

    Raises:
        TensegrityError: a number is not finite, or a gain is negative.
    """

    position: float
    velocity: float = 0.0
    effort: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        if (
            math.isfinite(self.position + self.velocity + self.effort + self.stiffness + self.damping)
            and self.stiffness >= 0.0 and self.damping >= 0.0
        ):  # fmt: skip
            return
        for name, value in vars(self).items():
            if not math.isfinite(value):
                raise TensegrityError(f"{name} of an impedance set point is {value}; give a finite number.")
        for name in ("stiffness", "damping"):
            if getattr(self, name) < 0.0:
                raise TensegrityError(f"{name} of an impedance set point is {getattr(self, name):g}, below zero.")


class MovingPosition(float):
    """Position [m or rad] that is extrapolated with a rate until the next command; otherwise a plain float.

    Args:
        position: [m or rad]. rate: rate of the extrapolation [m/s or rad/s].

    Raises:
        TensegrityError: the rate is not finite.
    """

    rate: float

    def __new__(cls, position: float, rate: float = 0.0) -> MovingPosition:
        """Create the float and store its rate."""
        made = super().__new__(cls, position)
        if not math.isfinite(rate):
            raise TensegrityError(f"the rate of a position is {rate}; give a finite number.")
        made.rate = float(rate)
        return made


def lead_of(period: float, age: float = 0.0) -> float:
    """Time [s] after the creation of a command for which its set points are extrapolated at their rate.

    The extrapolation time starts at the arrival of the command, so that a constant delay causes no lag. A command that
    is older than the extrapolation time comes from a computer that was blocked, and the set points have braked in the
    meantime. For such a command the time counts from its creation, so that the set points do not move farther than
    without the delay.

    Args:
        period: period of the sender [s], 0 if unknown. age: age of the command at its arrival [s].
    """
    lead = max(EXTRAPOLATED_PERIODS * period, EXTRAPOLATION)
    return lead + max(0.0, min(age, 2.0 * lead - age))


def travelled(age: float, lead: float) -> float:
    """Equivalent time [s] of motion at full rate: up to `lead`, plus the braking phase (2 `lead` long, counts half).

    The displacement of an extrapolated set point is its rate times this time.

    Args:
        age: time since the command [s]. lead: extrapolation time [s].
    """
    if lead <= 0.0:
        return 0.0
    beyond = min(max(age - lead, 0.0), 2.0 * lead)
    return min(age, lead) + beyond - 0.25 * beyond * beyond / lead


def bound_for(
    command: float, speed: float, before: float, ahead: float, low: float, high: float, reach: float
) -> tuple[float, float]:
    """Target of a set point at the end of a step, and its extrapolated displacement in this step [m or rad].

    Args:
        command, speed: commanded position [m or rad] and rate [m/s or rad/s].
        before, ahead: values of `travelled` [s] at the start and at the end of the step.
        low, high: limits of the position [m or rad]. reach: largest displacement in the step [m or rad].
    """
    own = speed * (ahead - before)
    return min(max(command + speed * ahead, low), high), min(max(own, -reach), reach)


def moved_on(position: float, target: float, own: float, share: float, low: float, high: float, reach: float) -> float:
    """Set point after a step [m or rad]: moved by `own`, plus a fraction `share` of the remaining distance to `target`.

    Args:
        position: set point before the step [m or rad]. target, own: see `bound_for`. share: 0 to 1.
        low, high: limits of the position. reach: largest displacement in the step.
    """
    change = own + share * (target - position - own)
    return min(max(position + min(max(change, -reach), reach), low), high)


def braking_rate(lead: float) -> float:
    """Deceleration of a braking set point divided by its rate [1/s], see `travelled`."""
    return 0.5 / lead


FIELDS = ("position", "velocity", "effort", "stiffness", "damping")


def impedance_set_points(names: Sequence[str], columns: Mapping[str, Sequence[float]]) -> dict[str, ImpedanceSetPoint]:
    """Impedance set points by actuator name, from one list of values for each of `FIELDS`.

    Raises:
        TensegrityError: a list is missing, its length differs from that of the names, or a value is not valid.
    """
    for field in FIELDS:
        if len(columns.get(field, ())) != len(names):
            raise TensegrityError(
                f"{len(columns.get(field, ()))} of {field} for {len(names)} names; impedance needs one of "
                f"{', '.join(FIELDS)} for each name."
            )
    made = {}
    for name, row in zip(names, zip(*(columns[field] for field in FIELDS), strict=True), strict=True):
        try:
            made[name] = ImpedanceSetPoint(*map(float, row))
        except TensegrityError as error:
            raise TensegrityError(f"{name}: {error}") from error
    return made
