"""Constraints of node distances: L^T delta = 0 (004, 4.2), with two bases of the left null space of D.

The document uses an orthonormal basis, which is dense. Any basis is valid (Theorem 2): around every cycle of the graph
of pairs, the sum of the distances is zero, so that one column per cycle with the entries -1, 0 and 1 is a basis. Each
pair outside a spanning tree closes a cycle; these are p - n + 1 cycles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import null_space

from .pairs import Pairs


def cycle_matrix(pairs: Pairs) -> sparse.csr_array:
    """(p, c) integers, the cycle of each pair outside a spanning tree; L is this matrix times the 3 x 3 identity.

    Raises:
        TensegrityError: the pairs do not connect all nodes.
    """
    pairs.check_connected()
    _, parent, row, sign = pairs._tree
    depth = np.zeros(pairs.count, dtype=np.int64)
    for i in pairs._tree[0][1:]:
        depth[i] = depth[parent[i]] + 1
    in_tree = np.zeros(len(pairs), dtype=np.bool_)
    in_tree[pairs.tree_rows] = True
    rows, columns, values = [], [], []
    for column, k in enumerate(np.flatnonzero(~in_tree)):
        i, j = pairs.ends[k].tolist()
        rows.append(int(k))
        columns.append(column)
        values.append(1.0)
        # delta_ij = (r_i - r_a) - (r_j - r_a), a the nearest common ancestor
        for node, direction in ((i, -1.0), (j, 1.0)):
            other = j if node == i else i
            for edge, step in _climb(node, other, parent, depth, row, sign):
                rows.append(edge)
                columns.append(column)
                values.append(direction * step)
    shape = (len(pairs), int((~in_tree).sum()))
    return sparse.csr_array((values, (rows, columns)), shape=shape)


def _climb(node: int, other: int, parent: NDArray, depth: NDArray, row: NDArray, sign: NDArray) -> list:
    """Pairs from a node to its nearest common ancestor with another node, each with its sign."""
    passed = []
    while node != other:
        if depth[node] >= depth[other]:
            passed.append((int(row[node]), float(sign[node])))
            node = int(parent[node])
        else:
            other = int(parent[other])
    return passed


def orthonormal_basis(pairs: Pairs) -> NDArray[np.float64]:
    """(p, c) dense orthonormal basis of the same space, as in the document; L is this times the 3 x 3 identity."""
    return np.asarray(null_space(pairs.incidence.toarray().T))
