"""Symmetries of a structure: which nodes may change their parts so that nothing but the names differs.

What a cable does on one face it does on every face that a symmetry makes of it, so that the model is rolled once for
all of them. A symmetry holds for shape, members with all their properties, node masses and actuators alike; what
differs by more than rounding in a robot file is no symmetry. Mirrored ones count: point masses know no handedness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.numerics.types import Array

from .gait import RollingBody

SHAPE, VALUES = 0.1, 1e-6
"""How far a node may lie from its partner, in parts of the structure's size (it sags on its feet, which tells faces
apart that are alike), and by which part properties may differ. The properties decide, the shape only proposes."""
MOST_NODES = 150
"""Beyond, symmetries are not sought: the search grows with the cube of the nodes."""


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Node i plays the part of node `nodes[i]` (n,), actuator k that of `cables[k]` (a,); mirrored or turned."""

    nodes: NDArray[np.int64]
    cables: NDArray[np.int64]
    mirrored: bool

    def face(self, feet: tuple[int, ...]) -> tuple[int, ...]:
        """The face that feet become, ascending."""
        return tuple(sorted(self.nodes[list(feet)].tolist()))

    def moved(self, nodes: Array, mirror: Array) -> Array:
        """(n, 3) m: the same shape with changed parts, mirrored by (3, 3) where that belongs to it."""
        renamed = np.empty_like(nodes)
        renamed[self.nodes] = nodes @ mirror if self.mirrored else nodes
        return renamed

    def back(self, nodes: Array, mirror: Array) -> Array:
        """(n, 3) m: what `moved` makes these nodes of."""
        own = nodes[self.nodes]
        return np.asarray(own @ mirror if self.mirrored else own)


def find_symmetries(body: RollingBody, shapes: Sequence[Array]) -> list[Symmetry]:
    """All symmetries, the one that changes nothing first; each of the shapes (n, 3) m may propose some."""
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
    # three nodes that span a triangle with the middle say all; few others lie like them
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
    """(n,) which point each turned one lies on, or None where one lies on none."""
    gaps = np.linalg.norm(turned[:, None] - points[None], axis=2)
    nearest = gaps.argmin(axis=1)
    if gaps.min(axis=1).max() > reach or len(set(nearest.tolist())) < len(points):
        return None
    return nearest.astype(np.int64)


def _same_parts(body: RollingBody, order: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """(a,) which actuator plays the part of which, or None where nodes, members or actuators are not alike."""
    structure, actuators = body.structure, body.robot.actuators
    if not np.allclose(structure.node_masses[order], structure.node_masses, rtol=VALUES, atol=0.0):
        return None
    rows: dict[tuple[int, int], list[int]] = {}
    for row, (i, j) in enumerate(structure.members.tolist()):
        rows.setdefault((min(i, j), max(i, j)), []).append(row)
    if any(len(each) > 1 for each in rows.values()):
        return None  # members side by side: which is whose partner does not follow from their nodes
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
