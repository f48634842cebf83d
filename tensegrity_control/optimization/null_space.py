"""Quadratic programs in the null space of their equations: x = x_p + N z with A N = 0,

    min 1/2 z'(N'P N) z + (N'(P x_p + q))'z
    s.t. c_low - C x_p <= C N z <= c_high - C x_p      x_low - x_p <= N z <= x_high - x_p

000 (2.2.6)-(2.2.11), where (2.2.10) prints twice the linear term.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.numerics.compilation import compiled, compiled_part
from tensegrity_dynamics.numerics.types import Array

from .quadratic_program import INFEASIBLE, SOLVED, QPResult, QPSolver, QuadraticProgram, Sizes
from .solvers import make_solver

RANK = 1e-10  # part of a scaled row outside of those before it that counts as none
DEPENDENT = 1e-9  # part of a row or unknown along the null space that counts as none
FEASIBLE = 1e-9  # error of the equations, in parts of their largest term, that counts as none


@compiled
def dot(one, other):  # type: ignore[no-untyped-def]
    """Inner product; for a few numbers faster than a call of a library."""
    total = 0.0
    for i in range(one.shape[0]):
        total += one[i] * other[i]
    return total


@compiled
def add(into, factor, vector):  # type: ignore[no-untyped-def]
    """into += factor vector."""
    for i in range(into.shape[0]):
        into[i] += factor * vector[i]


@compiled_part
def substitute(upper, count, vector, transposed):  # type: ignore[no-untyped-def]
    """R x = vector, or R' x = vector, in place."""
    for step in range(count):
        i = step if transposed else count - 1 - step
        for other in range(step):
            j = other if transposed else count - 1 - other
            vector[i] -= (upper[j, i] if transposed else upper[i, j]) * vector[j]
        vector[i] /= upper[i, i]


class _Equations(NamedTuple):
    """Factors of p equations of n unknowns, A x = b: rows scaled and ordered, S the scale of the unknowns."""

    basis: Array  # (n, n) orthonormal; the first of them span the rows of A S, the others their null space
    upper: Array  # (p, p) R with (A S)' = basis' R
    order: NDArray[np.int64]  # (p,) rows of A, independent ones first
    row_scale: Array  # (p,)
    scale: Array  # (n,)
    particular: Array  # (n,) solution of smallest scaled norm
    rest: Array  # (p + 1, n) work space
    force: Array  # (p,) work space

    @classmethod
    def of(cls, n: int, p: int) -> _Equations:
        shapes = ((p,), (n,), (n,), (p + 1, n), (p,))
        made = [np.zeros(shape) for shape in shapes]
        return cls(np.zeros((n, n)), np.zeros((p, p)), np.zeros(p, dtype=np.int64), *made)


@compiled
def factor_equations(A, b, space):  # type: ignore[no-untyped-def]
    """Factors and particular solution; returns the rank of A and whether there are solutions."""
    p, n = A.shape
    basis, upper, order, row_scale, scale, rest = (
        space.basis, space.upper, space.order, space.row_scale, space.scale, space.rest,
    )  # fmt: skip
    for k in range(p):
        size = np.sqrt(dot(A[k], A[k]))
        row_scale[k], order[k] = (1.0 / size if size > 0.0 else 0.0), k
    for i in range(n):
        largest = 0.0
        for k in range(p):
            largest = max(largest, abs(A[k, i]) * row_scale[k])
        scale[i] = 1.0 / largest if largest > 0.0 else 1.0
        for k in range(p):
            rest[k, i] = A[k, i] * row_scale[k] * scale[i]
    rank, searching = 0, True
    for step in range(n):
        line, best, chosen = basis[step], RANK * RANK, -1
        for at in range(rank, p if searching else 0):
            square = dot(rest[order[at]], rest[order[at]])
            if square > best:
                best, chosen = square, at
        if chosen >= 0:
            line[:] = rest[order[chosen]]
            order[chosen], order[rank] = order[rank], order[chosen]
            rank += 1
        else:  # no row of A adds anything; the null space is filled from the unit vectors that are furthest outside
            searching, best, chosen = False, np.inf, 0
            for i in range(n):
                inside = 0.0
                for other in range(step):
                    inside += basis[other, i] * basis[other, i]
                if inside < best:
                    best, chosen = inside, i
            line[:] = 0.0
            line[chosen] = 1.0
        for _ in range(1 if searching else 2):  # what was taken away before left rounding behind
            for i in range(step):
                add(line, -dot(basis[i], line), basis[i])
            line /= np.sqrt(dot(line, line))
        for at in range(rank, p if searching else 0):
            add(rest[order[at]], -dot(line, rest[order[at]]), line)
    for at in range(rank):
        for i in range(at + 1):
            total = 0.0
            for c in range(n):
                total += basis[i, c] * A[order[at], c] * scale[c]
            upper[i, at] = total * row_scale[order[at]]
    space.particular[:] = 0.0
    correct(A, b, space, rank, space.particular)
    correct(A, b, space, rank, space.particular)
    for at in range(rank, p):
        k, size = order[at], abs(b[order[at]])
        for i in range(n):
            size = max(size, abs(A[k, i] * space.particular[i]))
        if abs(dot(A[k], space.particular) - b[k]) > FEASIBLE * max(size, 1e-3):
            return rank, False
    return rank, True


