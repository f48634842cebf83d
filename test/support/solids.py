"""Solids as triangles: a box, a tetrahedron, a ball; all turned outwards."""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.meshes.mesh import Mesh, make_mesh


def box(sides=(1.0, 1.0, 1.0), centre=(0.0, 0.0, 0.0)) -> Mesh:
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = [each for a, b, c, d in quads for each in ((a, b, c), (a, c, d))]
    return make_mesh(corners * sides + centre, triangles)


def tetrahedron(corners) -> Mesh:
    """With these four corners (4, 3), of which the last is on the side from which the first three go clockwise."""
    return make_mesh(corners, [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)])


def ball(radius: float, rings: int) -> Mesh:
    """Rings of triangles whose corners are on the sphere."""
    polar, around = np.pi * np.arange(1, rings) / rings, 2 * rings
    angles = 2.0 * np.pi * np.arange(around) / around
    rows = [[np.sin(p) * np.cos(a), np.sin(p) * np.sin(a), np.cos(p)] for p in polar for a in angles]
    vertices = radius * np.array([*rows, [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    triangles = []
    for j in range(around):
        k = (j + 1) % around
        triangles += [(j, k, len(rows)), ((rings - 2) * around + k, (rings - 2) * around + j, len(rows) + 1)]
        for i in range(rings - 2):
            a, b = i * around + j, i * around + k
            triangles += [(a, a + around, b), (b, a + around, b + around)]
    return make_mesh(vertices, triangles)


def joined(*meshes: Mesh) -> Mesh:
    """All of them as one."""
    starts = np.cumsum([0, *(len(each.vertices) for each in meshes)])
    rows = [each.triangles + start for each, start in zip(meshes, starts, strict=False)]
    return make_mesh(np.concatenate([each.vertices for each in meshes]), np.concatenate(rows))


def stl_of(mesh: Mesh) -> bytes:
    """As binary STL."""
    records = np.zeros(len(mesh.triangles), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("end", "<u2")])
    records["corners"] = mesh.vertices[mesh.triangles]
    return bytes(80) + len(records).to_bytes(4, "little") + records.tobytes()
