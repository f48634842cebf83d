"""The control problem: which inputs give the desired accelerations, with strains and free accelerations unknown too.

    min  1/2 |W (u - u_0)|^2 + 1/2 |V (y - y_0)|^2 + sum of tasks 1/2 |J x - r|^2        x = (u, y)
    s.t. A u + F y = b      d_low <= C x <= d_high      u_min <= u <= u_max      y_min <= y <= y_max

(000 (2.2.4)-(2.2.5); with the changes of strain and the free accelerations among the unknowns (3.2.5)-(3.2.8) and
(5.4.2)-(5.4.5).) Each row has a name and a priority: "limit" is never broken, "floor" yields before a limit does;
tracking yields first, along the directions T: A u + F y = b + T t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.numerics.number_array import number_array
from tensegrity_dynamics.numerics.short_repr import ShortRepr
from tensegrity_dynamics.numerics.types import Array

from .quadratic_program import SOLVED, QuadraticProgram

PRIORITIES = ("limit", "floor")


@dataclass(frozen=True, eq=False)
class FreeUnknowns:
    """Unknowns in addition to the inputs: changes of strain, accelerations that are not tracked.

    Attributes:
        matrix: (p, f) F.
        weights: (f,) or (k, f) V; zero where None.
        preferred: (f,) y_0; zero where None.
        lower, upper: (f,) bounds; infinite where None.
        names: f names. priority: of the bounds, "floor" or "limit".

    Raises:
        TensegrityError: wrong shapes, NaN. InfeasibleControlError: a lower bound above its upper one.
    """

    matrix: ArrayLike
    weights: ArrayLike | None = None
    preferred: ArrayLike | None = None
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    names: Sequence[str] | None = None
    priority: str = "floor"

    def __post_init__(self) -> None:
        matrix = _matrix(self.matrix, "matrix of the free unknowns")
        count = matrix.shape[1]
        names = _names(self.names, count, "free")
        lower, upper = _bounds(self.lower, self.upper, names, "free unknown")
        weights = np.zeros(count) if self.weights is None else _weights(self.weights, count, "weights of free unknowns")
        preferred = (
            np.zeros(count) if self.preferred is None else _vector(self.preferred, count, "preferred free values")
        )
        _put(self, matrix=matrix, weights=weights, preferred=preferred, lower=lower, upper=upper, names=names)
        _check_priority(self.priority)


@dataclass(frozen=True, eq=False)
class Inequalities:
    """Rows d_low <= C x <= d_high over all unknowns, such as strain floors.

    Attributes:
        matrix: (r, m + f) C.
        lower, upper: (r,) bounds; infinite where None.
        names: r names, such as those of tendons. priority: "floor" or "limit".

    Raises:
        TensegrityError: wrong shapes, NaN. InfeasibleControlError: a lower bound above its upper one.
    """

    matrix: ArrayLike
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    names: Sequence[str] | None = None
    priority: str = "floor"

    def __post_init__(self) -> None:
        matrix = _matrix(self.matrix, "matrix of the inequalities")
        names = _names(self.names, matrix.shape[0], "row")
        lower, upper = _bounds(self.lower, self.upper, names, "inequality")
        _put(self, matrix=matrix, lower=lower, upper=upper, names=names)
        _check_priority(self.priority)


@dataclass(frozen=True, eq=False)
class Task:
    """A term of the objective: 1/2 |J x - r|^2 with J (k, m + f) and r (k,), weighted beforehand."""

    matrix: ArrayLike
    target: ArrayLike

    def __post_init__(self) -> None:
        matrix = _matrix(self.matrix, "matrix of a task")
        _put(self, matrix=matrix, target=_vector(self.target, matrix.shape[0], "target of a task"))


@dataclass(frozen=True, eq=False)
class InputProblem:
    """Input optimisation problem of one control step; see the module.

    Attributes:
        matrix: (p, m) A. target: (p,) b.
        lower, upper: (m,) limits of the inputs; infinite where None.
        weights: (m,) or (k, m) W; ones where None. preferred: (m,) u_0; zero where None.
        free: the other unknowns, or None. rows: inequalities, or None. tasks: further soft objectives.
        names: m names of the inputs.
        tracking_directions: (p, t) T, in which tracking is given up; each equation by itself where None.
        tracked: t names of them. tracking_weights: (t,) how much yielding counts in each, in the inverse of its unit.

    Raises:
        TensegrityError: wrong shapes or values that are not finite; says which.
        InfeasibleControlError: a lower limit above its upper one; names the input.
    """

    matrix: ArrayLike
    target: ArrayLike
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    weights: ArrayLike | None = None
    preferred: ArrayLike | None = None
    free: FreeUnknowns | None = None
    rows: Inequalities | None = None
    tasks: Sequence[Task] = ()
    names: Sequence[str] | None = None
    tracking_directions: ArrayLike | None = None
    tracked: Sequence[str] | None = None
    tracking_weights: ArrayLike | None = None
    program: QuadraticProgram = field(init=False, repr=False)

    def __post_init__(self) -> None:
        matrix = _matrix(self.matrix, "matrix of the inputs")
        equalities, inputs = matrix.shape
        names = _names(self.names, inputs, "input")
        lower, upper = _bounds(self.lower, self.upper, names, "input")
        weights = np.ones(inputs) if self.weights is None else _weights(self.weights, inputs, "weights of the inputs")
        preferred = np.zeros(inputs) if self.preferred is None else _vector(self.preferred, inputs, "preferred inputs")
        directions = (
            np.eye(equalities)
            if self.tracking_directions is None
            else _matrix(self.tracking_directions, "directions of tracking")
        )
        count = directions.shape[1]
        tracking = (
            np.ones(count)
            if self.tracking_weights is None
            else _vector(self.tracking_weights, count, "weights of tracking")
        )
        if directions.shape[0] != equalities or not np.all(tracking > 0.0):
            raise TensegrityError(f"directions of tracking need {equalities} rows and weights above zero.")
        _put(self, matrix=matrix, target=_vector(self.target, equalities, "target"), lower=lower, upper=upper)
        _put(self, weights=weights, preferred=preferred, names=names)
        _put(self, tracking_directions=directions, tracking_weights=tracking)
        _put(self, tracked=_names(self.tracked, count, "tracked"), program=_program(self))

    @property
    def all_names(self) -> tuple[str, ...]:
        """Names of all unknowns, inputs first."""
        return (*self.names, *(self.free.names if self.free else ()))  # type: ignore[misc]

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the inequalities."""
        return tuple(self.rows.names) if self.rows else ()  # type: ignore[arg-type]


