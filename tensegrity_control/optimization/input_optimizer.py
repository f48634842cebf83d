"""Inputs of an over-actuated system as a quadratic program, solved directly or in the null space of the equations.

Direct: the program of `control_problem` as it stands, 000 (2.2.4)-(2.2.5). Null space: see `null_space`. Both give the
same inputs. A problem without a solution is answered too, by the inputs of a relaxed one (`relaxation`), and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tensegrity_dynamics.errors import TensegrityError, unknown_name

from .control_problem import InputProblem, InputSolution, Multipliers
from .null_space import FEASIBLE, NullSpaceSolver
from .quadratic_program import (
    INFEASIBLE,
    NUMERICAL,
    SOLVED,
    QPResult,
    QPSolver,
    QuadraticProgram,
    Sizes,
    without_ties,
    worst_error,
)
from .relaxation import clashing_names, relax
from .solvers import make_solver

FORMS = ("null_space", "direct")


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
