"""Relaxation of infeasible control problems, by priority.

Tracking is relaxed first, as little as possible along its directions T,

    min 1/2 |V t|^2    s.t.    A x = b + T t,  floors and limits

If that is not sufficient, the floors are first lowered as little as possible; limits are never violated. If the
directions T cannot restore the equations within the limits, the equations themselves are solved in the least-squares
sense.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.numerics.types import Array

from .control_problem import InputProblem, Relaxed
from .infeasibility import CheckedSolver, prove_infeasible
from .quadratic_program import (
    SOLVED,
    Bounds,
    Equations,
    Objective,
    QPResult,
    QuadraticProgram,
    Rows,
    without_ties,
)
from .solvers import DEFAULT_SOLVER, SolverStock

EQUATION_WEIGHT = 1e3  # weight of an equation relative to tracking, if both are relaxed
NEGLIGIBLE = 1e-9  # negligible change of an equation, floor or tracked direction, in their units
PROXIMAL_WEIGHT = 10.0  # weight of a step relative to the weight that breaks ties; a larger one needs more steps
PROXIMAL_STEPS = 4  # largest number of steps until unknowns without a weight remain constant


@dataclass(frozen=True, eq=False)
class Answer:
    """Unknowns x (n,) of a relaxed problem, the relaxed items, the kind of relaxation, and the largest residual."""

    x: Array
    relaxed: tuple[Relaxed, ...]
    fallback: str
    residual: float


def relax(problem: InputProblem, stock: SolverStock | None = None) -> Answer:
    """Smallest relaxation of an infeasible problem, in the order given in the module.

    Args:
        stock: stock of solvers that are kept between problems.

    Raises:
        InfeasibleControlError: rows of priority "limit" contradict the limits of the inputs; the message names them.
    """
    program, stock = problem.program, stock or SolverStock()
    for T, V in _directions(problem):
        for lower_floors in (False, True):
            bounded = _with_lowered_floors(problem, T, V, stock) if lower_floors else program
            if bounded is None:
                continue
            result = _least_loss(bounded, T, V, stock)
            if result is not None:
                x, loss = _restored(problem, T, *result)
                return _report(problem, x, T @ loss, loss)
    proof = prove_infeasible(program._replace(A=program.A[:0], b=program.b[:0]))
    if proof is not None:
        forces = zip((*problem.row_names, *problem.all_names), (*proof.z, *proof.w), strict=True)
        names = [name for name, force in forces if force]
        raise InfeasibleControlError(f"the limits {', '.join(names)} contradict each other; correct one of them.")
    return hold(problem)


def _directions(problem: InputProblem) -> Iterator[tuple[Array, Array]]:
    """Directions T and weights V of the possible relaxations: tracking alone, then the equations as well."""
    T, V = np.asarray(problem.tracking_directions), np.asarray(problem.tracking_weights)
    yield T, V
    size = np.linalg.norm(problem.program.A, axis=1)
    unit = np.diag(np.where(size > 0.0, size, 1.0))
    yield np.hstack((T, unit)), np.concatenate((V, np.full(size.size, EQUATION_WEIGHT)))


def hold(problem: InputProblem) -> Answer:
    """The preferred inputs within their limits; tracking is relaxed as far as necessary."""
    program, T = problem.program, np.asarray(problem.tracking_directions)
    free = () if problem.free is None else np.asarray(problem.free.preferred)
    x = np.clip(np.concatenate((np.asarray(problem.preferred), free)), program.x_low, program.x_high)
    loss = np.linalg.lstsq(T, program.A @ x - program.b, rcond=None)[0]
    return replace(_report(problem, x, T @ loss, loss), fallback="held")


def _least_loss(program: QuadraticProgram, T: Array, V: Array, stock: SolverStock) -> tuple[Array, Array] | None:
    """The best unknowns x (n,) with the smallest loss of tracking t; None if no loss of tracking is sufficient."""
    n = program.q.size
    result = _settled(_with_losses(program, T, V), stock)
    if result.status != SOLVED:
        return None
    x, loss = result.x[:n], result.x[n:]
    # x is defined as feasible; otherwise rounding could make the second step infeasible at the border.
    rows = program.C @ x
    possible = program._replace(
        b=program.A @ x, c_low=np.minimum(program.c_low, rows), c_high=np.maximum(program.c_high, rows)
    )
    best = stock.solver(DEFAULT_SOLVER, program.sizes).solve(possible)
    return (best.x if best.status == SOLVED else x), loss


def _settled(program: QuadraticProgram, stock: SolverStock) -> QPResult:
    """Solution of a program with undetermined unknowns, by proximal steps that keep these nearly constant."""
    solver = CheckedSolver(DEFAULT_SOLVER, program.sizes, stock)
    light = PROXIMAL_WEIGHT * np.diag(without_ties(program).P - program.P)
    eased, x = program._replace(P=program.P + np.diag(light)), np.zeros(program.q.size)
    for _ in range(PROXIMAL_STEPS):
        result = solver.solve(eased._replace(q=program.q - light * x))
        if result.status != SOLVED or np.max(light * np.abs(result.x - x), initial=0.0) < NEGLIGIBLE:
            break
        x = result.x
    return result


def _restored(problem: InputProblem, T: Array, x: Array, loss: Array) -> tuple[Array, Array]:
    """Satisfy the equations to rounding by the smallest change of free unknowns and losses; the inputs keep their
    limits.

    If floors were lowered to the border of feasibility, the active rows are almost dependent.
    """
    program, inputs = problem.program, len(problem.names)  # type: ignore[arg-type]
    error = program.b + T @ loss - program.A @ x
    if np.max(np.abs(error), initial=0.0) <= 1e-2 * NEGLIGIBLE:
        return x, loss
    columns = np.hstack((program.A[:, inputs:], -T))
    size = np.linalg.norm(columns, axis=0)
    size = np.where(size > 0.0, size, 1.0)
    change = np.linalg.lstsq(columns / size, error, rcond=1e-10)[0] / size
    free = x.size - inputs
    return x + np.concatenate((np.zeros(inputs), change[:free])), loss + change[free:]


def _with_losses(program: QuadraticProgram, T: Array, V: Array) -> QuadraticProgram:
    """The program with the losses t of tracking as additional unknowns; the objective contains only their squares."""
    n, p, r = program.sizes
    wide = n + V.size
    P, A, C = np.zeros((wide, wide)), np.empty((p, wide)), np.zeros((r, wide))
    np.fill_diagonal(P[n:, n:], (V / np.min(V, initial=np.inf)) ** 2)
    A[:, :n], A[:, n:], C[:, :n] = program.A, -T, program.C
    bounds = _wider(Bounds(program.x_low, program.x_high), V.size)
    return QuadraticProgram(P, np.zeros(wide), A, program.b, C, program.c_low, program.c_high, *bounds)


def _wider(bounds: Bounds, more: int) -> Bounds:
    """Bounds with additional unknowns that are unbounded."""
    return Bounds(
        np.concatenate((bounds.lower, np.full(more, -np.inf))), np.concatenate((bounds.upper, np.full(more, np.inf)))
    )


def _with_lowered_floors(problem: InputProblem, T: Array, V: Array, stock: SolverStock) -> QuadraticProgram | None:
    """The program with its floors lowered as little as possible, relative to their size; None without floors."""
    program, inputs = problem.program, len(problem.names)  # type: ignore[arg-type]
    n = program.q.size
    of_rows = problem.rows is not None and problem.rows.priority == "floor"
    of_free = problem.free is not None and problem.free.priority == "floor"
    r = program.c_low.size if of_rows else 0
    first = inputs if of_free else n  # first unknown with floors as bounds
    floors = Rows(
        np.vstack((program.C[:r], np.eye(n)[first:])),
        np.concatenate((program.c_low[:r], program.x_low[first:])),
        np.concatenate((program.c_high[:r], program.x_high[first:])),
    )
    count = floors.lower.size
    if count == 0:
        return None
    hard = _wider(Bounds(program.x_low[:first], program.x_high[:first]), n - first)
    tracking = _with_losses(
        program._replace(
            C=program.C[r:], c_low=program.c_low[r:], c_high=program.c_high[r:], x_low=hard.lower, x_high=hard.upper
        ), T, V,
    )  # fmt: skip
    wide, kept = tracking.q.size, tracking.c_low.size
    unit = _unit(floors.lower, floors.upper)
    C = np.zeros((kept + count, wide + count))
    C[:kept, :wide], C[kept:, :n], C[kept:, wide:] = tracking.C, floors.C, np.diag(unit)
    result = _settled(
        QuadraticProgram.of(
            Objective(np.diag(np.concatenate((np.zeros(wide), np.ones(count)))), np.zeros(wide + count)),
            Equations(np.hstack((tracking.A, np.zeros((tracking.b.size, count)))), tracking.b),
            Rows(C, np.concatenate((tracking.c_low, floors.lower)), np.concatenate((tracking.c_high, floors.upper))),
            _wider(Bounds(tracking.x_low, tracking.x_high), count),
        ),
        stock,
    )
    if result.status != SOLVED:
        return None
    by = result.x[wide:] * unit
    lower = floors.lower - np.maximum(by, 0.0) - 1e-10 * unit
    upper = floors.upper - np.minimum(by, 0.0) + 1e-10 * unit
    return program._replace(
        c_low=np.concatenate((lower[:r], program.c_low[r:])),
        c_high=np.concatenate((upper[:r], program.c_high[r:])),
        x_low=np.concatenate((program.x_low[:first], lower[r:])),
        x_high=np.concatenate((program.x_high[:first], upper[r:])),
    )


def _unit(lower: Array, upper: Array) -> Array:
    """Size of the bounds of each row; one if they are zero or infinite."""
    bounds = np.abs(np.stack((lower, upper)))
    size = np.max(np.where(np.isfinite(bounds), bounds, 0.0), axis=0)
    return np.where(size > 0.0, size, 1.0)


def _report(problem: InputProblem, x: Array, moved: Array, loss: Array) -> Answer:
    """Relaxed items at x, with right sides of the equations changed by `moved`, compared with the original problem."""
    program, inputs = problem.program, len(problem.names)  # type: ignore[arg-type]
    tracked = tuple(problem.tracked)  # type: ignore[arg-type]
    lost = zip(tracked, loss, strict=False)
    relaxed = [Relaxed("tracking", name, float(by)) for name, by in lost if abs(by) > NEGLIGIBLE]
    values = np.concatenate((program.C @ x, x[inputs:]))
    lower = np.concatenate((program.c_low, program.x_low[inputs:]))
    upper = np.concatenate((program.c_high, program.x_high[inputs:]))
    by = np.minimum(values - lower, 0.0) + np.maximum(values - upper, 0.0)
    missed = np.flatnonzero(np.abs(by) > NEGLIGIBLE * np.minimum(_unit(lower, upper), 1.0))
    names = (*problem.row_names, *problem.all_names[inputs:])
    broken = [Relaxed("floor", names[row], float(by[row])) for row in missed]
    fallback = "floor relaxed" if broken else "tracking relaxed"
    own = np.asarray(problem.tracking_directions) @ loss[: len(tracked)]
    left = program.A @ x - program.b - own
    if loss.size > len(tracked) and np.max(np.abs(left), initial=0.0) > NEGLIGIBLE:
        fallback = "equations relaxed"
        relaxed += [
            Relaxed("equations", f"equation {i + 1}", float(by)) for i, by in enumerate(left) if abs(by) > NEGLIGIBLE
        ]
    residual = float(np.max(np.abs(program.A @ x - program.b - moved), initial=0.0))
    return Answer(x, (*broken, *relaxed), fallback, residual)
