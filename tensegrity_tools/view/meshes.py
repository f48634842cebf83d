"""Unit meshes that the view translates, rotates and scales: cylinder, box, ball and coil spring."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Mesh = tuple[NDArray[np.float64], NDArray[np.int64]]


def cylinder(sides: int = 16) -> Mesh:
    """Cylinder of radius 1 and height 1 along z about the origin, with caps; vertices (v, 3), faces (f, 3)."""
    angles = 2.0 * np.pi * np.arange(sides) / sides
    ring = np.column_stack((np.cos(angles), np.sin(angles)))
    low, high = np.full((sides, 1), -0.5), np.full((sides, 1), 0.5)
    # The caps have their own vertices: shared ones would round the edge in the shading.
    vertices = np.vstack(
        [np.hstack((ring, low)), np.hstack((ring, high)), np.hstack((ring, low)), np.hstack((ring, high))]
        + [np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]])]
    )
    here, there = np.arange(sides), (np.arange(sides) + 1) % sides
    middle = np.full(sides, 4 * sides)
    faces = np.vstack(
        [
            np.column_stack((here, there, there + sides)),
            np.column_stack((here, there + sides, here + sides)),
            np.column_stack((there + 2 * sides, here + 2 * sides, middle)),
            np.column_stack((here + 3 * sides, there + 3 * sides, middle + 1)),
        ]
    )
    return vertices, faces


def box() -> Mesh:
    """Box of sides 1 about the origin; every face has its own vertices, which keeps the edges sharp."""
    vertices, faces = [], []
    for axis in range(3):
        for side in (-0.5, 0.5):
            # Seen from outside, the corners are in counterclockwise order.
            for a, b in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))[:: 1 if side > 0.0 else -1]:
                corner = np.zeros(3)
                corner[[axis, (axis + 1) % 3, (axis + 2) % 3]] = side, a, b
                vertices.append(corner)
            first = len(vertices) - 4
            faces += [(first, first + 1, first + 2), (first, first + 2, first + 3)]
    return np.array(vertices), np.array(faces)


def ball(rings: int = 8, sides: int = 14) -> Mesh:
    """Ball of radius 1 about the origin."""
    polar = np.pi * np.arange(rings + 1) / rings
    angles = 2.0 * np.pi * np.arange(sides) / sides
    grid = np.array(
        [[np.sin(p) * np.cos(a), np.sin(p) * np.sin(a), np.cos(p)] for p in polar for a in angles]
    )  # fmt: skip
    return grid, _net(rings + 1, sides)


def coil(length: float, radius: float, wire: float, turns: int = 7, sides: int = 6) -> Mesh:
    """Coil spring of this length [m] along z about the origin, with straight ends on the axis; radii in m."""
    ends = 0.12 * length
    steps = 14 * turns
    share = np.arange(steps + 1) / steps
    angle = 2.0 * np.pi * turns * share
    body = np.column_stack(
        (radius * np.cos(angle), radius * np.sin(angle), -0.5 * length + ends + share * (length - 2.0 * ends))
    )
    axis = np.array([[0.0, 0.0, -0.5 * length], [0.0, 0.0, -0.5 * length + 0.97 * ends]])
    path = np.vstack((axis, body, -axis[::-1]))
    tangent = np.gradient(path, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    # Normal: away from the axis along the coil; at the ends any fixed direction that is not parallel to the wire.
    outward = np.vstack((np.tile(body[0], (2, 1)), body, np.tile(body[-1], (2, 1)))) * np.array([1.0, 1.0, 0.0])
    first = outward - np.sum(outward * tangent, axis=1)[:, None] * tangent
    lengths = np.linalg.norm(first, axis=1)
    first = np.where(lengths[:, None] > 1e-9 * radius, first, np.array([0.0, 0.0, 1.0]))
    first /= np.linalg.norm(first, axis=1)[:, None]
    second = np.cross(tangent, first)
    angles = 2.0 * np.pi * np.arange(sides) / sides
    rings = (
        path[:, None, :]
        + wire * np.cos(angles)[None, :, None] * first[:, None, :]
        + wire * np.sin(angles)[None, :, None] * second[:, None, :]
    )
    return rings.reshape(-1, 3), _net(len(path), sides)[:, ::-1]


def _net(rows: int, sides: int) -> NDArray[np.int64]:
    """Faces of a closed tube of `rows` rings with `sides` points each."""
    row, column = np.divmod(np.arange((rows - 1) * sides), sides)
    here, there = row * sides + column, row * sides + (column + 1) % sides
    return np.vstack(
        (np.column_stack((here, here + sides, there)), np.column_stack((there, here + sides, there + sides)))
    )
