"""Linear algebra of small dense matrices for compiled functions, without the overhead of library calls.

Cholesky factors are computed from the last pivot to the first one: for a kinematic tree this is from the leaves to the
root, so that there is no fill-in between coordinates of different branches.
"""

from __future__ import annotations

import numpy as np

from .compilation import allocation_free, for_compiled_callers

ORTHOGONAL = 1e-15
"""Cosine between two rows, below which they count as orthogonal."""
ROTATIONS = 30
"""Largest number of Jacobi sweeps over all pairs of rows; usually a few are sufficient."""
QR_STEPS = 30
"""Largest number of QR steps for one eigenvalue; usually two or three are sufficient."""
EPSILON = 2.0**-52


@allocation_free
def dot(a, b):
    """Scalar product of two vectors (n,)."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@allocation_free
def copy(source, target):
    """Copy a vector (n,) into another."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@for_compiled_callers
def normalise(vector):
    """Scale a vector (n,) to unit length, in place."""
    norm = np.sqrt(dot(vector, vector))
    for i in range(vector.shape[0]):
        vector[i] /= norm


@allocation_free
def cholesky(matrix, size):
    """Lower factor L of matrix = L' L over its first `size` rows, in place; the upper triangle is not read.

    Returns the index of the first pivot that is not above 1e-14 of its diagonal entry, or -1 if all are. Zero entries
    are skipped.
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
    """Solve L' L x = right in place with the factor of `cholesky`."""
    for j in range(size - 1, -1, -1):
        right[j] /= factor[j, j]
        for i in range(j):
            right[i] -= factor[j, i] * right[j]
    for i in range(size):
        total = right[i]
        for k in range(i):
            total -= factor[i, k] * right[k]
        right[i] = total / factor[i, i]


@for_compiled_callers
def cholesky_solve_columns(factor, size, right):
    """As `cholesky_solve` for all columns of right (n, m), with bitwise equal results; much faster than separate calls.

    The columns are adjacent in memory, so that their operations overlap in the processor.
    """
    count = right.shape[1]
    for j in range(size - 1, -1, -1):
        for m in range(count):
            right[j, m] /= factor[j, j]
        for i in range(j):
            entry = factor[j, i]
            if entry != 0.0:
                for m in range(count):
                    right[i, m] -= entry * right[j, m]
    for i in range(size):
        for k in range(i):
            entry = factor[i, k]
            if entry != 0.0:
                for m in range(count):
                    right[i, m] -= entry * right[k, m]
        for m in range(count):
            right[i, m] /= factor[i, i]


@for_compiled_callers
def cholesky_shifted(matrix, shift, factor):
    """Fill factor (n, n) with the Cholesky factor of matrix + shift; False if it is not positive definite."""
    n = matrix.shape[0]
    for j in range(n):
        for k in range(j):
            factor[j, k] = matrix[j, k]
        factor[j, j] = matrix[j, j] + shift
    return cholesky(factor, n) < 0


@for_compiled_callers
def cholesky_apply(factor, right, solution):
    """Fill solution (n,) with the solution of L' L x = right; both can be the same array."""
    for i in range(right.shape[0]):
        solution[i] = right[i]
    cholesky_solve(factor, factor.shape[0], solution)


@for_compiled_callers
def least_eigenvector(factor, vector, other, iterations):
    """Inverse iteration with the factor of a matrix: fills vector with the eigenvector of its least eigenvalue.

    Returns 1 / (v' A^-1 v), the estimate of this eigenvalue, and whether it has converged.
    """
    n = factor.shape[0]
    last, estimate = 0.0, 0.0
    for sweep in range(iterations):
        normalise(vector)
        cholesky_apply(factor, vector, other)
        estimate = 1.0 / dot(vector, other)
        # the error of the Rayleigh quotient is the square of that of the direction: the direction is tested
        gap = 0.0
        for i in range(n):
            gap += (other[i] * estimate - vector[i]) ** 2
        for i in range(n):
            vector[i] = other[i]
        if sweep > 0 and gap < 1e-16 and abs(estimate - last) <= 1e-12 * abs(estimate):
            return estimate, True
        last = estimate
    return estimate, False


@allocation_free
def lu_factor(matrix, size, pivots):
    """LU factors of the first `size` rows with partial pivoting, in place; pivots (size,) are the exchanged rows."""
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


@for_compiled_callers
def orthogonalise_rows(rows, size):
    """Rotate pairs of rows (k, n) in their plane until all rows are orthogonal in their first `size` columns.

    This is the one-sided Jacobi method: the norms of the rows are then the singular values, with accurate small ones.
    Columns beyond `size`, such as right-hand sides, are rotated as well. For a few rows it takes a tenth of the time of
    a library decomposition.

    Returns the squares of the smallest and the largest singular value.
    """
    for _ in range(ROTATIONS):
        done = True
        for i in range(rows.shape[0] - 1):
            for j in range(i + 1, rows.shape[0]):
                first, second, both = 0.0, 0.0, 0.0
                for a in range(size):
                    first += rows[i, a] * rows[i, a]
                    second += rows[j, a] * rows[j, a]
                    both += rows[i, a] * rows[j, a]
                if not abs(both) > ORTHOGONAL * np.sqrt(first * second):
                    continue
                done = False
                half = 0.5 * (second - first) / both
                t = (1.0 if half >= 0.0 else -1.0) / (abs(half) + np.sqrt(1.0 + half * half))
                c = 1.0 / np.sqrt(1.0 + t * t)
                s = c * t
                for a in range(rows.shape[1]):
                    one, other = rows[i, a], rows[j, a]
                    rows[i, a], rows[j, a] = c * one - s * other, s * one + c * other
        if done:
            break
    least, largest = np.inf, 0.0
    for k in range(rows.shape[0]):
        square = 0.0
        for a in range(size):
            square += rows[k, a] * rows[k, a]
        least, largest = min(least, square), max(largest, square)
    return least, largest


