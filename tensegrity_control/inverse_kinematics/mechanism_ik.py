"""Way of a mechanism to a pose through shapes at rest: inverse kinematics of elastic and of rigid mechanisms alike.

Every step solves the quadratic program of `redundancy` for a change of the actuators' positions: the pose error shrinks
along a straight way, positions and tensions keep their limits, and what is left free keeps the tensions of the shape at
home. The shape is then solved anew, so the pose at the end is one of equilibrium and not of a linear guess.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.robots.output_frame import AXES, pose_error

from .ik_step import Limits, Posture, solve_step
from .mechanism_equilibria import PathEquilibrium, PathEquilibriumSolver, PathSlopes
from .pose_goal import PoseGoal, make_goal, rotation_error_rate

Array = NDArray[np.float64]

LONGEST = 0.02
"""m (rad for rotations) of the pose that one step may change."""
CLOSE = 1e-7
MOST_STEPS = 400
RADIUS = 1.0  # rad or m that one actuator may change in one step


def plan_path(
    shapes: PathEquilibriumSolver, start: PathEquilibrium, position: ArrayLike | None, quaternion: ArrayLike | None
) -> list[PathEquilibrium]:
    """Shapes from `start` to one whose output is at a pose, at most `LONGEST` apart.

    Args:
        position: (3,) m or None. quaternion: (4,) w, x, y, z or None. None keeps the present one; only axes that the
            output controls count.

    Raises:
        UnreachableGoalError: limits stop the way; the nearest shape and what binds are named.
        TensegrityError: the goal is no pose.
    """
    goal = make_goal(shapes.output, position, quaternion, start.pose)
    limits = make_limits(shapes)
    path, shape = [start], start
    best = float(np.linalg.norm(_error(goal, shape)))
    stuck = 0
    for _ in range(MOST_STEPS):
        error = _error(goal, shape)
        if np.linalg.norm(error) <= CLOSE:
            return _thinned(path)
        slopes = shapes.slopes(shape)
        wanted = error * min(1.0, LONGEST / float(np.linalg.norm(error)))
        turned = np.array(slopes.pose)
        turned[3:] = rotation_error_rate(pose_error(goal.pose, shape.pose)[3:]) @ slopes.pose[3:]
        jacobian = turned[goal.output.rows]
        values, rows = limited(shapes, shape, slopes)
        step = solve_step(
            wanted, jacobian, values, rows, limits, _actuated(shapes, shape, slopes), _posture(shapes), RADIUS
        )
        binding = step.binding
        if step.progress < 1e-3:  # the straight way is blocked: slide along the limits
            step = solve_step(
                wanted, jacobian, values, rows, limits, _actuated(shapes, shape, slopes), _posture(shapes), RADIUS,
                np.ones(wanted.size),
            )  # fmt: skip
            binding = step.binding or binding
        found = _moved(shapes, shape, step.change, limits)
        if found is None:
            raise _unreachable(
                shapes, goal, shape, limits, binding, "no stable shape with tight cables lies further on"
            )
        shape = found
        path.append(shape)
        now = float(np.linalg.norm(_error(goal, shape)))
        stuck = stuck + 1 if now > best - 1e-3 * min(LONGEST, best) else 0
        best = min(best, now)
        if stuck >= 3 and now > CLOSE:
            raise _unreachable(shapes, goal, shape, limits, binding, "")
    raise _unreachable(shapes, goal, shape, limits, (), f"after {MOST_STEPS} steps the way is still not done")


def make_limits(shapes: PathEquilibriumSolver) -> Limits:
    """Limits of tensions (of cables that actuators wind) and of positions, in the order of `limited`."""
    low, high, scale, names, quantities = [], [], [], [], []
    typical = max(1.0, float(np.max(np.abs(shapes.home.tensions), initial=1.0)))
    for k, actuator in enumerate(shapes.robot.actuators):
        if shapes.cable_of(k) >= 0:
            radius = next(e.radius for e in shapes.model.entries if e.name == actuator.drives)
            low.append(actuator.minimum_tension)
            high.append(actuator.effort / radius)
            scale.append(typical)
            names.append(actuator.name)
            quantities.append("tension")
    for actuator in shapes.robot.actuators:
        low.append(actuator.position[0])
        high.append(actuator.position[1])
        scale.append(0.1 * (actuator.position[1] - actuator.position[0]))
        names.append(actuator.name)
        quantities.append("angle" if actuator.motion == "revolute" else "position")
    return Limits(np.array(low), np.array(high), np.array(scale), tuple(names), tuple(quantities))


def limited(shapes: PathEquilibriumSolver, shape: PathEquilibrium, slopes: PathSlopes | None) -> tuple[Array, Array]:
    """Values of what is limited, and their derivatives (r, a); zeros without slopes."""
    count = len(shapes.robot.actuators)
    rows = [shapes.cable_of(k) for k in range(count) if shapes.cable_of(k) >= 0]
    values = np.concatenate((shape.tensions[rows], shape.positions))
    pulls = np.zeros((len(rows), count)) if slopes is None else slopes.tensions[rows]
    return values, np.vstack((pulls, np.eye(count)))


def _error(goal: PoseGoal, shape: PathEquilibrium) -> Array:
    return np.asarray(pose_error(goal.pose, shape.pose)[goal.output.rows])


def _actuated(shapes: PathEquilibriumSolver, shape: PathEquilibrium, slopes: PathSlopes) -> tuple[Array, Array, Array]:
    """Tensions, their derivatives and the positions by actuator; joints without a cable have no tension."""
    count = len(shapes.robot.actuators)
    tensions, pulls = np.zeros(count), np.zeros((count, count))
    for k in range(count):
        row = shapes.cable_of(k)
        if row >= 0:
            tensions[k], pulls[k] = shape.tensions[row], slopes.tensions[row]
    return tensions, pulls, shape.positions


def _posture(shapes: PathEquilibriumSolver) -> Posture:
    count = len(shapes.robot.actuators)
    rows = [shapes.cable_of(k) for k in range(count)]
    tensions = np.array([shapes.home.tensions[row] if row >= 0 else 0.0 for row in rows])
    return Posture(tensions, shapes.home.positions, max(1.0, float(np.max(np.abs(tensions), initial=1.0))), 1.0, 0.01)


def _moved(
    shapes: PathEquilibriumSolver, shape: PathEquilibrium, change: Array, limits: Limits
) -> PathEquilibrium | None:
    """The shape after a change, or after part of it; None where not even a small part has a shape within the limits."""
    allowed = max(limits.violation(limited(shapes, shape, None)[0]), 1e-6)
    part = 1.0
    for _ in range(8):
        try:
            found = shapes.solve(shape.positions + part * change, shape)
        except TensegrityError:
            part *= 0.5
            continue
        # a step may overshoot a limit a little and the next one repairs it
        if limits.violation(limited(shapes, found, None)[0]) <= allowed + 0.02:
            return found
        part *= 0.5
    return None


def _thinned(path: list[PathEquilibrium]) -> list[PathEquilibrium]:
    """Without the last small corrections, which are no part of the way."""
    kept = [path[0]]
    for shape in path[1:-1]:
        near_last = np.max(np.abs(shape.positions - path[-1].positions)) < 1e-3
        if not near_last and np.max(np.abs(shape.positions - kept[-1].positions)) > 1e-6:
            kept.append(shape)
    return [*kept, path[-1]] if len(path) > 1 else kept


def _unreachable(
    shapes: PathEquilibriumSolver,
    goal: PoseGoal,
    nearest: PathEquilibrium,
    limits: Limits,
    binding: tuple[int, ...],
    trouble: str,
) -> UnreachableGoalError:
    error = _error(goal, nearest)
    axes = [AXES[row] for row in goal.output.rows]
    moved = [value for axis, value in zip(axes, error, strict=True) if not axis.startswith("r")]
    turned = [value for axis, value in zip(axes, error, strict=True) if axis.startswith("r")]
    short = [f"{1e3 * float(np.linalg.norm(moved)):.3g} mm"] if moved else []
    short += [f"{np.degrees(float(np.linalg.norm(turned))):.3g} deg"] if turned else []
    values = limited(shapes, nearest, None)[0]
    rows = binding or tuple(limits.touched(values, 0.05))
    reasons = [limits.describe(row, values[row]) for row in rows] or [
        trouble or "the pose does not answer to the joints"
    ]
    place = ", ".join(f"{value:.4f}" for value in nearest.pose[0])
    return UnreachableGoalError(
        f"the goal pose is out of reach. Nearest pose found: position ({place}) m; it misses the goal by "
        f"{' and '.join(short)}. What stops it: {'; '.join(reasons)}. Ask for a pose nearer to that one, or widen "
        "these limits in the robot file.",
        nearest=nearest,
        rest_lengths={},
        binding=tuple(dict.fromkeys(limits.names[row] for row in rows)),
    )
