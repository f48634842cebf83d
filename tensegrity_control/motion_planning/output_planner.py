"""Motions of an elastic mechanism whose output follows a path, planned over the whole path at once.

The guess is the path of equilibria: its output is on the path and every cable is tight, but it neglects inertia. Around
the guess the dynamics are linear, x_k+1 = A x_k + B n_k + d with the defect d of the guess, and the problem

    min  sum |(J x + e) / p|^2 + |x / s|^2 + |n / r|^2

over deviations x of the state and n of the inputs has a unique solution, computed by a backward Riccati sweep and a
forward sweep (e: error of the guess in the output; p, s, r: `OutputWeights`). With the solution as the next guess, the
iteration converges like Newton's method. Free motions need no extra treatment, since their deviations have a cost as
well. Singular configurations need none either, since nothing is inverted. The gains of the last sweep are the feedback
of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import MovingStates
from tensegrity_dynamics.numerics.short_repr import ShortRepr
from tensegrity_dynamics.numerics.types import Array

from ..cancellation import checkpoint
from ..inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap, PathEquilibrium
from ..inverse_kinematics.pose_goal import PoseGoal
from ..inverse_kinematics.solve_ik import plan_path
from .lqr import LinearPieces, RiccatiSweep, discretized, discretized_with_drift, regulator
from .output_model import OutputModel
from .trajectory_tracking import TrackingPlan, check_efforts

Path = Callable[[Any], Array]
Ends = tuple[tuple[Array, Array], ...]

EQUILIBRIUM_SPACING, MIN_KNOTS = 0.1, 4
"""s between two equilibria along a path, and their smallest number; a smaller spacing gives a better guess and takes
more time."""
LINE_SPACING = 0.02
"""m between two equilibria along a straight line of the output, which has at least MIN_PIECES intervals."""
LINE_TURN = 0.05
"""rad between two equilibria along a line with rotations."""
MIN_PIECES = 2
GUESS_MISS, DIP = 1e-5, 0.002
"""Allowed deviation of interpolated equilibria from the line [m and rad], and fraction of its floor by which their
tension may be below it; above them their number is doubled."""
WITHIN = 4
"""Parts of an interval between two equilibria, at whose ends interpolated ones are checked."""
MOST_PIECES = 64
LINEARIZATION_SPACING, LINEARIZATIONS = 0.12, 8
"""s between two linearisations along the path, and smallest number of intervals. The number is doubled until the defect
between linearisations is below `LEFT`."""
LEFT = 1e-5
"""rad, m, rad/s and m/s, allowed defect due to interpolated matrices."""
DEFECT_SAMPLES = 4
"""Number of points of a plan at which the defect due to interpolation is checked."""
MAX_SWEEPS = 5
"""Largest number of Newton steps. From the second step on, the matrices are kept as long as each step reduces the
defect to less than SLOW of the one before."""
SLOW = 0.05
SETTLED = 1e-6
"""rad, m, rad/s and m/s, defect at convergence: a tenth of `LEFT`."""


@dataclass(frozen=True)
class OutputWeights:
    """Scales of the quadratic cost (Bryson's rule): deviations of equal cost. A larger value tolerates a larger
    deviation.

    Args:
        output: m and rad, deviation of the output from its path. Smaller: closer tracking with stiffer feedback.
        position: rad or m, deviation of the coordinates from the equilibria along the path. Smaller: less freedom for
            them.
        rate: rad/s or m/s, deviation of their rates. Smaller: more damping.
        effort: N m or N, deviation of the inputs. Larger: stronger feedback.

    Raises:
        TensegrityError: a value is outside 1e-9 to 1e9.
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
    """Motion whose output follows a path.

    Attributes:
        end: equilibrium at the end of the path.
        miss: m and rad, largest distance of the planned output from the path.
        defect: largest jump between two intervals of the planned motion [rad, m, rad/s, m/s].
        sweep: last Riccati sweep, with its linear models.
        drifts: (k - 1, 2n, 2n), see `discretized_with_drift`.
        targets: (k, p), controlled coordinates of the output.
        ends: A (2n, 2n) and B (2n, u) of the equilibria at the start and at the end.
    """

    end: PathEquilibrium
    miss: float
    defect: float
    sweep: RiccatiSweep
    drifts: Array
    targets: Array
    ends: Ends


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
    """Plan a motion from rest to rest whose output follows a path.

    Args:
        path: controlled coordinates (k,) m, rad of the output (`OutputModel.coordinates`) over time [s], at rest at 0
            and at the end.
        duration: s.
        period: s, with constant inputs.
        weights: scales of the cost; None for the defaults.
        start: equilibrium from which the motion starts; None for the one at the start of the path that is nearest to
            the equilibrium at home.
        equilibrium_map: equilibria of the robot; None to create them.
        line: equilibria on a straight path (`equilibria_on_line`); if empty, they are searched along the path.

    Raises:
        UnreachableGoalError: a point of the path has no equilibrium within the limits.
        InfeasibleControlError: the plan exceeds the effort limit of an actuator, which the message names.
        TensegrityError: numbers are out of range, or the coordinates become dependent on the path.
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
    ends: Ends = ()
    end = None  # regulator at the end, where the robot rests; the same for all sweeps
    parts = min(max(LINEARIZATIONS, int(np.ceil(duration / LINEARIZATION_SPACING))), count - 1)
    for number in range(MAX_SWEEPS):
        if not is_fresh:
            # the matrices of the guess neglect inertia anyway: half of them
            at = np.unique(np.linspace(0, count - 1, (parts if number else parts // 2) + 1).round().astype(np.int64))
            drifts, pieces, linear = pieces_at(model, moved, states, inputs, period, at)
            ends = ends or tuple((linear[0][k], linear[1][k]) for k in (0, -1))
            end = end or _regulator_at(
                model, moved.positions[-1], ends[1], moved.jacobians[-1], state_cost, effort_cost, scale, period
            )
            sweep = RiccatiSweep(pieces, state_cost, effort_cost, scale.output, end)
        deviations, changes = sweep.deviations(defects_of(moved, states, drifts), model.errors_along(moved, targets))
        states, inputs = states + deviations, inputs + changes
        moved = model.outputs_along(first, states, inputs)
        before, remaining = remaining, float(np.max(np.abs(defects_of(moved, states, drifts))))
        # the matrices of the guess neglect inertia, and drifts are exact only for the motion of their matrices
        is_fresh = number > 0 and remaining < max(SLOW * before, SETTLED)
        if is_fresh and remaining < SETTLED:
            between = _defect_between(model, moved, states, inputs, period, at)
            if between <= LEFT or len(at) == count:
                break
            parts, is_fresh = min(2 * parts, count - 1), False
    else:
        between = _defect_between(model, moved, states, inputs, period, at)
    gains = sweep.gains
    check_efforts(model.robot, inputs, rest_inputs)
    miss = float(np.max(np.linalg.norm(model.errors_along(moved, targets), axis=1)))
    return OutputPlan(
        times, states, inputs, gains, rest_coordinates, rest_inputs, moved.positions, line[-1], miss,
        max(remaining, between), sweep, drifts, targets, ends,
    )  # fmt: skip


def rest_gain(model: OutputModel, q: Array, effort: Array, weights: OutputWeights, period: float) -> Array:
    """(u, 2n) feedback gain that holds an equilibrium, for inputs that are constant over `period` s."""
    count = model.index.size
    costs = costs_of(weights, count, effort.size)
    linear = model.linearised(q, np.zeros(count), effort)[:2]
    return _regulator_at(model, q, linear, model.output_jacobian(q), *costs, weights, period)[1]


def _regulator_at(
    model: OutputModel, q: Array, linear: tuple[Array, Array], jacobian: Array, state_cost: Array,
    effort_cost: Array, weights: OutputWeights, period: float,
) -> tuple[Array, Array]:  # fmt: skip
    """Result of `regulator` at an equilibrium with linear model A, B and output Jacobian J (p, n)."""
    matrix, push = linear
    ahead, moved = discretized(model.steadied(q, matrix, push), push, period)
    whole = np.hstack((jacobian, np.zeros_like(jacobian)))
    return regulator(ahead, moved, whole.T @ whole / weights.output**2 + state_cost, effort_cost)


def costs_of(weights: OutputWeights, count: int, inputs: int) -> tuple[Array, Array]:
    """Cost matrices of deviations of the state and of the inputs."""
    scale = np.concatenate((np.full(count, weights.position), np.full(count, weights.rate)))
    return np.diag(scale**-2.0), np.eye(inputs) / weights.effort**2


def equilibria_on_line(
    model: OutputModel, equilibria: MechanismEquilibriumMap, start: PathEquilibrium, goal: PoseGoal
) -> tuple[PathEquilibrium, ...]:
    """Equilibria whose outputs divide the straight line from a start to a goal, in the model's coordinates, into equal
    parts.

    Raises UnreachableGoalError: the goal is out of reach, or only the line to it, where it ends short of it.
    """
    first = model.coordinates(start.pose)
    offset = model.coordinates(goal.pose) - first
    spacing = np.where(model.rows < 3, LINE_SPACING, LINE_TURN)
    pieces = max(MIN_PIECES, int(np.ceil(np.linalg.norm(offset / spacing))))
    line: list[PathEquilibrium] = []
    best: tuple[float, tuple[PathEquilibrium, ...]] = np.inf, ()
    while True:
        known, line = line, [start]  # at every second point
        for k, part in enumerate(np.linspace(0.0, 1.0, pieces + 1)[1:], 1):
            if known and k % 2 == 0:
                line.append(known[k // 2])
                continue
            between = goal if k == pieces else PoseGoal(*model.pose_at(first + part * offset, start.pose), goal.output)
            try:
                line.append(plan_path(equilibria, line[-1], between).equilibrium)
            except UnreachableGoalError as error:
                if between is goal:
                    raise
                plan_path(equilibria, line[-1], goal)  # says how far from the goal, not from this point of the line
                raise _blocked_line(error) from None
        misfit = _misfit_between(model, line, first, offset)
        if misfit <= best[0]:
            best = misfit, tuple(line)
        if misfit <= 1.0 or 2 * pieces > MOST_PIECES:
            return best[1]
        pieces *= 2


def _blocked_line(error: UnreachableGoalError) -> UnreachableGoalError:
    """Error for a goal within reach to which no straight line leads, from that of a point of the line."""
    pose = getattr(error.nearest, "pose", None)
    ends = "" if pose is None else f", which ends near position ({', '.join(f'{x:.4f}' for x in pose[0])}) m"
    return UnreachableGoalError(
        f"the goal is within reach, but not on a straight line{ends}. Cause: {error.cause}. Go there by waypoints.",
        nearest=error.nearest, rest_lengths=error.rest_lengths, binding=error.binding, cause=error.cause,
    )  # fmt: skip


def _misfit_between(model: OutputModel, line: Sequence[PathEquilibrium], first: Array, offset: Array) -> float:
    """How far interpolated equilibria leave a line, and fall below tension floors that those beside them keep, in parts
    of `GUESS_MISS` and `DIP`; infinite where those are so far apart that the loops do not close between them.

    Where a tension reaches its floor the equilibria have a kink, and the interpolation dips below the floor beside it.
    """
    points = np.linspace(0.0, 1.0, WITHIN * (len(line) - 1) + 1)
    coordinates, efforts = _interpolated(model, line, points[::WITHIN], points)
    try:
        moved = model.outputs_along(line[0].q, np.hstack((coordinates, np.zeros_like(coordinates))), efforts)
    except TensegrityError:
        return np.inf
    misfit = float(np.max(np.abs(model.errors_along(moved, first + points[:, None] * offset)))) / GUESS_MISS
    robot, still = model.robot, np.zeros(model.index.size)
    floors = {name: floor for name, floor in robot.model.tension_floors(robot.actuators).items() if floor > 0.0}
    if not floors or misfit > 1.0:
        return misfit
    found = [model.least_tensions(*each, still) for each in zip(moved.positions, coordinates, strict=True)]
    for name, floor in floors.items():
        shares = np.array([each.get(name, floor) for each in found]) / floor
        kept = np.minimum(1.0, np.minimum(shares[:-1:WITHIN], shares[WITHIN::WITHIN]))
        misfit = max(misfit, float(np.max(np.repeat(kept, WITHIN) - shares[:-1])) / DIP)
    return misfit


def _interpolated(
    model: OutputModel, line: Sequence[PathEquilibrium], knots: Array, points: Array
) -> tuple[Array, Array]:
    """Coordinates (k, n) and efforts (k, u) at points, interpolated between equilibria at knots."""
    rows = np.array([np.concatenate((model.coordinates_at(each.q), each.effort[model.drives])) for each in line])
    values = make_interp_spline(knots, rows, k=min(5, len(line) - 1))(points)
    return values[:, : model.index.size], np.ascontiguousarray(values[:, model.index.size :])


def _along_line(model: OutputModel, line: Sequence[PathEquilibrium], targets: Array) -> tuple[Array, Array]:
    """Path parameters of the equilibria on a line and of the points (k, p) of a path along it: 0 at its start, 1 at its
    end."""
    outputs = np.array([model.coordinates(each.pose) for each in line])
    offset = outputs[-1] - outputs[0]
    length = float(offset @ offset)
    if length <= 1e-18:
        return np.linspace(0.0, 1.0, len(line)), np.zeros(len(targets))
    return (outputs - outputs[0]) @ offset / length, (targets - outputs[0]) @ offset / length


def _along_path(
    model: OutputModel, path: Path, times: Array, equilibria: MechanismEquilibriumMap, start: PathEquilibrium
) -> tuple[Array, Array, list[PathEquilibrium]]:
    """Times [s] of the equilibria along a path, times of its points, and those equilibria."""
    knots = np.linspace(0.0, times[-1], max(MIN_KNOTS, int(np.ceil(times[-1] / EQUILIBRIUM_SPACING)) + 1))
    passed = [start]
    for time in knots:
        goal = PoseGoal(*model.pose_at(path(float(time)), start.pose), model.output)
        passed.append(plan_path(equilibria, passed[-1], goal).equilibrium)
    return knots, times, passed[1:]


def _guess(
    model: OutputModel, line: Sequence[PathEquilibrium], knots: Array, points: Array, times: Array
) -> tuple[Array, Array, Array]:
    """Configuration at the start, states (k, 2n) and inputs (k, u) of the equilibria along the path."""
    coordinates, efforts = _interpolated(model, line, knots, points)
    rates = make_interp_spline(times, coordinates, k=5)(times, 1)
    return line[0].q, np.hstack((coordinates, rates)), efforts


def pieces_at(
    model: OutputModel, moved: MovingStates, states: Array, inputs: Array, period: float, knots: NDArray[np.int64]
) -> tuple[Array, LinearPieces, tuple[Array, Array]]:
    """Effect of accelerations on the next states, (k - 1, 2n, 2n), and linear models: evaluated at knots, interpolated
    between; and A and B of `ReducedModel.linearised` at the knots."""
    count, size = states.shape[0], model.index.size
    checkpoint()
    matrices, push, _ = model.linearised_along(moved.positions[knots], states[knots, size:], inputs[knots])
    weights = _between(knots, count - 1)
    ahead, pushed, drifts = (
        (weights @ each.reshape(len(knots), -1)).reshape(-1, *each.shape[1:])
        for each in discretized_with_drift(matrices, push, period)
    )
    jacobians = np.concatenate((moved.jacobians, np.zeros_like(moved.jacobians)), axis=2)
    return drifts, LinearPieces(ahead, pushed, jacobians), (matrices, push)


def _between(knots: NDArray[np.int64], count: int) -> Array:
    """(count, k) weights that interpolate values at knots to whole numbers, by a quintic spline or a lower degree with
    few knots."""
    if len(knots) == 1:
        return np.ones((count, 1))
    degree = min(5, (len(knots) - 2) // 2 * 2 + 1)
    return np.asarray(make_interp_spline(knots, np.eye(len(knots)), k=degree)(np.arange(count)))


def defects_of(moved: MovingStates, states: Array, drifts: Array) -> Array:
    """(k - 1, 2n) defects: state after a period of motion minus the next state."""
    slopes = np.hstack((states[:, states.shape[1] // 2 :], moved.accelerations))[:-1]
    return np.asarray(states[:-1] + (drifts @ slopes[..., None])[..., 0] - states[1:])


def _defect_between(
    model: OutputModel, moved: MovingStates, states: Array, inputs: Array, period: float, knots: NDArray[np.int64]
) -> float:
    """Largest defect midway between some knots, computed with exact matrices there: the error due to interpolation."""
    size, middles = model.index.size, (knots[1:] + knots[:-1]) // 2
    at = np.unique(middles[np.linspace(0, middles.size - 1, min(DEFECT_SAMPLES, middles.size)).astype(np.int64)])
    matrices, push, _ = model.linearised_along(moved.positions[at], states[at, size:], inputs[at])
    drifts = discretized_with_drift(matrices, push, period)[2]
    slopes = np.hstack((states[at, size:], moved.accelerations[at]))
    return float(np.max(np.abs(states[at] + (drifts @ slopes[..., None])[..., 0] - states[at + 1])))
