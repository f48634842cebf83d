"""What resists the motion of a joint: spring, damper, Coulomb friction and stops (000, section 1.2.1 and 1.2.5).

Against a coordinate x of a tree joint, or of the free motion of a loop joint, acts

    -k (x - x0) - c x' - f tanh(x' / s) + stop(x, x')

with x0 the rest position. Friction is regularised: from about three times the speed s on it is f, below it creeps. A
stop is a spring and a damper on one side, k_s d - c_s d' for a depth d beyond a limit, and never pulls.

A gear of efficiency e rubs with what it carries: of the effort tau of its motor (by the gear) the joint gets e tau
where the motor drives, and tau / e where the joint drives the motor back, so that friction

    |tau| (1 - e) or |tau| (1 / e - 1), times tanh(x' / s),

is added; between both directions it goes through zero, where the gear creeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError

TREE, TREE_BALL, LOOP_TURN, LOOP_SLIDE, LOOP_BALL = 0, 1, 2, 3, 4
"""What the law acts on: a coordinate of a tree joint, the turn of a spherical one; of a loop the turn about its z, the
displacement along its z, or its turn about any axis."""

STIFFNESS, REST, DAMPING, FRICTION, SPEED, LOW, HIGH, STOP_STIFFNESS, STOP_DAMPING, EFFICIENCY, CARRIED = range(11)
"""Numbers of a law, in their order; the last is the effort that a gear carries just now."""
KIND, FIRST, SECOND, ORIGIN, OTHER_ORIGIN, AXIS, ZERO, TURNED, LAW, RESISTANCE_COLUMNS = (
    0,
    1,
    2,
    3,
    6,
    9,
    12,
    15,
    18,
    29,
)
"""Columns of a resistance in the arrays of a mechanism (few arrays, because compiled functions hand over every one).

What it acts on; of tree joints the coordinate in v and in q, of loops both bodies; of loops where the ends are, axis
and zero direction on the first body, the direction that turns on the second; and where the law begins."""

TURNING_LOOPS = ("revolute", "cylindrical", "planar")
SLIDING_LOOPS = ("cylindrical", "prismatic")
BALL_LOOPS = ("point", "universal")


@dataclass(frozen=True)
class Resistance:
    """One law; SI units, of a turn N m, rad and s, of a displacement N, m and s.

    Args:
        stiffness, rest: k and x0. damping: c, viscous friction is the same.
        friction, friction_speed: f and s of the Coulomb friction.
        limits: (lowest, highest) between the stops. stop_stiffness, stop_damping: k_s and c_s.
        efficiency: e of the gear through which an actuator drives the joint.

    Raises:
        TensegrityError: a number is not finite or below zero, the limits are empty or have stops without stiffness.
    """

    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    friction_speed: float = 1e-3
    limits: tuple[float, float] = (-np.inf, np.inf)
    stop_stiffness: float = 0.0
    stop_damping: float = 0.0
    efficiency: float = 1.0

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping", "friction", "stop_stiffness", "stop_damping"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise TensegrityError(f"{name} is {value:g}; it must be finite and not below zero.")
        if not (np.isfinite(self.friction_speed) and self.friction_speed > 0.0):
            raise TensegrityError(f"friction_speed is {self.friction_speed:g}; it must be finite and above zero.")
        if not 0.0 < self.efficiency <= 1.0:
            raise TensegrityError(f"efficiency is {self.efficiency:g}; it must be above zero and at most 1.")
        if not np.isfinite(self.rest):
            raise TensegrityError("rest must be a finite number.")
        low, high = self.limits
        if not low < high:
            raise TensegrityError(f"limits {low:g} to {high:g} are an empty range; give the lower limit first.")
        if self.has_stops and self.stop_stiffness == 0.0:
            raise TensegrityError("limits need a stop_stiffness above zero; a stop is a spring on one side.")
        if not self.has_stops and (self.stop_stiffness or self.stop_damping):
            raise TensegrityError("there are no limits for the stops to act at; give limits: [lowest, highest].")

    @property
    def has_stops(self) -> bool:
        """Whether there is a limit on any side."""
        return bool(np.isfinite(self.limits).any())

    @property
    def law(self) -> NDArray[np.float64]:
        """(11,) numbers in their order."""
        return np.array([
            self.stiffness, self.rest, self.damping, self.friction, self.friction_speed, *self.limits,
            self.stop_stiffness, self.stop_damping, self.efficiency, 0.0,
        ])  # fmt: skip
