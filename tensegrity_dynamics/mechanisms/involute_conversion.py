"""Conversion of the state of a cable between the variants of the involute joint (000, section 3.1.2).

All variants have the unwound angle phi, rest length l0 = r phi; the second coordinate is the elongation u = l - l0, the
strain u / l0, or the taut length l itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import TensegrityError, unknown_name
from .cable_routing import VARIANTS


def convert_cable_state(
    source: str, target: str, radius: float, q: ArrayLike, v: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Position and velocity (n,) of an involute joint in the coordinates of another variant.

    Args:
        source, target: variants, each one of "rigid", "u", "epsilon", "length".
        radius: pulley radius [m].
        q, v: position and velocity in the coordinates of the source; v is zero by default.

    Raises:
        TensegrityError: a variant is unknown, a shape is wrong, no cable is unwound, or the target is "rigid" and the
            cable is stretched.
    """
    for name in (source, target):
        if name not in VARIANTS:
            raise TensegrityError(unknown_name("involute variant", name, VARIANTS))
    count = 1 if source == "rigid" else 2
    position = np.array(q, dtype=np.float64)
    velocity = np.zeros(count) if v is None else np.array(v, dtype=np.float64)
    if position.shape != (count,) or velocity.shape != (count,):
        raise TensegrityError(f"the state of a {source} cable has {count} coordinates, found {position.shape}.")
    if not (radius > 0.0 and position[0] > 0.0 and np.all(np.isfinite(position)) and np.all(np.isfinite(velocity))):
        raise TensegrityError("radius and unwound angle must be above zero, and all numbers finite.")
    rest, rest_rate = radius * position[0], radius * velocity[0]
    if source == "rigid":
        stretch = stretch_rate = 0.0
    elif source == "u":
        stretch, stretch_rate = position[1], velocity[1]
    elif source == "epsilon":
        stretch = rest * position[1]
        stretch_rate = rest_rate * position[1] + rest * velocity[1]
    else:
        stretch, stretch_rate = position[1] - rest, velocity[1] - rest_rate
    if target == "rigid":
        if abs(stretch) > 1e-12 * rest:
            raise TensegrityError(f"a cable that is stretched by {stretch:.3g} m has no state as a rigid one.")
        return position[:1], velocity[:1]
    if target == "u":
        second = (stretch, stretch_rate)
    elif target == "epsilon":
        second = (stretch / rest, (stretch_rate - stretch / rest * rest_rate) / rest)
    else:
        second = (rest + stretch, rest_rate + stretch_rate)
    return np.array([position[0], second[0]]), np.array([velocity[0], second[1]])
