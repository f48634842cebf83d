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

from ...errors import TensegrityError
from ...numerics.compilation import allocation_free
from ..mechanism import Flat, Mechanism
from .equations_of_motion import check_state, evaluate, make_work

Solver = namedtuple(
    "Solver",
    "weight rows row_columns row_start row_filled column_rows column_start column_filled known pivot independent "
    "is_pivot place nonzero basis basis_columns basis_filled offset product reduced right effort force acceleration",
)

REGULAR, SINGULAR_MASS = 0, 1
DEPENDENT_ROW = 1e-9  # of the largest entry that the row had before elimination


def make_solver(flat: Flat) -> Solver:
    """Arrays for the reduction; coordinates that few loop rows touch come first as pivots.

    The pattern of K is that of the chains from the two ends of each loop to the root. It is found here once: the
    columns of each row and the rows of each column. What elimination fills in is appended to these lists.
    """
    dofs, rows = flat.dof_parent.size, flat.row_kind.size
    known = np.zeros((rows, dofs), dtype=np.bool_)
    touched = np.zeros(dofs)
    for r in range(rows):
        for body in (flat.row_before[r], flat.row_after[r]):
            while body >= 0:
                moving = slice(flat.v_start[body], flat.v_start[body] + flat.v_count[body])
                touched[moving] += 1
                known[r, moving] = True
                body = flat.parent[body]
    row_columns, column_rows = np.zeros((rows, dofs), dtype=np.int64), np.zeros((dofs, rows), dtype=np.int64)
    row_start, column_start = known.sum(axis=1), known.sum(axis=0)
    for r in range(rows):
        row_columns[r, : row_start[r]] = np.flatnonzero(known[r])
    for c in range(dofs):
        column_rows[c, : column_start[c]] = np.flatnonzero(known[:, c])
    return Solver(
        weight=1.0 / np.maximum(touched, 1.0), rows=np.zeros((rows, dofs + 1)),
        row_columns=row_columns, row_start=row_start, row_filled=row_start.copy(),
        column_rows=column_rows, column_start=column_start, column_filled=column_start.copy(), known=known,
        pivot=np.zeros(rows, dtype=np.int64), independent=np.zeros(dofs, dtype=np.int64),
        is_pivot=np.zeros(dofs, dtype=np.bool_), place=np.zeros(dofs, dtype=np.int64),
        nonzero=np.zeros(dofs, dtype=np.int64), basis=np.zeros((dofs, dofs)),
        basis_columns=np.zeros((dofs, dofs), dtype=np.int64), basis_filled=np.zeros(dofs, dtype=np.int64),
        offset=np.zeros(dofs), product=np.zeros((dofs, dofs)), reduced=np.zeros((dofs, dofs)), right=np.zeros(dofs),
        effort=np.zeros(dofs), force=np.zeros(dofs), acceleration=np.zeros(dofs),
    )  # fmt: skip


@allocation_free
def copy_rows(matrix, right, solver):
    """Fill rows with the matrix and its right side, after forgetting what the last elimination filled in."""
    dofs = matrix.shape[1]
    rows = solver.rows
    for c in range(dofs):
        solver.column_filled[c] = solver.column_start[c]
    for r in range(matrix.shape[0]):
        for n in range(solver.row_start[r], solver.row_filled[r]):
            c = solver.row_columns[r, n]
            solver.known[r, c] = False
            rows[r, c] = 0.0
        solver.row_filled[r] = solver.row_start[r]
        for n in range(solver.row_start[r]):
            c = solver.row_columns[r, n]
            rows[r, c] = matrix[r, c]
        rows[r, dofs] = right[r]


@allocation_free
def reduce_rows(matrix, right, solver, reuse):
    """Gauss-Jordan on matrix (rows, dofs) with one right side; returns the number of dependent rows.

    The matrix may have entries where K has them and nowhere else. With reuse the pivots of the last call are taken
    again, so that the independent coordinates stay the same ones from one state to the next. Afterwards
    solver.pivot[r] is the passive coordinate of row r (-1 where dependent) and solver.rows[r] holds D and, in its last
    column, k'.
    """
    count, dofs = matrix.shape
    rows = solver.rows
    solver.is_pivot[:] = False
    copy_rows(matrix, right, solver)
    dependent = 0
    for r in range(count):
        best, column, scale = 0.0, -1, 0.0
        for n in range(solver.row_start[r]):
            scale = max(scale, abs(matrix[r, solver.row_columns[r, n]]))
        if reuse:
            column = solver.pivot[r]
        else:
            for n in range(solver.row_filled[r]):
                c = solver.row_columns[r, n]
                size = abs(rows[r, c]) * solver.weight[c]
                if size > best and not solver.is_pivot[c]:
                    best, column = size, c
        if column < 0 or abs(rows[r, column]) <= DEPENDENT_ROW * scale:
            solver.pivot[r] = -1
            dependent += 1
            continue
        solver.pivot[r] = column
        solver.is_pivot[column] = True
        inverse = 1.0 / rows[r, column]
        filled = 0
        for n in range(solver.row_filled[r]):
            c = solver.row_columns[r, n]
            if rows[r, c] != 0.0 and c != column:
                rows[r, c] *= inverse
                solver.nonzero[filled] = c
                filled += 1
        rows[r, dofs] *= inverse
        rows[r, column] = 1.0
        for m in range(solver.column_filled[column]):
            o = solver.column_rows[column, m]
            factor = rows[o, column]
            if o == r or factor == 0.0:
                continue
            for n in range(filled):
                c = solver.nonzero[n]
                if not solver.known[o, c]:
                    solver.known[o, c] = True
                    solver.row_columns[o, solver.row_filled[o]] = c
                    solver.row_filled[o] += 1
                    solver.column_rows[c, solver.column_filled[c]] = o
                    solver.column_filled[c] += 1
                rows[o, c] -= factor * rows[r, c]
            rows[o, dofs] -= factor * rows[r, dofs]
            rows[o, column] = 0.0
    return dependent