@dataclass(frozen=True)
class Relaxed:
    """One thing that a solution gives up: "tracking", "floor" or "equations", of which name, by how much (signed)."""

    what: str
    name: str
    amount: float


class Multipliers(NamedTuple):
    """Forces of the conditions; positive where a lower bound presses, negative where an upper one does."""

    equalities: Array
    rows: Array
    inputs: Array
    free: Array


@dataclass(frozen=True, eq=False, repr=False)
class InputSolution(ShortRepr):
    """Solution of an `InputProblem`: inputs, status, and relaxed constraints.

    Attributes:
        status: of the problem as asked: "solved", "infeasible", "iteration limit" or "numerical".
        inputs: (m,), always within their limits. free: (f,).
        multipliers: of the problem as asked; zero where it was not solved.
        residual: largest error of the equations, after what is reported as relaxed.
        relaxed: names of the relaxed constraints; empty for "solved".
        clashing: names of conflicting constraints, for "infeasible" only. Without any one of them there is no conflict.
        fallback: how the answer was found: "" for the solver asked for, else "second solver", "tracking relaxed",
            "floor relaxed", "equations relaxed" or "held".
        iterations: of the solver. objective: value without constants.
        tie_broken: the problem leaves the inputs open; these are the smallest.
    """

    status: str
    inputs: Array
    free: Array
    multipliers: Multipliers
    residual: float
    relaxed: tuple[Relaxed, ...] = ()
    clashing: tuple[str, ...] = ()
    fallback: str = ""
    iterations: int = 0
    objective: float = 0.0
    tie_broken: bool = False

    def describe(self) -> str:
        """One sentence for a log or a diagnostic."""
        if self.status == SOLVED and not self.fallback:
            return f"solved in {self.iterations} iterations, residual {self.residual:.1e}"
        text = f"{self.status}: {', '.join(self.clashing)} clash" if self.clashing else self.status
        given = ", ".join(f"{one.what} of {one.name} by {one.amount:.4g}" for one in self.relaxed)
        return f"{text}; answered by: {self.fallback}" + (f" ({given})" if given else "")


