"""Implicit steps of a mechanism for stiff cables: the two-stage Rosenbrock method ROS2 in independent coordinates.

With u = (y, w) the independent displacements of a step and their rates, u' = f(u) and J its Jacobian (differences):

    (1 - g h J) k1 = f(u0),   (1 - g h J) k2 = f(u0 + h k1) - 2 k1,   u1 = u0 + 3/2 h k1 + 1/2 h k2,   g = 1 + 1/sqrt 2

(Verwer, Spee, Blom, Hundsdorfer 1999). It is of second order for any J and L-stable: modes that are much faster than
the step are damped out instead of growing.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import allocation_free, for_compiled_callers
from ...numerics.linear_algebra import copy, lu_factor, lu_solve
from ..dynamics.forward_dynamics import REGULAR, accelerate
from ..dynamics.state_derivative import NOT_CLOSED, displaced_state
from ..kinematics.loop_closure import project_onto_loops
from .transitions import differ, read_pattern

GAMMA = 1.0 + 1.0 / np.sqrt(2.0)


@for_compiled_callers
def impedance_efforts(drives, q, v, effort):
    """Fill the torques (nv,) of the impedances among the drives at a state, within their limits."""
    for a in range(drives.q.shape[0]):
        if drives.stiff[a]:
            torque = drives.feed_forward[a] + drives.stiffness[a] * (drives.middle[a] - q[drives.q[a]])
            torque += drives.damping[a] * (drives.moving[a] - v[drives.v[a]])
            effort[drives.v[a]] = min(max(torque, -drives.effort[a]), drives.effort[a])


@for_compiled_callers
def driven_derivative(flat, drives, q, u, count, effort, out, work, reduction, stages, scratch):
    """As `state_derivative`, with the efforts of impedances as they are at the displaced state."""
    if not displaced_state(flat, q, count, u[:count], u[count : 2 * count], work, reduction, stages, scratch):
        return NOT_CLOSED
    impedance_efforts(drives, scratch.q, scratch.v, effort)
    status, _ = accelerate(flat, scratch.q, scratch.v, effort, 0.0, work, reduction, True)
    for i in range(count):
        out[i] = u[count + i]
        out[count + i] = reduction.acceleration[scratch.independent[i]]
    return status


@for_compiled_callers
def fill_matrix(flat, drives, q, u, count, effort, step, work, reduction, stages, scratch):
    """Fill scratch.matrix with 1 - g h J at u by differences from scratch.first; returns a status.

    Coordinates of parts of the mechanism that nothing ties together are moved at once, one of every part: a hand costs
    no more than its finger with most coordinates. Where something else pushes, pulls or slips on one side of u, which
    stages.pattern says of u itself, differences are taken on the other: a force that jumps there has no derivative.
    """
    matrix, turn, moved, component = scratch.matrix, scratch.turn, scratch.moved, scratch.component
    given, other = scratch.right, scratch.other
    copy(u, given)
    turns = 0
    moved[:] = 0
    for i in range(count):
        part = component[scratch.independent[i]]
        turn[i] = moved[part]
        moved[part] += 1
        turns = max(turns, moved[part])
    for r in range(2 * count):
        for c in range(2 * count):
            matrix[r, c] = 1.0 if r == c else 0.0
    for first, least in ((0, 1e-7), (count, 1e-6)):
        for n in range(turns):
            for sign in (1.0, -1.0):
                moved[:] = -1
                for i in range(count):
                    if turn[i] == n:
                        c = first + i
                        moved[component[scratch.independent[i]]] = c
                        u[c] = given[c] + sign * least * max(1.0, abs(given[c]))
                status = driven_derivative(flat, drives, q, u, count, effort, other, work, reduction, stages, scratch)
                if status != REGULAR:
                    return status
                read_pattern(flat, scratch.q, scratch.v, work, stages.new_pattern)
                if not differ(stages.pattern, stages.new_pattern):
                    break
            for i in range(count):
                c = moved[component[scratch.independent[i]]]
                if c >= 0:
                    factor = -GAMMA * step / (u[c] - given[c])
                    for r in (i, count + i):
                        matrix[r, c] += factor * (other[r] - scratch.first[r])
            for i in range(count):
                if turn[i] == n:
                    u[first + i] = given[first + i]
    return REGULAR


@allocation_free
def rosenbrock(flat, drives, q, v, effort, step, steps, work, reduction, stages, scratch):
    """Advance q and v in place by `steps` steps of `step` s with constant efforts; returns 0 or a failing status.

    Efforts of impedances among the drives are not constant: their law is a part of f. stages.pattern says what pushes,
    pulls and slips at the start.
    """
    dofs = flat.dof_parent.shape[0]
    pivots, u = scratch.pivots, scratch.u
    for _ in range(steps):
        # choose the independent coordinates of this step, and their rates
        impedance_efforts(drives, q, v, effort)
        status, _ = accelerate(flat, q, v, effort, 0.0, work, reduction, False)
        if status != REGULAR:
            return status
        count = 0
        for d in range(dofs):
            if not reduction.is_pivot[d]:
                scratch.independent[count] = d
                count += 1
        size = 2 * count
        for i in range(count):
            u[i] = 0.0
            u[count + i] = v[scratch.independent[i]]
            for d in range(dofs):
                scratch.basis[d, i] = reduction.basis[d, i]
        first, second, right, rate, matrix = scratch.first, scratch.second, scratch.right, scratch.rate, scratch.matrix
        if flat.row_kind.shape[0] == 0:  # these are the accelerations of just now
            for i in range(count):
                first[i] = u[count + i]
                first[count + i] = reduction.acceleration[scratch.independent[i]]
        else:
            status = driven_derivative(flat, drives, q, u, count, effort, first, work, reduction, stages, scratch)
            if status != REGULAR:
                return status
        status = fill_matrix(flat, drives, q, u, count, effort, step, work, reduction, stages, scratch)
        if status != REGULAR:
            return status
        lu_factor(matrix, size, pivots)
        copy(first, rate)
        lu_solve(matrix, size, pivots, rate)
        for r in range(size):
            right[r] = u[r] + step * rate[r]
        status = driven_derivative(flat, drives, q, right, count, effort, second, work, reduction, stages, scratch)
        if status != REGULAR:
            return status
        for r in range(size):
            second[r] -= 2.0 * rate[r]
        lu_solve(matrix, size, pivots, second)
        for r in range(size):
            u[r] += 1.5 * step * rate[r] + 0.5 * step * second[r]
        if not displaced_state(flat, q, count, u[:count], u[count:size], work, reduction, stages, scratch):
            return NOT_CLOSED
        copy(scratch.q, q)
        copy(scratch.v, v)
        project_onto_loops(flat, q, v, work, reduction, stages)
    return REGULAR