@allocation_free
def independent_basis(dofs, solver):
    """Fill basis G (dofs, y) and offset g from the reduced rows; returns the number y of independent coordinates.

    basis_columns[d, : basis_filled[d]] are the columns that row d of G has entries in.
    """
    count = 0
    for c in range(dofs):
        if not solver.is_pivot[c]:
            solver.independent[count] = c
            solver.place[c] = count
            count += 1
    for c in range(dofs):
        solver.offset[c] = 0.0
        solver.basis_filled[c] = 0
        for i in range(count):
            solver.basis[c, i] = 0.0
    for i in range(count):
        c = solver.independent[i]
        solver.basis[c, i] = 1.0
        solver.basis_columns[c, 0] = i
        solver.basis_filled[c] = 1
    for r in range(solver.rows.shape[0]):
        p = solver.pivot[r]
        if p < 0:
            continue
        solver.offset[p] = solver.rows[r, dofs]
        filled = 0
        for n in range(solver.row_filled[r]):
            c = solver.row_columns[r, n]
            if not solver.is_pivot[c] and solver.rows[r, c] != 0.0:
                i = solver.place[c]
                solver.basis[p, i] = -solver.rows[r, c]
                solver.basis_columns[p, filled] = i
                filled += 1
        solver.basis_filled[p] = filled
    return count


@allocation_free
def cholesky(matrix, size):
    """Lower factor L of matrix = L' L in place; returns the index of the first pivot that is not positive, or -1.

    Pivots are taken from the last to the first, that is from the leaves of the tree to its root: coordinates of
    different branches then do not fill in each other's entries, and entries that are zero cost nothing.
    """
    for j in range(size - 1, -1, -1):
        limit = 1e-14 * abs(matrix[j, j])
        for m in range(j + 1, size):
            factor = matrix[m, j]
            if factor != 0.0:
                for k in range(j + 1):
                    matrix[j, k] -= factor * matrix[m, k]
        if not matrix[j, j] > limit:
            return j
        matrix[j, j] = np.sqrt(matrix[j, j])
        inverse = 1.0 / matrix[j, j]
        for k in range(j):
            matrix[j, k] *= inverse
    return -1


@allocation_free
def cholesky_solve(factor, size, right):
    """Solve in place with the factor of `cholesky`."""
    for j in range(size - 1, -1, -1):
        right[j] /= factor[j, j]
        for i in range(j):
            right[i] -= factor[j, i] * right[j]
    for i in range(size):
        total = right[i]
        for k in range(i):
            total -= factor[i, k] * right[k]
        right[i] = total / factor[i, i]


@allocation_free
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
    return solve_reduced(flat, work, solver, reuse)


@allocation_free
def project_mass(flat, work, solver, count):
    """Fill the lower triangle of reduced with G' M G and right with G'(effort - c - M g).

    With M = L + L', L the rows of M up the tree with half of the diagonal, G' M G = S + S' for S = G' (L G).
    """
    dofs = flat.dof_parent.shape[0]
    basis, columns, filled = solver.basis, solver.basis_columns, solver.basis_filled
    reduced, right, force, line = solver.reduced, solver.right, solver.force, solver.product[0]
    for i in range(count):
        right[i] = 0.0
        for j in range(count):
            reduced[i, j] = 0.0
    for a in range(dofs):
        force[a] = solver.effort[a] - work.bias[a]
    for a in range(dofs):
        if work.mass[a, a] == 0.0:  # then its row is zero
            continue
        for i in range(count):
            line[i] = 0.0
        b = a
        while b >= 0:
            entry = work.mass[a, b]
            force[a] -= entry * solver.offset[b]
            if b == a:
                entry *= 0.5
            else:
                force[b] -= entry * solver.offset[a]
            for n in range(filled[b]):
                i = columns[b, n]
                line[i] += entry * basis[b, i]
            b = flat.dof_parent[b]
        for n in range(filled[a]):
            i = columns[a, n]
            factor = basis[a, i]
            for j in range(count):
                reduced[i, j] += factor * line[j]
    for a in range(dofs):
        for n in range(filled[a]):
            i = columns[a, n]
            right[i] += basis[a, i] * force[a]
    for i in range(count):
        for j in range(i + 1):
            reduced[i, j] += reduced[j, i]


@allocation_free
def solve_reduced(flat, work, solver, reuse):
    """Accelerations for solver.effort and the M, c, K, k that stand in work; returns (status, dependent rows)."""
    dofs = flat.dof_parent.shape[0]
    dependent = reduce_rows(work.loop, work.loop_bias, solver, reuse)
    count = independent_basis(dofs, solver)
    project_mass(flat, work, solver, count)
    failed = cholesky(solver.reduced, count)
    if failed >= 0:
        return SINGULAR_MASS, solver.independent[failed]
    cholesky_solve(solver.reduced, count, solver.right)
    for a in range(dofs):
        total = solver.offset[a]
        for n in range(solver.basis_filled[a]):
            i = solver.basis_columns[a, n]
            total += solver.basis[a, i] * solver.right[i]
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
