"""Derivatives of the equations of motion along closed-loop motions, without closing the loops for each difference.

With the loop forces lambda held constant,

    r(q, v, a) = M a + c - p - tau - K' lambda = 0,   K v = 0,   K a = k

hold at a state. Their slopes along a motion d with K d = 0 are finite differences of the tree of bodies alone, whose
coordinates can have any values: the loops open by the square of the step, which cancels in central differences. The
corrections that keep velocity and acceleration consistent with the loops follow from the passive part K_p of K, which
is factored once:

    dv = G dw' - K_p^-1 (dK v),   da = G dw'' - K_p^-1 d(K a - k),   G' (M da + dr) = 0

With lambda from the passive rows of r, the slope of the reduced force G' (tau + p - c) is -G' dr, at an equilibrium and
elsewhere.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ...numerics.compilation import allocation_free, for_compiled_callers, inlined_part
from ...numerics.linear_algebra import cholesky, cholesky_solve, lu_factor, lu_solve
from ..kinematics.body_kinematics import body_kinematics
from ..kinematics.configuration_space import configuration_rate, normalise_quaternions
from ..kinematics.loop_equations import loop_equations
from ..kinematics.loop_reduction import independent_basis, reduce_rows
from ..mechanism import FlatMechanism
from .equations_of_motion import evaluate
from .forward_dynamics import accelerate

REGULAR, DEPENDENT, SINGULAR = 0, 1, 2

TangentWorkspace = namedtuple(
    "TangentWorkspace",
    "q q_rate v rate acceleration effort row_of passive_loop pivots forces open force loop tension strain columns "
    "weighed mass_factor right counts still transposed exchanged",
)


def make_tangent_workspace(flat: FlatMechanism, positions: int, width: int | None = None) -> TangentWorkspace:
    """Arrays for slopes along up to `width` motions of a mechanism with `positions` position coordinates.

    The slopes are those of r: force (width, nv), of K a - k: loop (width, nc), and of the cables: tension and strain
    (width, c).
    """
    dofs, rows, cables = flat.dof_parent.size, flat.row_kind.size, flat.cable_joint.size
    wide = dofs if width is None else width
    return TangentWorkspace(
        q=np.zeros(positions), q_rate=np.zeros(positions), v=np.zeros(dofs), rate=np.zeros(dofs),
        acceleration=np.zeros(dofs), effort=np.zeros(dofs), row_of=np.zeros(rows, dtype=np.int64),
        passive_loop=np.zeros((rows, rows)), pivots=np.zeros(rows, dtype=np.int64), forces=np.zeros(rows),
        open=np.zeros(rows), force=np.zeros((wide, dofs)), loop=np.zeros((wide, rows)),
        tension=np.zeros((wide, cables)), strain=np.zeros((wide, cables)), columns=np.zeros((dofs, wide)),
        weighed=np.zeros((dofs, wide)), mass_factor=np.zeros((wide, wide)), right=np.zeros(wide),
        counts=np.zeros(1, dtype=np.int64), still=np.zeros(dofs), transposed=np.zeros((rows, rows)),
        exchanged=np.zeros(rows, dtype=np.int64),
    )  # fmt: skip


@for_compiled_callers
def equations_at(flat, q, v, work):
    """`evaluate` as a separate compiled function; inlined in each caller it would take long to compile."""
    evaluate(flat, q, v, work)


@for_compiled_callers
def factor_loops(work, reduction, tangent):
    """Factor K_p of the last `evaluate` and `reduce_rows`; dependent rows are excluded."""
    count = 0
    for r in range(reduction.pivot.shape[0]):
        if reduction.pivot[r] >= 0:
            tangent.row_of[count] = r
            count += 1
    for i in range(count):
        for k in range(count):
            tangent.passive_loop[i, k] = work.loop[tangent.row_of[i], reduction.pivot[tangent.row_of[k]]]
    lu_factor(tangent.passive_loop, count, tangent.pivots)
    tangent.counts[0] = count


@for_compiled_callers
def loop_forces(work, reduction, tangent):
    """Fill forces (nc,) with lambda from K_p' lambda = passive part of M a + c - p - tau, given in tangent.v."""
    count, transposed = tangent.counts[0], tangent.transposed
    for r in range(reduction.pivot.shape[0]):
        tangent.forces[r] = 0.0
    for i in range(count):
        for k in range(count):
            transposed[k, i] = work.loop[tangent.row_of[i], reduction.pivot[tangent.row_of[k]]]
        tangent.open[i] = tangent.v[reduction.pivot[tangent.row_of[i]]]
    lu_factor(transposed, count, tangent.exchanged)
    lu_solve(transposed, count, tangent.exchanged, tangent.open)
    for i in range(count):
        tangent.forces[tangent.row_of[i]] = tangent.open[i]


