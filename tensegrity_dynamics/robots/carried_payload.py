"""A payload that a robot carries beside those of its file."""

from __future__ import annotations

from typing import NamedTuple


class CarriedPayload(NamedTuple):
    """A payload on a robot: its mass [kg], its centre (3,) [m] in the frame of the body or node of that name, and its
    inertia xx, xy, xz, yy, yz, zz [kg m^2] about that centre, in axes of the body."""

    name: str
    mass: float
    centre: tuple[float, float, float]
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
