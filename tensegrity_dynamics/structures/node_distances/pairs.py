"""Pairs of nodes, their distance vectors delta_ij = r_i - r_j (004, 3.1), and positions from them.

The document uses all n (n - 1) / 2 pairs. Members connect only few of them; `connected_pairs` contains only these
pairs, which is sufficient if they connect all nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from ...errors import TensegrityError, unknown_name
from ..structure import Structure

ORDERS = ("uvec321", "uvec123")
"""Orders of section 3 of 004: pairs sorted by their first node, with adjacent components of a pair; or pairs sorted by
their second node, with all first components first."""
MAX_DENSE_NODES = 60
"""Largest number of nodes for all pairs and their dense matrices."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of the nodes 0 to count - 1.

    Attributes:
        count: number of nodes. ends: (p, 2) indices i and j of delta_ij, each pair once.

    Raises:
        TensegrityError: a pair is invalid or repeated.
    """

    count: int
    ends: NDArray[np.int64]

    def __post_init__(self) -> None:
        ends = np.array(self.ends, dtype=np.int64).reshape(-1, 2)
        if ends.size and not (ends.min() >= 0 and ends.max() < self.count):
            raise TensegrityError(f"pairs name nodes from 0 to {self.count - 1}.")
        if (ends[:, 0] == ends[:, 1]).any():
            raise TensegrityError("a pair joins a node to itself; name two nodes.")
        if len({tuple(sorted(pair)) for pair in ends.tolist()}) < len(ends):
            raise TensegrityError("a pair is named twice; name each once.")
        ends.setflags(write=False)
        object.__setattr__(self, "ends", ends)

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def incidence(self) -> sparse.csr_array:
        """(p, n) incidence matrix: +1 at i, -1 at j. D of (3.3) is this times the 3 x 3 identity."""
        rows = np.arange(len(self))
        values = np.concatenate((np.ones(len(self)), -np.ones(len(self))))
        where = (np.concatenate((rows, rows)), np.concatenate((self.ends[:, 0], self.ends[:, 1])))
        return sparse.csr_array((values, where), shape=(len(self), self.count))

    @cached_property
    def _transposed(self) -> sparse.csr_array:
        return sparse.csr_array(self.incidence.T)

    def distances(self, nodes: ArrayLike) -> NDArray[np.float64]:
        """(p, 3) delta for nodes (n, 3), or rates of delta for velocities."""
        array = np.asarray(nodes, dtype=np.float64)
        return np.asarray(array[self.ends[:, 0]] - array[self.ends[:, 1]])

    def gathered(self, forces: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 3) forces on the nodes from forces (p, 3) on the pairs: g = D^T f (4.6)."""
        return np.asarray(self._transposed @ forces)

    def positions(self, distances: ArrayLike, centre: ArrayLike, masses: ArrayLike) -> NDArray[np.float64]:
        """(n, 3) nodes from delta (p, 3) and the centre of mass (3,): the inverse of (3.6), along a spanning tree.

        Raises:
            TensegrityError: the pairs do not connect all nodes.
        """
        delta, weights = np.asarray(distances, dtype=np.float64), np.asarray(masses, dtype=np.float64)
        order, parent, row, sign = self._tree
        nodes = np.zeros((self.count, 3))
        for i in order[1:]:
            nodes[i] = nodes[parent[i]] + sign[i] * delta[row[i]]
        shift = np.asarray(centre, dtype=np.float64) - weights @ nodes / weights.sum()
        return nodes + shift

    @cached_property
    def _tree(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Nodes in breadth-first order, parent of each node, row of the pair to the parent, and sign of this pair."""
        self.check_connected()
        n, rows = self.count, np.arange(len(self))
        numbered = sparse.csr_array((rows + 1, (self.ends[:, 0], self.ends[:, 1])), shape=(n, n))
        both = sparse.csr_array(numbered + numbered.T)
        order, parent = breadth_first_order(both, 0, directed=False)
        row, sign = np.full(n, -1, dtype=np.int64), np.zeros(n)
        for i in order[1:]:
            k = int(both[i, parent[i]]) - 1
            row[i], sign[i] = k, 1.0 if self.ends[k, 0] == i else -1.0
        return order, parent, row, sign

    @property
    def tree_rows(self) -> NDArray[np.int64]:
        """(n - 1,) rows of the pairs of a spanning tree."""
        row = self._tree[2]
        return np.sort(row[row >= 0])

    def check_connected(self) -> None:
        """Raise TensegrityError if the pairs do not connect all nodes."""
        graph = sparse.csr_array(abs(self.incidence).T @ abs(self.incidence))
        parts, label = connected_components(graph, directed=False)
        if parts > 1:
            apart = np.flatnonzero(label != label[0])
            raise TensegrityError(
                f"the pairs leave {parts} parts that nothing joins; node {int(apart[0])} does not belong to node 0's. "
                "Node distances say nothing of how such parts lie to each other: take all pairs, or join them."
            )

    # -- matrices of the document -----------------------------------------------------------------------------------

    def map_matrix(self, order: str = ORDERS[0]) -> sparse.csr_array:
        """D of (3.3), (3 p, 3 n): delta as a vector in one of `ORDERS`, of the stacked node positions."""
        matrix = sparse.csr_array(sparse.kron(self.incidence, sparse.eye_array(3)))
        return sparse.csr_array(matrix[self.vector_order(order)])

    def vector_order(self, order: str) -> NDArray[np.int64]:
        """(3 p,) index of each entry of the vector in the flattened delta (p, 3)."""
        if order not in ORDERS:
            raise TensegrityError(unknown_name("order of node distances", order, ORDERS))
        i, j = self.ends.min(axis=1), self.ends.max(axis=1)
        if order == "uvec321":
            rows = np.lexsort((j, i))
            return (3 * rows[:, None] + np.arange(3)).ravel()
        rows = np.lexsort((i, j))
        return (3 * rows[None, :] + np.arange(3)[:, None]).ravel()


def all_pairs(count: int) -> Pairs:
    """All pairs i < j of `count` nodes, as in the document.

    Raises:
        TensegrityError: there are too many nodes for dense matrices of all pairs.
    """
    if count > MAX_DENSE_NODES:
        raise TensegrityError(
            f"all pairs of {count} nodes are {count * (count - 1) // 2}, and their matrices dense: up to "
            f"{MAX_DENSE_NODES} nodes. Take connected_pairs, which members alone decide."
        )
    return Pairs(count, np.array([(i, j) for i in range(count) for j in range(i + 1, count)]))


def connected_pairs(structure: Structure) -> Pairs:
    """Pairs connected by members, in the order of their first member; i < j."""
    ends = np.sort(structure.members, axis=1)
    _, first = np.unique(ends, axis=0, return_index=True)
    return Pairs(len(structure.node_names), ends[np.sort(first)])
