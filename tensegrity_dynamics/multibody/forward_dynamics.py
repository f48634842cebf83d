"""Forward dynamics of closed loops through independent coordinates (000, 1.2.30 to 1.2.36).

K a = k is reduced row by row to a_passive = k' - D a_independent (Gauss-Jordan on the sparse rows, the pivot of a
row being its largest entry, coordinates that few loops touch preferred). That gives G and g of a = G y + g with
K G = 0 and K g = k. Then (G' M G) y = G'(W f + tau + p - c - M g) is solved by Cholesky. Nothing here needs M itself to
be regular: a massless body is fine wherever the loops leave it no motion of its own.

A row without a pivot depends on those before it. Where its right side vanishes too the motion is still unique; the
constraint forces are then the ones of least norm. The count of such rows is reported.
"""

from __future__ import annotations

import warnings
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compilation import compiled
from ..errors import TensegrityError
from .equations import check_state, evaluate, make_work
from .mechanism import Flat, Mechanism

Solver = namedtuple(
    "Solver", "weight rows pivot independent is_pivot nonzero basis offset product reduced right effort acceleration"
)

REGULAR, SINGULAR_MASS = 0, 1
DEPENDENT_ROW = 1e-9  # of the largest entry that the row had before elimination


def make_solver(flat: Flat) -> Solver:
    """Arrays for the reduction; coordinates that few loop rows touch come first as pivots."""
    dofs, rows = flat.dof_parent.size, flat.row_kind.size
    touched = np.zeros(dofs)
    for r in range(rows):
        for body in (flat.row_before[r], flat.row_after[r]):
            while body >= 0:
                touched[flat.v_start[body] : flat.v_start[body] + flat.v_count[body]] += 1
                body = flat.parent[body]
    return Solver(
        weight=1.0 / np.maximum(touched, 1.0), rows=np.zeros((rows, dofs + 1)),
        pivot=np.zeros(rows, dtype=np.int64), independent=np.zeros(dofs, dtype=np.int64),
        is_pivot=np.zeros(dofs, dtype=np.bool_), nonzero=np.zeros(dofs + 1, dtype=np.int64),
        basis=np.zeros((dofs, dofs)), offset=np.zeros(dofs), product=np.zeros((dofs, dofs)),
        reduced=np.zeros((dofs, dofs)), right=np.zeros(dofs), effort=np.zeros(dofs), acceleration=np.zeros(dofs),
    )  # fmt: skip


@compiled
def reduce_rows(matrix, right, solver, reuse):
    """Gauss-Jordan on matrix (rows, dofs) with one right side; returns the number of dependent rows.

    With reuse the pivots of the last call are taken again, so that the independent coordinates stay the same ones
    from one state to the next. Afterwards solver.pivot[r] is the passive coordinate of row r (-1 where dependent) and
    solver.rows[r] holds D and, in its last column, k'.
    """
    count, dofs = matrix.shape
    rows = solver.rows
    solver.is_pivot[:] = False
    for r in range(count):
        rows[r, :dofs] = matrix[r]
        rows[r, dofs] = right[r]
    dependent = 0
    for r in range(count):
        best, column, scale = 0.0, -1, 0.0
        for c in range(dofs):
            scale = max(scale, abs(matrix[r, c]))
            size = abs(rows[r, c]) * solver.weight[c]
            if size > best and not solver.is_pivot[c]:
                best, column = size, c
        if reuse:
            column = solver.pivot[r]
        if column < 0 or abs(rows[r, column]) <= DEPENDENT_ROW * scale:
            solver.pivot[r] = -1
            dependent += 1
            continue
        solver.pivot[r] = column
        solver.is_pivot[column] = True
        inverse = 1.0 / rows[r, column]
        filled = 0
        for c in range(dofs + 1):
            if rows[r, c] != 0.0:
                rows[r, c] *= inverse
                solver.nonzero[filled] = c
                filled += 1
        rows[r, column] = 1.0
        for o in range(count):
            factor = rows[o, column]
            if o == r or factor == 0.0:
                continue
            for n in range(filled):
                rows[o, solver.nonzero[n]] -= factor * rows[r, solver.nonzero[n]]
            rows[o, column] = 0.0
    return dependent


@compiled
def independent_basis(dofs, solver):
    """Fill basis G (dofs, y) and offset g from the reduced rows; returns the number y of independent coordinates."""
    count = 0
    for c in range(dofs):
        if not solver.is_pivot[c]:
            solver.independent[count] = c
            count += 1
    solver.offset[:] = 0.0
    for i in range(count):
        for c in range(dofs):
            solver.basis[c, i] = 0.0
        solver.basis[solver.independent[i], i] = 1.0
    for r in range(solver.rows.shape[0]):
        p = solver.pivot[r]
        if p < 0:
            continue
        solver.offset[p] = solver.rows[r, dofs]
        for i in range(count):
            solver.basis[p, i] = -solver.rows[r, solver.independent[i]]
    return count


@compiled
def cholesky(matrix, size):
    """Lower factor in place; returns the index of the first pivot that is not positive, or -1."""
    for j in range(size):
        limit = 1e-14 * abs(matrix[j, j])
        for k in range(j):
            matrix[j, j] -= matrix[j, k] * matrix[j, k]
        if not matrix[j, j] > limit:
            return j
        matrix[j, j] = np.sqrt(matrix[j, j])
        inverse = 1.0 / matrix[j, j]
        for i in range(j + 1, size):
            for k in range(j):
                matrix[i, j] -= matrix[i, k] * matrix[j, k]
            matrix[i, j] *= inverse
    return -1


