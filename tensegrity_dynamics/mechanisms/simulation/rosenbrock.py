"""Implicit steps of a mechanism for stiff cables: the Rosenbrock method RODAS3 in independent coordinates.

u = (y, w) are the independent displacements of a step and their rates, u' = f(u), and J is its Jacobian (finite
differences). All four stages solve with the matrix 1 - h J / 2:

    U1: h f(u0) / 2                        U3: h f(u0 + 2 U1) / 2 + (U1 - U2) / 2
    U2: h f(u0) / 2 + 2 U1                 U4: h f(u0 + 2 U1 + U3) / 2 + (U1 - U2) / 2 - 4/3 U3
    u1 = u0 + 2 U1 + U3 + U4

(Sandu, Verwer, Blom, Spee, Carmichael 1997; Hairer and Wanner, Solving Ordinary Differential Equations II, IV.7). The
method is of third order and L-stable: modes much faster than the step are damped out instead of growing. Except for
fast modes, no stage lies beyond the end of the step. Displacements of spherical and floating joints are not integrals
of their rates, which are in axes that rotate: y' = T(y) w (`turn_rates`).

The energies of the powers P(u) of `powers` and of the actuators follow from an additional equation W' = P(u) with the
same method:

    W = h (2/3 P(u0) - 1/6 P(u0 + 2 U1) + 1/2 P(u0 + 2 U1 + U3) + P'(u0) (5/6 U1 - U2 / 6 - U3 / 6 + U4 / 2))
"""

from __future__ import annotations

from ...numerics.compilation import allocation_free, for_compiled_callers
from ...numerics.linear_algebra import copy, lu_factor, lu_solve
from ..dynamics.forward_dynamics import REGULAR
from ..dynamics.state_derivative import NOT_CLOSED, displaced_state, turn_rates
from ..kinematics.loop_closure import project_onto_loops
from ..routing.slip import hold_contacts
from .drive_laws import driven_accelerations, driving_power
from .powers import ACTUATORS, powers_in
from .transitions import differ, read_pattern

GAMMA = 0.5
SLIGHT = 1e-5
"""Finite difference step of the slope of the powers, relative to the change of a step."""


@for_compiled_callers
def driven_derivative(flat, drives, q, u, count, effort, out, work, reduction, stages, scratch):
    """As `state_derivative`, with the torques of impedances and servos at the displaced state."""
    if not displaced_state(flat, q, count, u[:count], u[count : 2 * count], work, reduction, stages, scratch):
        return NOT_CLOSED
    status = driven_accelerations(flat, drives, scratch.q, scratch.v, effort, work, reduction, True)
    for i in range(count):
        out[i] = u[count + i]
        out[count + i] = reduction.acceleration[scratch.independent[i]]
    turn_rates(flat, q, count, scratch, out)
    return status


