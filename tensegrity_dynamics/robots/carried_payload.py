"""Payload of a robot in addition to those of its file."""

from __future__ import annotations

from typing import NamedTuple


class CarriedPayload(NamedTuple):
    """Payload on the body or node with the given name.

    Attributes:
        name: name of the body or node. mass: mass [kg].
        centre: (3,) centre of mass in the frame of the body or node [m].
        inertia: inertia xx, xy, xz, yy, yz, zz about this centre, in axes of the body [kg m^2].
    """

    name: str
    mass: float
    centre: tuple[float, float, float]
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