@for_compiled_callers
def remaining_force(flat, work, acceleration, effort, forces, out):
    """Fill out (nv,) with M a + c - p - tau - K' lambda of the last `evaluate`."""
    dofs = flat.dof_parent.shape[0]
    for a in range(dofs):
        out[a] = work.bias[a] - work.passive[a] - effort[a]
    for a in range(dofs):
        b = a
        while b >= 0:
            entry = work.mass[a, b]
            out[a] += entry * acceleration[b]
            if b != a:
                out[b] += entry * acceleration[a]
            b = flat.dof_parent[b]
    for r in range(forces.shape[0]):
        force = forces[r]
        if force != 0.0:
            for d in range(dofs):
                out[d] -= work.loop[r, d] * force


@inlined_part
def along_row(work, r, motion, reduction):
    """Product of row r of K with a motion (nv,)."""
    total = 0.0
    for n in range(reduction.row_start[r]):
        d = reduction.row_columns[r, n]
        total += work.loop[r, d] * motion[d]
    return total


@for_compiled_callers
def slopes_along(flat, q, v, acceleration, effort, steps, first, motions, work, reduction, tangent):
    """Fill force, loop, tension and strain from row `first` on, for motions 0 to `motions` of tangent.columns.

    The motions are displacements of the position if first is 0, else changes of the rates. steps (motions,) are the
    finite difference steps. tangent.forces and the factors of `factor_loops` must be those of the state, with K v = 0.
    """
    dofs, rows, cables = flat.dof_parent.shape[0], flat.row_kind.shape[0], work.tension.shape[0]
    moving = False
    for d in range(dofs):
        moving = moving or v[d] != 0.0
    for m in range(motions):
        row, h = first + m, steps[m]
        for d in range(dofs):
            tangent.force[row, d] = 0.0
        for r in range(rows):
            tangent.loop[row, r] = 0.0
        for c in range(cables):
            tangent.tension[row, c] = tangent.strain[row, c] = 0.0
        for side in range(2):
            sign = 1.0 if side == 0 else -1.0
            for k in range(q.shape[0]):
                tangent.q[k] = q[k]
            for d in range(dofs):
                tangent.v[d] = v[d]
                tangent.rate[d] = sign * h * tangent.columns[d, m]
            if first == 0:
                configuration_rate(flat, q, tangent.rate, tangent.q_rate)
                for k in range(q.shape[0]):
                    tangent.q[k] += tangent.q_rate[k]
                normalise_quaternions(flat, tangent.q)
                if moving and rows > 0:
                    body_kinematics(flat, tangent.q, tangent.v, work)
                    loop_equations(flat, work)
                    count = tangent.counts[0]
                    for i in range(count):
                        tangent.open[i] = along_row(work, tangent.row_of[i], v, reduction)
                    lu_solve(tangent.passive_loop, count, tangent.pivots, tangent.open)
                    for i in range(count):
                        tangent.v[reduction.pivot[tangent.row_of[i]]] -= tangent.open[i]
            else:
                for d in range(dofs):
                    tangent.v[d] += tangent.rate[d]
            equations_at(flat, tangent.q, tangent.v, work)
            remaining_force(flat, work, acceleration, effort, tangent.forces, tangent.rate)
            scale = 0.5 * sign / h
            for d in range(dofs):
                tangent.force[row, d] += scale * tangent.rate[d]
            for r in range(rows):
                tangent.loop[row, r] += scale * (along_row(work, r, acceleration, reduction) - work.loop_bias[r])
            for c in range(cables):
                tangent.tension[row, c] += scale * work.tension[c]
                tangent.strain[row, c] += scale * work.strain[c]


@allocation_free
def static_slopes(flat, q, effort, steps, motions, work, reduction, tangent):
    """`slopes_along` for motions 0 to `motions` of tangent.columns at rest, with the present pivots of the reduction.

    tangent.columns is an input. K_p belongs to the pivots of the last `reduce_rows`; held coordinates are not pivots.
    """
    still = tangent.still
    equations_at(flat, q, still, work)
    for r in range(tangent.forces.shape[0]):
        tangent.forces[r] = 0.0
    remaining_force(flat, work, still, effort, tangent.forces, tangent.v)
    factor_loops(work, reduction, tangent)
    loop_forces(work, reduction, tangent)
    slopes_along(flat, q, still, still, effort, steps, 0, motions, work, reduction, tangent)


