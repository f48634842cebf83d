"""Elimination order of the rows of large sparse symmetric matrices, for factors with little fill-in.

If each row belongs to a point in space, nested dissection is used (George 1973): the points are divided by a plane
perpendicular to their longest extent, the points at the plane are eliminated last, and both halves are divided in the
same way. Without points, or if they represent the graph poorly, the minimum degree order of SuperLU is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_OPERATIONS = 40.0
"""Number of operations of a factorisation by nested dissection divided by n^1.5, up to which no other order is tested;
grids need 10."""
SMALL = 4
"""Number of points that are not divided further."""
SMOOTHINGS = 3
"""Number of smoothing iterations, in which each point moves to the mean of its neighbours, for smooth separators."""


def nested_dissection(starts: NDArray, rows: NDArray, points: NDArray) -> NDArray[np.int64]:
    """(n,) elimination order of a graph given by columns (n + 1,) and (e,), with both directions and the diagonal.

    points (n, 3) are the positions of the nodes of the graph [m].
    """
    count = starts.size - 1
    degree = np.diff(starts)
    points = np.array(points, dtype=np.float64)
    for _ in range(SMOOTHINGS):
        points = np.add.reduceat(points[rows], starts[:-1]) / degree[:, None]
    first, second = np.repeat(np.arange(count), degree), rows
    keep = first < second
    first, second = first[keep], second[keep]
    path = np.zeros(count, dtype=np.int64)  # digits to base 3: lower half, upper half, separator
    nodes, part = np.arange(count), np.zeros(count, dtype=np.int64)  # nodes outside the separators, by part
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
        # the side with fewer points at the plane provides the separator
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
    """(n,) minimum degree elimination order of SuperLU for a graph as for `nested_dissection`."""
    from scipy.sparse import csc_matrix  # imported here to keep the package import fast
    from scipy.sparse.linalg import splu

    size, degree = starts.size - 1, np.diff(starts)
    values = np.where(rows == np.repeat(np.arange(size), degree), 1.0 + degree.max(initial=0), -0.5)
    graph: Any = csc_matrix((values, rows, starts), shape=(size, size))
    found = splu(graph, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return np.argsort(found.perm_c)
