"""Search for the faces to which a shape can have rolled: over the edges of its face to the next one, and so on.

During a tip, the shape is assumed to be rigid, and the feet on the edge to be held by friction, so that each tip is a
rotation about this edge by the angle between both faces. Deformations due to released cables are handled later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...numerics.rotations import matrix_from_vector
from ...numerics.types import Array
from ..analysis.footing import FootingReader

PARTS = 4
"""Number of parts of each tip, at whose ends the elevations of rods are reported."""


@dataclass(frozen=True, eq=False)
class TipSequence:
    """Sequence of tips.

    Attributes:
        faces: faces on which the shape stands, including the first one, as ascending node indices.
        nodes: (n, 3) nodes at the end [m].
        passed: (s, k) elevations of the rods along the path [rad], including start and end.
    """

    faces: tuple[tuple[int, ...], ...]
    nodes: Array
    passed: Array

    @property
    def tips(self) -> int:
        """Number of tipped edges."""
        return len(self.faces) - 1


def tip_sequences(reader: FootingReader, nodes: Array, ends: NDArray[np.int64], most: int) -> list[TipSequence]:
    """All sequences of at most `most` tips without repeated faces, the shortest first.

    Args:
        nodes: (n, 3) nodes at rest on a face [m]. ends: (k, 2) end nodes of the evaluated rods.

    Raises:
        TensegrityError: all nodes lie in one plane.
    """
    faces, up = reader.faces(nodes), reader.up
    outward = [_outward(nodes, face) for face in faces]
    feet = set(reader.touching(nodes))
    first = max(range(len(faces)), key=lambda k: (len(feet & set(faces[k])), float(-outward[k] @ up)))
    beside = [[k for k, other in enumerate(faces) if len(set(other) & set(face)) == 2] for face in faces]
    axes = nodes[ends[:, 1]] - nodes[ends[:, 0]]
    axes = axes / np.linalg.norm(axes, axis=1)[:, None]

    def seen(turn: Array) -> Array:
        return np.arcsin(np.clip(axes @ turn.T @ up, -1.0, 1.0))

    begun = TipSequence((faces[first],), nodes, seen(np.eye(3))[None])
    found = [begun]
    last: list[tuple[TipSequence, tuple[int, ...], Array]] = [(begun, (first,), np.eye(3))]
    for _ in range(most):
        longer: list[tuple[TipSequence, tuple[int, ...], Array]] = []
        for sequence, path, turn in last:
            down = turn @ outward[path[-1]]
            for k in beside[path[-1]]:
                if k in path:
                    continue
                on = sequence.nodes[next(iter(set(faces[k]) & set(faces[path[-1]])))]
                new = turn @ outward[k]
                across = np.cross(new, down)
                size = float(np.linalg.norm(across))
                tip = across * (float(np.arctan2(size, new @ down)) / max(size, 1e-12))
                steps = [seen(matrix_from_vector(part / PARTS * tip) @ turn) for part in range(1, PARTS + 1)]
                rotation = matrix_from_vector(tip)
                there = (sequence.nodes - on) @ rotation.T + on
                rolled = TipSequence((*sequence.faces, faces[k]), there, np.vstack((sequence.passed, steps)))
                found.append(rolled)
                longer.append((rolled, (*path, k), rotation @ turn))
        last = longer
    return found


def _outward(nodes: Array, face: tuple[int, ...]) -> Array:
    own = nodes[list(face)]
    normal = np.linalg.svd(own - own.mean(axis=0))[2][2]
    return -normal if normal @ (own.mean(axis=0) - nodes.mean(axis=0)) < 0.0 else normal