@compiled
def correct(A, b, space, rank, x):  # type: ignore[no-untyped-def]
    """Smallest change of x that makes A x = b."""
    for at in range(rank):
        k = space.order[at]
        space.force[at] = (b[k] - dot(A[k], x)) * space.row_scale[k]
    substitute(space.upper, rank, space.force, True)
    for at in range(rank):
        for i in range(x.shape[0]):
            x[i] += space.scale[i] * space.basis[at, i] * space.force[at]


@compiled
def equation_forces(slope, space, rank, y):  # type: ignore[no-untyped-def]
    """Multipliers y (p,) with A'y = slope, for a slope (n,) in the range of A'."""
    for at in range(rank):
        space.force[at] = 0.0
        for i in range(slope.shape[0]):
            space.force[at] += space.basis[at, i] * space.scale[i] * slope[i]
    substitute(space.upper, rank, space.force, False)
    y[:] = 0.0
    for at in range(rank):
        y[space.order[at]] = space.force[at] * space.row_scale[space.order[at]]


@compiled
def reduce_program(program, space, rank, half, reduced):  # type: ignore[no-untyped-def]
    """The program in the null space, into `reduced`; its rows are those of C, then the unknowns."""
    n, r, k = program.q.shape[0], program.c_low.shape[0], reduced.q.shape[0]
    start = space.particular
    N = reduced.C[r:]
    for i in range(n):
        for j in range(k):
            N[i, j] = space.scale[i] * space.basis[rank + j, i]
        reduced.c_low[r + i], reduced.c_high[r + i] = program.x_low[i] - start[i], program.x_high[i] - start[i]
    for row in range(r):
        offset, size = dot(program.C[row], start), 0.0
        reduced.C[row] = 0.0
        for i in range(n):
            size += (program.C[row, i] * space.scale[i]) ** 2
            add(reduced.C[row], program.C[row, i], N[i])
        if (
            dot(reduced.C[row], reduced.C[row]) < DEPENDENT * DEPENDENT * size
        ):  # the equations decide, all else is rounding
            reduced.C[row] = 0.0
        reduced.c_low[row], reduced.c_high[row] = program.c_low[row] - offset, program.c_high[row] - offset
    for i in range(n):
        if dot(N[i], N[i]) < (DEPENDENT * space.scale[i]) ** 2:
            N[i] = 0.0
    reduced.q[:] = 0.0
    reduced.P[:] = 0.0
    for i in range(n):
        half[:] = 0.0
        slope = program.q[i]
        for j in range(n):
            if program.P[i, j] != 0.0:
                slope += program.P[i, j] * start[j]
                add(half, program.P[i, j], N[j])
        add(reduced.q, slope, N[i])
        for j in range(k):
            add(reduced.P[j], N[i, j], half)


