"""The softest motion of a shape: least eigenvalue of the tangent stiffness by Lanczos steps on its inverse.

The factors of the last Newton step are at hand, so that one application of the inverse costs two triangular solves;
a full eigenvalue decomposition would cost more than finding the shape did.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import compiled
from ...numerics.linear_algebra import cholesky_apply, cholesky_shifted
from ..form_finding.newton import fill_stiffness
from ..form_finding.rigid_bars import solve_rigid

STEPS = 24


@compiled
def apply_inverse(vector, out, problem, rigid, room, is_rigid):
    """out = K^-1 vector; with rigid bars, over the motions that they allow."""
    if is_rigid:
        for i in range(vector.shape[0]):
            room.residual[i] = vector[i]
        solve_rigid(problem, rigid, room, 0.0)
        for i in range(vector.shape[0]):
            out[i] = room.step[i]
    else:
        cholesky_apply(room.factor, vector, out)


@compiled
def softest_mode(problem, rigid, room, is_rigid, basis):
    """Least stiffness [N/m] and whether it is settled; its direction, of length one, stands in room.direction.

    basis (STEPS + 1, f) is scratch. room.factor must hold the factors of the stiffness (with rigid bars, those of
    `factor_rigid`).
    """
    count = room.direction.shape[0]
    for i in range(count):
        room.direction[i] = np.cos(1.0 + 1.7 * i)  # no symmetry, and the same every time
    apply_inverse(room.direction, basis[0], problem, rigid, room, is_rigid)
    scale(basis[0])
    limit = min(STEPS, count)
    alpha, beta = np.zeros(limit), np.zeros(limit)
    value, error = 0.0, np.inf
    weights = np.ones(1)
    used = 0
    for j in range(limit):
        apply_inverse(basis[j], basis[j + 1], problem, rigid, room, is_rigid)
        alpha[j] = dot(basis[j], basis[j + 1])
        for _ in range(2):  # orthogonal to all before, twice: rounding otherwise brings back what was found
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
        room.direction[i] = total
    scale(room.direction)
    # the eigenvalue's own error is the square of the residual's
    return 1.0 / value, value > 0.0 and (error <= 1e-4 * value or used == count)


@compiled
def dot(a, b):
    """Scalar product."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@compiled
def scale(vector):
    """Bring a vector to length one."""
    norm = np.sqrt(dot(vector, vector))
    for i in range(vector.shape[0]):
        vector[i] /= norm


@compiled
def softest_elastic(nodes, problem, rest_lengths, rigid, room, basis):
    """Fill and factor the stiffness at nodes, then `softest_mode`; not settled where it is not positive definite."""
    fill_stiffness(nodes, problem, rest_lengths, room)
    if not cholesky_shifted(room.matrix, 0.0, room.factor):
        return 0.0, False
    return softest_mode(problem, rigid, room, False, basis)
