"""Set points that survive a late computer: positions that move on by themselves, and impedances at an actuator.

    tau = k_p (q_d - q) + k_d (v_d - v) + tau_ff

is closed at the plant's own rate, by the simulator in every step, by a servo in its own loop. Between two commands the
set point moves on with its velocity, for a stated time, then it brakes and stands still: when commands stop, the joint
stays where it is, with its stiffness. A position may move on in the same way (`MovingPosition`); a plain one is a
step, which its actuator takes at full rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import TensegrityError

CATCH_UP = 0.1
"""Part of an actuator's rate limit at which a set point that moves on by itself catches up with what is commanded."""
EXTRAPOLATED_PERIODS = 6.0
"""Periods of the sender for which a set point moves on with its velocity; for twice as long it then brakes."""
EXTRAPOLATION = 0.06
"""s of the same at least: how long a computer is away does not hang on its period, and a brake in 0.06 s, as six
periods of 5 ms would have it, took tensions from a platform on cables."""


@dataclass(frozen=True)
class ImpedanceSetPoint:
    """What one actuator is commanded in impedance mode.

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
    """A position [m or rad] that moves on with a rate until the next command; a number like any other otherwise.

    Args:
        position: [m or rad]. rate: [m/s or rad/s] with which it moves on.

    Raises:
        TensegrityError: the rate is not finite.
    """

    rate: float

    def __new__(cls, position: float, rate: float = 0.0) -> MovingPosition:
        """A number that keeps its rate."""
        made = super().__new__(cls, position)
        if not math.isfinite(rate):
            raise TensegrityError(f"the rate of a position is {rate}; give a finite number.")
        made.rate = float(rate)
        return made


def lead_of(period: float, age: float = 0.0) -> float:
    """s since a command was made for which its set points move on at their rate.

    It counts from its arrival, so that commands that are always late leave no lag. An older one than that comes from a
    computer that stood still, where set points have braked meanwhile: it counts from when the command was made, so that
    they go no farther than they would have gone.

    Args:
        period: of the sender [s], 0 where unknown. age: s of the command at its arrival.
    """
    lead = max(EXTRAPOLATED_PERIODS * period, EXTRAPOLATION)
    return lead + max(0.0, min(age, 2.0 * lead - age))


def travelled(age: float, lead: float) -> float:
    """s for which a set point has moved on at its rate: all of `lead`, and half of the twice as long brake after it."""
    if lead <= 0.0:
        return 0.0
    beyond = min(max(age - lead, 0.0), 2.0 * lead)
    return min(age, lead) + beyond - 0.25 * beyond * beyond / lead


def bound_for(
    command: float, speed: float, before: float, ahead: float, low: float, high: float, reach: float
) -> tuple[float, float]:
    """Where a set point is bound for at the end of a step, and how far it goes in it by itself.

    Args:
        command, speed: position and rate as commanded. before, ahead: s of `travelled` at both ends of the step.
        low, high: of its range. reach: how far it may go in the step.
    """
    own = speed * (ahead - before)
    return min(max(command + speed * ahead, low), high), min(max(own, -reach), reach)


def moved_on(position: float, target: float, own: float, share: float, low: float, high: float, reach: float) -> float:
    """A set point after a step that takes it `own` along, and by a share nearer to where it is bound for."""
    change = own + share * (target - position - own)
    return min(max(position + min(max(change, -reach), reach), low), high)


def braking_rate(lead: float) -> float:
    """1/s, the deceleration of a set point that brakes by itself over its rate, see `travelled`."""
    return 0.5 / lead


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
    for name, row in zip(names, zip(*(columns[field] for field in FIELDS), strict=True), strict=True):
        try:
            made[name] = ImpedanceSetPoint(*map(float, row))
        except TensegrityError as error:
            raise TensegrityError(f"{name}: {error}") from error
    return made
