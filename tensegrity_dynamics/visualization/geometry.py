"""Geometry of pictures: cylinders between points, dashed lines, outlines of solids, and flat patches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..contact.ground import Ground
from ..contact.ground_forces import surface_height

CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])  # of a box of sides 1
EDGES = np.array([[i, i + step] for step in (1, 2, 4) for i in range(8) if not i & step])  # between which corners
CIRCLE = 2.0 * np.pi * np.arange(24) / 24.0
OUTLINES = {
    "box": CORNERS,
    "mesh": CORNERS,
    "sphere": 0.5 * np.vstack((np.eye(3), -np.eye(3))),
    "cylinder": 0.5
    * np.vstack([np.column_stack((np.cos(CIRCLE), np.sin(CIRCLE), np.full(CIRCLE.size, z))) for z in (-1.0, 1.0)]),
}
"""Points (k, 3) around each kind of solid, for extents of 1 along each of its axes."""


def cylinders_between(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Poses and lengths of cylinders along z that run from point to point.

    Args:
        first, second: (m, 3) m.

    Returns:
        centres (m, 3) m, quaternions wxyz (m, 4) that turn z into the direction from first to second, and lengths
        (m,) m. Where the points coincide, z keeps its direction.
    """
    along = second - first
    lengths = np.linalg.norm(along, axis=1)
    safe = np.where(lengths > 0.0, lengths, 1.0)
    direction = np.where(lengths[:, None] > 0.0, along / safe[:, None], np.array([0.0, 0.0, 1.0]))
    # The shortest rotation from z to d is 1 + z.d + z x d, normalised; straight down, any horizontal axis will do.
    quaternions = np.column_stack((1.0 + direction[:, 2], -direction[:, 1], direction[:, 0], np.zeros(len(along))))
    norms = np.linalg.norm(quaternions, axis=1)
    down = norms < 1e-7
    quaternions[down] = (0.0, 1.0, 0.0, 0.0)
    norms[down] = 1.0
    return 0.5 * (first + second), quaternions / norms[:, None], lengths


def dashes(lines: NDArray[np.float64], count: int = 9) -> NDArray[np.float64]:
    """Dashed lines (k * count, 2, 3) m: each line of `lines` (k, 2, 3) m as `count` short ones with gaps between."""
    first, second = lines[:, 0], lines[:, 1]
    steps = np.arange(count) / (count - 0.5)
    ends = np.stack((steps, steps + 0.5 / (count - 0.5)), axis=1)  # (count, 2)
    points = first[:, None, None, :] + ends[None, :, :, None] * (second - first)[:, None, None, :]
    return points.reshape(-1, 2, 3)


def box_edges(position: NDArray[np.float64], axes: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray:
    """The twelve edges (12, 2, 3) m of a box with this centre (3,) m, axes as columns (3, 3) and sides (3,) m."""
    return np.asarray((position + (CORNERS * size) @ axes.T)[EDGES])


def outline(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (k, 3) m that lie about level, in the order in which a line runs around them."""
    middle = points - points.mean(axis=0)
    return points[np.argsort(np.arctan2(middle[:, 1], middle[:, 0]))]


def patch(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Flat patch spanned by points (k, 3), as vertices (k + 1, 3) and triangles (k, 3): a fan around their centroid.

    The points may come in any order; they are sorted by their angle around the centroid.
    """
    centroid = points.mean(axis=0)
    _, _, axes = np.linalg.svd(points - centroid)
    angles = np.arctan2((points - centroid) @ axes[1], (points - centroid) @ axes[0])
    count = len(points)
    row = np.arange(count)
    triangles = np.column_stack((row, (row + 1) % count, np.full(count, count)))
    return np.vstack((points[np.argsort(angles)], centroid)), triangles


def ground_surface(ground: Ground, nodes: NDArray[np.float64], span: float) -> NDArray[np.float64]:
    """(t, 3, 3) m: triangles of a ground, hills as far as they go, a plane as far as a few spans around the nodes."""
    if ground.hills is not None:
        rows, columns = ground.hills.heights.shape
        x = ground.hills.origin[0] + ground.hills.spacing * np.arange(columns)
        y = ground.hills.origin[1] + ground.hills.spacing * np.arange(rows)
        z = ground.hills.heights + ground.height
    else:
        middle = nodes.mean(axis=0)
        x, y = (middle[a] + 3.0 * span * np.array([-1.0, 1.0]) for a in (0, 1))
        z = np.array([[surface_height(ground, u, v) for u in x] for v in y])
    points = np.stack((*np.meshgrid(x, y), z), axis=2)
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    return np.stack((np.stack((a, b, c), axis=2), np.stack((a, c, d), axis=2)), axis=2).reshape(-1, 3, 3)
