"""A motion of an elastic mechanism whose output follows a path, planned over its whole length at once.

The guess is the way through shapes at rest: it has the output on the path and every cable tight, but leaves out the
inertia. Around it the dynamics are linear, x_k+1 = A x_k + B n_k + d with d what the guess misses, and

    min  sum |(J x + e) / p|^2 + |x / s|^2 + |n / r|^2

over deviations x of the state and n of the inputs has one answer, by a Riccati sweep back in time and a sweep forth
(e: what the output of the guess misses; p, s, r: `TaskWeights`). Taken as the next guess it converges like Newton's
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

from .joint_plan import plan_path
from .joint_shapes import JointShapes
from .task_model import TaskModel

Array = NDArray[np.float64]
Path = Callable[[float], Array]

SHAPE_SPACING = 0.1
"""s between two shapes at rest along the way."""


@dataclass(frozen=True)
class TaskWeights:
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
            if not (np.isfinite(value) and value > 0.0):
                raise TensegrityError(f"weight {name} is {value}; give a deviation above zero.")


@dataclass(frozen=True, eq=False)
class TaskPlan:
    """A motion on a grid of times, with its feedback.

    Attributes:
        times: (k,) s. states: (k, 2n) w and w'. inputs: (k, u), held until the next time. gains: (k, u, 2n).
        position: (nq,) at the start. miss: m, largest distance of the planned output from the path.
        defect: largest jump between two pieces of the planned motion [rad, m, and per s].
    """

    times: Array
    states: Array
    inputs: Array
    gains: Array
    position: Array
    miss: float
    defect: float


def plan_task(
    model: TaskModel, path: Path, duration: float, period: float, *, weights: TaskWeights | None = None, sweeps: int = 2
) -> TaskPlan:
    """Plan a motion whose output follows a path from rest to rest.

    Args:
        path: the output's controlled coordinates (k,) m over time [s], at rest at 0 and at the end.
        duration: s. period: s, over which inputs are held.
        sweeps: Newton steps after the guess; the plan's `defect` tells what they leave.

    Raises:
        UnreachableGoalError: a place of the path has no shape at rest within the limits.
        InfeasibleControlError: the plan needs more than an actuator's effort; it is named.
        TensegrityError: numbers are out of range, or the coordinates stop being independent on the way.
    """
    if not (np.isfinite(duration) and np.isfinite(period) and 0.0 < 10.0 * period <= duration):
        raise TensegrityError(f"a path of {duration} s needs a control period above 0 and at most a tenth of it.")
    scale = weights or TaskWeights()
    count = round(duration / period) + 1
    times: Array = np.asarray(period * np.arange(count), dtype=np.float64)
    start, states, inputs = _guess(model, path, times)
    wanted = np.array([path(float(time)) for time in times])
    state_cost = np.diag(np.concatenate((
        np.full(model.index.size, scale.position**-2.0), np.full(model.index.size, scale.rate**-2.0)
    )))  # fmt: skip
    effort_cost = np.eye(inputs.shape[1]) / scale.effort**2
    gains = np.zeros((count, inputs.shape[1], states.shape[1]))
    for _ in range(sweeps):
        pieces = _pieces(model, start, states, inputs, wanted, period)
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
    q, miss, defect = start, 0.0, float(np.max(np.abs(_last_defect(model, start, states, inputs, period))))
    for k in range(count):
        q = model.place(q, states[k, : model.index.size])
        miss = max(miss, float(np.linalg.norm(model.output_place(q) - wanted[k])))
    first = model.place(start, states[0, : model.index.size])
    return TaskPlan(times, states, inputs, gains, first, miss, defect)


@dataclass(frozen=True, eq=False)
class _Pieces:
    """x_k+1 = ahead x + push n + defect, output J x + error, by time."""

    ahead: list[Array]
    push: list[Array]
    defect: list[Array]
    jacobian: list[Array]
    error: list[Array]


def _guess(model: TaskModel, path: Path, times: Array) -> tuple[Array, Array, Array]:
    """Position at the start, states (k, 2n) and inputs (k, u) of the way through shapes at rest."""
    shapes = JointShapes(model.robot)
    knots = max(7, int(np.ceil(times[-1] / SHAPE_SPACING)) + 1)
    instants = np.linspace(0.0, times[-1], knots)
    shape, rows, efforts, start = shapes.home, [], [], None
    rest = np.array(shapes.home.pose[0])
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


def _piece(matrix: Array, inputs: Array, rate: Array, acceleration: Array, period: float) -> tuple[Array, Array, Array]:
    """Exact discrete form of a piece with steady input: A, B, and how far the state itself moves."""
    size, drives = inputs.shape
    block = np.zeros((size + drives + 1, size + drives + 1))
    block[:size, :size], block[:size, size : size + drives] = matrix, inputs
    block[:size, -1] = np.concatenate((rate, acceleration))
    step = expm(period * block)
    return step[:size, :size], step[:size, size : size + drives], step[:size, -1]


def _pieces(model: TaskModel, start: Array, states: Array, inputs: Array, wanted: Array, period: float) -> _Pieces:
    count, size = states.shape[0], model.index.size
    pieces, q = _Pieces([], [], [], [], []), start
    for k in range(count):
        q = model.place(q, states[k, :size])
        matrix, push, acceleration = model.linearised(q, states[k, size:], inputs[k])
        jacobian = model.output_jacobian(q)
        pieces.jacobian.append(np.hstack((jacobian, np.zeros_like(jacobian))))
        pieces.error.append(model.output_place(q) - wanted[k])
        if k < count - 1:
            ahead, moved, drift = _piece(matrix, push, states[k, size:], acceleration, period)
            pieces.ahead.append(ahead)
            pieces.push.append(moved)
            pieces.defect.append(states[k] + drift - states[k + 1])
    return pieces


def _riccati(pieces: _Pieces, state_cost: Array, effort_cost: Array, output: float, gains: Array) -> list[Array]:
    """Fill gains (k, u, 2n); returns the open-loop parts (u,) of the changes. Beyond the end all stays as there."""
    count = len(pieces.jacobian)
    last = pieces.jacobian[-1].T @ pieces.jacobian[-1] / output**2 + state_cost
    value = solve_discrete_are(pieces.ahead[-1], pieces.push[-1], last, effort_cost)
    slope = pieces.jacobian[-1].T @ pieces.error[-1] / output**2
    ahead, push = pieces.ahead[-1], pieces.push[-1]
    gains[-1] = np.linalg.solve(effort_cost + push.T @ value @ push, push.T @ value @ ahead)
    steps = [np.zeros(push.shape[1])] * count
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


def _last_defect(model: TaskModel, start: Array, states: Array, inputs: Array, period: float) -> Array:
    """Jumps that the plan still has, seen at a hundred of its pieces."""
    size, q, jumps = model.index.size, start, []
    for k in range(0, len(states) - 1, max(1, len(states) // 100)):
        q = model.place(q, states[k, :size])
        matrix, push, acceleration = model.linearised(q, states[k, size:], inputs[k])
        jumps.append(states[k] + _piece(matrix, push, states[k, size:], acceleration, period)[2] - states[k + 1])
    return np.array(jumps)
