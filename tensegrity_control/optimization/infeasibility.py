"""Check whether a program is infeasible: a proof, the names of the conflicting conditions, or the result of other
solvers.

By Farkas' lemma the conditions have no common point if and only if multipliers with the right signs exist such that

    A'y + C'z + w = 0    and    b'y + (bounds of C)'z + (bounds of x)'w > 0.

In the null space of the equations z and w solve a non-negative least-squares problem (Lawson and Hanson, Solving Least
Squares Problems, 1974, chapter 23). The number of non-zero multipliers is minimal: without any one of the inequalities
with a multiplier, the other conditions have a common point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from tensegrity_dynamics.numerics.compilation import compiled
from tensegrity_dynamics.numerics.types import Array

from .control_problem import InputProblem
from .null_space import FEASIBLE, NullSpaceSolver, Reduction
from .quadratic_program import INFEASIBLE, NUMERICAL, SOLVED, QPResult, QuadraticProgram, Sizes, equation_error
from .solvers import DEFAULT_SOLVER, SolverStock, make_solver

PROOF = 1e-7  # left of a unit contradiction; a program with a solution at distance d leaves 1 / (1 + d^2)^(1/2)
DEPTH = 1e-12  # least contradiction, in parts of the largest bound; below it is rounding
ROUNDING = 1e-9  # part of the largest weight that counts as none


class Infeasibility(NamedTuple):
    """Multipliers y (p,), z (r,), w (n,) of conflicting conditions; zero for all others."""

    y: Array
    z: Array
    w: Array


def prove_infeasible(program: QuadraticProgram) -> Infeasibility | None:
    """Multipliers that prove that a program is infeasible; None if there are none."""
    n, p, r = program.sizes
    reduction = Reduction(program.sizes)
    y = np.zeros(p)
    if not reduction.factor(program):
        forces = _contradiction(program.A, program.b, program.b)
        return None if forces is None else Infeasibility(forces, np.zeros(r), np.zeros(n))
    reduced = reduction.reduce(program)
    forces = _contradiction(reduced.C, reduced.c_low, reduced.c_high)
    if forces is None:
        return None
    z, w = forces[:r], forces[r:]
    reduction.equation_forces(-(program.C.T @ z + w), y)
    return Infeasibility(y, z, w)


def second_opinion(program: QuadraticProgram) -> QPResult | None:
    """Solution by other methods, for a program that a solver failed to solve without a proof; None if they fail as
    well."""
    for solver in (NullSpaceSolver(DEFAULT_SOLVER, program.sizes), make_solver("piqp", program.sizes)):
        result = solver.solve(program)
        if result.status == SOLVED and equation_error(program, result.x)[1] <= FEASIBLE:
            return result
    return None


class CheckedSolver:
    """Solver by name with checked failures: a program is infeasible only with a proof; otherwise other solvers are
    tried.

    daqp reports programs as infeasible if their feasible set is hardly more than a point.

    Args:
        name: one of `solvers.SOLVERS`.
        sizes: sizes of the programs.
        stock: stock of solvers from which it is taken.
    """

    def __init__(self, name: str, sizes: Sizes, stock: SolverStock | None = None) -> None:
        self._solver = (stock or SolverStock()).solver(name, sizes)

    def solve(self, program: QuadraticProgram) -> QPResult:
        """See `QPSolver`; the status "infeasible" is proved."""
        result = self._solver.solve(program)
        if result.status == SOLVED:
            return result
        if prove_infeasible(program) is not None:
            return result._replace(status=INFEASIBLE)
        second = second_opinion(program)
        if second is not None:
            return second
        return result._replace(status=NUMERICAL) if result.status == INFEASIBLE else result


def _contradiction(rows: Array, low: Array, high: Array) -> Array | None:
    """Multipliers (m,) of rows (m, k) whose weighted sum is zero while the weighted bounds are positive; None
    without."""
    sides, per_side = np.empty(2 * low.size, dtype=np.int64), np.empty(2 * low.size)
    system = np.zeros((rows.shape[1] + 1, 2 * low.size))
    count, largest, finite = contradiction_system(rows, low, high, system, sides, per_side)
    if not finite:
        return None
    system[-1] /= max(1.0, largest)
    target = np.zeros(system.shape[0])
    target[-1] = 1.0
    system, sides, per_side = system[:, :count], sides[:count], per_side[:count]
    try:
        weights, left = nnls(system, target)
    except RuntimeError:  # more iterations than it allows itself
        return None
    if left > PROOF or np.sum(weights) > 1.0 / DEPTH:
        return None
    weights[weights < ROUNDING * np.max(weights)] = 0.0
    return np.asarray(np.bincount(sides, weights * per_side, minlength=low.size), dtype=np.float64)


@compiled
def contradiction_system(rows, low, high, system, sides, per_side):  # type: ignore[no-untyped-def]
    """Write the bounded sides of normalised rows into columns (k + 1,), bounds last.

    Returns their number, the largest bound, and whether all is finite.
    """
    count, largest, total = 0, 0.0, 0.0
    for row in range(rows.shape[0]):
        square = 0.0
        for i in range(rows.shape[1]):
            square += rows[row, i] * rows[row, i]
        size = np.sqrt(square) if square > 0.0 else 1.0
        for sign, bound in ((1.0, low[row]), (-1.0, high[row])):
            if abs(bound) == np.inf:
                continue
            sides[count], per_side[count] = row, sign / size
            for i in range(rows.shape[1]):
                system[i, count] = rows[row, i] * per_side[count]
            system[-1, count] = bound * per_side[count]
            total += size + abs(system[-1, count])
            largest = max(largest, abs(system[-1, count]))
            count += 1
    return count, largest, np.isfinite(total)


def clashing_names(problem: InputProblem, proof: Infeasibility) -> tuple[str, ...]:
    """Names of the unknowns, rows and tracked directions with multipliers in a proof; multipliers by rounding are
    ignored."""
    unknowns = [name for name, weight in zip(problem.all_names, proof.w, strict=True) if weight]
    rows = [name for name, weight in zip(problem.row_names, proof.z, strict=True) if weight]
    directions = np.asarray(problem.tracking_directions)
    pull, parts = np.abs(proof.y @ directions), np.abs(proof.y) @ np.abs(directions)
    least = ROUNDING * float(np.max(parts, initial=0.0))
    tracked: tuple[str, ...] = tuple(problem.tracked)  # type: ignore[arg-type]
    return (*unknowns, *rows, *(name for name, weight in zip(tracked, pull, strict=True) if weight > least))