@compiled
def cholesky_solve(factor, size, right):
    """Solve in place with the lower factor."""
    for i in range(size):
        for k in range(i):
            right[i] -= factor[i, k] * right[k]
        right[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            right[i] -= factor[k, i] * right[k]
        right[i] /= factor[i, i]


@compiled
def accelerate(flat, q, v, effort, gain, work, solver, reuse):
    """Fill solver.acceleration for efforts (nv,) on the coordinates; returns (status, dependent rows).

    gain [1/s] pulls loop errors back: K a = k - 2 gain K v - gain^2 error, critically damped with time constant 1/gain.
    """
    evaluate(flat, q, v, work)
    dofs = flat.dof_parent.shape[0]
    if gain > 0.0:
        for r in range(flat.row_kind.shape[0]):
            rate = 0.0
            for d in range(dofs):
                rate += work.loop[r, d] * v[d]
            work.loop_bias[r] -= 2.0 * gain * rate + gain * gain * work.loop_error[r]
    for d in range(dofs):
        solver.effort[d] = effort[d] + work.passive[d]
    return solve_reduced(dofs, work, solver, reuse)


@compiled
def solve_reduced(dofs, work, solver, reuse):
    """Accelerations for solver.effort and the M, c, K, k that stand in work; returns (status, dependent rows)."""
    dependent = reduce_rows(work.loop, work.loop_bias, solver, reuse)
    count = independent_basis(dofs, solver)
    basis, product, reduced, right = solver.basis, solver.product, solver.reduced, solver.right
    for i in range(count):
        right[i] = 0.0
        for j in range(i + 1):
            reduced[i, j] = 0.0
    for a in range(dofs):
        # row a of M G and of tau - c - M g; M is as sparse as the tree
        force = solver.effort[a] - work.bias[a]
        for i in range(count):
            product[a, i] = 0.0
        for b in range(dofs):
            entry = work.mass[a, b]
            if entry != 0.0:
                force -= entry * solver.offset[b]
                for i in range(count):
                    product[a, i] += entry * basis[b, i]
        for i in range(count):
            factor = basis[a, i]
            if factor != 0.0:
                right[i] += factor * force
                for j in range(i + 1):
                    reduced[i, j] += factor * product[a, j]
    failed = cholesky(reduced, count)
    if failed >= 0:
        return SINGULAR_MASS, solver.independent[failed]
    cholesky_solve(reduced, count, right)
    for a in range(dofs):
        total = solver.offset[a]
        for i in range(count):
            total += basis[a, i] * right[i]
        solver.acceleration[a] = total
    return REGULAR, dependent


@dataclass(frozen=True, eq=False)
class Accelerations:
    """Result of forward dynamics.

    Attributes:
        acceleration: (nv,). multipliers: (nc,), forces of the loops; they act on the coordinates as K' multipliers.
        strain, tension: of each cable, - and N. dependent_rows: loop rows that depend on others at this state.
    """

    acceleration: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    strain: NDArray[np.float64]
    tension: NDArray[np.float64]
    dependent_rows: int


def forward_dynamics(
    mechanism: Mechanism,
    q: NDArray,
    v: NDArray,
    effort: ArrayLike | None = None,
    *,
    stabilisation: float = 0.0,
) -> Accelerations:
    """Accelerations and loop forces (000, 1.2.30 with the bias that the printed right side lacks).

    Args:
        mechanism: the mechanism.
        q, v: (nq,) and (nv,) state.
        effort: (nv,) N or N m on the tree coordinates, the cables' own efforts not included; none for zero.
        stabilisation: gain [1/s] that pulls loop errors back, critically damped; 0 for none.

    Raises:
        TensegrityError: the state is not finite, or a body without mass can move on its own; it is named.

    Warns:
        RuntimeWarning: loop rows depend on each other (the loops are redundant or at a singular place).
    """
    q, v = check_state(mechanism, q, v)
    flat = mechanism.flat
    tau = np.zeros(v.size) if effort is None else np.ascontiguousarray(effort, dtype=np.float64)
    if tau.shape != v.shape or not np.all(np.isfinite(tau)):
        raise TensegrityError(f"effort must be ({v.size},) finite numbers.")
    work, solver = make_work(flat), make_solver(flat)
    status, count = accelerate(flat, q, v, tau, float(stabilisation), work, solver, False)
    if status == SINGULAR_MASS:
        raise TensegrityError(massless_message(mechanism, int(count)))
    if count:
        warnings.warn(
            f"{count} of {flat.row_kind.size} loop rows depend on the others here: redundant loops or a singular "
            "place. The motion is the consistent one, the loop forces are those of least norm.",
            RuntimeWarning,
            stacklevel=2,
        )
    residual = work.mass @ solver.acceleration + work.bias - solver.effort
    multipliers = np.linalg.lstsq(work.loop.T, residual, rcond=None)[0]
    return Accelerations(solver.acceleration, multipliers, work.strain, work.tension, int(count))


def massless_message(mechanism: Mechanism, coordinate: int) -> str:
    """Text that names the coordinate and body whose motion meets no inertia."""
    name = mechanism.coordinate_names()[coordinate]
    body = mechanism.joints[int(mechanism.flat.dof_body[coordinate])].body
    return (
        f"coordinate {name} can move without moving any mass (body {body} and all it carries are massless there). "
        f"Give {body} a mass, or close a loop that holds it."
    )
