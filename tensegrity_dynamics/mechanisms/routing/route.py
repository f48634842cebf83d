"""Routed cables as given in robot files: a list of points, guides, pulleys and drums from one end to the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from .columns import DRUM_EMPTY, DRUM_FULL, FLEET, LIFTED, OVERLAP, TURNED_TOO_FAR, USED_UP
from .route_model import RouteModel

MOST_STRAIN = 0.5
"""Largest strain of a cable at the start, beyond that of soft cords of rubber; above it the cable is too short."""


@dataclass(frozen=True)
class Layers:
    """Layers of a cable on a drum.

    Args:
        turns: number of turns of one layer. pitch: increase of the radius from layer to layer [m].
        count: largest number of layers.
        ramp: number of turns at the end of a layer over which the cable climbs to the next one.
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
    """Element of a route: a point or pulley that the cable passes, or one of its ends.

    Args:
        body, at: body that carries the element, and its position (3,) [m] on the body: a point where the cable ends or
            passes through a hole, or the centre of a pulley.
        joint: instead of body and at, a revolute joint that turns with the cable about its axis at its origin: a pulley
            with inertia, or a drum at an end of the cable.
        radius: radius [m] to the centre line of the cable; zero for points.
        axis: (3,) axis in the frame of the body; not used with a joint.
        side: 1 if the cable, from its first to its last end, turns about the axis by the right-hand rule, else -1.
        friction: friction coefficient between cable and pulley. None: no slip on joints, no friction on other elements.
        friction_speed: slip speed [m/s] that regularises the friction; zero for friction that sticks.
        wound: number of turns on a drum at the start; unlimited by default.
        layers: layers on the drum; None for one layer.
        may_be_clear: whether the cable may be without contact to this pulley at the start.
        turns: number of additional full turns at the start.
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
        """Whether the element is a pulley or drum."""
        return self.radius > 0.0


@dataclass(frozen=True, eq=False)
class RoutedCable:
    """A cable over pulleys.

    Args:
        name: unique among cables.
        route: two or more elements; the first and the last one are its ends.
        young: Young's modulus E [Pa]. damping: mu [Pa s]. cable_radius: [m].
        strain: uniform strain at the start.
        length: instead of strain, rest length [m] at the start between the ends (for a drum: from the exit point).
        rigid: whether the cable is inextensible; then young, damping and strain are not used.
        line_mass: mass per length [kg/m] of a cable that sags between two points; zero for a cable without weight.
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
        """Cross section [m^2]."""
        return float(np.pi * self.cable_radius**2)

    @property
    def stiffness(self) -> float:
        """Axial stiffness E A [N]."""
        return self.young * self.area

    @property
    def rubs(self) -> bool:
        """Whether the cable can slip with friction at one of its elements."""
        return any(point.friction is not None and 0.0 < point.friction < np.inf for point in self.route[1:-1])

    def is_pulley(self, number: int) -> bool:
        """Whether an element is a pulley or drum."""
        return self.route[number].is_pulley

    def point_name(self, number: int) -> str:
        """Name of an element in messages."""
        point = self.route[number]
        what = f"joint {point.joint}" if point.joint else f"body {point.body}"
        return f"route[{number}] ({what})"


def route_problem(cable: RoutedCable | RouteModel, status: int, number: int) -> str:
    """Message for a status of a routed cable at the element with a given number."""
    label = cable.point_name(number)
    if status == OVERLAP:
        beyond = cable.point_name(number + 1)
        return (
            f"after {label} it cannot run straight to {beyond}: "
            + {
                0: "both points are at one place; move them apart, or leave one of them out.",
                1: "the point lies within the pulley; move one of them, or make the pulley smaller.",
                2: "the pulleys overlap, or lie one in the other, for the sides on which it passes them; move them or "
                "change a side.",
            }[cable.is_pulley(number) + cable.is_pulley(number + 1)]
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
    if status == USED_UP:
        return (
            f"after {label} nothing of it is left before it is held again: more was wound in than was there; wind "
            "less, or make it longer."
        )
    return f"something is wrong at {label}."
