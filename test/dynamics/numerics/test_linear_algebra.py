"""Linear algebra of small matrices against that of a library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics.numerics.linear_algebra import diagonalise, eigenvalues


def found(matrix):
    """Eigenvalues (n,) of a matrix (n, n)."""
    values = np.zeros(len(matrix), dtype=complex)
    assert eigenvalues(np.array(matrix, dtype=complex), values)
    return values


def distance(mine, theirs):
    """The largest one between the values of two lists (n,), each of one with the nearest that is left of the other."""
    largest = 0.0
    for value in theirs:
        k = int(np.argmin(abs(mine - value)))
        largest, mine = max(largest, abs(mine[k] - value)), np.delete(mine, k)
    return largest


@settings(max_examples=40)
@given(st.integers(1, 7), st.integers(0, 10**6), st.sampled_from(("any", "symmetric", "alike", "triangular")))
def test_eigenvalues_are_those_of_a_library(n, seed, kind):
    random = np.random.default_rng(seed)
    matrix = 10.0 ** random.uniform(-8, 8) * random.normal(size=(n, n))
    if kind == "symmetric":
        matrix = matrix + matrix.T
    elif kind == "alike":  # an eigenvalue that comes more than once, and all its vectors
        matrix = np.linalg.qr(matrix)[0] @ np.diag(random.integers(0, 2, n)) @ np.linalg.qr(matrix)[0].T
    elif kind == "triangular":
        matrix = np.triu(matrix)
    mine, theirs = found(matrix), np.linalg.eigvals(matrix).astype(complex)
    condition = np.linalg.cond(np.linalg.eig(matrix)[1])
    assert distance(mine, theirs) <= 1e-13 * condition * np.linalg.norm(matrix)


@pytest.mark.parametrize("matrix", [np.zeros((3, 3)), np.roll(np.eye(4), 1, 0), [[0.0, 1.0], [-1.0, 0.0]]])
def test_eigenvalues_are_found_where_a_shift_has_nothing_to_go_by(matrix):
    assert distance(found(matrix), np.linalg.eigvals(np.array(matrix))) < 1e-14


def test_a_matrix_that_is_not_finite_has_no_eigenvalues():
    assert not eigenvalues(np.full((3, 3), np.nan, dtype=complex), np.zeros(3, dtype=complex))


@pytest.mark.parametrize("size", [1, 3, 4, 6])
def test_jacobi_rotations_give_the_eigenvectors_of_symmetric_matrices(size):
    random = np.random.default_rng(size)
    for scale in (1e-12, 1.0, 1e9):
        matrix = random.normal(size=(size, size)) * scale
        matrix += matrix.T
        worked, vectors = matrix.copy(), np.empty((size, size))
        largest = diagonalise(worked, vectors)
        values = np.diagonal(worked)
        np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), atol=1e-13 * scale)
        np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-13 * scale)
        assert values[largest] == np.max(values)
