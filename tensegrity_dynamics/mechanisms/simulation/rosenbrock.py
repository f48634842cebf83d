"""Implicit steps of a mechanism for stiff cables: the two-stage Rosenbrock method ROS2 in independent coordinates.

With u = (y, w) the independent displacements of a step and their rates, u' = f(u) and J its Jacobian (differences):

    (1 - g h J) k1 = f(u0),   (1 - g h J) k2 = f(u0 + h k1) - 2 k1,   u1 = u0 + 3/2 h k1 + 1/2 h k2,   g = 1 + 1/sqrt 2

(Verwer, Spee, Blom, Hundsdorfer 1999). It is of second order for any J and L-stable: modes that are much faster than
the step are damped out instead of growing.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ...numerics.compilation import compiled
from ..dynamics.equations_of_motion import loop_equations, place_bodies
from ..dynamics.forward_dynamics import REGULAR, accelerate, independent_basis, reduce_rows
from ..mechanism import Flat
from ..statics.equilibrium_solver import close_loops
from .runge_kutta import project, rate_of_position

GAMMA = 1.0 + 1.0 / np.sqrt(2.0)
NOT_CLOSED = 2
"""Status when a loop could not be closed within a step: the step is too long for the motion."""

Implicit = namedtuple("Implicit", "q v basis independent matrix first second right rate other held displacement")


def make_implicit(flat: Flat, positions: int) -> Implicit:
    """Scratch arrays of the integrator for a mechanism with `positions` position coordinates."""
    dofs = flat.dof_parent.size
    return Implicit(
        q=np.zeros(positions), v=np.zeros(dofs), basis=np.zeros((dofs, dofs)),
        independent=np.zeros(dofs, dtype=np.int64), matrix=np.zeros((2 * dofs, 2 * dofs)), first=np.zeros(2 * dofs),
        second=np.zeros(2 * dofs), right=np.zeros(2 * dofs), rate=np.zeros(2 * dofs), other=np.zeros(2 * dofs),
        held=np.zeros(dofs, dtype=np.bool_), displacement=np.zeros(dofs),
    )  # fmt: skip


@compiled
def place(flat, q, count, displacement, rate, work, solver, stages, scratch):
    """Fill scratch.q, scratch.v: the state displaced by (count,) along the basis, moving at rate (count,)."""
    dofs = flat.dof_parent.shape[0]
    for d in range(dofs):
        stages.step[d] = 0.0
        for i in range(count):
            stages.step[d] += scratch.basis[d, i] * displacement[i]
    rate_of_position(flat, q, stages.step, stages.q_rate)
    for k in range(q.shape[0]):
        scratch.q[k] = q[k] + stages.q_rate[k]
    stages.v_sum[:] = 0.0
    if close_loops(flat, scratch.q, scratch.held, 1e-13, True, work, solver, stages) > 1e-8:
        return False
    place_bodies(flat, scratch.q, stages.v_sum, work)
    loop_equations(flat, work)
    work.loop_bias[:] = 0.0
    reduce_rows(work.loop, work.loop_bias, solver, True)
    independent_basis(dofs, solver)
    for d in range(dofs):
        scratch.v[d] = 0.0
        for i in range(count):
            scratch.v[d] += solver.basis[d, i] * rate[i]
    return True


@compiled
def derivative(flat, q, u, count, effort, out, work, solver, stages, scratch):
    """Fill out (2 count,) = f(u) for u = (displacement, rate) from q; returns a status."""
    if not place(flat, q, count, u[:count], u[count : 2 * count], work, solver, stages, scratch):
        return NOT_CLOSED
    status, _ = accelerate(flat, scratch.q, scratch.v, effort, 0.0, work, solver, True)
    for i in range(count):
        out[i] = u[count + i]
        out[count + i] = solver.acceleration[scratch.independent[i]]
    return status


@compiled
def factor(matrix, size, pivots):
    """LU with partial pivoting in place."""
    for j in range(size):
        best, row = abs(matrix[j, j]), j
        for i in range(j + 1, size):
            if abs(matrix[i, j]) > best:
                best, row = abs(matrix[i, j]), i
        pivots[j] = row
        if row != j:
            for k in range(size):
                matrix[j, k], matrix[row, k] = matrix[row, k], matrix[j, k]
        for i in range(j + 1, size):
            matrix[i, j] /= matrix[j, j]
            entry = matrix[i, j]
            if entry != 0.0:
                for k in range(j + 1, size):
                    matrix[i, k] -= entry * matrix[j, k]


@compiled
def solve(matrix, size, pivots, right):
    """Solve in place with the factors."""
    for j in range(size):
        row = pivots[j]
        right[j], right[row] = right[row], right[j]
    for i in range(size):
        for k in range(i):
            right[i] -= matrix[i, k] * right[k]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            right[i] -= matrix[i, k] * right[k]
        right[i] /= matrix[i, i]


@compiled
def rosenbrock(flat, q, v, effort, step, steps, work, solver, stages, scratch):
    """Advance q and v in place by `steps` steps of `step` s with constant efforts; returns 0 or a failing status."""
    dofs = flat.dof_parent.shape[0]
    pivots = np.empty(2 * dofs, dtype=np.int64)
    u = np.zeros(2 * dofs)
    for _ in range(steps):
        # choose the independent coordinates of this step, and their rates
        status, _ = accelerate(flat, q, v, effort, 0.0, work, solver, False)
        if status != REGULAR:
            return status
        count = 0
        for d in range(dofs):
            if not solver.is_pivot[d]:
                scratch.independent[count] = d
                count += 1
        size = 2 * count
        for i in range(count):
            u[i] = 0.0
            u[count + i] = v[scratch.independent[i]]
            for d in range(dofs):
                scratch.basis[d, i] = solver.basis[d, i]
        first, second, right, rate, other = scratch.first, scratch.second, scratch.right, scratch.rate, scratch.other
        status = derivative(flat, q, u, count, effort, first, work, solver, stages, scratch)
        if status != REGULAR:
            return status
        # 1 - g h J, column by column
        matrix = scratch.matrix
        for c in range(size):
            keep = u[c]
            h = 1e-7 * max(1.0, abs(keep)) if c < count else 1e-6 * max(1.0, abs(keep))
            u[c] = keep + h
            status = derivative(flat, q, u, count, effort, other, work, solver, stages, scratch)
            u[c] = keep
            if status != REGULAR:
                return status
            for r in range(size):
                matrix[r, c] = -GAMMA * step * (other[r] - first[r]) / h
            matrix[c, c] += 1.0
        factor(matrix, size, pivots)
        rate[:size] = first[:size]
        solve(matrix, size, pivots, rate)
        for r in range(size):
            right[r] = u[r] + step * rate[r]
        status = derivative(flat, q, right, count, effort, second, work, solver, stages, scratch)
        if status != REGULAR:
            return status
        for r in range(size):
            second[r] -= 2.0 * rate[r]
        solve(matrix, size, pivots, second)
        for r in range(size):
            u[r] += 1.5 * step * rate[r] + 0.5 * step * second[r]
        if not place(flat, q, count, u[:count], u[count:size], work, solver, stages, scratch):
            return NOT_CLOSED
        q[:] = scratch.q
        v[:] = scratch.v
        project(flat, q, v, work, solver, stages)
    return REGULAR
