"""Factors of sparse matrices that keep what follows from the pattern: against dense ones, interpreted and compiled."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix

from tensegrity_dynamics.numerics import sparse_cholesky
from tensegrity_dynamics.numerics.sparse_cholesky import SparseCholesky

KERNELS = ("elimination_tree", "postorder", "chains", "chain_rows", "chain_entries", "factor_front", "update_by_tiles",
           "factorise", "solve_factored")  # fmt: skip


def spring_matrix(rng, nodes, springs, held):
    """Stiffness of springs between nodes in space, where some coordinates are held; rows, and the node of each."""
    matrix = np.zeros((3 * nodes, 3 * nodes))
    for _ in range(springs):
        i, j = rng.choice(nodes, 2, replace=False)
        direction = np.zeros(3 * nodes)
        direction[3 * i : 3 * i + 3] = rng.normal(size=3)
        direction[3 * j : 3 * j + 3] = -direction[3 * i : 3 * i + 3]
        matrix += np.outer(direction, direction)
    free = np.sort(rng.permutation(3 * nodes)[held:])
    return matrix[np.ix_(free, free)] + 0.1 * np.eye(free.size), np.unique(free // 3, return_inverse=True)[1]


def check(seed, nodes, springs, held, placed=False):
    rng = np.random.default_rng(seed)
    matrix, groups = spring_matrix(rng, nodes, springs, held)
    size = len(matrix)
    pattern = csc_matrix((matrix != 0.0) | np.eye(size, dtype=bool))
    points = rng.normal(size=(groups.max() + 1, 3)) if placed else None
    kept = SparseCholesky(pattern.indptr.astype(np.int64), pattern.indices.astype(np.int64), groups, points)
    columns = np.repeat(np.arange(size), np.diff(pattern.indptr))
    right = rng.normal(size=size)
    for scale, shift in ((1.0, 0.0), (2.5, 0.7)):  # the same factors, filled again
        whole = scale * matrix + shift * np.eye(size)
        assert kept.factor(scale * matrix[pattern.indices, columns], shift, 0.0)
        np.testing.assert_allclose(whole @ kept.solve(right), right, atol=1e-9)
    least = float(np.linalg.eigvalsh(matrix)[0])
    values = matrix[pattern.indices, columns]
    assert kept.factor(values, -0.999 * least, 0.0) and not kept.factor(values, -1.001 * least, 0.0)


@pytest.mark.parametrize(("springs", "panel", "tile"), [(0, 32, 64), (14, 32, 64), (60, 32, 64), (60, 3, 4)])
def test_factors_solve_and_tell_what_is_positive_definite(monkeypatch, springs, panel, tile):
    monkeypatch.setattr(sparse_cholesky, "PANEL", panel)
    monkeypatch.setattr(sparse_cholesky, "TILE", tile)
    for name in KERNELS:
        kernel = getattr(sparse_cholesky, name)
        monkeypatch.setattr(sparse_cholesky, name, getattr(kernel, "py_func", kernel))
    check(springs, 9, springs, 4, placed=springs == 14)


@pytest.mark.long
def test_compiled_factors_do_the_same_for_large_matrices():
    check(1, 300, 900, 50)
    check(2, 300, 900, 50, placed=True)
