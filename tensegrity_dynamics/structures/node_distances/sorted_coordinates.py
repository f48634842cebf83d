"""Linear models in control-sorted node distances (004, section 6), whose time-varying parts are block-diagonal.

Pairs driven by an actuator come first, so that with deviations d of delta and u of the driven rest lengths

    d'' = H* (A d + B u + c)      or      H_delta d'' = A d + B u + c + L lambda,  L^T d = 0        (6.3)

where H*, H_delta and L are constant. For each time point of a trajectory, one 3 x 3 block of A for every pair with a
member and one 3 x 1 block of B for every actuator are stored. B has three times as many rows as columns: it has full
column rank while its cables are taut, but it is not invertible.
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
    """Linear model at one time point.

    Attributes:
        stiffness: (e, 3, 3) blocks of A for the pairs with a member [N/m]. control: (a, 3) blocks of B [N/m].
        force: (e, 3) c of the same pairs [N].
    """

    stiffness: NDArray[np.float64]
    control: NDArray[np.float64]
    force: NDArray[np.float64]

    @property
    def numbers(self) -> int:
        """Number of stored values of A and B, with symmetric blocks of A."""
        return 6 * len(self.stiffness) + 3 * len(self.control)


class SortedCoordinates:
    """Control-sorted coordinates of a model.

    Args:
        model: model of a structure. driven: (a,) indices of the members with commanded rest lengths.

    Attributes:
        order: (p,) rows of the pairs of the model in sorted order. pairs: pairs in this order.
        joined: (e,) rows of these pairs with a member.

    Raises:
        TensegrityError: two driven members are on one pair, or a member does not exist.
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
        """Time-varying part of the linear model at nodes (n, 3) [m] and rest lengths (m,) [m]."""
        delta, elasticity = self.model.pairs.distances(nodes), self.model.elasticity
        kept = self.order[self.joined]
        return PointOfLine(
            elasticity.jacobian(delta, rest)[kept], elasticity.control_jacobian(delta, rest)[self.driven],
            elasticity.forces(delta, rest)[kept],
        )  # fmt: skip

    def accelerations(
        self, point: PointOfLine, deviation: NDArray[np.float64], control: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(p, 3) accelerations [m/s^2] for sorted deviations (p, 3) [m] and changes (a,) of driven rest lengths [m]."""
        forces = np.zeros((len(self.pairs), 3))
        forces[self.joined] = point.force + np.einsum("kij,kj->ki", point.stiffness, deviation[self.joined])
        forces[: len(self.driven)] += point.control * control[:, None]
        return apply_inverse(self.pairs, 1.0 / self.model.masses, forces)


def parameters_of_positions(nodes: int, inputs: int) -> dict[str, int]:
    """Number of values per time point in node positions: as counted in the document, and for dense A and B."""
    return {"document": nodes * (nodes + inputs), "dense": 9 * nodes * nodes + 3 * nodes * inputs}
