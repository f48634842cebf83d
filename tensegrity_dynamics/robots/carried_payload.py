"""A payload that a robot carries beside those of its file."""

from __future__ import annotations

from typing import NamedTuple


class CarriedPayload(NamedTuple):
    """A payload on a robot: its mass [kg] and its centre (3,) [m] in the frame of the body or node of that name."""

    name: str
    mass: float
    centre: tuple[float, float, float]