@allocation_free
def lu_solve(matrix, size, pivots, right):
    """Solve in place with the factors of `lu_factor`."""
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


@for_compiled_callers
def rotation_to_first(first, second):
    """Real cosine c and complex sine s with c first + s second = r and c second - s* first = 0."""
    size = abs(first)
    length = np.sqrt(size * size + abs(second) ** 2)
    if length == 0.0:
        return 1.0, 0.0j
    if size == 0.0:
        return 0.0, np.conj(second) / length
    return size / length, first / size * np.conj(second) / length


@for_compiled_callers
def turn_rows(matrix, i, c, s, first, end):
    """Apply a rotation to rows i and i + 1, in columns from `first` on."""
    for k in range(first, end):
        one, other = matrix[i, k], matrix[i + 1, k]
        matrix[i, k], matrix[i + 1, k] = c * one + s * other, c * other - np.conj(s) * one


@for_compiled_callers
def turn_columns(matrix, i, c, s, first, end):
    """Apply the inverse rotation of `turn_rows` to columns i and i + 1."""
    for k in range(first, end):
        one, other = matrix[k, i], matrix[k, i + 1]
        matrix[k, i], matrix[k, i + 1] = c * one + np.conj(s) * other, c * other - s * one


@allocation_free
def diagonalise(matrix, vectors):
    """Bring a symmetric matrix (n, n) to diagonal form by Jacobi rotations, in place, with its eigenvectors in the
    columns of vectors (n, n). Returns the column of the largest eigenvalue."""
    count = matrix.shape[0]
    for i in range(count):
        for j in range(count):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(ROTATIONS):
        beside, whole = 0.0, 0.0
        for i in range(count):
            for j in range(count):
                whole += matrix[i, j] * matrix[i, j]
                beside += matrix[i, j] * matrix[i, j] if i != j else 0.0
        if not beside > EPSILON * EPSILON * whole:
            break
        for i in range(count - 1):
            for j in range(i + 1, count):
                if matrix[i, j] == 0.0:
                    continue
                ratio = (matrix[j, j] - matrix[i, i]) / (2.0 * matrix[i, j])
                t = 1.0 / (abs(ratio) + np.sqrt(1.0 + ratio * ratio))
                if ratio < 0.0:
                    t = -t
                c = 1.0 / np.sqrt(1.0 + t * t)
                d = t * c
                for k in range(count):
                    first, second = matrix[k, i], matrix[k, j]
                    matrix[k, i], matrix[k, j] = c * first - d * second, d * first + c * second
                for k in range(count):
                    first, second = matrix[i, k], matrix[j, k]
                    matrix[i, k], matrix[j, k] = c * first - d * second, d * first + c * second
                    first, second = vectors[k, i], vectors[k, j]
                    vectors[k, i], vectors[k, j] = c * first - d * second, d * first + c * second
    largest = 0
    for i in range(1, count):
        if matrix[i, i] > matrix[largest, largest]:
            largest = i
    return largest


@allocation_free
def eigenvalues(matrix, values):
    """Fill values (n,) with the eigenvalues of a matrix (n, n), both complex; the matrix is overwritten.

    It uses the Hessenberg form and QR steps with Wilkinson's shift (Golub and Van Loan, Matrix Computations, 7.4 and
    7.5). It is intended for occasional calls with a few rows, for which a library needs a tenth of a millisecond to
    load its code into the caches. Returns whether all eigenvalues were found.
    """
    n = values.shape[0]
    for j in range(n - 2):
        for i in range(n - 2, j, -1):
            c, s = rotation_to_first(matrix[i, j], matrix[i + 1, j])
            turn_rows(matrix, i, c, s, j, n)
            turn_columns(matrix, i, c, s, 0, n)
    high, steps = n - 1, 0
    while high >= 0:
        low = high
        while low > 0:
            if abs(matrix[low, low - 1]) <= EPSILON * (abs(matrix[low, low]) + abs(matrix[low - 1, low - 1])):
                break
            low -= 1
        if low == high:
            values[high] = matrix[high, high]
            high, steps = high - 1, 0
            continue
        steps += 1
        if not steps <= QR_STEPS:  # also true for values that are not finite
            return False
        shift, below = matrix[high, high], matrix[high, high - 1]
        half, product = 0.5 * (matrix[high - 1, high - 1] - shift), matrix[high - 1, high] * below
        root = np.sqrt(half * half + product)
        other = half + root if half.real * root.real + half.imag * root.imag >= 0.0 else half - root
        if steps % 10 == 0:  # the iteration cycles
            shift += abs(below)
        elif abs(other) > 0.0:
            shift -= product / other
        for i in range(low, high + 1):
            matrix[i, i] -= shift
        c_before, s_before = 1.0, 0.0j
        for i in range(low, high):
            c, s = rotation_to_first(matrix[i, i], matrix[i + 1, i])
            turn_rows(matrix, i, c, s, i, high + 1)
            if i > low:  # rows that the next rotations do not change
                turn_columns(matrix, i - 1, c_before, s_before, low, i + 1)
            c_before, s_before = c, s
        turn_columns(matrix, high - 1, c_before, s_before, low, high + 1)
        for i in range(low, high + 1):
            matrix[i, i] += shift
    return True
