"""Linear models in control-sorted node distances (004, section 6): what changes along a trajectory is block-diagonal.

Pairs that an actuator drives come first, so that with deviations d of delta and u of the driven rest lengths

    d'' = H* (A d + B u + c)      or      H_delta d'' = A d + B u + c + L lambda,  L^T d = 0        (6.3)

where H*, H_delta and L are constant. Along a trajectory one block of 3 x 3 numbers of A for every pair with a member
and one of 3 x 1 of B for every actuator are kept for a time point. B is as tall as three times its width: of full
column rank while its cables are tight, but not invertible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError
from .inertia import apply_inverse
from .model import NodeDistanceModel
from .pairs import Pairs


@dataclass(frozen=True, eq=False)
class PointOfLine:
    """A linear model at one time point.

    Attributes:
        stiffness: (e, 3, 3) N/m, blocks of A for the pairs that a member joins. control: (a, 3) N/m, blocks of B.
        force: (e, 3) N, c of the same pairs.
    """

    stiffness: NDArray[np.float64]
    control: NDArray[np.float64]
    force: NDArray[np.float64]

    @property
    def numbers(self) -> int:
        """How many numbers A and B take, a block of A being symmetric."""
        return 6 * len(self.stiffness) + 3 * len(self.control)


class SortedCoordinates:
    """Control-sorted coordinates of a model.

    Args:
        model: of a structure. driven: (a,) indices of the members whose rest lengths are commanded.

    Attributes:
        order: (p,) rows of the model's pairs in sorted order. pairs: in that order. joined: (e,) rows of these pairs
            that a member joins.

    Raises:
        TensegrityError: two driven members on one pair, or a member that is none.
    """

    def __init__(self, model: NodeDistanceModel, driven: ArrayLike) -> None:
        members = np.asarray(driven, dtype=np.int64)
        count = len(model.structure.member_names)
        if members.size and not (members.min() >= 0 and members.max() < count):
            raise TensegrityError(f"driven members are numbered from 0 to {count - 1}.")
        rows = model.elasticity.rows[members]
        if np.unique(rows).size < rows.size:
            raise TensegrityError("two driven members join the same two nodes; drive one of them.")
        others = np.setdiff1d(np.arange(len(model.pairs)), rows)
        self.model, self.driven = model, members
        self.order = np.concatenate((rows, others))
        self.pairs = Pairs(model.pairs.count, model.pairs.ends[self.order])
        has_member = np.isin(self.order, model.elasticity.rows)
        self.joined = np.flatnonzero(has_member)

    def linearise(self, nodes: ArrayLike, rest: NDArray[np.float64]) -> PointOfLine:
        """What changes along a trajectory, at nodes (n, 3) m and rest lengths (m,) m."""
        delta, elasticity = self.model.pairs.distances(nodes), self.model.elasticity
        kept = self.order[self.joined]
        return PointOfLine(
            elasticity.jacobian(delta, rest)[kept], elasticity.control_jacobian(delta, rest)[self.driven],
            elasticity.forces(delta, rest)[kept],
        )  # fmt: skip

    def accelerations(
        self, point: PointOfLine, deviation: NDArray[np.float64], control: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(p, 3) m/s^2 of sorted deviations (p, 3) m and changes (a,) m of the driven rest lengths."""
        forces = np.zeros((len(self.pairs), 3))
        forces[self.joined] = point.force + np.einsum("kij,kj->ki", point.stiffness, deviation[self.joined])
        forces[: len(self.driven)] += point.control * control[:, None]
        return apply_inverse(self.pairs, 1.0 / self.model.masses, forces)


def parameters_of_positions(nodes: int, inputs: int) -> dict[str, int]:
    """Numbers to keep for a time point in node positions: as the document counts them, and dense matrices A and B."""
    return {"document": nodes * (nodes + inputs), "dense": 9 * nodes * nodes + 3 * nodes * inputs}
