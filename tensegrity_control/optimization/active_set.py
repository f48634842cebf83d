"""Dual active-set method for a few dozen unknowns, compiled; of Goldfarb and Idnani (1983) on the least distance form.

With L L' = P + rho A'A and x = x_0 + L^-T v a program is min 1/2 |v|^2 under rows of v. The method ends in the exact
solution of the active rows, or in rows that clash: a positive combination of them that no x meets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.numerics.compilation import compiled

from .dense import add, dot, substitute
from .quadratic_program import STATUSES, QPResult, QuadraticProgram, Sizes

Array = NDArray[np.float64]

DEPENDENT = 1e-9  # part of a unit row outside of the active ones that counts as none
SINGULAR = 1e-13  # pivot of a matrix with unit diagonal below which ties between solutions are broken
TIE_BREAK = 1e-9
TINY, ROUNDING = 1e-300, 1e-12  # ROUNDING: part of a bound by which it may be missed


class _Space(NamedTuple):
    """Work space of the compiled solver: n unknowns, m = p + r + n rows (those of A, of C, and the unknowns)."""

    matrix: Array  # (m, n) rows over x
    low: Array  # (m,) and their bounds
    high: Array  # (m,)
    factor: Array  # (n, n) L of the scaled quadratic form
    back: Array  # (n, n) upper T with x = x_0 + T v
    start: Array  # (n,) x_0
    scale: Array  # (n,)
    unit: Array  # (m, n) unit rows over v
    unit_low: Array  # (m,) and their bounds
    unit_high: Array  # (m,)
    norm: Array  # (m,) of the rows over v before they were made unit
    basis: Array  # (n, n) orthonormal, of the active rows
    upper: Array  # (n, n) R of the active rows
    vectors: Array  # (6, n)
    active: NDArray[np.int64]  # (n,) row numbers
    sign: Array  # (n,) +1 at the lower, -1 at the upper bound
    pressing: Array  # (m,) the same by row, kept for the next start

    @classmethod
    def of(cls, sizes: Sizes) -> _Space:
        n, m = sizes.variables, sum(sizes)
        tall, square, row = (m, n), (n, n), (n,)
        shapes = (tall, m, m, square, square, row, row, tall, m, m, m, square, square, (6, n))
        arrays = [np.zeros(shape) for shape in shapes]
        arrays[0][m - n :] = np.eye(n)
        return cls._make([*arrays, np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(m)])


@compiled
def split(space, count, row, sign):  # type: ignore[no-untyped-def]
    """Part of a signed unit row along the active ones (vectors[4]) and the rest (vectors[5]); its norm."""
    along, rest = space.vectors[4], space.vectors[5]
    for c in range(rest.shape[0]):
        rest[c] = sign * space.unit[row, c]
    along[:] = 0.0
    for _ in range(2):  # twice is enough for full accuracy
        for i in range(count):
            part = dot(space.basis[i], rest)
            along[i] += part
            add(rest, -part, space.basis[i])
    return np.sqrt(dot(rest, rest))


@compiled
def join(space, count, row, sign):  # type: ignore[no-untyped-def]
    """Add a row to the active ones unless it depends on them; returns how many there are."""
    if count >= space.start.shape[0]:
        return count
    left = split(space, count, row, sign)
    if left < DEPENDENT:
        return count
    space.upper[:count, count] = space.vectors[4, :count]
    space.upper[count, count] = left
    for c in range(space.start.shape[0]):
        space.basis[count, c] = space.vectors[5, c] / left
    space.active[count], space.sign[count] = row, sign
    return count + 1


@compiled
def leave(space, count, place, forces):  # type: ignore[no-untyped-def]
    """Take the active row at a place out; returns how many there are."""
    kept = place
    for i in range(place + 1, count):
        forces[i - 1] = forces[i]
        kept = join(space, kept, space.active[i], space.sign[i])
    return kept


@compiled
def project(space, count, forces, v):  # type: ignore[no-untyped-def]
    """Least v on the active rows, and their forces with v = sum of forces times rows."""
    for i in range(count):
        row = space.active[i]
        forces[i] = space.unit_low[row] if space.sign[i] > 0.0 else -space.unit_high[row]
    substitute(space.upper, count, forces, True)
    v[:] = 0.0
    for i in range(count):
        add(v, forces[i], space.basis[i])
    substitute(space.upper, count, forces, False)


@compiled
def prepare(program, space):  # type: ignore[no-untyped-def]
    """Factor, unconstrained solution and unit rows; returns the weight rho, negative where ties were broken."""
    P, q, A, b, C, c_low, c_high, x_low, x_high = program
    n, p, r = q.shape[0], b.shape[0], c_low.shape[0]
    factor, back, start, scale, low, high = space.factor, space.back, space.start, space.scale, space.low, space.high
    space.matrix[:p], space.matrix[p : p + r] = A, C
    low[:p], low[p : p + r], low[p + r :] = b, c_low, x_low
    high[:p], high[p : p + r], high[p + r :] = b, c_high, x_high
    rho, broken = 0.0, False
    for i in range(n):
        rho, factor[i], start[i] = max(rho, P[i, i]), P[i], -q[i]
    rho = rho if rho > 0.0 else 1.0
    for k in range(p):
        weight = rho / max(dot(A[k], A[k]), TINY)
        add(start, weight * b[k], A[k])
        for i in range(n):
            add(factor[i], weight * A[k, i], A[k])
    for i in range(n):
        scale[i] = 1.0 / np.sqrt(factor[i, i]) if factor[i, i] > 0.0 else 1.0
    for i in range(n):  # Cholesky of the scaled form
        for j in range(i + 1):
            entry = factor[i, j] * scale[i] * scale[j] - dot(factor[i, :j], factor[j, :j])
            if i == j:
                if entry < SINGULAR:
                    broken, entry = True, max(entry, 0.0) + TIE_BREAK
                factor[i, i] = np.sqrt(entry)
            else:
                factor[i, j] = entry / factor[j, j]
    half = space.vectors[0]
    half[:] = 0.0
    for i in range(n):  # T = scale L^-T, row by row
        back[i, i] = 1.0 / factor[i, i]
        for j in range(i + 1, n):
            back[i, j] = -dot(factor[j, i:j], back[i, i:j]) / factor[j, j]
        for j in range(i, n):
            back[i, j] *= scale[i]
            half[j] += back[i, j] * start[i]
    for i in range(n):
        start[i] = dot(back[i, i:], half[i:])
    for row in range(p + r + n):
        space.unit[row] = 0.0
        for i in range(n):
            entry = space.matrix[row, i]
            if entry != 0.0:
                add(space.unit[row, i:], entry, back[i, i:])
        norm = np.sqrt(dot(space.unit[row], space.unit[row]))
        offset, space.norm[row] = dot(space.matrix[row], start), norm
        norm = norm if norm > 0.0 else 1.0
        space.unit[row] /= norm
        space.unit_low[row], space.unit_high[row] = (low[row] - offset) / norm, (high[row] - offset) / norm
    return -rho if broken else rho


@compiled
def most_violated(space, v):  # type: ignore[no-untyped-def]
    """Violation (unit rows), row (-1 for none) and sign of the side."""
    worst, chosen, sign, length = 0.0, -1, 0.0, np.sqrt(dot(v, v))
    for row in range(space.low.shape[0]):
        low, high = space.unit_low[row], space.unit_high[row]
        if low == -np.inf and high == np.inf:
            continue
        value, norm = dot(space.unit[row], v), space.norm[row]
        small = 0.1 * ROUNDING / norm if norm > 0.0 else DEPENDENT  # no norm: what the equations alone decide
        if low - value > max(worst, ROUNDING * (abs(low) + length) + small):
            worst, chosen, sign = low - value, row, 1.0
        if value - high > max(worst, ROUNDING * (abs(high) + length) + small):
            worst, chosen, sign = value - high, row, -1.0
    return worst, chosen, sign


@compiled
def descend(space, p, count, fixed, limit, v, forces, weights):  # type: ignore[no-untyped-def]
    """Dual active-set method from v least on the active rows; returns status, number of active rows, iterations."""
    steps, rest = space.vectors[4], space.vectors[5]
    for iteration in range(limit):
        if not np.isfinite(dot(v, v)):
            return 3, count, iteration
        worst, chosen, sign = most_violated(space, v)
        if chosen < 0:
            return 0, count, iteration
        force = 0.0
        while True:
            left = split(space, count, chosen, sign)
            substitute(space.upper, count, steps, False)
            shortest, leaving = np.inf, -1
            for i in range(fixed, count):
                if steps[i] > 1e-13 and max(forces[i], 0.0) / steps[i] < shortest:
                    shortest, leaving = max(forces[i], 0.0) / steps[i], i
            full = worst / (left * left) if left > DEPENDENT else np.inf
            if full == np.inf and leaving < 0:  # the active rows forbid what this one asks for
                bound = space.unit_low[chosen] if sign > 0.0 else space.unit_high[chosen]
                if worst < 100.0 * ROUNDING * (abs(bound) + np.sqrt(dot(v, v))):  # no more than rounding may
                    space.unit_low[chosen] -= 2.0 * worst
                    space.unit_high[chosen] += 2.0 * worst
                    break
                weights[chosen] = sign / space.norm[chosen] if space.norm[chosen] > 0.0 else sign
                for i in range(count):
                    weights[space.active[i]] = -steps[i] * space.sign[i] / space.norm[space.active[i]]
                return 1, count, iteration
            length = min(full, shortest)
            add(forces[:count], -length, steps[:count])
            force += length
            if full < np.inf:
                add(v, length, rest)
                worst -= length * left * left
            if full <= shortest:
                count = join(space, count, chosen, sign)
                forces[count - 1] = force
                break
            count = leave(space, count, leaving, forces)
    return 2, count, limit


@compiled
def refine(program, space, p, count, rho, x, weights):  # type: ignore[no-untyped-def]
    """One step of refinement of the conditions of optimality of the active rows, with the factors at hand."""
    slope, move, step, n = space.vectors[1], space.vectors[2], space.vectors[3], x.shape[0]
    for i in range(n):
        slope[i], move[i] = -program.q[i] - dot(program.P[i], x), 0.0
    for row in range(weights.shape[0]):
        force, line = weights[row], space.matrix[row]
        if row < p:
            force += rho * (space.low[row] - dot(line, x)) / max(dot(line, line), TINY)
        if force != 0.0:
            add(slope, force, line)
    for i in range(n):
        add(move[i:], slope[i], space.back[i, i:])
    for i in range(count):
        row = space.active[i]
        bound = space.low[row] if space.sign[i] > 0.0 else space.high[row]
        step[i] = space.sign[i] * (bound - dot(space.matrix[row], x)) / space.norm[row]
    substitute(space.upper, count, step, True)
    for i in range(count):
        step[i] -= dot(space.basis[i], move)
    for i in range(count):
        add(move, step[i], space.basis[i])
    substitute(space.upper, count, step, False)
    for i in range(n):
        x[i] += dot(space.back[i, i:], move[i:])
    for i in range(count):
        weights[space.active[i]] += step[i] * space.sign[i] / space.norm[space.active[i]]


@compiled
def solve_active_set(program, space, limit, x, weights):  # type: ignore[no-untyped-def]
    """Solve into x (n,) and multipliers (m,) of all rows; returns status, iterations, whether ties were broken."""
    p, n, m = program.b.shape[0], x.shape[0], weights.shape[0]
    rho = prepare(program, space)
    v, forces, pressing, count = space.vectors[1], space.vectors[2], space.pressing, 0
    for row in range(p):
        count = join(space, count, row, 1.0)
    fixed = count
    for row in range(p, m):  # what pressed last time presses now, as far as it still may
        bound = space.low[row] if pressing[row] > 0.0 else space.high[row]
        if pressing[row] != 0.0 and np.isfinite(bound):
            count = join(space, count, row, pressing[row])
    while True:
        project(space, count, forces, v)
        leaving = fixed + int(np.argmin(forces[fixed:count])) if count > fixed else -1
        if leaving < 0 or forces[leaving] >= 0.0:
            break
        count = leave(space, count, leaving, forces)
    pressing[:], weights[:] = 0.0, 0.0
    status, count, iterations = descend(space, p, count, fixed, limit, v, forces, weights)
    if status == 0:
        project(space, count, forces, v)
        for i in range(count):
            pressing[space.active[i]] = space.sign[i]
            weights[space.active[i]] = forces[i] * space.sign[i] / space.norm[space.active[i]]
    for i in range(n):
        x[i] = space.start[i] + dot(space.back[i, i:], v[i:])
    status = status if np.isfinite(dot(x, x)) else 3
    if status == 0:
        for _ in range(2):
            refine(program, space, p, count, abs(rho), x, weights)
        for i in range(n):  # rounding must not break a bound
            x[i] = min(max(x[i], program.x_low[i]), program.x_high[i])
    return status, iterations, rho < 0.0


class ActiveSet:
    """The compiled dual active-set solver of this module."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes, self._space, self._limit = sizes, _Space.of(sizes), 50 + 10 * sum(sizes)

    def solve(self, program: QuadraticProgram) -> QPResult:
        """See `QPSolver`."""
        n, p, r = self._sizes
        x, weights = np.empty(n), np.empty(n + p + r)
        status, iterations, broken = solve_active_set(program, self._space, self._limit, x, weights)
        y, z, w = weights[:p], weights[p : p + r], weights[p + r :]
        return QPResult(STATUSES[status], x, y, z, w, iterations, status == 1, broken)