@for_compiled_callers
def fill_matrix(flat, drives, q, u, count, effort, step, work, reduction, stages, scratch):
    """Fill scratch.matrix with 1 - g h J at u by finite differences from scratch.first; returns a status.

    Unconnected components of the mechanism are displaced simultaneously, one coordinate of each: a hand needs no more
    evaluations than its finger with most coordinates. stages.pattern describes the active contacts, cable forces and
    slips at u. If the pattern differs on one side of u, the difference is taken on the other side, because a force that
    jumps has no derivative there.
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
                read_pattern(flat, work, stages.new_pattern)
                if differ(stages.pattern, stages.new_pattern) == 0:
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


@for_compiled_callers
def read_powers(flat, drives, effort, work, stages, scratch):
    """Fill stages.powers (5,) [W] with the powers of the forces stored in work and of the actuators."""
    powers_in(flat, scratch.q, scratch.v, work, stages.powers)
    stages.powers[ACTUATORS] = driving_power(drives, scratch.v, effort)


@for_compiled_callers
def add_powers(flat, drives, effort, weight, work, stages, scratch):
    """Add the weighted powers of `read_powers` to stages.taken."""
    read_powers(flat, drives, effort, work, stages, scratch)
    for k in range(stages.taken.shape[0]):
        stages.taken[k] += weight * stages.powers[k]


@for_compiled_callers
def add_slope_of_powers(flat, drives, q, count, change, effort, step, work, reduction, stages, scratch):
    """Add `step` times the change of the powers along a change of u, from their slope at the start, to stages.taken.

    If the pattern of contacts, cable forces and slips differs slightly ahead, the slope is taken on the other side. If
    it differs there as well, the powers jump at this state and the slope is not added.
    """
    u = scratch.right
    alike = False
    for sign in (SLIGHT, -SLIGHT):
        for r in range(2 * count):
            u[r] = scratch.u[r] + sign * change[r]
        status = driven_derivative(flat, drives, q, u, count, effort, scratch.other, work, reduction, stages, scratch)
        if status != REGULAR:
            return status
        read_powers(flat, drives, effort, work, stages, scratch)
        read_pattern(flat, work, stages.new_pattern)
        alike = differ(stages.pattern, stages.new_pattern) == 0
        if alike:
            break
    if not alike:
        return REGULAR
    for k in range(stages.taken.shape[0]):
        stages.taken[k] += step / sign * (stages.powers[k] - stages.start_powers[k])
    return REGULAR


@for_compiled_callers
def rosenbrock_step(flat, drives, q, v, effort, step, work, reduction, stages, scratch):
    """Advance q and v in place by a step of `step` [s] with constant efforts; returns 0 or an error status.

    Torques of impedances and servos are not constant: their laws are part of f. stages.pattern is the pattern of
    contacts, cable forces and slips at the start; stages.taken (5,) is filled with the energies [J] of the powers.
    """
    dofs = flat.dof_parent.shape[0]
    pivots, u, first, right, matrix = scratch.pivots, scratch.u, scratch.first, scratch.right, scratch.matrix
    one, two, three, four = scratch.stage_1, scratch.stage_2, scratch.stage_3, scratch.stage_4
    stages.taken[:] = 0.0
    # choose the independent coordinates of this step, and their rates
    status = driven_accelerations(flat, drives, q, v, effort, work, reduction, False)
    if status != REGULAR:
        return status
    hold_contacts(flat.route_elements, flat.routed_cables, work.route_state, True)
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
    if flat.row_kind.shape[0] == 0:  # the accelerations were computed above
        for i in range(count):
            first[i] = u[count + i]
            first[count + i] = reduction.acceleration[scratch.independent[i]]
        copy(q, scratch.q)
        copy(v, scratch.v)
    else:
        status = driven_derivative(flat, drives, q, u, count, effort, first, work, reduction, stages, scratch)
        if status != REGULAR:
            return status
    add_powers(flat, drives, effort, 2.0 / 3.0 * step, work, stages, scratch)
    copy(stages.powers, stages.start_powers)
    status = fill_matrix(flat, drives, q, u, count, effort, step, work, reduction, stages, scratch)
    if status != REGULAR:
        return status
    lu_factor(matrix, size, pivots)
    for r in range(size):
        one[r] = 0.5 * step * first[r]
    copy(one, two)
    lu_solve(matrix, size, pivots, one)
    for r in range(size):
        two[r] += 2.0 * one[r]
        right[r] = u[r] + 2.0 * one[r]
    lu_solve(matrix, size, pivots, two)
    status = driven_derivative(flat, drives, q, right, count, effort, first, work, reduction, stages, scratch)
    if status != REGULAR:
        return status
    add_powers(flat, drives, effort, -step / 6.0, work, stages, scratch)
    for r in range(size):
        three[r] = 0.5 * (step * first[r] + one[r] - two[r])
    lu_solve(matrix, size, pivots, three)
    for r in range(size):
        right[r] = u[r] + 2.0 * one[r] + three[r]
    status = driven_derivative(flat, drives, q, right, count, effort, first, work, reduction, stages, scratch)
    if status != REGULAR:
        return status
    add_powers(flat, drives, effort, 0.5 * step, work, stages, scratch)
    for r in range(size):
        four[r] = 0.5 * (step * first[r] + one[r] - two[r]) - 4.0 / 3.0 * three[r]
    lu_solve(matrix, size, pivots, four)
    for r in range(size):
        first[r] = (5.0 * one[r] - two[r] - three[r]) / 6.0 + 0.5 * four[r]
    status = add_slope_of_powers(flat, drives, q, count, first, effort, step, work, reduction, stages, scratch)
    if status != REGULAR:
        return status
    for r in range(size):
        u[r] += 2.0 * one[r] + three[r] + four[r]
    if not displaced_state(flat, q, count, u[:count], u[count:size], work, reduction, stages, scratch):
        return NOT_CLOSED
    copy(scratch.q, q)
    copy(scratch.v, v)
    project_onto_loops(flat, q, v, work, reduction, stages)
    return REGULAR


@allocation_free
def rosenbrock(flat, drives, q, v, effort, step, work, reduction, stages, scratch):
    """`rosenbrock_step` with the sticking and slipping contacts of routed cables imposed as at its start."""
    status = rosenbrock_step(flat, drives, q, v, effort, step, work, reduction, stages, scratch)
    hold_contacts(flat.route_elements, flat.routed_cables, work.route_state, False)
    return status
