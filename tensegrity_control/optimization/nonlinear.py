"""Inputs that minimise an objective that is not quadratic (000, section 2.2.1), by SciPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.numerics.types import Array

from .control_problem import InputProblem, InputSolution, Multipliers
from .input_optimizer import InputOptimizer
from .quadratic_program import ITERATION_LIMIT, NUMERICAL, SOLVED, equation_error

TOLERANCES = {"SLSQP": (1e-14, 1e-11, 1e-8), "trust-constr": (1e-12,)}
"""Tolerances by method, tried in order from the point reached so far. With a fine tolerance SLSQP may fail at the
optimum, when rounding hides further descent; a coarser tolerance then confirms the optimum."""
MAX_ITERATIONS = 1000
METHODS = tuple(TOLERANCES)


def solve_nonlinear(
    problem: InputProblem,
    objective: Callable[[Array], float],
    gradient: Callable[[Array], Array] | None = None,
    start: Array | None = None,
    method: str = "SLSQP",
) -> InputSolution:
    """Inputs that minimise an objective under the conditions of a problem: 000 (2.2.1)-(2.2.3), the general form.

    Works in the null space of the equations, which therefore hold exactly.

    Args:
        objective: function of all unknowns (n,), inputs first; the problem's own objective is ignored.
        gradient: its gradient (n,); None for finite differences.
        start: (n,) initial unknowns; None for the solution of the problem itself.
        method: "SLSQP" or "trust-constr" of scipy.optimize.minimize.

    Raises:
        TensegrityError: the method is unknown.
        InfeasibleControlError: see `InputOptimizer`.
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
    for tolerance in TOLERANCES[method]:
        found = minimize(
            lambda z: float(objective(base + N @ z)),
            guess,
            jac=None if gradient is None else lambda z: N.T @ np.asarray(gradient(base + N @ z)),
            constraints=LinearConstraint((rows @ N)[bounded], low[bounded], high[bounded]) if N.size else (),
            method=method,
            options={"maxiter": MAX_ITERATIONS},
            tol=tolerance,
        )
        if found.success or found.nit >= MAX_ITERATIONS:
            break
        guess = found.x
    x = np.clip(base + N @ found.x, program.x_low, program.x_high)
    status = SOLVED if found.success else ITERATION_LIMIT if found.nit >= MAX_ITERATIONS else NUMERICAL
    zero = Multipliers(np.zeros(program.b.size), np.zeros(program.c_low.size), 0.0 * first.inputs, 0.0 * first.free)
    return InputSolution(
        status, x[: first.inputs.size], x[first.inputs.size :], zero, equation_error(program, x)[0],
        fallback="" if found.success else "best found", iterations=int(found.nit), objective=float(found.fun),
    )  # fmt: skip
