"""Orders of elimination: each node once, the halves before what lies between them, and little fill."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics.numerics.elimination_order import least_degree, nested_dissection


def graph_of(edges, count):
    """By columns, each connection both ways and with itself."""
    dense = np.eye(count, dtype=bool)
    dense[edges[:, 0], edges[:, 1]] = dense[edges[:, 1], edges[:, 0]] = True
    columns, rows = np.nonzero(dense)
    return np.searchsorted(columns, np.arange(count + 1)), rows


def fill(starts, rows, order):
    """Entries of the factor, by elimination of the graph itself."""
    count = order.size
    dense = np.zeros((count, count), dtype=bool)
    dense[np.repeat(np.arange(count), np.diff(starts)), rows] = True
    dense, entries = dense[np.ix_(order, order)], 0
    for k in range(count):
        below = k + 1 + np.flatnonzero(dense[k + 1 :, k])
        entries += 1 + below.size
        dense[np.ix_(below, below)] = True
    return entries


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 60), st.booleans())
def test_any_graph_with_any_points_is_ordered_with_each_node_once(seed, count, together):
    rng = np.random.default_rng(seed)
    graph = graph_of(rng.integers(0, count, (2 * count, 2)), count)
    points = np.zeros((count, 3)) if together else rng.normal(size=(count, 3))
    for order in (nested_dissection(*graph, points), least_degree(*graph)):
        assert np.array_equal(np.sort(order), np.arange(count))


def test_a_net_fills_less_than_by_rows_and_hardly_more_than_by_least_degree():
    size = 24
    index = np.arange(size * size).reshape(size, size)
    pairs = (index[:-1], index[1:]), (index[:, :-1], index[:, 1:]), (index[:-1, :-1], index[1:, 1:])
    edges = np.concatenate([np.stack(pair, -1).reshape(-1, 2) for pair in pairs])
    graph = graph_of(edges, index.size)
    points = np.stack((*np.divmod(np.arange(index.size), size), np.zeros(index.size)), 1).astype(float)
    points += np.random.default_rng(1).normal(size=points.shape) * 0.2
    by_rows = fill(*graph, np.arange(index.size))
    dissected, least = fill(*graph, nested_dissection(*graph, points)), fill(*graph, least_degree(*graph))
    assert dissected < 0.75 * by_rows and dissected < 1.2 * least
