"""Collision check of a path with a height field, compiled: largest height of the ground above points of a body."""

from __future__ import annotations

import numpy as np

from ..numerics.compilation import compiled
from .ground_forces import field_height


@compiled
def field_heights(ground, points, heights):
    """Fill heights (m,) [m] of the field at points (m, 2) [m]; ground: flattened, with hills."""
    for i in range(points.shape[0]):
        heights[i] = field_height(ground, points[i, 0], points[i, 1])[0]


@compiled
def highest_above(ground, path, bars, spacing, worst):
    """Largest height [m] of the field above nodes and bars along a path of shapes; negative without collision.

    Args:
        ground: flattened, with hills. path: (k, n, 3) m. bars: (b, 2) node indices.
        spacing: distance between tested points of a bar [m]. worst: (2,) filled with x and y of the worst point [m].
    """
    most = -np.inf
    for k in range(path.shape[0]):
        for i in range(path.shape[1]):
            x, y = path[k, i, 0], path[k, i, 1]
            above = field_height(ground, x, y)[0] - path[k, i, 2]
            if above > most:
                most, worst[0], worst[1] = above, x, y
        for b in range(bars.shape[0]):
            i, j = bars[b, 0], bars[b, 1]
            dx, dy = path[k, j, 0] - path[k, i, 0], path[k, j, 1] - path[k, i, 1]
            dz = path[k, j, 2] - path[k, i, 2]
            parts = int(np.sqrt(dx * dx + dy * dy + dz * dz) / spacing) + 1
            for p in range(1, parts):
                t = p / parts
                x, y = path[k, i, 0] + t * dx, path[k, i, 1] + t * dy
                above = field_height(ground, x, y)[0] - (path[k, i, 2] + t * dz)
                if above > most:
                    most, worst[0], worst[1] = above, x, y
    return most
