"""Coordinate frame fixed to a body."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinate frame on a body.

    Args:
        origin: (3,) origin in the frame of the body [m].
        axes: (3, 3) axes of the frame as columns, in the frame of the body.

    Raises:
        TensegrityError: a shape is wrong, or the axes are not orthonormal and right-handed.
    """

    origin: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    axes: NDArray[np.float64] = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        origin, axes = np.array(self.origin, dtype=np.float64), np.array(self.axes, dtype=np.float64)
        if origin.shape != (3,) or axes.shape != (3, 3) or not np.all(np.isfinite(origin)):
            raise TensegrityError(f"a frame needs an origin (3,) and axes (3, 3), found {origin.shape}, {axes.shape}.")
        if not np.allclose(axes.T @ axes, np.eye(3), atol=1e-9) or np.linalg.det(axes) < 0.0:
            raise TensegrityError("the axes of a frame must be orthogonal, of length one and right-handed.")
        for name, array in (("origin", origin), ("axes", axes)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
