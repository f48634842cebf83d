"""Small dense linear algebra for the compiled solvers: Cholesky without the overhead of a library call."""

from __future__ import annotations

import numpy as np

from .compilation import compiled


@compiled
def cholesky_shifted(matrix, shift, factor):
    """Lower factor (n, n) of matrix + shift; False where that is not positive definite."""
    n = matrix.shape[0]
    largest = 0.0
    for j in range(n):
        largest = max(largest, abs(matrix[j, j]))
    floor = 1e-15 * largest
    for j in range(n):
        for k in range(j):
            total = matrix[j, k]
            for i in range(k):
                total -= factor[j, i] * factor[k, i]
            factor[j, k] = total / factor[k, k]
        total = matrix[j, j] + shift
        for i in range(j):
            total -= factor[j, i] * factor[j, i]
        if not total > floor:
            return False
        factor[j, j] = np.sqrt(total)
    return True


@compiled
def cholesky_apply(factor, right, solution):
    """Solve L L' solution = right; they may be the same array."""
    n = factor.shape[0]
    for i in range(n):
        total = right[i]
        for k in range(i):
            total -= factor[i, k] * solution[k]
        solution[i] = total / factor[i, i]
    for i in range(n - 1, -1, -1):
        total = solution[i]
        for k in range(i + 1, n):
            total -= factor[k, i] * solution[k]
        solution[i] = total / factor[i, i]


@compiled
def least_eigenvector(factor, vector, other, iterations):
    """Inverse iteration with the factor of a matrix: fills vector with the direction of its least eigenvalue.

    Returns 1 / (v' A^-1 v), the estimate of that eigenvalue, and whether it settled.
    """
    n = factor.shape[0]
    last, estimate = 0.0, 0.0
    for sweep in range(iterations):
        norm = 0.0
        for i in range(n):
            norm += vector[i] * vector[i]
        norm = np.sqrt(norm)
        for i in range(n):
            vector[i] /= norm
        cholesky_apply(factor, vector, other)
        product = 0.0
        for i in range(n):
            product += vector[i] * other[i]
        estimate = 1.0 / product
        # the Rayleigh quotient is off by the square of the direction's error: ask for the direction
        gap = 0.0
        for i in range(n):
            gap += (other[i] * estimate - vector[i]) ** 2
        for i in range(n):
            vector[i] = other[i]
        if sweep > 0 and gap < 1e-16 and abs(estimate - last) <= 1e-12 * abs(estimate):
            return estimate, True
        last = estimate
    return estimate, False
