"""Relaxed priorities: what answers where a problem has no solution.

Tracking gives way first, as little as it can along its directions T,

    min 1/2 |V t|^2    s.t.    A x = b + T t,  floors and limits

and where that does not help either, the floors give way as little as they can first; limits never do. Where the
directions T cannot restore the equations within the limits, the equations themselves are met as well as they can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import InfeasibleControlError

from .active_set import ActiveSet
from .control_problem import InputProblem, Relaxed
from .quadratic_program import INFEASIBLE, SOLVED, QPResult, QuadraticProgram, Sizes, without_ties

Array = NDArray[np.float64]

STIFF = 1e3  # how much more an equation counts than tracking
NOTHING = 1e-9  # below which nothing was given up
SETTLINGS = 4


def clashing_names(problem: InputProblem, proof: QPResult) -> tuple[str, ...]:
    """Names of the rows that a certificate weighs, none without one; rounding weighs nothing."""
    if not proof.certified:
        return ()
    program = problem.program
    sizes = np.linalg.norm(program.C, axis=1)
    gives = np.asarray(problem.gives)
    rows, unknowns = np.abs(proof.z) * sizes, np.abs(proof.w)
    least = 1e-9 * max(np.max(rows, initial=0.0), np.max(unknowns, initial=0.0))
    names = [name for name, weight in zip(problem.all_names, unknowns, strict=True) if weight > least]
    names += [name for name, weight in zip(problem.row_names, rows, strict=True) if weight > least]
    pull, parts = np.abs(proof.y @ gives), np.abs(proof.y) @ np.abs(gives)
    least = 1e-9 * float(np.max(parts, initial=0.0))
    tracked: tuple[str, ...] = tuple(problem.tracked)  # type: ignore[arg-type]
    return (*names, *(name for name, weight in zip(tracked, pull, strict=True) if weight > least))


@dataclass(frozen=True, eq=False)
class Answer:
    """Unknowns x (n,) of a relaxed problem, what was given up, and the word for how."""

    x: Array
    relaxed: tuple[Relaxed, ...]
    fallback: str
    residual: float


def relax(problem: InputProblem) -> Answer:
    """The least relaxation of a problem that has no solution, in the order of the module.

    Raises:
        InfeasibleControlError: rows of priority "limit" contradict the limits of the inputs; names them.
    """
    program = problem.program
    size = np.linalg.norm(program.A, axis=1)
    every = np.hstack((np.asarray(problem.gives), np.diag(np.where(size > 0.0, size, 1.0))))
    stiff = np.concatenate((np.asarray(problem.tracking_weights), np.full(size.size, STIFF)))
    for gives, weights in ((np.asarray(problem.gives), np.asarray(problem.tracking_weights)), (every, stiff)):
        for soft in (False, True):
            bounded = _with_soft_floors(problem, gives, weights) if soft else program
            if bounded is None:
                continue
            given, x = _least_giving(bounded, gives, weights)
            if given is not None:
                x, given = _restored(problem, gives, x, given)
                return _report(problem, x, gives @ given, given)
    found = ActiveSet(Sizes(program.q.size, 0, program.c_low.size)).solve(
        program._replace(A=np.zeros((0, program.q.size)), b=np.zeros(0))
    )
    if found.status == INFEASIBLE:
        names = [
            name
            for name, force in zip((*problem.row_names, *problem.all_names), (*found.z, *found.w), strict=True)
            if force
        ]
        raise InfeasibleControlError(f"the limits {', '.join(names)} contradict each other; correct one of them.")
    return hold(problem)


def hold(problem: InputProblem) -> Answer:
    """The preferred inputs, within their limits; tracking gives way as it must."""
    program = problem.program
    free = () if problem.free is None else np.asarray(problem.free.preferred)
    x = np.clip(np.concatenate((np.asarray(problem.preferred), free)), program.x_low, program.x_high)
    error = program.A @ x - program.b
    given = np.linalg.lstsq(np.asarray(problem.gives), error, rcond=None)[0]
    return replace(_report(problem, x, np.asarray(problem.gives) @ given, given), fallback="held")


def _least_giving(program: QuadraticProgram, gives: Array, weights: Array) -> tuple[Array | None, Array]:
    """How far tracking gives way at least (t,), and the best unknowns then; None where that does not help."""
    n = program.q.size
    found = _settled(_widened(program, gives, weights))
    if found.status != SOLVED:
        return None, found.x
    x, given = found.x[:n], found.x[n:]
    # What is found is possible by definition, else rounding would forbid the second step on the edge of the possible.
    rows = program.C @ x
    low, high = np.minimum(program.c_low, rows), np.maximum(program.c_high, rows)
    best = ActiveSet(program.sizes).solve(program._replace(b=program.A @ x, c_low=low, c_high=high))
    return given, best.x if best.status == SOLVED else x


def _settled(program: QuadraticProgram) -> QPResult:
    """Solution of a program that leaves unknowns open, by steps in each of which these hardly leave their places."""
    solver, eased = ActiveSet(program.sizes), without_ties(program)
    light, x = np.diag(eased.P) - np.diag(program.P), np.zeros(program.q.size)
    for _ in range(SETTLINGS):
        found = solver.solve(eased._replace(q=program.q - light * x))
        if found.status != SOLVED or np.max(light * np.abs(found.x - x), initial=0.0) < NOTHING:
            break
        x = found.x
    return found


def _restored(problem: InputProblem, gives: Array, x: Array, given: Array) -> tuple[Array, Array]:
    """Equations met to rounding by the least change of free unknowns and tracking; the inputs keep their limits.

    Where floors were lowered to the very edge of what is possible, the rows that press are all but dependent.
    """
    program, inputs = problem.program, len(problem.names)  # type: ignore[arg-type]
    error = program.b + gives @ given - program.A @ x
    if np.max(np.abs(error), initial=0.0) <= 1e-3 * NOTHING:
        return x, given
    columns = np.hstack((program.A[:, inputs:], -gives))
    size = np.linalg.norm(columns, axis=0)
    size = np.where(size > 0.0, size, 1.0)
    change = np.linalg.lstsq(columns / size, error, rcond=1e-10)[0] / size
    free = x.size - inputs
    return x + np.concatenate((np.zeros(inputs), change[:free])), given + change[free:]


def _widened(program: QuadraticProgram, gives: Array, weights: Array) -> QuadraticProgram:
    """The program with the amounts by which tracking gives way as further unknowns, which alone count."""
    n, ways = program.q.size, weights.size
    return QuadraticProgram(
        np.diag(np.concatenate((np.zeros(n), (weights / np.min(weights, initial=np.inf)) ** 2))),
        np.zeros(n + ways),
        np.hstack((program.A, -gives)),
        program.b,
        np.hstack((program.C, np.zeros((program.c_low.size, ways)))),
        program.c_low,
        program.c_high,
        np.concatenate((program.x_low, np.full(ways, -np.inf))),
        np.concatenate((program.x_high, np.full(ways, np.inf))),
    )


def _with_soft_floors(problem: InputProblem, gives: Array, weights: Array) -> QuadraticProgram | None:
    """The program with its floors lowered as little as it takes, in parts of their size; None where none can be."""
    program, inputs = problem.program, len(problem.names)  # type: ignore[arg-type]
    n, r = program.q.size, program.c_low.size
    rows, low, high = [np.zeros((0, n))], [np.zeros(0)], [np.zeros(0)]
    soft_rows = problem.rows is not None and problem.rows.priority == "floor"
    soft_free = problem.free is not None and problem.free.priority == "floor"
    if soft_rows:
        rows, low, high = [program.C], [program.c_low], [program.c_high]
    if soft_free:
        rows, low, high = (
            [*rows, np.eye(n)[inputs:]],
            [*low, program.x_low[inputs:]],
            [*high, program.x_high[inputs:]],
        )
    floors, least, most = np.concatenate(rows), np.concatenate(low), np.concatenate(high)
    count = least.size
    if count == 0:
        return None
    hard = (
        program
        if not soft_free
        else program._replace(
            x_low=np.concatenate((program.x_low[:inputs], np.full(n - inputs, -np.inf))),
            x_high=np.concatenate((program.x_high[:inputs], np.full(n - inputs, np.inf))),
        )
    )
    if soft_rows:
        hard = hard._replace(C=np.zeros((0, n)), c_low=np.zeros(0), c_high=np.zeros(0))
    tracking = _widened(hard, gives, weights)
    wide = tracking.q.size
    unit = _unit(least, most)
    kept = tracking.c_low.size
    C = np.zeros((kept + count, wide + count))
    C[:kept, :wide], C[kept:, :n], C[kept:, wide:] = tracking.C, floors, np.diag(unit)
    soft = QuadraticProgram(
        np.diag(np.concatenate((np.zeros(wide), np.ones(count)))),
        np.zeros(wide + count),
        np.hstack((tracking.A, np.zeros((tracking.b.size, count)))),
        tracking.b,
        C,
        np.concatenate((tracking.c_low, least)),
        np.concatenate((tracking.c_high, most)),
        np.concatenate((tracking.x_low, np.full(count, -np.inf))),
        np.concatenate((tracking.x_high, np.full(count, np.inf))),
    )
    found, lowered = _settled(soft), program
    if found.status != SOLVED:
        return None
    by = found.x[wide:] * unit
    least, most = least - np.maximum(by, 0.0) - 1e-10 * unit, most - np.minimum(by, 0.0) + 1e-10 * unit
    if soft_rows:
        lowered = lowered._replace(c_low=least[:r], c_high=most[:r])
        least, most = least[r:], most[r:]
    if soft_free:
        lowered = lowered._replace(
            x_low=np.concatenate((program.x_low[:inputs], least)),
            x_high=np.concatenate((program.x_high[:inputs], most)),
        )
    return lowered


def _unit(least: Array, most: Array) -> Array:
    """Size of the bounds of each row; one where they are zero or infinite."""
    bounds = np.abs(np.stack((least, most)))
    size = np.max(np.where(np.isfinite(bounds), bounds, 0.0), axis=0)
    return np.where(size > 0.0, size, 1.0)


def _report(problem: InputProblem, x: Array, moved: Array, given: Array) -> Answer:
    """What is given up at x, compared with the problem as asked."""
    program, inputs = problem.program, len(problem.names)  # type: ignore[arg-type]
    tracked = tuple(problem.tracked)  # type: ignore[arg-type]
    lost = zip(tracked, given, strict=False)
    found = [Relaxed("tracking", name, float(by)) for name, by in lost if abs(by) > NOTHING]
    values = np.concatenate((program.C @ x, x[inputs:]))
    least = np.concatenate((program.c_low, program.x_low[inputs:]))
    most = np.concatenate((program.c_high, program.x_high[inputs:]))
    by = np.minimum(values - least, 0.0) + np.maximum(values - most, 0.0)
    missed = np.flatnonzero(np.abs(by) > NOTHING * np.minimum(_unit(least, most), 1.0))
    names = (*problem.row_names, *problem.all_names[inputs:])
    broken = [Relaxed("floor", names[row], float(by[row])) for row in missed]
    fallback = "floor relaxed" if broken else "tracking relaxed"
    own = np.asarray(problem.gives) @ given[: len(tracked)]
    left = program.A @ x - program.b - own
    if given.size > len(tracked) and np.max(np.abs(left), initial=0.0) > NOTHING:
        fallback = "equations relaxed"
        found += [
            Relaxed("equations", f"equation {i + 1}", float(by)) for i, by in enumerate(left) if abs(by) > NOTHING
        ]
    residual = float(np.max(np.abs(program.A @ x - program.b - moved), initial=0.0))
    return Answer(x, (*broken, *found), fallback, residual)
