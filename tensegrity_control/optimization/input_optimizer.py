"""Inputs of an over-actuated system as a quadratic program, solved directly or in the null space of the equations.

Direct: the program of `control_problem` as it stands, 000 (2.2.4)-(2.2.5). Null space: see `null_space`. Both give the
same inputs. A problem without a solution is answered too, by the inputs of a relaxed one (`relaxation`), and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tensegrity_dynamics.errors import TensegrityError, unknown_name

from .control_problem import InputProblem, InputSolution, Multipliers
from .infeasibility import clashing_names, prove_infeasible, second_opinion
from .null_space import FEASIBLE, NullSpaceSolver
from .quadratic_program import (
    INFEASIBLE,
    NUMERICAL,
    SOLVED,
    QPResult,
    QPSolver,
    QuadraticProgram,
    Sizes,
    equation_error,
)
from .relaxation import relax
from .solvers import DEFAULT_SOLVER, SolverStock, make_solver

FORMS = ("null_space", "direct")


class InputOptimizer:
    """Solver of input optimisation problems; it keeps the work space of each problem size.

    Args:
        form: "direct" (faster) or "null_space". solver: one of `solvers.SOLVERS`.

    Raises:
        TensegrityError: a form or solver that does not exist.
    """

    def __init__(self, form: str = "direct", solver: str = DEFAULT_SOLVER) -> None:
        if form not in FORMS:
            raise TensegrityError(unknown_name("form", form, FORMS))
        make_solver(solver, Sizes(1, 0, 0))  # a wrong name is refused here and now
        self.form, self.solver = form, solver
        self._solvers: dict[Sizes, QPSolver] = {}
        self._stock = SolverStock()

    def solve(self, problem: InputProblem) -> InputSolution:
        """Optimal inputs, or those of the relaxed problem with the reason; see `InputSolution`.

        Raises:
            InfeasibleControlError: limits that must never be broken contradict each other; names them.
        """
        result = self.solve_program(problem.program)
        if result.status == SOLVED:
            error, relative = equation_error(problem.program, result.x)
            if relative <= FEASIBLE:
                return _solution(problem, result, error)
            result = result._replace(status=NUMERICAL)
        return _answer(problem, result, self._stock)

    def solve_program(self, program: QuadraticProgram) -> QPResult:
        """Result for bare arrays that the caller vouches for; a failure is the caller's to answer."""
        sizes = program.sizes
        if sizes not in self._solvers:
            make: Callable[[str, Sizes], QPSolver] = make_solver if self.form == "direct" else NullSpaceSolver
            self._solvers[sizes] = make(self.solver, sizes)
        return self._solvers[sizes].solve(program)


def _answer(problem: InputProblem, failed: QPResult, stock: SolverStock) -> InputSolution:
    """The solution of a second solver where the first one failed, or of the relaxed problem where there is none."""
    program = problem.program
    proof = prove_infeasible(program)
    if proof is not None:
        failed = failed._replace(status=INFEASIBLE)
    elif (second := second_opinion(program)) is not None:
        status = NUMERICAL if failed.status == INFEASIBLE else failed.status
        solution = _solution(problem, second, equation_error(program, second.x)[0])
        return replace(solution, status=status, fallback="second solver")
    answer = relax(problem, stock)
    n, p, r = program.sizes
    nothing = failed._replace(x=answer.x, y=np.zeros(p), z=np.zeros(r), w=np.zeros(n))
    solution = _solution(problem, nothing, answer.residual)
    clashing = () if proof is None else clashing_names(problem, proof)
    return replace(solution, relaxed=answer.relaxed, clashing=clashing, fallback=answer.fallback)


def _solution(problem: InputProblem, result: QPResult, residual: float) -> InputSolution:
    inputs, x = len(problem.names), result.x  # type: ignore[arg-type]
    return InputSolution(
        result.status,
        x[:inputs],
        x[inputs:],
        Multipliers(result.y, result.z, result.w[:inputs], result.w[inputs:]),
        residual,
        iterations=result.iterations,
        objective=float(0.5 * x @ problem.program.P @ x + problem.program.q @ x),
        tie_broken=result.tie_broken,
    )
