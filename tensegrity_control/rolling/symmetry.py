"""Symmetries of a structure: permutations of its nodes under which shape and properties stay the same.

The result of a cable on one face holds for every image of the pair under a symmetry, so that one simulation covers them
all. A symmetry keeps the shape, the members with all their properties, the node masses and the actuators. Properties in
a robot file that differ by more than rounding break it. Mirror symmetries count as well: the mechanics of point masses
are the same in a mirror.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.numerics.types import Array

from .gait import RollingBody

SHAPE, VALUES = 0.1, 1e-6
"""Tolerances: distance between a node and its image as a fraction of the size of the structure, and relative difference
of properties. The first is wide because a structure sags on its feet, so that equal faces differ. The shape only
proposes symmetries; the properties decide."""
MOST_NODES = 150
"""Number of nodes above which symmetries are not searched; the search grows with the cube of this number."""


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Symmetry that maps node i to node `nodes[i]` (n,) and actuator k to `cables[k]` (a,); a mirror symmetry or a
    rotation."""

    nodes: NDArray[np.int64]
    cables: NDArray[np.int64]
    mirrored: bool

    def face(self, feet: tuple[int, ...]) -> tuple[int, ...]:
        """Image of a face, ascending."""
        return tuple(sorted(self.nodes[list(feet)].tolist()))

    def moved(self, nodes: Array, mirror: Array) -> Array:
        """(n, 3) m: image of a shape; mirror symmetries use the reflection (3, 3)."""
        renamed = np.empty_like(nodes)
        renamed[self.nodes] = nodes @ mirror if self.mirrored else nodes
        return renamed

    def back(self, nodes: Array, mirror: Array) -> Array:
        """(n, 3) m: shape whose image under `moved` is `nodes`."""
        own = nodes[self.nodes]
        return np.asarray(own @ mirror if self.mirrored else own)


def find_symmetries(body: RollingBody, shapes: Sequence[Array]) -> list[Symmetry]:
    """All symmetries, the identity first; candidates come from each of the shapes (n, 3) m."""
    structure, count = body.structure, len(body.structure.nodes)
    found = [Symmetry(np.arange(count), np.arange(len(body.names)), False)]
    if 4 <= count <= MOST_NODES and not structure.loads.any():
        for nodes in shapes:
            _add_symmetries(found, body, nodes)
    return found


def _add_symmetries(found: list[Symmetry], body: RollingBody, nodes: Array) -> None:
    reach = SHAPE * body.reader.size
    points = nodes - nodes.mean(axis=0)
    away = np.linalg.norm(points, axis=1)
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    # the images of two nodes and the centre fix a symmetry; few other pairs have the same distances
    first = int(np.argmax(away))
    second = int(np.argmax(np.linalg.norm(np.cross(points, points[first]), axis=1)))
    across = np.cross(points[first], points[second])
    if np.linalg.norm(across) < reach * reach:
        return
    frame = np.stack((points[first], points[second], across))
    for i in np.flatnonzero(np.abs(away - away[first]) < reach).tolist():
        alike = (np.abs(away - away[second]) < reach) & (np.abs(gaps[i] - gaps[first, second]) < reach)
        for j in np.flatnonzero(alike).tolist():
            for sign in (1.0, -1.0):
                other = np.stack((points[i], points[j], sign * np.cross(points[i], points[j])))
                left, _, right = np.linalg.svd(frame.T @ other)
                turned = points @ (left @ right)
                order = _partners(turned, points, reach)
                if order is None or any(np.array_equal(order, each.nodes) for each in found):
                    continue
                cables = _same_parts(body, order)
                if cables is not None:
                    found.append(Symmetry(order, cables, sign < 0.0))


def _partners(turned: Array, points: Array, reach: float) -> NDArray[np.int64] | None:
    """(n,) index of the point nearest to each turned point, or None if one is too far from all points."""
    gaps = np.linalg.norm(turned[:, None] - points[None], axis=2)
    nearest = gaps.argmin(axis=1)
    if gaps.min(axis=1).max() > reach or len(set(nearest.tolist())) < len(points):
        return None
    return nearest.astype(np.int64)


def _same_parts(body: RollingBody, order: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """(a,) image of each actuator, or None if nodes, members or actuators differ from their images."""
    structure, actuators = body.structure, body.robot.actuators
    if not np.allclose(structure.node_masses[order], structure.node_masses, rtol=VALUES, atol=0.0):
        return None
    rows: dict[tuple[int, int], list[int]] = {}
    for row, (i, j) in enumerate(structure.members.tolist()):
        rows.setdefault((min(i, j), max(i, j)), []).append(row)
    if any(len(each) > 1 for each in rows.values()):
        return None  # parallel members between the same nodes: their images are ambiguous
    partner = np.empty(len(structure.members), dtype=np.int64)
    for row, (i, j) in enumerate(order[structure.members].tolist()):
        other = rows.get((min(i, j), max(i, j)))
        if other is None or structure.kinds[other[0]] != structure.kinds[row]:
            return None
        partner[row] = other[0]
    for values in (structure.stiffness, structure.rest_lengths, structure.masses, structure.damping):
        if not np.allclose(values[partner], values, rtol=VALUES, atol=0.0):
            return None
    drives = {int(row): k for k, row in enumerate(body.robot.actuated_members())}
    cables = np.empty(len(actuators), dtype=np.int64)
    for row, k in drives.items():
        partner_k = drives.get(int(partner[row]))
        if partner_k is None:
            return None
        one, two = actuators[k], actuators[partner_k]
        mine, theirs = (
            np.array([*each.position, each.rate, each.effort, each.minimum_tension]) for each in (one, two)
        )  # fmt: skip
        if not np.allclose(mine, theirs, rtol=VALUES, atol=0.0):
            return None
        cables[k] = partner_k
    return cables
