"""A motion of an elastic mechanism whose output follows a path, planned over its whole length at once.

The guess is the way through shapes at rest: it has the output on the path and every cable tight, but leaves out the
inertia. Around it the dynamics are linear, x_k+1 = A x_k + B n_k + d with d what the guess misses, and

    min  sum |(J x + e) / p|^2 + |x / s|^2 + |n / r|^2

over deviations x of the state and n of the inputs has one answer, by a Riccati sweep back in time and a sweep forth
(e: what the output of the guess misses; p, s, r: `OutputWeights`). Taken as the next guess it converges like Newton's
method. Free motions need no task of their own: they cost as any deviation does, and singular places need no care,
because nothing is inverted. The gains of the last sweep are the feedback that belongs to the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline
from scipy.linalg import expm, solve_discrete_are

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError

from ..inverse_kinematics.mechanism_equilibria import PathEquilibrium, PathEquilibriumSolver
from ..inverse_kinematics.mechanism_ik import plan_path
from .output_model import OutputModel
from .trajectory_tracking import TrackingPlan

Array = NDArray[np.float64]
Path = Callable[[float], Array]

SHAPE_SPACING = 0.1
"""s between two shapes at rest along the way."""
LINEARISED = 0.02
"""s between two linearisations along the way."""
SEEN = 30
"""Pieces of a plan that are looked at for its defect."""


@dataclass(frozen=True)
class OutputWeights:
    """Deviations that count alike.

    Args:
        output: m, of the output from its path. position: rad or m, of coordinates from the shapes at rest. rate: per s
            of the same. effort: N m or N, of the inputs.
    """

    output: float = 1e-5
    position: float = 3e-2
    rate: float = 1.0
    effort: float = 0.1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 1e-9 <= value <= 1e9:
                raise TensegrityError(f"weight {name} is {value}; give a deviation above zero, from 1e-9 to 1e9.")


@dataclass(frozen=True, eq=False)
class OutputPlan(TrackingPlan):
    """A motion whose output follows a path.

    Attributes:
        miss: m, largest distance of the planned output from the path.
        defect: largest jump between two pieces of the planned motion [rad, m, and per s].
    """

    miss: float
    defect: float


def plan_output(
    model: OutputModel,
    path: Path,
    duration: float,
    period: float,
    *,
    weights: OutputWeights | None = None,
    sweeps: int = 2,
    start: PathEquilibrium | None = None,
    shapes: PathEquilibriumSolver | None = None,
) -> OutputPlan:
    """Plan a motion whose output follows a path from rest to rest.

    Args:
        path: the output's controlled coordinates (k,) m over time [s], at rest at 0 and at the end.
        duration: s. period: s, over which inputs are held.
        sweeps: Newton steps after the guess; the plan's `defect` tells what they leave.
        start: shape at rest from which the motion begins; None for the one at the path's start that is nearest to
            that at home. shapes: of the robot, where they are at hand.

    Raises:
        UnreachableGoalError: a place of the path has no shape at rest within the limits.
        InfeasibleControlError: the plan needs more than an actuator's effort; it is named.
        TensegrityError: numbers are out of range, or the coordinates stop being independent on the way.
    """
    if not (np.isfinite(duration) and np.isfinite(period) and 0.0 < 10.0 * period <= duration):
        raise TensegrityError(f"a path of {duration} s needs a control period above 0 and at most a tenth of it.")
    scale = weights or OutputWeights()
    count = round(duration / period) + 1
    times: Array = np.asarray(period * np.arange(count), dtype=np.float64)
    shapes = shapes or PathEquilibriumSolver(model.robot)
    first, states, inputs = _guess(model, path, times, shapes, start or shapes.home)
    rest_places, rest_inputs = states[:, : model.index.size].copy(), inputs.copy()
    wanted = np.array([path(float(time)) for time in times])
    state_cost, effort_cost = _costs(scale, model.index.size, inputs.shape[1])
    gains = np.zeros((count, inputs.shape[1], states.shape[1]))
    for _ in range(sweeps):
        pieces = _pieces(model, first, states, inputs, wanted, period)
        steps = _riccati(pieces, state_cost, effort_cost, scale.output, gains)
        deviation = np.zeros(states.shape[1])
        for k in range(count):
            change = -steps[k] - gains[k] @ deviation
            states[k] += deviation
            inputs[k] += change
            if k < count - 1:
                deviation = pieces.ahead[k] @ deviation + pieces.push[k] @ change + pieces.defect[k]
    worst = np.max(np.abs(inputs), axis=0)
    for each, used in zip(model.robot.actuators, worst, strict=True):
        if used > each.effort:
            raise InfeasibleControlError(
                f"the path needs {used:.3g} {each.units[2]} of {each.name}, above its limit of {each.effort:.3g}; take "
                "more time for it."
            )
    q, miss = first, 0.0
    positions = np.zeros((count, q.size))
    for k in range(count):
        q = positions[k] = model.closed_configuration(q, states[k, : model.index.size])
        miss = max(miss, float(np.linalg.norm(model.output_place(q) - wanted[k])))
    defect = float(np.max(np.abs(_last_defect(model, positions, states, inputs, period))))
    return OutputPlan(times, states, inputs, gains, rest_places, rest_inputs, positions, miss, defect)


def rest_gain(model: OutputModel, q: Array, effort: Array, weights: OutputWeights, period: float) -> Array:
    """(u, 2n) feedback that holds a shape at rest, for inputs held over `period` s."""
    count = model.index.size
    matrix, push, _ = model.linearised(q, np.zeros(count), effort)
    ahead, moved, _ = _piece(matrix, push, period)
    jacobian = np.hstack((model.output_jacobian(q), np.zeros((model.rows.size, count))))
    state_cost, effort_cost = _costs(weights, count, push.shape[1])
    return _steady(ahead, moved, jacobian.T @ jacobian / weights.output**2 + state_cost, effort_cost)[1]


def _costs(weights: OutputWeights, count: int, inputs: int) -> tuple[Array, Array]:
    """What deviations of state and inputs cost, as matrices."""
    scale = np.concatenate((np.full(count, weights.position), np.full(count, weights.rate)))
    return np.diag(scale**-2.0), np.eye(inputs) / weights.effort**2


def _steady(ahead: Array, push: Array, state_cost: Array, effort_cost: Array) -> tuple[Array, Array]:
    """Value (2n, 2n) and gain (u, 2n) where all stays as it is."""
    try:
        value = solve_discrete_are(ahead, push, state_cost, effort_cost)
    except (ValueError, ArithmeticError) as error:  # of numpy and scipy, LinAlgError among them
        raise InfeasibleControlError(f"no regulator has these weights ({error}); take less extreme ones.") from error
    return value, np.linalg.solve(effort_cost + push.T @ value @ push, push.T @ value @ ahead)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """x_k+1 = ahead x + push n + defect, output J x + error, by time."""

    ahead: list[Array]
    push: list[Array]
    defect: list[Array]
    jacobian: list[Array]
    error: list[Array]


def _guess(
    model: OutputModel, path: Path, times: Array, shapes: PathEquilibriumSolver, shape: PathEquilibrium
) -> tuple[Array, Array, Array]:
    """Position at the start, states (k, 2n) and inputs (k, u) of the way through shapes at rest."""
    knots = max(7, int(np.ceil(times[-1] / SHAPE_SPACING)) + 1)
    instants = np.linspace(0.0, times[-1], knots)
    rows, efforts, start = [], [], None
    rest = np.array(shape.pose[0])
    for time in instants:
        goal = rest.copy()
        goal[model.rows] = path(float(time))
        shape = plan_path(shapes, shape, goal, None)[-1]
        start = shape.shape.q if start is None else start
        rows.append(shape.shape.q[model.q_index])
        efforts.append(shape.shape.effort[model.drives])
    assert start is not None
    curve = make_interp_spline(instants, np.array(rows), k=5)
    states = np.hstack((curve(times), curve(times, 1)))
    return start, states, np.array(make_interp_spline(instants, np.array(efforts), k=5)(times))


def _piece(matrix: Array, inputs: Array, period: float) -> tuple[Array, Array, Array]:
    """Exact discrete form of a piece with steady input: A, B, and C, with x + C (w', w'') where the state goes."""
    size, drives = inputs.shape
    block = np.zeros((2 * size + drives, 2 * size + drives))
    block[:size, :size], block[:size, size : size + drives], block[:size, size + drives :] = (
        matrix,
        inputs,
        np.eye(size),
    )
    step = expm(period * block)
    return step[:size, :size], step[:size, size : size + drives], step[:size, size + drives :]


def _pieces(model: OutputModel, start: Array, states: Array, inputs: Array, wanted: Array, period: float) -> _Pieces:
    """Where the states really go is computed for every piece; how deviations grow, at knots and linear in between."""
    count, size = states.shape[0], model.index.size
    every = max(1, round(LINEARISED / period))
    knots = np.unique(np.append(np.arange(0, count, every), count - 1))
    pieces, q = _Pieces([], [], [], [], []), start
    found: list[tuple[Array, ...]] = []
    moved: list[Array] = []
    for k in range(count):
        q = model.closed_configuration(q, states[k, :size])
        pieces.error.append(model.output_place(q) - wanted[k])
        moved.append(np.concatenate((states[k, size:], model.accelerations(q, states[k, size:], inputs[k]))))
        if k == knots[len(found)]:
            matrix, push, _ = model.linearised(q, states[k, size:], inputs[k])
            jacobian = model.output_jacobian(q)
            found.append((*_piece(matrix, push, period), np.hstack((jacobian, np.zeros_like(jacobian)))))
    for k in range(count):
        low = min(max(int(np.searchsorted(knots, k, side="right")) - 1, 0), max(len(knots) - 2, 0))
        high = min(low + 1, len(knots) - 1)
        share = (k - knots[low]) / max(1, knots[high] - knots[low])
        ahead, push, drift, jacobian = (
            (1.0 - share) * a + share * b for a, b in zip(found[low], found[high], strict=True)
        )
        pieces.jacobian.append(jacobian)
        if k < count - 1:
            pieces.ahead.append(ahead)
            pieces.push.append(push)
            pieces.defect.append(states[k] + drift @ moved[k] - states[k + 1])
    return pieces


def _riccati(pieces: _Pieces, state_cost: Array, effort_cost: Array, output: float, gains: Array) -> list[Array]:
    """Fill gains (k, u, 2n); returns the open-loop parts (u,) of the changes. Beyond the end all stays as there."""
    count = len(pieces.jacobian)
    last = pieces.jacobian[-1].T @ pieces.jacobian[-1] / output**2 + state_cost
    value, gains[-1] = _steady(pieces.ahead[-1], pieces.push[-1], last, effort_cost)
    slope = pieces.jacobian[-1].T @ pieces.error[-1] / output**2
    steps = [np.zeros(effort_cost.shape[0])] * count
    for k in range(count - 2, -1, -1):
        ahead, push = pieces.ahead[k], pieces.push[k]
        pulled = slope + value @ pieces.defect[k]
        curvature = effort_cost + push.T @ value @ push
        both = np.linalg.solve(curvature, np.column_stack((push.T @ value @ ahead, push.T @ pulled)))
        gains[k], steps[k] = both[:, :-1], both[:, -1]
        jacobian = pieces.jacobian[k]
        slope = jacobian.T @ pieces.error[k] / output**2 + ahead.T @ (pulled - value @ (push @ steps[k]))
        value = jacobian.T @ jacobian / output**2 + state_cost + ahead.T @ value @ (ahead - push @ gains[k])
        value = 0.5 * (value + value.T)
    return steps


def _last_defect(model: OutputModel, positions: Array, states: Array, inputs: Array, period: float) -> Array:
    """Jumps that the plan still has, seen at some of its pieces."""
    size, jumps = model.index.size, []
    for k in range(0, len(states) - 1, max(1, len(states) // SEEN)):
        matrix, push, acceleration = model.linearised(positions[k], states[k, size:], inputs[k])
        drift = _piece(matrix, push, period)[2] @ np.concatenate((states[k, size:], acceleration))
        jumps.append(states[k] + drift - states[k + 1])
    return np.array(jumps)
