"""Elastic forces of pairs and their derivatives: each force depends only on its distance and rest length.

    f_ij = -mu (|delta| - rho) u,  u = delta / |delta|                      (3.7, with its missing minus sign)
    df/d delta = -mu ((1 - rho / |delta|) I + rho / |delta| u u^T)          (5.9)
    df/d rho = mu u                                                         (5.10)

The document does not treat slack cables. Here, force and derivatives of a unilateral member are zero while it is
shorter than its rest length. At its rest length it counts as slack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ..structure import Structure
from .pairs import Pairs


@dataclass(frozen=True, eq=False)
class PairElasticity:
    """Elastic members of a structure on pairs of nodes.

    Attributes:
        pairs: pairs of nodes. rows: (m,) pair of each member. stiffness: (m,) mu [N/m].
        pulls_only: (m,) bool, whether a member carries tension only.
    """

    pairs: Pairs
    rows: NDArray[np.int64]
    stiffness: NDArray[np.float64]
    pulls_only: NDArray[np.bool_]

    def lengths(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,) lengths of the members [m]."""
        return np.asarray(np.linalg.norm(distances[self.rows], axis=1))

    def tensions(self, distances: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,) tensions [N] for delta (p, 3) and rest lengths (m,)."""
        pull = self.stiffness * (self.lengths(distances) - rest)
        return np.where(self.pulls_only, np.maximum(pull, 0.0), pull)

    def forces(self, distances: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
        """(p, 3) forces f of the pairs [N]."""
        own = distances[self.rows]
        pulls = self.tensions(distances, rest) / np.linalg.norm(own, axis=1)
        return self._onto_pairs(-pulls[:, None] * own)

    def energy(self, distances: NDArray[np.float64], rest: NDArray[np.float64]) -> float:
        """Elastic energy [J]."""
        return float(0.5 * np.sum(self.tensions(distances, rest) ** 2 / self.stiffness))

    def jacobian(self, distances: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
        """(p, 3, 3) diagonal blocks of df/d delta [N/m]; all other blocks are zero."""
        own, lengths = distances[self.rows], self.lengths(distances)
        unit = own / lengths[:, None]
        part = (rest / lengths)[:, None, None]
        blocks = (1.0 - part) * np.eye(3) + part * unit[:, :, None] * unit[:, None, :]
        return self._onto_pairs(-(self.stiffness * self._tight(lengths, rest))[:, None, None] * blocks)

    def control_jacobian(self, distances: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m, 3) column of df/d rho of each member, for its pair [N/m]."""
        own, lengths = distances[self.rows], self.lengths(distances)
        return np.asarray((self.stiffness * self._tight(lengths, rest) / lengths)[:, None] * own)

    def _tight(self, lengths: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray(~self.pulls_only | (lengths > rest))

    def _onto_pairs(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        result = np.zeros((len(self.pairs), *values.shape[1:]))
        np.add.at(result, self.rows, values)
        return result


def make_elasticity(structure: Structure, pairs: Pairs) -> PairElasticity:
    """Elastic members of a structure on pairs of nodes.

    Raises:
        TensegrityError: the nodes of a member are not a pair.
    """
    row_of = {tuple(sorted(pair)): row for row, pair in enumerate(pairs.ends.tolist())}
    rows = []
    for name, ends in zip(structure.member_names, np.sort(structure.members, axis=1).tolist(), strict=True):
        if tuple(ends) not in row_of:
            raise TensegrityError(f"member {name} joins nodes that are no pair; take connected_pairs or all_pairs.")
        row_of_member = row_of[tuple(ends)]
        rows.append(row_of_member)
    return PairElasticity(pairs, np.array(rows, dtype=np.int64), structure.stiffness, structure.unilateral)
