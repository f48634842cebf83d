"""In which order the rows of large sparse symmetric matrices are eliminated, so that their factors fill little.

Where each row belongs to a point in space, nested dissection (George 1973): points are halved by a plane across their
longest extent, those beside the plane are eliminated last, and the halves in the same way. Without points, or where
these tell little of the graph, SuperLU's minimum degree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_OPERATIONS = 40.0
"""Of a factorisation by nested dissection, times n^1.5, up to which no other order is sought; grids take 10."""
SMALL = 4
"""Points that are not halved any more."""
SMOOTHINGS = 3
"""Times each point is moved to the middle of its neighbours, so that planes are not ragged where points are."""


def nested_dissection(starts: NDArray, rows: NDArray, points: NDArray) -> NDArray[np.int64]:
    """(n,) an order of elimination of a graph by columns (n + 1,) and (e,), each connection both ways and with itself.

    points (n, 3) m are where the nodes of the graph are.
    """
    count = starts.size - 1
    degree = np.diff(starts)
    points = np.array(points, dtype=np.float64)
    for _ in range(SMOOTHINGS):
        points = np.add.reduceat(points[rows], starts[:-1]) / degree[:, None]
    first, second = np.repeat(np.arange(count), degree), rows
    keep = first < second
    first, second = first[keep], second[keep]
    path = np.zeros(count, dtype=np.int64)  # digits to the base of 3: lower half, upper half, between them
    nodes, part = np.arange(count), np.zeros(count, dtype=np.int64)  # those not between halves, part by part
    while nodes.size and np.bincount(part).max() > SMALL:
        begins = np.flatnonzero(np.diff(part, prepend=-1))
        dense = np.repeat(np.arange(begins.size), np.diff(begins, append=nodes.size))
        here = points[nodes]
        extent = np.maximum.reduceat(here, begins) - np.minimum.reduceat(here, begins)
        along = here[np.arange(nodes.size), np.argmax(extent, axis=1)[dense]]
        nodes = nodes[np.lexsort((along, dense))]
        sizes = np.diff(begins, append=nodes.size)
        upper = np.arange(nodes.size) - begins[dense] >= (sizes // 2)[dense]
        side = np.full(count, -1)
        side[nodes] = 2 * dense + upper
        inside = (side[first] >= 0) & (side[first] >> 1 == side[second] >> 1)
        first, second = first[inside], second[inside]
        cut = side[first] != side[second]
        ends = np.concatenate((first[cut], second[cut]))
        border = np.unique(ends)
        # the side that has fewer points beside the plane gives them
        at = np.bincount(side[border], minlength=2 * begins.size).reshape(-1, 2)
        gives = np.argmin(at, axis=1)
        between = border[side[border] & 1 == gives[side[border] >> 1]]
        path *= 3
        path[nodes] += upper
        path[between] += 2 - (side[between] & 1)
        side[between] = -1
        left = side[nodes] >= 0
        nodes, part = nodes[left], side[nodes[left]]
    return np.argsort(path, kind="stable")


def least_degree(starts: NDArray, rows: NDArray) -> NDArray[np.int64]:
    """(n,) an order of elimination of a graph as for `nested_dissection`: SuperLU's minimum degree."""
    from scipy.sparse import csc_matrix  # here, so that importing the package stays quick
    from scipy.sparse.linalg import splu

    size, degree = starts.size - 1, np.diff(starts)
    values = np.where(rows == np.repeat(np.arange(size), degree), 1.0 + degree.max(initial=0), -0.5)
    graph: Any = csc_matrix((values, rows, starts), shape=(size, size))
    found = splu(graph, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return np.argsort(found.perm_c)
