"""Optimum of a program in which no bound is active, the usual case of a control period: that of the objective alone.

A solver for programs with bounds takes several times as long as the linear equations P x = -q. So these are solved
first; where the result keeps every bound, it is the optimum of the whole program, as P is positive definite. In all
other cases the solver is called.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.numerics.compilation import allocation_free
from tensegrity_dynamics.numerics.linear_algebra import cholesky, cholesky_solve

ACCURATE = 1e-11
"""Largest error of P x + q, relative to its largest term, both with columns of norm one."""
REFINEMENTS = 2
"""Largest number of corrections by the same factor."""


@allocation_free
def free_optimum(P, q, C, c_low, c_high, x_low, x_high, factor, scale, error, x):
    """Fill x (n,) with the solution of P x = -q; False if it breaks a bound, or is less accurate than `ACCURATE`.

    Args:
        factor, scale, error: (n, n), (n,) and (n,) scratch.
    """
    n = q.shape[0]
    for i in range(n):
        if not P[i, i] > 0.0:
            return False
        scale[i] = 1.0 / np.sqrt(P[i, i])
    for i in range(n):
        for j in range(i + 1):
            factor[i, j] = P[i, j] * scale[i] * scale[j]
        x[i] = 0.0
    if cholesky(factor, n) >= 0:
        return False
    for _ in range(REFINEMENTS + 1):
        for i in range(n):
            error[i] = scale[i] * (-q[i] - dot_row(P, i, x))
        cholesky_solve(factor, n, error)
        for i in range(n):
            x[i] += scale[i] * error[i]
        worst, largest = 0.0, 0.0
        for i in range(n):
            slope, size = q[i], abs(q[i])
            for j in range(n):
                part = P[i, j] * x[j]
                slope += part
                size = max(size, abs(part))
            worst, largest = max(worst, abs(slope) * scale[i]), max(largest, size * scale[i])
        if worst <= ACCURATE * largest:
            break
    else:
        return False
    for i in range(n):
        if not x_low[i] <= x[i] <= x_high[i]:
            return False
    for k in range(c_low.shape[0]):
        if not c_low[k] <= dot_row(C, k, x) <= c_high[k]:
            return False
    return True


@allocation_free
def dot_row(matrix, row, x):
    """Product of a row of a matrix with x."""
    total = 0.0
    for j in range(x.shape[0]):
        total += matrix[row, j] * x[j]
    return total
