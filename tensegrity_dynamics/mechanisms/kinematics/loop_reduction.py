"""Reduction of the loop constraints K a = k to independent coordinates (000, 1.2.32).

K a = k is reduced row by row to a_passive = k' - D a_independent (Gauss-Jordan elimination of the sparse rows; the
pivot of a row is its largest entry, with a preference for coordinates that occur in few loops). This gives G and g of
a = G y + g with K G = 0 and K g = k.

A row without a pivot depends on the previous rows. If its right-hand side vanishes as well, the motion is still unique.
The number of such rows is returned.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ...numerics.compilation import allocation_free, for_compiled_callers, inlined, inlined_part
from ..loop_joints import ROUTED
from ..mechanism import FlatMechanism

ReductionWorkspace = namedtuple(
    "ReductionWorkspace",
    "weight rows row_columns row_start row_filled column_rows column_start column_filled in_pattern pivot independent "
    "is_pivot basis_index basis basis_columns basis_filled offset product reduced right effort force "
    "acceleration planned plan_columns plan_filled plan_start plan_rows plan_count",
)


DENSE = 8
"""Largest ratio of all columns to the nonzero entries of a row, up to which a loop over all columns is faster."""
TOLERANCE_DEPENDENT_ROW = 1e-9  # relative to the largest entry of the row before elimination
NO_MOTION = 1e-13
"""Largest entry of a row [m or rad, per m or rad] that is a rounding error: such a row holds no motion."""


def make_reduction_workspace(flat: FlatMechanism) -> ReductionWorkspace:
    """Work arrays of the reduction; coordinates that occur in few loop rows are preferred as pivots.

    The sparsity pattern of K is given by the chains from both ends of each loop to the root. It is computed once: the
    columns of each row and the rows of each column. The fill-in of the elimination is appended to these lists.
    """
    dofs, rows = flat.dof_parent.size, flat.row_kind.size
    in_pattern = np.zeros((rows, dofs), dtype=np.bool_)
    touched = np.zeros(dofs)
    for r in range(rows):
        if flat.row_kind[r] == ROUTED:  # its route can contain any of the bodies
            in_pattern[r] = True
            touched += 1.0
        for body in (flat.row_predecessor[r], flat.row_successor[r]):
            while body >= 0:
                moving = slice(flat.v_start[body], flat.v_start[body] + flat.v_count[body])
                touched[moving] += 1
                in_pattern[r, moving] = True
                body = flat.parent[body]
    row_columns, column_rows = np.zeros((rows, dofs), dtype=np.int64), np.zeros((dofs, rows), dtype=np.int64)
    row_start, column_start = in_pattern.sum(axis=1), in_pattern.sum(axis=0)
    for r in range(rows):
        row_columns[r, : row_start[r]] = np.flatnonzero(in_pattern[r])
    for c in range(dofs):
        column_rows[c, : column_start[c]] = np.flatnonzero(in_pattern[:, c])
    return ReductionWorkspace(
        weight=1.0 / np.maximum(touched, 1.0), rows=np.zeros((rows, dofs + 1)),
        row_columns=row_columns, row_start=row_start, row_filled=row_start.copy(),
        column_rows=column_rows, column_start=column_start, column_filled=column_start.copy(), in_pattern=in_pattern,
        pivot=np.zeros(rows, dtype=np.int64), independent=np.zeros(dofs, dtype=np.int64),
        is_pivot=np.zeros(dofs, dtype=np.bool_), basis_index=np.zeros(dofs, dtype=np.int64),
        basis=np.zeros((dofs, dofs)),
        basis_columns=np.zeros((dofs, dofs), dtype=np.int64), basis_filled=np.zeros(dofs, dtype=np.int64),
        offset=np.zeros(dofs), product=np.zeros((dofs, dofs)), reduced=np.zeros((dofs, dofs)), right=np.zeros(dofs),
        effort=np.zeros(dofs), force=np.zeros(dofs), acceleration=np.zeros(dofs),
        planned=np.zeros(1, dtype=np.bool_), plan_columns=np.zeros((rows, dofs), dtype=np.int64),
        plan_filled=np.zeros(rows, dtype=np.int64), plan_rows=np.zeros((rows, rows), dtype=np.int64),
        plan_start=np.zeros(rows, dtype=np.int64), plan_count=np.zeros(rows, dtype=np.int64),
    )  # fmt: skip


@inlined_part
def copy_rows(matrix, right, reduction):
    """Fill rows with the matrix and its right-hand side; the fill-in of the last elimination is set to zero."""
    dofs = matrix.shape[1]
    rows, columns = reduction.rows, reduction.row_columns
    for r in range(matrix.shape[0]):
        start = reduction.row_start[r]
        for n in range(start):
            c = columns[r, n]
            rows[r, c] = matrix[r, c]
        for n in range(start, reduction.row_filled[r]):
            rows[r, columns[r, n]] = 0.0
        rows[r, dofs] = right[r]


@for_compiled_callers
def forget_fill(reduction):
    """Reset to the sparsity pattern of K without fill-in."""
    for c in range(reduction.column_filled.shape[0]):
        reduction.column_filled[c] = reduction.column_start[c]
    for r in range(reduction.row_filled.shape[0]):
        for n in range(reduction.row_start[r], reduction.row_filled[r]):
            reduction.in_pattern[r, reduction.row_columns[r, n]] = False
        reduction.row_filled[r] = reduction.row_start[r]


@for_compiled_callers
def eliminate(rows, r, column, columns, filled, others, count):
    """Scale row r so that its pivot is one, and subtract it from all rows with an entry in the pivot column.

    Args:
        rows: (nc, nv + 1). columns: columns of the entries of row r other than the pivot, the first `filled` of them.
        others: other rows with an entry in the pivot column, the first `count` of them.
    """
    source, dofs = rows[r], rows.shape[1] - 1
    inverse = 1.0 / source[column]
    for n in range(filled):
        source[columns[n]] *= inverse
    source[dofs] *= inverse
    source[column] = 1.0
    is_dense = DENSE * filled >= dofs
    for m in range(count):
        target = rows[others[m]]
        factor = target[column]
        if is_dense:
            for c in range(dofs + 1):
                target[c] -= factor * source[c]
        else:
            for n in range(filled):
                c = columns[n]
                target[c] -= factor * source[c]
            target[dofs] -= factor * source[dofs]
        target[column] = 0.0


@for_compiled_callers
def plan_row(r, column, reduction):
    """Store the entries used by the elimination of a column with row r, independent of their values, and the
    fill-in."""
    filled = 0
    for n in range(reduction.row_filled[r]):
        c = reduction.row_columns[r, n]
        if c == column:
            reduction.plan_start[r] = filled
        if not reduction.is_pivot[c]:
            reduction.plan_columns[r, filled] = c
            filled += 1
    count = 0
    for m in range(reduction.column_filled[column]):
        o = reduction.column_rows[column, m]
        if o != r:
            reduction.plan_rows[r, count] = o
            count += 1
    reduction.plan_filled[r], reduction.plan_count[r] = filled, count
    for m in range(count):
        o = reduction.plan_rows[r, m]
        for n in range(filled):
            c = reduction.plan_columns[r, n]
            if not reduction.in_pattern[o, c]:
                reduction.in_pattern[o, c] = True
                reduction.row_columns[o, reduction.row_filled[o]] = c
                reduction.row_filled[o] += 1
                reduction.column_rows[c, reduction.column_filled[c]] = o
                reduction.column_filled[c] += 1


@inlined_part
def reduce_as_planned(matrix, right, reduction, reuse):
    """Elimination with the pivots of the last one and without search; False if they are not the largest entries."""
    rows, weight = reduction.rows, reduction.weight
    copy_rows(matrix, right, reduction)
    for r in range(matrix.shape[0]):
        column, scale = reduction.pivot[r], 0.0
        for n in range(reduction.row_start[r]):
            scale = max(scale, abs(matrix[r, reduction.row_columns[r, n]]))
        if not abs(rows[r, column]) > max(TOLERANCE_DEPENDENT_ROW * scale, NO_MOTION):
            return False
        if not reuse:
            best = abs(rows[r, column]) * weight[column]
            for n in range(reduction.plan_filled[r]):
                c = reduction.plan_columns[r, n]
                size = abs(rows[r, c]) * weight[c]
                if not (size < best or (size == best and n >= reduction.plan_start[r])):  # the first of equal entries
                    return False
        eliminate(
            rows, r, column, reduction.plan_columns[r], reduction.plan_filled[r], reduction.plan_rows[r],
            reduction.plan_count[r],
        )  # fmt: skip
    return True


@for_compiled_callers
def plan_and_reduce(matrix, right, reduction, reuse):
    """As `reduce_rows`, with a new plan for later calls."""
    count, rows = matrix.shape[0], reduction.rows
    reduction.is_pivot[:] = False
    copy_rows(matrix, right, reduction)
    forget_fill(reduction)
    dependent = 0
    for r in range(count):
        best, column, scale = 0.0, -1, 0.0
        for n in range(reduction.row_start[r]):
            scale = max(scale, abs(matrix[r, reduction.row_columns[r, n]]))
        if reuse:
            column = reduction.pivot[r]
        else:
            for n in range(reduction.row_filled[r]):
                c = reduction.row_columns[r, n]
                size = abs(rows[r, c]) * reduction.weight[c]
                if size > best and not reduction.is_pivot[c]:
                    best, column = size, c
        if column < 0 or abs(rows[r, column]) <= max(TOLERANCE_DEPENDENT_ROW * scale, NO_MOTION):
            reduction.pivot[r] = -1
            dependent += 1
            continue
        reduction.pivot[r] = column
        reduction.is_pivot[column] = True
        plan_row(r, column, reduction)
        eliminate(
            rows, r, column, reduction.plan_columns[r], reduction.plan_filled[r], reduction.plan_rows[r],
            reduction.plan_count[r],
        )  # fmt: skip
    reduction.planned[0] = dependent == 0
    return dependent


@allocation_free
def reduce_rows(matrix, right, reduction, reuse):
    """Gauss-Jordan elimination of matrix (rows, dofs) with one right-hand side; returns the number of dependent rows.

    The matrix may only have entries in the sparsity pattern of K. With `reuse`, the pivots of the last call are used
    again, so that the independent coordinates do not change from one state to the next. Afterwards reduction.pivot[r]
    is the passive coordinate of row r (-1 for a dependent row), and reduction.rows[r] holds D and, in its last column,
    k'.

    As long as the pivots do not change, the entries used by the elimination do not change, and the stored plan is used.
    The result depends on the matrix only, not on previous calls.
    """
    if reduction.planned[0] and reduce_as_planned(matrix, right, reduction, reuse):
        return 0
    return plan_and_reduce(matrix, right, reduction, reuse)


@inlined
def independent_basis(dofs, reduction):
    """Fill basis G (dofs, y) and offset g from the reduced rows; returns the number y of independent coordinates.

    basis_columns[d, : basis_filled[d]] are the columns of the entries of row d of G.
    """
    count = 0
    for c in range(dofs):
        if not reduction.is_pivot[c]:
            reduction.independent[count] = c
            reduction.basis_index[c] = count
            count += 1
    for c in range(dofs):
        reduction.offset[c] = 0.0
        reduction.basis_filled[c] = 0
        for i in range(count):
            reduction.basis[c, i] = 0.0
    for i in range(count):
        c = reduction.independent[i]
        reduction.basis[c, i] = 1.0
        reduction.basis_columns[c, 0] = i
        reduction.basis_filled[c] = 1
    for r in range(reduction.rows.shape[0]):
        p = reduction.pivot[r]
        if p < 0:
            continue
        reduction.offset[p] = reduction.rows[r, dofs]
        filled = 0
        for n in range(reduction.row_filled[r]):
            c = reduction.row_columns[r, n]
            if not reduction.is_pivot[c] and reduction.rows[r, c] != 0.0:
                i = reduction.basis_index[c]
                reduction.basis[p, i] = -reduction.rows[r, c]
                reduction.basis_columns[p, filled] = i
                filled += 1
        reduction.basis_filled[p] = filled
    return count
