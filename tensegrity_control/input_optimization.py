"""Inputs of an over-actuated system as a quadratic program, solved directly or in the null space of the equations.

Direct: the program of free_accelerations.py as it stands, 000 (2.2.4)-(2.2.5). Null space: x = x_p + N z with A N = 0,

    min 1/2 z'(N'P N) z + (N'(P x_p + q))'z
    s.t. c_low - C x_p <= C N z <= c_high - C x_p      x_low - x_p <= N z <= x_high - x_p

000 (2.2.6)-(2.2.11), where (2.2.10) prints twice the linear term. Both give the same inputs. Objectives that are not
quadratic go through SciPy (000 section 2.2.1).

A problem without a solution is answered too, by the inputs of a relaxed one (input_fallback.py), and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.numerics.compilation import compiled

from .free_accelerations import FreeUnknowns, Inequalities, InputProblem, InputSolution, Multipliers, Relaxed, Task
from .input_fallback import clashing_names, relax, without_ties
from .qp_solvers import (
    DEPENDENT,
    INFEASIBLE,
    ITERATION_LIMIT,
    NUMERICAL,
    SOLVED,
    QPResult,
    QPSolver,
    QuadraticProgram,
    Sizes,
    add,
    dot,
    make_solver,
    substitute,
)  # fmt: skip

__all__ = [
    "FreeUnknowns", "Inequalities", "InputOptimizer", "InputProblem", "InputSolution", "Multipliers", "Relaxed", "Task",
    "solve_nonlinear",
]  # fmt: skip

Array = NDArray[np.float64]
FORMS, METHODS = ("null_space", "direct"), ("SLSQP", "trust-constr")
RANK = 1e-10  # part of a scaled row outside of those before it that counts as none
FEASIBLE = 1e-9


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


@compiled
def worst_error(program, x):  # type: ignore[no-untyped-def]
    """Largest error of the equations, and the largest in parts of their size."""
    absolute, relative = 0.0, 0.0
    if not np.isfinite(dot(x, x)):
        return np.inf, np.inf
    for k in range(program.b.shape[0]):
        error, size = -program.b[k], abs(program.b[k])
        for i in range(x.shape[0]):
            part = program.A[k, i] * x[i]
            error += part
            size = max(size, abs(part))
        absolute, relative = max(absolute, abs(error)), max(relative, abs(error) / max(size, 1e-3))
    return absolute, relative


class NullSpaceSolver:
    """Solves programs of one size in the null space of their equations, with any solver for what is left."""

    def __init__(self, solver: str, sizes: Sizes) -> None:
        self._name, self._sizes = solver, sizes
        self._space = _Equations.of(sizes.variables, sizes.equalities)
        self._left: dict[int, tuple[QPSolver, QuadraticProgram, Array]] = {}

    def _for_dimension(self, k: int) -> tuple[QPSolver, QuadraticProgram, Array]:
        """Solver and work space for k unknowns; one that has nothing left to choose needs no other solver than ours."""
        if k not in self._left:
            n, _, r = self._sizes
            sizes = Sizes(k, 0, r + n)
            shapes = ((k, k), k, (0, k), 0, (r + n, k), r + n, r + n)
            arrays = [np.zeros(shape) for shape in shapes]
            program = QuadraticProgram._make([*arrays, np.full(k, -np.inf), np.full(k, np.inf)])
            self._left[k] = make_solver(self._name if k else "active_set", sizes), program, np.zeros(k)
        return self._left[k]

    def solve(self, program: QuadraticProgram) -> QPResult:
        """See `QPSolver`."""
        n, p, r = self._sizes
        space = self._space
        rank, consistent = factor_equations(program.A, program.b, space)
        x, y, w = np.array(space.particular), np.zeros(p), np.zeros(n)
        if not consistent:
            y = program.b - program.A @ np.linalg.lstsq(program.A, program.b, rcond=None)[0]  # what no x can give
            return QPResult(INFEASIBLE, x, y, np.zeros(r), w, 0, True)
        solver, reduced, half = self._for_dimension(n - rank)
        reduce_program(program, space, rank, half, reduced)
        found = solver.solve(reduced)
        if found.status == INFEASIBLE:
            z, w = found.z[:r], found.z[r:]
            equation_forces(-(program.C.T @ z + w), space, rank, y)
            return QPResult(INFEASIBLE, x, y, z, w, found.iterations, found.certified)
        expand(program, space, rank, reduced, found.x, found.z, x, y, w)
        return QPResult(found.status, x, y, found.z[:r], w, found.iterations, False, found.tie_broken)


class InputOptimizer:
    """Solves control problems, one after the other, with work space and active rows kept for each size.

    Args:
        form: "direct" (faster) or "null_space". solver: "active_set", "piqp" or "osqp".

    Raises:
        TensegrityError: unknown names.
    """

    def __init__(self, form: str = "direct", solver: str = "active_set") -> None:
        if form not in FORMS:
            raise TensegrityError(unknown_name("form", form, FORMS))
        make_solver(solver, Sizes(1, 0, 0))  # a wrong name is refused here and now
        self.form, self.solver = form, solver
        self._solvers: dict[Sizes, QPSolver] = {}

    def solve(self, problem: InputProblem) -> InputSolution:
        """The best inputs, or those of the relaxed problem, with the reason; see `InputSolution`.

        Raises:
            InfeasibleControlError: limits that must never be broken contradict each other; names them.
        """
        found = self.solve_program(problem.program)
        if found.status == SOLVED:
            error, relative = worst_error(problem.program, found.x)
            if relative <= FEASIBLE:
                return _solution(problem, found, error)
            found = found._replace(status=NUMERICAL)
        return self._answer(problem, found)

    def solve_program(self, program: QuadraticProgram) -> QPResult:
        """Bare arrays that the caller vouches for; a failure is classified, and to be answered by the caller."""
        sizes = program.sizes
        if sizes not in self._solvers:
            make: Callable[[str, Sizes], QPSolver] = make_solver if self.form == "direct" else NullSpaceSolver
            self._solvers[sizes] = make(self.solver, sizes)
        found = self._solvers[sizes].solve(program)
        if found.tie_broken:
            found = self._solvers[sizes].solve(without_ties(program))._replace(tie_broken=True)
        return found

    def _answer(self, problem: InputProblem, failed: QPResult) -> InputSolution:
        """What to do where the solver has no solution."""
        program = problem.program
        if not failed.certified:
            # Whether there is a solution is for a solver to say that proves it, or gives one.
            second = NullSpaceSolver("active_set", program.sizes).solve(program)
            if second.status != SOLVED and not second.certified:
                second = make_solver("piqp", program.sizes).solve(program)
            error, relative = worst_error(program, second.x)
            if second.status == SOLVED and relative <= FEASIBLE:
                status = NUMERICAL if failed.status == INFEASIBLE else failed.status
                return replace(_solution(problem, second, error), status=status, fallback="second solver")
            failed = second if second.certified else failed
        answer = relax(problem)
        nothing = failed._replace(x=answer.x, y=0.0 * failed.y, z=0.0 * failed.z, w=0.0 * failed.w)
        made = _solution(problem, nothing, answer.residual)
        return replace(made, relaxed=answer.relaxed, clashing=clashing_names(problem, failed), fallback=answer.fallback)


def _solution(problem: InputProblem, found: QPResult, residual: float) -> InputSolution:
    inputs, x = len(problem.names), found.x  # type: ignore[arg-type]
    return InputSolution(
        found.status,
        x[:inputs],
        x[inputs:],
        Multipliers(found.y, found.z, found.w[:inputs], found.w[inputs:]),
        residual,
        iterations=found.iterations,
        objective=float(0.5 * x @ problem.program.P @ x + problem.program.q @ x),
        tie_broken=found.tie_broken,
    )


def solve_nonlinear(
    problem: InputProblem,
    objective: Callable[[Array], float],
    gradient: Callable[[Array], Array] | None = None,
    start: Array | None = None,
    method: str = "SLSQP",
) -> InputSolution:
    """Inputs of least objective under the conditions of a problem: 000 (2.2.1)-(2.2.3), the general form.

    Works in the null space of the equations, which therefore hold exactly.

    Args:
        objective: of all unknowns (n,), inputs first; the problem's own objective is left aside.
        gradient: (n,) of it; differences where None.
        start: (n,) unknowns to start from; the solution of the problem itself where None.
        method: "SLSQP" or "trust-constr" of scipy.optimize.minimize.

    Raises:
        TensegrityError: an unknown method. InfeasibleControlError: see `InputOptimizer`.
    """
    from scipy.linalg import null_space
    from scipy.optimize import LinearConstraint, minimize

    if method not in METHODS:
        raise TensegrityError(unknown_name("method", method, METHODS))
    program, first = problem.program, InputOptimizer().solve(problem)
    if first.status != SOLVED or first.fallback:
        return first
    base = np.concatenate((first.inputs, first.free))
    N = null_space(program.A / np.maximum(np.linalg.norm(program.A, axis=1), 1e-300)[:, None])
    guess = np.zeros(N.shape[1]) if start is None else N.T @ (np.asarray(start) - base)
    rows = np.vstack((program.C, np.eye(base.size)))
    low = np.concatenate((program.c_low, program.x_low)) - rows @ base
    high = np.concatenate((program.c_high, program.x_high)) - rows @ base
    bounded = np.isfinite(low) | np.isfinite(high)
    found = minimize(
        lambda z: float(objective(base + N @ z)),
        guess,
        jac=None if gradient is None else lambda z: N.T @ np.asarray(gradient(base + N @ z)),
        constraints=LinearConstraint((rows @ N)[bounded], low[bounded], high[bounded]) if N.size else (),
        method=method,
        **({"options": {"ftol": 1e-14, "maxiter": 500}} if method == "SLSQP" else {"tol": 1e-12}),
    )
    x = np.clip(base + N @ found.x, program.x_low, program.x_high)
    status = SOLVED if found.success else ITERATION_LIMIT if found.nit >= 500 else NUMERICAL
    zero = Multipliers(np.zeros(program.b.size), np.zeros(program.c_low.size), 0.0 * first.inputs, 0.0 * first.free)
    return InputSolution(
        status, x[: first.inputs.size], x[first.inputs.size :], zero, worst_error(program, x)[0],
        fallback="" if found.success else "best found", iterations=int(found.nit), objective=float(found.fun),
    )  # fmt: skip
