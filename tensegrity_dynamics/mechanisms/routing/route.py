"""Routed cables as robot files state them: a list of points, guides, pulleys and drums from one end to the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from .columns import DRUM_EMPTY, DRUM_FULL, FLEET, LIFTED, OVERLAP, TURNED_TOO_FAR

MOST_STRAIN = 0.2
"""Strain at the start above which a cable counts as too short."""


@dataclass(frozen=True)
class Layers:
    """How a cable lies on a drum.

    Args:
        turns: of one layer. pitch: m, by how much the radius grows from layer to layer. count: of layers that fit.
        ramp: turns at the end of a layer over which the cable climbs onto the next one.
    """

    turns: float
    pitch: float
    count: int
    ramp: float = 0.25

    def __post_init__(self) -> None:
        if not (self.turns > 0.0 and self.pitch >= 0.0 and self.count >= 1.0 and 0.0 < self.ramp <= self.turns):
            raise TensegrityError(
                "a drum needs turns above zero, a pitch of its layers not below zero, one layer or more, and a ramp "
                "above zero that is no longer than a layer."
            )


@dataclass(frozen=True, eq=False)
class RoutePoint:
    """What a routed cable passes, or where it ends.

    Args:
        body, at: what carries it, and (3,) m on it: of a point where the cable ends or passes a hole, of a pulley its
            centre. joint: instead of both, a revolute joint that turns with the cable, round its axis at its origin: a
            pulley with inertia, or at an end of the cable a drum.
        radius: m, of the cable's middle; zero for points.
        axis: (3,) on the body; not with a joint.
        side: 1 where the cable, followed from its first end, turns about the axis by the right-hand rule, else -1.
        friction: coefficient between cable and pulley; None for no slip on joints, none on others. friction_speed: m/s
            of slip that regularises it, zero for friction that sticks.
        wound: turns on a drum at the start, without end by default. layers: how they lie; None for one layer.
        may_be_clear: whether the cable may start beside this pulley.
        turns: full turns beyond the first at the start.
    """

    body: str = ""
    at: NDArray[np.float64] | None = None
    joint: str = ""
    radius: float = 0.0
    axis: NDArray[np.float64] | None = None
    side: int = 1
    friction: float | None = None
    friction_speed: float = 0.0
    wound: float = np.inf
    layers: Layers | None = None
    may_be_clear: bool = False
    turns: int = 0

    @property
    def is_pulley(self) -> bool:
        """Whether the cable turns round it."""
        return self.radius > 0.0


@dataclass(frozen=True, eq=False)
class RoutedCable:
    """A cable over pulleys.

    Args:
        name: unique among cables.
        route: two or more points; the first and the last are its ends.
        young, damping: E [Pa] and mu [Pa s]; cable_radius: m.
        strain: at the start, everywhere; or length: rest length [m] at the start, between the ends (of a drum: from
            where the cable leaves it).
        rigid: it does not stretch; young, damping and strain do not count. line_mass: kg/m of one that sags, between
            two points; zero for one without weight.
    """

    name: str
    route: tuple[RoutePoint, ...]
    young: float
    cable_radius: float
    damping: float = 0.0
    strain: float = 0.0
    length: float | None = None
    rigid: bool = False
    line_mass: float = 0.0

    @property
    def area(self) -> float:
        """m^2."""
        return float(np.pi * self.cable_radius**2)

    @property
    def stiffness(self) -> float:
        """E A [N]."""
        return self.young * self.area

    @property
    def rubs(self) -> bool:
        """Whether it can slip against friction somewhere."""
        return any(point.friction is not None and 0.0 < point.friction < np.inf for point in self.route[1:-1])

    def point_name(self, number: int) -> str:
        """What a message calls the element of this number."""
        point = self.route[number]
        what = f"joint {point.joint}" if point.joint else f"body {point.body}"
        return f"route[{number}] ({what})"


def route_problem(cable: RoutedCable, status: int, number: int) -> str:
    """What a status of a routed cable means, at the element of a number."""
    label = cable.point_name(number)
    if status == OVERLAP:
        beyond = cable.point_name(min(number + 1, len(cable.route) - 1))
        return (
            f"after {label} it cannot run straight to {beyond}: the point lies within the pulley, or the pulleys "
            "overlap, or lie one in the other, for the sides on which it passes them; move them or change a side."
        )
    if status == FLEET:
        return (
            f"after {label} it leaves the plane of a pulley, on which it cannot lie so; let both ends of the straight "
            "piece be in the plane, and axes of pulleys parallel."
        )
    if status == TURNED_TOO_FAR:
        return (
            f"at {label} it has turned by half a turn since the start, beyond which its turns cannot be distinguished."
        )
    if status == LIFTED:
        return f"it has lifted off {label}, which holds a cable without stretch; take one that stretches."
    if status == DRUM_EMPTY:
        return f"the drum at {label} is empty: nothing of the cable is left on it."
    if status == DRUM_FULL:
        return f"the drum at {label} is full: all of its layers are wound."
    return f"something is wrong at {label}."
