"""Resistance of a joint: spring, damper, Coulomb friction and stops (000, section 1.2.1 and 1.2.5).

The effort on a coordinate x of a tree joint, or of the free motion of a loop joint, is

    -k (x - x0) - c x' - f tanh(x' / s) + stop(x, x')

with the rest position x0. Friction is regularised: above about three times the speed s it is f, below this speed the
joint creeps. A stop is a unilateral spring and damper, k_s d - c_s d' for a depth d beyond a limit, and never pulls.

The friction of a gear with efficiency e is proportional to the transmitted effort. tau is the motor effort, reflected
by the gear. The joint gets e tau if the motor drives the joint, and tau / e if the joint drives the motor, so that the
friction

    |tau| (1 - e) or |tau| (1 / e - 1), times tanh(x' / s),

is added. Between both directions it passes through zero, where the gear creeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError

TREE, TREE_BALL, LOOP_TURN, LOOP_SLIDE, LOOP_BALL = 0, 1, 2, 3, 4
"""Motion on which the law acts: a coordinate of a tree joint; the rotation of a spherical tree joint; the rotation of a
loop joint about z, its displacement along z, or its rotation about any axis."""

STIFFNESS, REST, DAMPING, FRICTION, SPEED, LOW, HIGH, STOP_STIFFNESS, STOP_DAMPING, EFFICIENCY, CARRIED = range(11)
"""Parameters of a law, in order; the last one is the present effort transmitted by the gear."""
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
"""Columns of a resistance in the arrays of a mechanism (few arrays, because compiled functions pass on every one).

Motion on which it acts; for tree joints the indices of the coordinate in v and in q, for loops both bodies; for loops
the points on both bodies, axis and zero direction on the first body, rotating direction on the second body; and first
column of the law."""

TURNING_LOOPS = ("revolute", "cylindrical", "planar")
SLIDING_LOOPS = ("cylindrical", "prismatic")
BALL_LOOPS = ("point", "universal")


@dataclass(frozen=True)
class Resistance:
    """One resistance law in SI units: N m, rad and s for rotations; N, m and s for displacements.

    Args:
        stiffness, rest: k and x0. damping: c, also for viscous friction.
        friction, friction_speed: f and s of the Coulomb friction.
        limits: (lowest, highest) between the stops. stop_stiffness, stop_damping: k_s and c_s.
        efficiency: e of the gear through which an actuator drives the joint.

    Raises:
        TensegrityError: a number is not finite or negative, the limits are empty, or the stops have no stiffness.
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
        """Whether there is a limit on at least one side."""
        return bool(np.isfinite(self.limits).any())

    @property
    def law(self) -> NDArray[np.float64]:
        """(11,) parameters of the law in order."""
        return np.array([
            self.stiffness, self.rest, self.damping, self.friction, self.friction_speed, *self.limits,
            self.stop_stiffness, self.stop_damping, self.efficiency, 0.0,
        ])  # fmt: skip
