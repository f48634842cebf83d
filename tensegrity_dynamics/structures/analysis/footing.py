"""Footing of a free structure, determined from its nodes alone, and the faces on which it can rest.

A face is a set of nodes that touch the ground. It is determined without forces, so that it is also available from an
estimate or a camera.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...contact.ground_forces import depth, flatten
from ...errors import TensegrityError
from ..structure import Structure

TOUCH = 0.02
"""Largest distance from the ground at which a node counts as touching, relative to the size of the structure."""


@dataclass(frozen=True, eq=False)
class Footing:
    """Footing of a structure.

    Attributes:
        feet: indices of the nodes that touch the ground, ascending.
        centre: (3,) centre of mass [m].
        heading: angle [rad] of the first foot relative to the centre of all feet, from x towards y; it defines the
            orientation of the structure about the vertical.
        margin: least distance [m] of the centre of mass, projected along gravity, from an edge of the polygon of the
            feet; negative outside, minus infinity without a polygon.
    """

    feet: tuple[int, ...]
    centre: NDArray[np.float64]
    heading: float
    margin: float


class FootingReader:
    """Reader for footings of one structure.

    Args:
        structure: structure that is free on its ground, with gravity.

    Raises:
        TensegrityError: the structure has no ground, a fixed node, or no load towards the ground.
    """

    def __init__(self, structure: Structure) -> None:
        ground = structure.ground
        if ground is None:
            raise TensegrityError("it has no ground to roll on; add a block `contact` to its robot file.")
        if structure.fixed.any():
            held = ", ".join(structure.node_names[i] for i in np.flatnonzero(structure.fixed))
            raise TensegrityError(
                f"it cannot roll, because its nodes {held} are fixed; remove `fixed` from them in its robot file."
            )
        weight = float(np.linalg.norm(structure.gravity))
        self.masses = structure.lumped_masses()
        if not (weight > 0.0 and self.masses.sum() > 0.0):
            raise TensegrityError(
                "no weight presses it onto the ground; give its members masses and set `gravity` in its robot file."
            )
        self.structure, self.up = structure, -structure.gravity / weight
        self.size = float(np.median(structure.rest_lengths))
        self._ground, self._away = flatten(ground), np.zeros(3)

    def depths(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) m below the ground, negative above it."""
        return np.array([depth(self._ground, x, y, z, self._away) for x, y, z in nodes.tolist()])

    def touching(self, nodes: NDArray[np.float64]) -> tuple[int, ...]:
        """Indices of the nodes that touch the ground, for node positions (n, 3) [m]."""
        return tuple(np.flatnonzero(self.depths(nodes) > -TOUCH * self.size).tolist())

    def centre(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """(3,) centre of mass [m]."""
        return np.asarray(self.masses @ nodes / self.masses.sum())

    def margin(self, nodes: NDArray[np.float64], feet: Sequence[int]) -> float:
        """Margin [m] for given nodes as feet, see `Footing`."""
        flat = self._seen_along_gravity(nodes)
        middle, points = self.masses @ flat / self.masses.sum(), flat[list(feet)]
        if len(points) < 3:
            return -np.inf
        # an edge of the polygon is a pair of feet with all others on its left
        along = points[None, :, :] - points[:, None, :]
        length = np.linalg.norm(along, axis=2)
        length[length == 0.0] = np.inf
        inward = np.stack((-along[..., 1], along[..., 0]), axis=2) / length[..., None]
        beside = np.einsum("ijk,ilk->ijl", inward, along)
        flat_enough = 1e-9 * self.size
        edges = (beside >= -flat_enough).all(axis=2) & np.isfinite(length)
        if not (edges & (beside > flat_enough).any(axis=2)).any():
            return -np.inf  # all feet on one line
        inside = np.einsum("ijk,ik->ij", inward, middle[None, :] - points)
        return float(inside[edges].min())

    def read(self, nodes: NDArray[np.float64]) -> Footing:
        """Footing for nodes (n, 3) [m]."""
        feet = self.touching(nodes)
        return Footing(feet, self.centre(nodes), self.heading(nodes, feet), self.margin(nodes, feet))

    def heading(self, nodes: NDArray[np.float64], feet: Sequence[int]) -> float:
        """Heading [rad], see `Footing`; 0 if it is not defined (a single foot)."""
        if len(feet) < 2:
            return 0.0
        arm = nodes[feet[0]] - nodes[list(feet)].mean(axis=0)
        return float(np.arctan2(arm[1], arm[0]))

    def faces(self, nodes: NDArray[np.float64]) -> list[tuple[int, ...]]:
        """Faces of the convex hull of nodes (n, 3) [m] as ascending indices: the faces on which it can be placed.

        Coplanar neighbours are one face. Raises TensegrityError if all nodes lie in one plane.
        """
        from scipy.spatial import ConvexHull, QhullError  # imported here to keep the package import fast

        try:
            hull = ConvexHull(nodes)
        except QhullError:
            raise TensegrityError("all nodes lie in one plane: the structure has no faces to roll on.") from None
        found: list[set[int]] = []
        for plane in hull.equations:
            on_it = set(np.flatnonzero(nodes @ plane[:3] + plane[3] > -0.5 * TOUCH * self.size).tolist())
            if on_it not in found:
                found.append(on_it)
        return sorted(tuple(sorted(face)) for face in found)

    def put_down(
        self, nodes: NDArray[np.float64], feet: Sequence[int], heading: float, position: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(n, 3) nodes [m] of the same shape on a face, with a heading [rad] and its centre above a position (2,)
        [m]."""
        own = nodes[list(feet)]
        middle = own.mean(axis=0)
        outward = np.linalg.svd(own - middle)[2][2]
        if outward @ (middle - nodes.mean(axis=0)) < 0.0:
            outward = -outward
        normal = np.zeros(3)
        depth(self._ground, position[0], position[1], 0.0, normal)
        # first upright and about the vertical, then onto the slope by the smallest rotation
        upright = nodes @ _shortest_turn(outward, np.array([0.0, 0.0, -1.0])).T
        turn = heading - self.heading(upright, feet)
        cosine, sine = np.cos(turn), np.sin(turn)
        upright = upright @ np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]]).T
        turned = upright @ _shortest_turn(np.array([0.0, 0.0, 1.0]), normal / np.linalg.norm(normal)).T
        centre = self.centre(turned)
        turned = turned + np.array([position[0] - centre[0], position[1] - centre[1], 0.0])
        # moved up or down until the lowest node just touches the ground
        for _ in range(20):
            gap = float(self.depths(turned).max())
            turned = turned + np.array([0.0, 0.0, gap])
            if abs(gap) < 1e-9:
                break
        return turned

    def _seen_along_gravity(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        first = np.cross(self.up, np.eye(3)[int(np.argmin(np.abs(self.up)))])
        first = first / np.linalg.norm(first)
        return np.stack((nodes @ first, nodes @ np.cross(self.up, first)), axis=1)


def _shortest_turn(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3, 3) rotation with the smallest angle that maps one unit vector to another (Rodrigues)."""
    axis, cosine = np.cross(first, second), float(first @ second)
    if cosine < -1.0 + 1e-12:
        aside = np.cross(first, np.eye(3)[int(np.argmin(np.abs(first)))])
        aside = aside / np.linalg.norm(aside)
        return 2.0 * np.outer(aside, aside) - np.eye(3)
    cross = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    return np.eye(3) + cross + cross @ cross / (1.0 + cosine)