def _program(problem: InputProblem) -> QuadraticProgram:
    """The arrays of a problem whose fields have been checked one by one."""
    A, free, rows = np.asarray(problem.matrix), problem.free, problem.rows
    m = A.shape[1]
    lower, upper = np.asarray(problem.lower), np.asarray(problem.upper)
    blocks = [(np.asarray(problem.weights), np.asarray(problem.preferred), 0)]
    if free is not None:
        if np.shape(free.matrix)[0] != A.shape[0]:
            raise TensegrityError(f"the free unknowns enter {np.shape(free.matrix)[0]} equations of {A.shape[0]}.")
        A = np.hstack((A, np.asarray(free.matrix)))
        lower, upper = np.concatenate((lower, free.lower)), np.concatenate((upper, free.upper))  # type: ignore[arg-type]
        blocks.append((np.asarray(free.weights), np.asarray(free.preferred), m))
    n = A.shape[1]
    P, q = np.zeros((n, n)), np.zeros(n)
    for weights, preferred, at in blocks:
        size = preferred.size
        if weights.ndim == 1:
            P[range(at, at + size), range(at, at + size)] = weights * weights
            q[at : at + size] = -weights * weights * preferred
        else:
            square = weights.T @ weights
            P[at : at + size, at : at + size] = square
            q[at : at + size] = -square @ preferred
    for task in problem.tasks:
        J = np.asarray(task.matrix)
        if J.shape[1] != n:
            raise TensegrityError(f"a task has {J.shape[1]} columns; there are {n} unknowns.")
        P += J.T @ J
        q -= J.T @ np.asarray(task.target)
    C, low, high = np.zeros((0, n)), np.zeros(0), np.zeros(0)
    if rows is not None:
        C, low, high = np.asarray(rows.matrix), np.asarray(rows.lower), np.asarray(rows.upper)
        if C.shape[1] != n:
            raise TensegrityError(f"the inequalities have {C.shape[1]} columns; there are {n} unknowns.")
    contiguous = np.ascontiguousarray
    return QuadraticProgram(
        P, q, contiguous(A), np.asarray(problem.target), contiguous(C), low, high, contiguous(lower), contiguous(upper)
    )


def _put(frozen: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def _matrix(given: ArrayLike, what: str) -> Array:
    array = number_array(given, f"the {what}")
    if array.ndim != 2 or not np.isfinite(array).all():
        raise TensegrityError(f"the {what} must be a finite array of two dimensions; found shape {array.shape}.")
    return array


def _vector(given: ArrayLike, size: int, what: str) -> Array:
    array = number_array(given, f"the {what}")
    if array.shape != (size,):
        raise TensegrityError(f"the {what} must have shape ({size},); found {array.shape}.")
    if not np.isfinite(array).all():
        raise TensegrityError(f"the {what} must be finite; entry {int(np.argmin(np.isfinite(array)))} is not.")
    return array


def _weights(given: ArrayLike, size: int, what: str) -> Array:
    array = number_array(given, f"the {what}")
    if array.ndim not in (1, 2) or array.shape[-1] != size or not np.isfinite(array).all():
        raise TensegrityError(f"the {what} must be finite with shape ({size},) or (k, {size}); found {array.shape}.")
    return array


def _names(given: Sequence[str] | None, size: int, what: str) -> tuple[str, ...]:
    if given is None:
        return tuple(f"{what} {i + 1}" for i in range(size))
    if len(given) != size:
        raise TensegrityError(f"{len(given)} names given for {size} of kind {what!r}; give one each.")
    return tuple(given)


def _bounds(lower: ArrayLike | None, upper: ArrayLike | None, names: Sequence[str], what: str) -> tuple[Array, Array]:
    size = len(names)
    low = np.full(size, -np.inf) if lower is None else number_array(lower, "lower limits")
    high = np.full(size, np.inf) if upper is None else number_array(upper, "upper limits")
    if low.shape != (size,) or high.shape != (size,):
        raise TensegrityError(f"bounds of each {what} must have shape ({size},); found {low.shape} and {high.shape}.")
    possible = (low <= high) & (low < np.inf) & (high > -np.inf)
    if not possible.all():
        i = int(np.argmin(possible))
        if np.isnan(low[i]) or np.isnan(high[i]):
            raise TensegrityError(f"a bound of {what} {names[i]!r} is NaN; give a number or infinity.")
        raise InfeasibleControlError(
            f"{what} {names[i]!r} must be at least {low[i]:g} and at most {high[i]:g}, which nothing is; "
            "correct its limits."
        )
    return low, high


def _check_priority(priority: str) -> None:
    if priority not in PRIORITIES:
        raise TensegrityError(f"priority {priority!r} does not exist; give one of {', '.join(PRIORITIES)}.")