@for_compiled_callers
def linearise_state(
    flat, q, rate, effort, index, held, drives, steps, matrix, inputs, acceleration, velocity, work, reduction, tangent
):  # fmt: skip
    """Fill A (2n, 2n) and B (2n, u) for small deviations of (w, w') at a state, w'' (n,), v (nv,); returns a status.

    Args:
        q: (nq,) with closed loops. rate: (n,) w'. effort: (nv,). index: (n,) indices of the coordinates w in v.
        held: (nv,) whether a coordinate is one of w. drives: (u,) indices in v. steps: (n,) finite difference steps.
    """
    dofs, n = flat.dof_parent.shape[0], index.shape[0]
    equations_at(flat, q, tangent.still, work)
    reduce_rows(work.loop, work.loop_bias, reduction, False)
    if independent_basis(dofs, reduction) != n:
        return DEPENDENT
    for i in range(n):
        if not held[reduction.independent[i]]:
            return DEPENDENT
    for d in range(dofs):
        velocity[d] = 0.0
        for i in range(n):
            entry = reduction.basis[d, reduction.basis_index[index[i]]]
            tangent.columns[d, i] = entry
            velocity[d] += entry * rate[i]
    status, _ = accelerate(flat, q, velocity, effort, 0.0, work, reduction, True)
    if status != 0:
        return SINGULAR
    for d in range(dofs):
        tangent.acceleration[d] = reduction.acceleration[d]
    for i in range(n):
        acceleration[i] = tangent.acceleration[index[i]]
    # M G, and the factor of G' M G
    for d in range(dofs):
        for i in range(n):
            tangent.weighed[d, i] = 0.0
    for a in range(dofs):
        b = a
        while b >= 0:
            entry = work.mass[a, b]
            if entry != 0.0:
                for i in range(n):
                    tangent.weighed[a, i] += entry * tangent.columns[b, i]
                if b != a:
                    for i in range(n):
                        tangent.weighed[b, i] += entry * tangent.columns[a, i]
            b = flat.dof_parent[b]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for d in range(dofs):
                total += tangent.columns[d, i] * tangent.weighed[d, j]
            tangent.mass_factor[i, j] = total
    if cholesky(tangent.mass_factor, n) >= 0:
        return SINGULAR
    for r in range(tangent.forces.shape[0]):
        tangent.forces[r] = 0.0
    remaining_force(flat, work, tangent.acceleration, effort, tangent.forces, tangent.v)
    factor_loops(work, reduction, tangent)
    loop_forces(work, reduction, tangent)
    slopes_along(flat, q, velocity, tangent.acceleration, effort, steps, 0, n, work, reduction, tangent)
    slopes_along(flat, q, velocity, tangent.acceleration, effort, steps, n, n, work, reduction, tangent)
    count = tangent.counts[0]
    for m in range(2 * n):
        for i in range(count):
            tangent.open[i] = tangent.loop[m, tangent.row_of[i]]
        lu_solve(tangent.passive_loop, count, tangent.pivots, tangent.open)
        for i in range(n):
            tangent.right[i] = 0.0
        for d in range(dofs):  # the sums over i are vectorised
            for i in range(n):
                tangent.right[i] -= tangent.columns[d, i] * tangent.force[m, d]
        for k in range(count):
            for i in range(n):
                tangent.right[i] += tangent.weighed[reduction.pivot[tangent.row_of[k]], i] * tangent.open[k]
        cholesky_solve(tangent.mass_factor, n, tangent.right)
        for i in range(n):
            matrix[i, m] = 1.0 if m == n + i else 0.0
            matrix[n + i, m] = tangent.right[i]
    for a in range(drives.shape[0]):
        for i in range(n):
            tangent.right[i] = tangent.columns[drives[a], i]
        cholesky_solve(tangent.mass_factor, n, tangent.right)
        for i in range(n):
            inputs[i, a] = 0.0
            inputs[n + i, a] = tangent.right[i]
    return REGULAR


@allocation_free
def linearise_states(
    flat, positions, rates, efforts, index, held, drives, steps, matrices, inputs, accelerations, velocity, work,
    reduction, tangent,
):  # fmt: skip
    """`linearise_state` for rows of positions (k, nq), rates (k, n) and efforts (k, nv); returns the first error
    status."""
    for k in range(positions.shape[0]):
        status = linearise_state(
            flat, positions[k], rates[k], efforts[k], index, held, drives, steps, matrices[k], inputs[k],
            accelerations[k], velocity, work, reduction, tangent,
        )  # fmt: skip
        if status != REGULAR:
            return status
    return REGULAR
