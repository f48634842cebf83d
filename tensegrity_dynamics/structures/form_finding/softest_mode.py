"""Softest mode of an equilibrium: least eigenvalue of the tangent stiffness by Lanczos steps on its inverse.

The factors of the last Newton step are available, so that one application of the inverse costs two triangular solves. A
full eigenvalue decomposition would cost more than the equilibrium.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import compiled
from ...numerics.linear_algebra import cholesky_apply, cholesky_shifted, dot, normalise
from .newton import fill_stiffness
from .rigid_bars import solve_rigid

MAX_LANCZOS_STEPS = 24


@compiled
def apply_inverse(vector, out, problem, rigid, work, is_rigid):
    """out = K^-1 vector; with rigid bars, over the motions that they allow."""
    if is_rigid:
        for i in range(vector.shape[0]):
            work.residual[i] = vector[i]
        solve_rigid(problem, rigid, work, 0.0)
        for i in range(vector.shape[0]):
            out[i] = work.step[i]
    else:
        cholesky_apply(work.factor, vector, out)


@compiled
def softest_mode(problem, rigid, work, is_rigid, basis):
    """Least stiffness [N/m] and whether it has converged; its direction, of unit length, is in work.direction.

    basis (MAX_LANCZOS_STEPS + 1, f) is scratch. work.factor must hold the factors of the stiffness (with rigid bars,
    those of `factor_rigid`).
    """
    count = work.direction.shape[0]
    for i in range(count):
        work.direction[i] = np.cos(1.0 + 1.7 * i)  # not symmetric, and reproducible
    apply_inverse(work.direction, basis[0], problem, rigid, work, is_rigid)
    normalise(basis[0])
    limit = min(MAX_LANCZOS_STEPS, count)
    alpha, beta = np.zeros(limit), np.zeros(limit)
    value, error = 0.0, np.inf
    weights = np.ones(1)
    used = 0
    for j in range(limit):
        apply_inverse(basis[j], basis[j + 1], problem, rigid, work, is_rigid)
        alpha[j] = dot(basis[j], basis[j + 1])
        for _ in range(2):  # orthogonalised twice: rounding errors would otherwise bring back previous directions
            for k in range(j + 1):
                part = dot(basis[k], basis[j + 1])
                for i in range(count):
                    basis[j + 1, i] -= part * basis[k, i]
        beta[j] = np.sqrt(dot(basis[j + 1], basis[j + 1]))
        used = j + 1
        finished = not beta[j] > 1e-14 * abs(alpha[0])
        if (j >= 5 and j % 3 == 0) or finished or j == limit - 1:
            small = np.zeros((used, used))
            for k in range(used):
                small[k, k] = alpha[k]
                if k + 1 < used:
                    small[k, k + 1] = beta[k]
                    small[k + 1, k] = beta[k]
            values, vectors = np.linalg.eigh(small)
            value = values[used - 1]
            weights = vectors[:, used - 1].copy()
            error = abs(beta[j] * weights[used - 1])
            if finished or error <= 1e-5 * value:
                break
        for i in range(count):
            basis[j + 1, i] /= beta[j]
    for i in range(count):
        total = 0.0
        for k in range(used):
            total += weights[k] * basis[k, i]
        work.direction[i] = total
    normalise(work.direction)
    # the error of the eigenvalue is the square of the error of the residual
    return 1.0 / value, value > 0.0 and (error <= 1e-4 * value or used == count)


@compiled
def softest_elastic(nodes, problem, rest_lengths, rigid, work, basis):
    """Fill and factor the stiffness at nodes, then `softest_mode`; not converged if it is not positive definite."""
    fill_stiffness(nodes, problem, rest_lengths, work)
    if not cholesky_shifted(work.matrix, 0.0, work.factor):
        return 0.0, False
    return softest_mode(problem, rigid, work, False, basis)
