"""Inverse kinematics of elastic and of rigid mechanisms: a path to a pose through equilibria.

Every step solves the quadratic program of `ik_step` for a change of the actuator positions: the pose error decreases
along a straight line, positions and tensions keep their limits, and the remaining freedom keeps the tensions at home.
The equilibrium is then solved again, so that the final pose is that of an equilibrium and not of a linear prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import LostRouteError
from tensegrity_dynamics.numerics.types import Array

from .ik_result import InverseKinematicsOptions, InverseKinematicsResult
from .ik_step import Posture, solve_step
from .limits import DOES_NOT_ANSWER, Limits, unreachable_goal
from .mechanism_equilibria import MechanismEquilibriumMap, PathEquilibrium, PathSensitivity
from .pose_goal import PoseGoal


@dataclass(frozen=True)
class StepSettings:
    """Step control along a path.

    Attributes:
        largest_step: rad of the pose in one step, and m, times the size of a robot that is larger than 1 m. Smaller: a
            denser path, more computing time.
        radius: rad or m, largest change of one actuator in one step.
        tolerance_arrival: m and rad, pose error at arrival.
        tolerance_stalled: m, times the size of a robot that is larger than 1 m, and rad: pose error that is an arrival
            where steps bring no progress any more, because equilibria are not solved more accurately.
        tolerance_blocked: fraction of the error that a straight step must remove; below it the motion slides along the
            limits.
        tolerance_limits: overshoot of a limit in one step, in units of its scale; the next step repairs it.
        max_steps: largest number of steps.
        max_stalled_steps: largest number of steps without progress.
        pace_steps, creeping, too_slow: a search ends where its last `pace_steps` steps have removed less than the part
            `creeping` of what they were to remove, and where it would take more than `too_slow` times the steps that
            are left, as it does beside the border of what the robot reaches.
        max_halvings: number of times that a step is halved until there is an equilibrium.
        trust: largest difference between the motion of the pose in a step and its linear prediction, relative to the
            prediction; above it the step is halved.
        jump: distance of the pose from the prediction [rad, and m, times the size of a robot that is larger than 1 m],
            above which a shape is another one and no part of the path.
        singular: motion of the pose towards the goal relative to its whole motion, below which it does not answer to
            the actuators.
    """

    largest_step: float = 0.02
    radius: float = 1.0
    tolerance_arrival: float = 1e-7
    tolerance_stalled: float = 1e-6
    tolerance_blocked: float = 1e-3
    tolerance_limits: float = 0.02
    max_steps: int = 400
    max_stalled_steps: int = 3
    pace_steps: int = 10
    creeping: float = 0.1
    too_slow: float = 10.0
    max_halvings: int = 8
    trust: float = 0.5
    jump: float = 0.1
    singular: float = 1e-5


SETTINGS = StepSettings()
REACHED = 0.1
"""Largest distance from a limit, relative to its scale, at which it is the cause that a goal is out of reach."""
HARDLY_NEARER = "the pose hardly comes nearer there, beside the border of what the robot reaches"


def plan_mechanism_path(
    equilibria: MechanismEquilibriumMap,
    start: PathEquilibrium,
    goal: PoseGoal,
    options: InverseKinematicsOptions | None = None,
) -> InverseKinematicsResult:
    """Actuator positions for a goal pose and the equilibria on the path, at most `largest_step` apart; see `plan_path`.

    Raises:
        UnreachableGoalError: limits stop the path; the message names the nearest equilibrium and the active limits.
        TensegrityError: an option is for structures only.
    """
    asked = options or InverseKinematicsOptions()
    if (
        asked.preferred is not None
        or asked.tension_floor is not None
        or asked.method != "newton"
        or asked.length_weight != 1.0
    ):
        raise TensegrityError(
            f"{equilibria.robot.name} is a mechanism: preferred, tension_floor, method and length_weight are for "
            "structures."
        )
    limits, posture = make_limits(equilibria), _posture(equilibria)
    path, equilibrium, stalled, solves = [start], start, 0, 0
    sizes = np.where(goal.output.rows < 3, max(1.0, equilibria.reach), 1.0)
    best = float(np.linalg.norm(goal.error(start.pose)))
    distances = [best]
    for steps in range(SETTINGS.max_steps):
        error = goal.error(equilibrium.pose)
        if np.linalg.norm(error) <= SETTINGS.tolerance_arrival:
            return _result(equilibria, _thinned(path), goal, steps, solves)
        slopes = equilibria.sensitivity(equilibrium)
        part = error * min(1.0, SETTINGS.largest_step / float(np.linalg.norm(error / sizes)))
        jacobian = goal.jacobian(equilibrium.pose, slopes.pose)
        along = float(np.linalg.norm(error / np.linalg.norm(error) @ jacobian))
        if not along > SETTINGS.singular * float(np.linalg.norm(slopes.pose)):  # rounding would choose the direction
            raise _unreachable(equilibria, goal, equilibrium, limits, (), DOES_NOT_ANSWER)
        values, rows = limited(equilibria, equilibrium, slopes)
        actuated = _held_tensions(equilibria, equilibrium, slopes)
        step = solve_step(part, jacobian, values, rows, limits, actuated, posture, SETTINGS.radius)
        binding = step.binding
        if step.progress < SETTINGS.tolerance_blocked:  # the straight line is blocked: slide along the limits
            weights = np.ones(part.size)
            step = solve_step(part, jacobian, values, rows, limits, actuated, posture, SETTINGS.radius, weights)
            binding = step.binding or binding
        trouble = "no stable shape with tight cables lies further on"
        try:
            moved, tries, follows = _moved(equilibria, equilibrium, step.change, limits, goal, jacobian @ step.change)
            # if the posture bends the motion more than the step leads to the goal: the least motion alone
            if not (follows or step.weighted):
                here = replace(posture, tensions=actuated[0], lengths=actuated[2])
                least = solve_step(part, jacobian, values, rows, limits, actuated, here, SETTINGS.radius)
                foreseen = jacobian @ least.change
                beside, more, follows = _moved(equilibria, equilibrium, least.change, limits, goal, foreseen)
                moved, tries = beside if follows else moved, tries + more
        except TensegrityError as error:  # what the ground does not hold, or a cable that leaves its route
            moved, tries, trouble = None, SETTINGS.max_halvings, str(error).rstrip(".")
        solves += tries
        if moved is None:
            raise _unreachable(equilibria, goal, equilibrium, limits, binding, trouble)
        equilibrium = moved
        path.append(equilibrium)
        now = float(np.linalg.norm(goal.error(equilibrium.pose)))
        stalled = stalled + 1 if now > best - 1e-3 * min(SETTINGS.largest_step, best) else 0
        best = min(best, now)
        if stalled >= SETTINGS.max_stalled_steps and now > SETTINGS.tolerance_arrival:
            if np.linalg.norm(goal.error(equilibrium.pose) / sizes) <= SETTINGS.tolerance_stalled:
                return _result(equilibria, _thinned(path), goal, steps + 1, solves)
            raise _unreachable(equilibria, goal, equilibrium, limits, binding, "")
        distances.append(now)
        if len(distances) > SETTINGS.pace_steps:
            pace = (distances[-1 - SETTINGS.pace_steps] - now) / SETTINGS.pace_steps
            creeps = pace < SETTINGS.creeping * float(np.linalg.norm(part))
            if creeps and now > SETTINGS.too_slow * (SETTINGS.max_steps - steps) * pace:
                raise _unreachable(equilibria, goal, equilibrium, limits, binding, HARDLY_NEARER)
    trouble = f"{SETTINGS.max_steps} steps were not enough"
    raise _unreachable(equilibria, goal, equilibrium, limits, (), trouble)


def _result(
    equilibria: MechanismEquilibriumMap, path: list[PathEquilibrium], goal: PoseGoal, steps: int, solves: int
) -> InverseKinematicsResult:
    wound = [(k, equilibria.cable_of(k)) for k in range(len(equilibria.robot.actuators))]
    actuators = equilibria.robot.actuators

    def margins(equilibrium: PathEquilibrium) -> dict[str, float]:
        return {
            actuators[k].drives: float(equilibrium.tensions[cable]) - actuators[k].minimum_tension
            for k, cable in wound
            if cable >= 0
        }

    end = path[-1]
    return InverseKinematicsResult(
        positions={each.name: float(value) for each, value in zip(actuators, end.positions, strict=True)},
        equilibrium=end,
        path=tuple(path),
        commands=np.array([each.positions for each in path]),
        pose_error=goal.error(end.pose),
        margins=margins(end),
        lowest_margin=min((item for each in path for item in margins(each).items()), key=lambda item: item[1],
                          default=("", np.inf)),
        iterations=steps,
        solves=solves,
    )  # fmt: skip


def make_limits(equilibria: MechanismEquilibriumMap) -> Limits:
    """Limits of tensions (of cables that actuators wind) and of positions, in the order of `limited`.

    Raises:
        TensegrityError: the tension floor of an actuator is above the tension that its effort limit allows.
    """
    low, high, scale, names, quantities = [], [], [], [], []
    typical = max(1.0, float(np.max(np.abs(equilibria.home.tensions), initial=1.0)))
    for k, actuator in enumerate(equilibria.robot.actuators):
        if equilibria.cable_of(k) >= 0:
            radius = next(e.radius for e in equilibria.model.entries if e.name == actuator.drives)
            low.append(actuator.minimum_tension)
            high.append(actuator.effort / radius)
            if low[-1] > high[-1]:
                raise TensegrityError(
                    f"{actuator.name}: its minimum_tension of {low[-1]:g} N is above the {high[-1]:.4g} N that its "
                    f"effort of {actuator.effort:g} N m holds on a radius of {radius:g} m; lower it, or raise effort."
                )
            scale.append(typical)
            names.append(actuator.name)
            quantities.append("tension")
    pulls = equilibria.home.statics.routes
    for name, floor in equilibria.strand_floors.items():
        strands = pulls[name].tensions
        for number, pull in enumerate(strands):
            low.append(floor)
            high.append(np.inf)
            scale.append(max(floor, pull))
            names.append(name if len(strands) == 1 else f"{name}[{number}]")
            quantities.append("tension")
    for actuator in equilibria.robot.actuators:
        low.append(actuator.position[0])
        high.append(actuator.position[1])
        scale.append(0.1 * (actuator.position[1] - actuator.position[0]))
        names.append(actuator.name)
        quantities.append("angle" if actuator.motion == "revolute" else "position")
    return Limits(np.array(low), np.array(high), np.array(scale), tuple(names), tuple(quantities))


def limited(
    equilibria: MechanismEquilibriumMap, equilibrium: PathEquilibrium, slopes: PathSensitivity | None
) -> tuple[Array, Array]:
    """Values of the limited quantities, and their derivatives (r, a); zeros without derivatives."""
    count = len(equilibria.robot.actuators)
    rows = [equilibria.cable_of(k) for k in range(count) if equilibria.cable_of(k) >= 0]
    strands = equilibria.strand_tensions(equilibrium)
    values = np.concatenate((equilibrium.tensions[rows], strands, equilibrium.positions))
    if slopes is None:
        return values, np.vstack((np.zeros((len(rows) + strands.size, count)), np.eye(count)))
    pulled = equilibria.strand_slopes(equilibrium, slopes.motion)
    return values, np.vstack((slopes.tensions[rows], pulled, np.eye(count)))


def _held_tensions(
    equilibria: MechanismEquilibriumMap, equilibrium: PathEquilibrium, slopes: PathSensitivity
) -> tuple[Array, Array, Array]:
    """Tensions that the posture keeps (of the cables that actuators wind, and of all strands of elastic routed cables),
    their derivatives, and the positions by actuator."""
    rows, routes = _wound(equilibria), equilibria.elastic_routes
    tensions = np.concatenate((equilibrium.tensions[rows], equilibria.pulls(equilibrium, routes)))
    pulled = equilibria.pull_slopes(equilibrium, slopes.motion, routes)
    return tensions, np.vstack((slopes.tensions[rows], pulled)), equilibrium.positions


def _wound(equilibria: MechanismEquilibriumMap) -> list[int]:
    """Indices of the cables that actuators wind."""
    rows = [equilibria.cable_of(k) for k in range(len(equilibria.robot.actuators))]
    return [row for row in rows if row >= 0]


def _posture(equilibria: MechanismEquilibriumMap) -> Posture:
    home = equilibria.home
    tensions = np.concatenate((home.tensions[_wound(equilibria)], equilibria.pulls(home, equilibria.elastic_routes)))
    return Posture(tensions, home.positions, max(1.0, float(np.max(np.abs(tensions), initial=1.0))), 1.0, 0.01)


def _moved(
    equilibria: MechanismEquilibriumMap,
    equilibrium: PathEquilibrium,
    change: Array,
    limits: Limits,
    goal: PoseGoal,
    foreseen: Array,
) -> tuple[PathEquilibrium | None, int, bool]:
    """Equilibrium after a change or a part of it, None if there is none within the limits; the number of trials; and
    whether the pose follows its derivatives there.

    Raises TensegrityError with the reason if there is none for a robot that only the ground holds, or if a cable leaves
    its route.
    The part is such that the pose follows its derivatives. Near a singularity a whole step may go far past the goal.

    Args:
        foreseen: (k,) linear prediction of the motion of the pose, for the whole change.
    """
    allowed = max(limits.violation(limited(equilibria, equilibrium, None)[0]), 1e-6) + SETTINGS.tolerance_limits
    before, last, trouble = goal.error(equilibrium.pose), None, None
    for halvings in range(SETTINGS.max_halvings):
        part = 0.5**halvings
        try:
            moved = equilibria.solve(equilibrium.positions + part * change, equilibrium)
        except TensegrityError as error:
            trouble = trouble or error
            continue
        if limits.violation(limited(equilibria, moved, None)[0]) <= allowed:
            last = moved
            beside = float(np.linalg.norm(before - goal.error(moved.pose) - part * foreseen))
            if beside <= SETTINGS.trust * part * float(np.linalg.norm(foreseen)) + SETTINGS.tolerance_arrival:
                return moved, halvings + 1, True
            if beside > SETTINGS.jump * max(1.0, equilibria.reach):
                last = None
    if last is None and trouble is not None and (equilibria.stands or isinstance(trouble.__cause__, LostRouteError)):
        raise trouble
    return last, SETTINGS.max_halvings, False


def _thinned(path: list[PathEquilibrium]) -> list[PathEquilibrium]:
    """The path without the small corrections at its end."""
    kept = [path[0]]
    for equilibrium in path[1:-1]:
        near_last = np.max(np.abs(equilibrium.positions - path[-1].positions)) < 1e-3
        if not near_last and np.max(np.abs(equilibrium.positions - kept[-1].positions)) > 1e-6:
            kept.append(equilibrium)
    return [*kept, path[-1]] if len(path) > 1 else kept


def _unreachable(
    equilibria: MechanismEquilibriumMap,
    goal: PoseGoal,
    nearest: PathEquilibrium,
    limits: Limits,
    binding: tuple[int, ...],
    trouble: str,
) -> UnreachableGoalError:
    values = limited(equilibria, nearest, None)[0]
    reached = limits.touched(values, REACHED)  # limits bind a step, too, that was too long or led nowhere
    rows = [row for row in binding if row in reached] or reached
    return unreachable_goal(goal, nearest, limits, values, rows, trouble)
