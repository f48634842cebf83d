"""A motion of an elastic mechanism whose output follows a path, planned over its whole length at once.

The guess is the path of equilibria: it has the output on the path and every cable tight, but leaves out the
inertia. Around it the dynamics are linear, x_k+1 = A x_k + B n_k + d with d what the guess misses, and

    min  sum |(J x + e) / p|^2 + |x / s|^2 + |n / r|^2

over deviations x of the state and n of the inputs has one answer, by a Riccati sweep back in time and a sweep forth
(e: what the output of the guess misses; p, s, r: `OutputWeights`). Taken as the next guess it converges like Newton's
method. Free motions need no task of their own: they cost as any deviation does, and singular configurations need no
care, because nothing is inverted. The gains of the last sweep are the feedback that belongs to the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import MovingStates
from tensegrity_dynamics.numerics.short_repr import ShortRepr
from tensegrity_dynamics.numerics.types import Array

from ..cancellation import checkpoint
from ..inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap, PathEquilibrium
from ..inverse_kinematics.pose_goal import PoseGoal
from ..inverse_kinematics.solve_ik import plan_path
from .lqr import LinearPieces, RiccatiSweep, discretized, discretized_with_drift, regulator
from .output_model import OutputModel
from .trajectory_tracking import TrackingPlan

Path = Callable[[Any], Array]

EQUILIBRIUM_SPACING = 0.1
"""s between two equilibria along a path; shorter makes the guess better and takes more time."""
LINE_SPACING = 0.02
"""m between two equilibria along a straight line of the output, of which there are at least MIN_PIECES pieces."""
LINE_TURN = 0.05
"""rad, the same of turns."""
MIN_PIECES = 3
GUESS_MISS = 1e-5
"""m and rad that interpolated equilibria may be off the line between two; else they are taken twice as dense."""
MOST_PIECES = 64
LINEARIZATION_SPACING, LINEARIZATIONS = 0.12, 8
"""s between two linearizations along the path, and at least how many pieces that makes; twice as many are taken until
what they leave between them is `LEFT`."""
LEFT = 1e-5
"""rad, m and per s of a defect that interpolated matrices may leave."""
DEFECT_SAMPLES = 4
"""Pieces of a plan that are looked at for what its interpolated matrices leave."""
MAX_SWEEPS = 5
"""Newton steps. From the second on matrices stay as long as each step leaves less than SLOW of the defect before."""
SLOW = 0.2
SETTLED = 1e-7
"""rad, m and per s of a defect that counts as none."""


@dataclass(frozen=True)
class OutputWeights:
    """Scales of the quadratic cost (Bryson's rule): deviations that cost the same. Turning one up tolerates more of it.

    Args:
        output: m and rad, of the output from its path. Smaller follows more closely with stiffer feedback.
        position: rad or m, of coordinates from the equilibria along the path. Smaller leaves less freedom to them.
        rate: per s, of the same. Smaller damps more.
        effort: N m or N, of the inputs. Larger allows stronger feedback.

    Raises:
        TensegrityError: one is not from 1e-9 to 1e9.
    """

    output: float = 1e-5
    position: float = 3e-2
    rate: float = 1.0
    effort: float = 0.1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 1e-9 <= value <= 1e9:
                raise TensegrityError(f"weight {name} is {value}; give a deviation above zero, from 1e-9 to 1e9.")


@dataclass(frozen=True, eq=False, repr=False)
class OutputPlan(ShortRepr, TrackingPlan):
    """A motion whose output follows a path.

    Attributes:
        end: equilibrium at which the path ends. miss: m and rad, largest distance of the planned output from the path.
        defect: largest jump between two pieces of the planned motion [rad, m, and per s].
        sweep: the last one, with its linear pieces. drifts: (k - 1, 2n, 2n), see `discretized_with_drift`.
        targets: (k, p) of the output's controlled coordinates.
    """

    end: PathEquilibrium
    miss: float
    defect: float
    sweep: RiccatiSweep
    drifts: Array
    targets: Array


def plan_output(
    model: OutputModel,
    path: Path,
    duration: float,
    period: float,
    *,
    weights: OutputWeights | None = None,
    start: PathEquilibrium | None = None,
    equilibrium_map: MechanismEquilibriumMap | None = None,
    line: Sequence[PathEquilibrium] = (),
) -> OutputPlan:
    """Plan a motion whose output follows a path from rest to rest.

    Args:
        path: the output's controlled coordinates (k,) m, rad (`OutputModel.coordinates`) over time [s], at rest at 0
            and at the end.
        duration: s. period: s, over which inputs are held.
        start: equilibrium from which the motion begins; None for the one at the path's start that is nearest to
            that at home. equilibrium_map: of the robot, where there is one already.
        line: of a path that is straight, the equilibria on it (`equilibria_on_line`), which it is planned on;
            without them they are searched along the path.

    Raises:
        UnreachableGoalError: a point of the path has no equilibrium within the limits.
        InfeasibleControlError: the plan needs more than an actuator's effort; it is named.
        TensegrityError: numbers are out of range, or the coordinates stop being independent on the path.
    """
    if not (np.isfinite(duration) and np.isfinite(period) and 0.0 < 10.0 * period <= duration):
        raise TensegrityError(f"a path of {duration} s needs a control period above 0 and at most a tenth of it.")
    scale = weights or OutputWeights()
    count = round(duration / period) + 1
    times: Array = np.asarray(period * np.arange(count), dtype=np.float64)
    equilibria = equilibrium_map or MechanismEquilibriumMap(model.robot)
    targets = np.asarray(path(times))
    if len(line):
        knots, points = _along_line(model, line, targets)
    else:
        knots, points, line = _along_path(model, path, times, equilibria, start or equilibria.home)
    first, states, inputs = _guess(model, line, knots, points, times)
    rest_coordinates, rest_inputs = states[:, : model.index.size].copy(), inputs.copy()
    state_cost, effort_cost = costs_of(scale, model.index.size, inputs.shape[1])
    moved, remaining, is_fresh = model.outputs_along(first, states, inputs), np.inf, False
    end = None  # which is at rest, and so the same for all sweeps
    parts = min(max(LINEARIZATIONS, int(np.ceil(duration / LINEARIZATION_SPACING))), count - 1)
    for number in range(MAX_SWEEPS):
        if not is_fresh:
            at = np.unique(np.round(np.linspace(0, count - 1, parts + 1)).astype(np.int64))
            drifts, pieces = pieces_at(model, moved, states, inputs, period, at)
            end = end or _regulator_at(
                model, moved.positions[-1], inputs[-1], moved.jacobians[-1], state_cost, effort_cost, scale, period
            )
            sweep = RiccatiSweep(pieces, state_cost, effort_cost, scale.output, end)
        deviations, changes = sweep.deviations(defects_of(moved, states, drifts), model.errors_along(moved, targets))
        states, inputs = states + deviations, inputs + changes
        moved = model.outputs_along(first, states, inputs)
        before, remaining = remaining, float(np.max(np.abs(defects_of(moved, states, drifts))))
        # the matrices of the guess leave inertia out, and drifts are exact where the motion is that of their matrices
        is_fresh = number > 0 and remaining < max(SLOW * before, SETTLED)
        if is_fresh and remaining < SETTLED:
            between = _defect_between(model, moved, states, inputs, period, at)
            if between <= LEFT or len(at) == count:
                break
            parts, is_fresh = min(2 * parts, count - 1), False
    else:
        between = _defect_between(model, moved, states, inputs, period, at)
    gains = sweep.gains
    worst = np.max(np.abs(inputs), axis=0)
    for each, used in zip(model.robot.actuators, worst, strict=True):
        if used > each.effort:
            raise InfeasibleControlError(
                f"the path needs {used:.3g} {each.units[2]} of {each.name}, above its limit of {each.effort:.3g}; take "
                "more time for it."
            )
    miss = float(np.max(np.linalg.norm(model.errors_along(moved, targets), axis=1)))
    return OutputPlan(
        times, states, inputs, gains, rest_coordinates, rest_inputs, moved.positions, line[-1], miss,
        max(remaining, between), sweep, drifts, targets,
    )  # fmt: skip


def rest_gain(model: OutputModel, q: Array, effort: Array, weights: OutputWeights, period: float) -> Array:
    """(u, 2n) feedback that holds an equilibrium, for inputs held over `period` s."""
    count = model.index.size
    costs = costs_of(weights, count, effort.size)
    return _regulator_at(model, q, effort, model.output_jacobian(q), *costs, weights, period)[1]


def _regulator_at(
    model: OutputModel, q: Array, effort: Array, jacobian: Array, state_cost: Array, effort_cost: Array,
    weights: OutputWeights, period: float,
) -> tuple[Array, Array]:  # fmt: skip
    """`regulator` at an equilibrium, J (p, n) there."""
    count = model.index.size
    matrix, push, _ = model.linearised(q, np.zeros(count), effort)
    ahead, moved = discretized(model.steadied(q, matrix, push), push, period)
    whole = np.hstack((jacobian, np.zeros_like(jacobian)))
    return regulator(ahead, moved, whole.T @ whole / weights.output**2 + state_cost, effort_cost)


def costs_of(weights: OutputWeights, count: int, inputs: int) -> tuple[Array, Array]:
    """What deviations of state and inputs cost, as matrices."""
    scale = np.concatenate((np.full(count, weights.position), np.full(count, weights.rate)))
    return np.diag(scale**-2.0), np.eye(inputs) / weights.effort**2


def equilibria_on_line(
    model: OutputModel, equilibria: MechanismEquilibriumMap, start: PathEquilibrium, goal: PoseGoal
) -> tuple[PathEquilibrium, ...]:
    """Equilibria whose outputs divide the straight line of the model's coordinates from a start to a goal evenly.

    Raises UnreachableGoalError.
    """
    first = model.coordinates(start.pose)
    offset = model.coordinates(goal.pose) - first
    spacing = np.where(model.rows < 3, LINE_SPACING, LINE_TURN)
    pieces = max(MIN_PIECES, int(np.ceil(np.linalg.norm(offset / spacing))))
    while True:
        line = [start]
        for part in np.linspace(0.0, 1.0, pieces + 1)[1:-1]:
            between = PoseGoal(*model.pose_at(first + part * offset, start.pose), goal.output)
            line.append(plan_path(equilibria, line[-1], between).equilibrium)
        line.append(plan_path(equilibria, line[-1], goal).equilibrium)
        if 2 * pieces > MOST_PIECES or _miss_between(model, line, first, offset) <= GUESS_MISS:
            return tuple(line)
        pieces *= 2


def _miss_between(model: OutputModel, line: Sequence[PathEquilibrium], first: Array, offset: Array) -> float:
    """m and rad by which the output of interpolated equilibria is off a line midway between those on it."""
    knots = np.linspace(0.0, 1.0, len(line))
    middles = 0.5 * (knots[1:] + knots[:-1])
    coordinates, efforts = _interpolated(model, line, knots, middles)
    moved = model.outputs_along(line[0].q, np.hstack((coordinates, np.zeros_like(coordinates))), efforts)
    return float(np.max(np.abs(model.errors_along(moved, first + middles[:, None] * offset))))


def _interpolated(
    model: OutputModel, line: Sequence[PathEquilibrium], knots: Array, points: Array
) -> tuple[Array, Array]:
    """Coordinates (k, n) and efforts (k, u) at points between equilibria at knots."""
    rows = np.array([np.concatenate((model.coordinates_at(each.q), each.effort[model.drives])) for each in line])
    values = make_interp_spline(knots, rows, k=min(5, len(line) - 1))(points)
    return values[:, : model.index.size], np.ascontiguousarray(values[:, model.index.size :])


def _along_line(model: OutputModel, line: Sequence[PathEquilibrium], targets: Array) -> tuple[Array, Array]:
    """Parameters of equilibria on a line and of the points of a path (k, p) along it: 0 at its start, 1 at its end."""
    outputs = np.array([model.coordinates(each.pose) for each in line])
    offset = outputs[-1] - outputs[0]
    length = float(offset @ offset)
    if length <= 1e-18:
        return np.linspace(0.0, 1.0, len(line)), np.zeros(len(targets))
    return (outputs - outputs[0]) @ offset / length, (targets - outputs[0]) @ offset / length


def _along_path(
    model: OutputModel, path: Path, times: Array, equilibria: MechanismEquilibriumMap, start: PathEquilibrium
) -> tuple[Array, Array, list[PathEquilibrium]]:
    """Parameters, the times [s], of the equilibria along a path and of its points, and those equilibria."""
    knots = np.linspace(0.0, times[-1], max(MIN_PIECES + 1, int(np.ceil(times[-1] / EQUILIBRIUM_SPACING)) + 1))
    passed = [start]
    for time in knots:
        goal = PoseGoal(*model.pose_at(path(float(time)), start.pose), model.output)
        passed.append(plan_path(equilibria, passed[-1], goal).equilibrium)
    return knots, times, passed[1:]


def _guess(
    model: OutputModel, line: Sequence[PathEquilibrium], knots: Array, points: Array, times: Array
) -> tuple[Array, Array, Array]:
    """Position at the start, states (k, 2n) and inputs (k, u) of the equilibria along the path."""
    coordinates, efforts = _interpolated(model, line, knots, points)
    rates = make_interp_spline(times, coordinates, k=5)(times, 1)
    return line[0].q, np.hstack((coordinates, rates)), efforts


def pieces_at(
    model: OutputModel, moved: MovingStates, states: Array, inputs: Array, period: float, knots: NDArray[np.int64]
) -> tuple[Array, LinearPieces]:
    """How accelerations move the states ahead, (k - 1, 2n, 2n), and the pieces: at knots, and smooth in between."""
    count, size = states.shape[0], model.index.size
    checkpoint()
    matrices, push, _ = model.linearised_along(moved.positions[knots], states[knots, size:], inputs[knots])
    weights = _between(knots, count - 1)
    ahead, pushed, drifts = (
        (weights @ each.reshape(len(knots), -1)).reshape(-1, *each.shape[1:])
        for each in discretized_with_drift(matrices, push, period)
    )
    jacobians = np.concatenate((moved.jacobians, np.zeros_like(moved.jacobians)), axis=2)
    return drifts, LinearPieces(ahead, pushed, jacobians)


def _between(knots: NDArray[np.int64], count: int) -> Array:
    """(count, k) weights by which values at knots are interpolated at whole numbers: of a quintic spline, or what few
    knots allow."""
    if len(knots) == 1:
        return np.ones((count, 1))
    degree = min(5, (len(knots) - 2) // 2 * 2 + 1)
    return np.asarray(make_interp_spline(knots, np.eye(len(knots)), k=degree)(np.arange(count)))


def defects_of(moved: MovingStates, states: Array, drifts: Array) -> Array:
    """(k - 1, 2n) jumps between a state's motion over a period and the next state."""
    slopes = np.hstack((states[:, states.shape[1] // 2 :], moved.accelerations))[:-1]
    return np.asarray(states[:-1] + (drifts @ slopes[..., None])[..., 0] - states[1:])


def _defect_between(
    model: OutputModel, moved: MovingStates, states: Array, inputs: Array, period: float, knots: NDArray[np.int64]
) -> float:
    """Largest jump midway between some knots, with matrices of their own: what interpolation leaves."""
    size, middles = model.index.size, (knots[1:] + knots[:-1]) // 2
    at = np.unique(middles[np.linspace(0, middles.size - 1, min(DEFECT_SAMPLES, middles.size)).astype(np.int64)])
    matrices, push, _ = model.linearised_along(moved.positions[at], states[at, size:], inputs[at])
    drifts = discretized_with_drift(matrices, push, period)[2]
    slopes = np.hstack((states[at, size:], moved.accelerations[at]))
    return float(np.max(np.abs(states[at] + (drifts @ slopes[..., None])[..., 0] - states[at + 1])))