@compiled
def expand(program, space, rank, reduced, z, weights, x, y, w):  # type: ignore[no-untyped-def]
    """Unknowns x and multipliers y, w from the solution z of the reduced program and its multipliers (r + n,)."""
    n, r = x.shape[0], program.c_low.shape[0]
    for i in range(n):
        x[i] = space.particular[i] + dot(reduced.C[r + i], z)
    correct(program.A, program.b, space, rank, x)
    for i in range(n):
        w[i] = weights[r + i]
        low, high = program.x_low[i], program.x_high[i]
        for bound in (low, high):  # rounding must not leave a pressing bound
            if w[i] != 0.0 and abs(x[i] - bound) < FEASIBLE * (1.0 + abs(bound)):
                x[i] = bound
        x[i] = min(max(x[i], low), high)
    slope = space.rest[0]
    for i in range(n):
        slope[i] = program.q[i] + dot(program.P[i], x) - w[i]
    for row in range(r):
        add(slope, -weights[row], program.C[row])
    equation_forces(slope, space, rank, y)


class Reduction:
    """Programs of one size in the null space of their equations, one at a time; the arrays are its own.

    Attributes:
        particular: (n,) x_p. rank: of A.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes, self._space = sizes, _Equations.of(sizes.variables, sizes.equalities)
        self._programs: dict[int, tuple[QuadraticProgram, Array]] = {}
        self.rank = 0

    @property
    def particular(self) -> Array:
        return self._space.particular

    def factor(self, program: QuadraticProgram) -> bool:
        """Take the equations of a program; returns whether they agree with each other."""
        self.rank, consistent = factor_equations(program.A, program.b, self._space)
        return bool(consistent)

    def reduce(self, program: QuadraticProgram) -> QuadraticProgram:
        """The program of z, whose rows are those of C, then the unknowns x."""
        n, _, r = self._sizes
        k = n - self.rank
        if k not in self._programs:
            shapes = ((k, k), k, (0, k), 0, (r + n, k), r + n, r + n)
            arrays = [np.zeros(shape) for shape in shapes]
            reduced = QuadraticProgram._make([*arrays, np.full(k, -np.inf), np.full(k, np.inf)])
            self._programs[k] = reduced, np.zeros(k)
        reduced, half = self._programs[k]
        reduce_program(program, self._space, self.rank, half, reduced)
        return reduced

    def expand(
        self, program: QuadraticProgram, reduced: QuadraticProgram, result: QPResult, x: Array, y: Array, w: Array
    ) -> None:
        """Write unknowns and multipliers of the program from the result of the reduced one."""
        expand(program, self._space, self.rank, reduced, result.x, result.z, x, y, w)

    def equation_forces(self, slope: Array, y: Array) -> None:
        """Write multipliers y (p,) with A'y = slope, for a slope (n,) in the range of A'."""
        equation_forces(slope, self._space, self.rank, y)


class NullSpaceSolver:
    """Solver of programs of one size in the null space of their equations.

    Args:
        solver: by name, of the reduced programs. sizes: of the full ones.
    """

    def __init__(self, solver: str, sizes: Sizes) -> None:
        self._name, self._sizes, self._reduction = solver, sizes, Reduction(sizes)
        self._solvers: dict[Sizes, QPSolver] = {}

    def solve(self, program: QuadraticProgram) -> QPResult:
        """See `QPSolver`."""
        n, p, r = self._sizes
        reduction = self._reduction
        consistent = reduction.factor(program)
        x, y, z, w = np.array(reduction.particular), np.zeros(p), np.zeros(r), np.zeros(n)
        if not consistent:
            return QPResult(INFEASIBLE, x, y, z, w, 0)
        reduced = reduction.reduce(program)
        sizes = reduced.sizes
        if sizes not in self._solvers:
            self._solvers[sizes] = make_solver(self._name, sizes) if sizes.variables else _OnlyPoint()
        result = self._solvers[sizes].solve(reduced)
        if result.status == INFEASIBLE:
            return QPResult(INFEASIBLE, x, y, z, w, result.iterations)
        reduction.expand(program, reduced, result, x, y, w)
        return QPResult(result.status, x, y, result.z[:r], w, result.iterations, result.tie_broken)


class _OnlyPoint:
    """Solver of reduced programs without unknowns: their equations have one solution, within the bounds or not."""

    def solve(self, program: QuadraticProgram) -> QPResult:
        least = -FEASIBLE * (1.0 + np.minimum(np.abs(program.c_low), np.abs(program.c_high)))
        inside = np.all(program.c_low <= -least) and np.all(program.c_high >= least)
        nothing = np.zeros(0)
        z = np.zeros(program.c_low.size)
        return QPResult(SOLVED if inside else INFEASIBLE, nothing, nothing, z, nothing, 0)
