"""Surface of triangles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import TensegrityError

MOST_TRIANGLES = 1_000_000
"""Largest number of triangles of one mesh: far above the needs of display, far below the limits of memory."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Surface of triangles; seen from outside, the corners of each triangle are in counter-clockwise order.

    Args:
        vertices: (v, 3) distinct vertices [m]. triangles: (t, 3) rows of `vertices`.
    """

    vertices: NDArray[np.float64]
    triangles: NDArray[np.int64]

    @property
    def box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounding box: lowest and highest coordinates (3,) [m]."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    def scaled(self, factor: float) -> Mesh:
        """Surface scaled by a factor above zero."""
        return Mesh(factor * self.vertices, self.triangles)


def make_mesh(vertices: ArrayLike, triangles: ArrayLike) -> Mesh:
    """Mesh from vertices that can be repeated; triangles with two equal corners, which have no area, are omitted.

    Args:
        vertices: (v, 3) m. triangles: (t, 3) rows of `vertices`.

    Raises:
        TensegrityError: there are no or too many triangles, a coordinate is not finite, or a row does not exist.
    """
    points, rows = np.asarray(vertices, dtype=np.float64).reshape(-1, 3), np.asarray(triangles).reshape(-1, 3)
    if len(rows) > MOST_TRIANGLES:
        raise TensegrityError(f"it has {len(rows)} triangles, {MOST_TRIANGLES} at most; make it coarser.")
    if len(rows) and not (0 <= rows.min() and rows.max() < len(points)):
        wrong = int(np.flatnonzero(((rows < 0) | (rows >= len(points))).any(axis=1))[0])
        raise TensegrityError(f"triangle {wrong} names vertex {rows[wrong].max()}, but there are {len(points)}.")
    used = points[rows.reshape(-1)]
    if not np.isfinite(used).all():
        wrong = int(np.flatnonzero(~np.isfinite(used).all(axis=1))[0] // 3)
        raise TensegrityError(f"a corner of triangle {wrong} is not finite.")
    # compared bitwise: + 0.0 converts -0 to 0
    unique, inverse = np.unique(used + 0.0, axis=0, return_inverse=True)
    corners = inverse.reshape(-1, 3).astype(np.int64)
    a, b, c = corners.T
    corners = corners[(a != b) & (b != c) & (c != a)]
    if not len(corners):
        raise TensegrityError("it holds no triangle.")
    return Mesh(unique, corners)
