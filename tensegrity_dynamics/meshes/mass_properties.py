"""Volume, centre and inertia of the solid enclosed by a mesh, by exact integrals over polyhedra.

With the divergence theorem, each triangle gives a signed tetrahedron (B. Mirtich, Fast and accurate computation of
polyhedral mass properties, J. Graphics Tools 1(2), 1996; the moments of a tetrahedron are those of F. Tonon, J. Math.
Stat. 1(1), 2004). This is valid for closed surfaces with outward orientation; all others are rejected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from .mesh import Mesh, make_mesh

NEAR = 1e-6
"""Distance relative to the diagonal, below which vertices are merged if the mesh is not closed otherwise."""
FLAT = 1e-9
"""Volume relative to the bounding box, below which a mesh encloses no solid."""


@dataclass(frozen=True, eq=False)
class SolidProperties:
    """Mass properties of a solid of uniform density.

    Args:
        volume: volume [m^3]. centre: (3,) centre of mass [m].
        inertia: (3, 3) inertia about the centre per kilogram [m^2].
    """

    volume: float
    centre: NDArray[np.float64]
    inertia: NDArray[np.float64]


def solid_properties(mesh: Mesh) -> SolidProperties:
    """Volume, centre and inertia of the solid enclosed by a mesh.

    Raises:
        TensegrityError: the mesh is not closed, has inward or inconsistent orientation, is flat, or contains
            intersecting or nested solids.
    """
    mesh = _closed(mesh)
    shift = 0.5 * (mesh.box[0] + mesh.box[1])
    corners = (mesh.vertices - shift)[mesh.triangles]
    volumes = np.linalg.det(corners) / 6.0
    _check_parts(mesh, volumes)
    volume = float(volumes.sum())
    sums = corners.sum(axis=1)
    centre = volumes @ sums / (4.0 * volume)
    products = np.einsum("t,tki,tkj->ij", volumes, corners, corners) + np.einsum("t,ti,tj->ij", volumes, sums, sums)
    second = products / (20.0 * volume) - np.outer(centre, centre)
    inertia = np.trace(second) * np.eye(3) - second
    return SolidProperties(volume, centre + shift, 0.5 * (inertia + inertia.T))


def _closed(mesh: Mesh) -> Mesh:
    """The mesh, or a copy with merged vertices if it is closed only then."""
    trouble = _open_edges(mesh)
    if trouble:
        from scipy.spatial import cKDTree  # imported here to keep the package import fast

        reach = NEAR * float(np.linalg.norm(mesh.box[1] - mesh.box[0]))
        pairs = cKDTree(mesh.vertices).query_pairs(reach, output_type="ndarray")
        if len(pairs):
            joined = make_mesh(mesh.vertices[_components(len(mesh.vertices), pairs)], mesh.triangles)
            if not _open_edges(joined):
                return joined
        raise TensegrityError(trouble)
    return mesh


def _components(count: int, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """(count,) first node of the component of each node of a graph."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    labels = connected_components(graph, directed=False)[1]
    return np.unique(labels, return_index=True)[1][labels]


def _open_edges(mesh: Mesh) -> str:
    """Text on invalid edges: in a closed surface each edge occurs equally often in both directions."""
    edges = mesh.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    low, high = edges.min(axis=1), edges.max(axis=1)
    keys, inverse = np.unique(low * len(mesh.vertices) + high, return_inverse=True)
    signs = np.where(edges[:, 0] == low, 1.0, -1.0)
    balance = np.bincount(inverse.reshape(-1), weights=signs, minlength=keys.size)
    wrong = np.flatnonzero(balance)
    if not wrong.size:
        return ""
    counts = np.bincount(inverse.reshape(-1), minlength=keys.size)
    odd = wrong[counts[wrong] % 2 == 1]
    shown = odd[0] if odd.size else wrong[0]
    middle = mesh.vertices[[keys[shown] // len(mesh.vertices), keys[shown] % len(mesh.vertices)]].mean(axis=0)
    where = ", ".join(f"{value:.4g}" for value in middle)
    if odd.size:
        return (
            f"it is not closed: {odd.size} of {keys.size} edges have a triangle on one side only, one of them at "
            f"({where}) m; close it, or give the body's mass, centre and inertia."
        )
    return (
        f"its triangles are not all oriented alike: {wrong.size} of {keys.size} edges have them against each "
        f"other, one of them at ({where}) m; let the program that made it turn all outwards."
    )


def _check_parts(mesh: Mesh, volumes: NDArray[np.float64]) -> None:
    """Check that each connected part encloses a volume, and that every point is inside of at most one part."""
    edges = mesh.triangles[:, [0, 1, 1, 2]].reshape(-1, 2)
    parts = _components(len(mesh.vertices), edges)[mesh.triangles[:, 0]]
    names = np.unique(parts)
    if float(volumes.sum()) < 0.0:
        raise TensegrityError("it is inside out: its triangles are turned inwards; turn them round.")
    low, high = mesh.box
    if abs(float(volumes.sum())) <= FLAT * float(np.prod(np.maximum(high - low, 1e-300))):
        raise TensegrityError("it encloses no volume; give the body's mass, centre and inertia.")
    if len(names) == 1 or len(names) > 100:  # many separate parts are not checked
        return
    for name in names:
        own = parts == name
        amount = float(volumes[own].sum())
        around = _winding(mesh, ~own, mesh.vertices[mesh.triangles[own][0, 0]])
        if amount < 0.0 and around < 0.5:
            raise TensegrityError(
                "a part of it is inside out: it is turned inwards, and no other part encloses it; turn it round."
            )
        if amount > 0.0 and around > 0.5:
            raise TensegrityError(
                "two of its parts stand in each other, and what they share would weigh twice; unite them."
            )


def _winding(mesh: Mesh, chosen: NDArray[np.bool_], point: NDArray[np.float64]) -> float:
    """Winding number of triangles around a point: their solid angle over 4 pi (van Oosterom and Strackee 1983)."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.triangles[chosen]] - point, 1, 0)
    x, y, z = (np.linalg.norm(each, axis=1) for each in (a, b, c))
    above = np.einsum("ti,ti->t", a, np.cross(b, c))
    below = (
        x * y * z + np.einsum("ti,ti->t", a, b) * z + np.einsum("ti,ti->t", b, c) * x + np.einsum("ti,ti->t", c, a) * y
    )
    return float(np.arctan2(above, below).sum() / (2.0 * np.pi))
