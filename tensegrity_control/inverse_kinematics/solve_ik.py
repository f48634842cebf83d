"""Actuator positions for a goal pose, along a path of stable equilibria (document 001, section 6, corrected).

Continuation from the start: the exact Jacobian predicts how the equilibrium answers to the actuators, a quadratic
program (`ik_step`) chooses the next change within the limits, and the equilibrium is solved anew, so that the pose at
the end is one of equilibrium and not of a linear prediction. Every equilibrium on the path is stable and can be held.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium

from .broyden import broyden_search
from .continuation import Continuation
from .equilibrium_map import EquilibriumMap, equilibrium_map
from .ik_result import InverseKinematicsOptions, InverseKinematicsResult
from .mechanism_equilibria import MechanismEquilibriumMap
from .mechanism_ik import plan_mechanism_path
from .pose_goal import PoseGoal, make_goal
from .structure_equilibria import StructureEquilibriumMap


@singledispatch
def plan_path(
    equilibria: EquilibriumMap[Any], start: Any, goal: PoseGoal, options: InverseKinematicsOptions | None = None
) -> InverseKinematicsResult:
    """Equilibria from a start to a goal; another kind registers its own: `plan_path.register(Map, plan)`.

    Args:
        equilibria: of the robot, whose type decides. start: one of them, fit to start from (`EquilibriumMap.start`).

    Raises:
        UnreachableGoalError: no path leads there; has the nearest reachable equilibrium and the active limits.
        TensegrityError: an option does not go with the kind, or no planner is registered for it.
    """
    raise TensegrityError(f"no inverse kinematics is registered for {type(equilibria).__name__}.")


@plan_path.register
def plan_structure_path(
    equilibria: StructureEquilibriumMap,
    start: StructureEquilibrium,
    goal: PoseGoal,
    options: InverseKinematicsOptions | None = None,
) -> InverseKinematicsResult:
    """Rest lengths for a goal pose and the equilibria on the path, see `plan_path`."""
    options = options or InverseKinematicsOptions()
    search = Continuation(equilibria, start, goal, options)
    return broyden_search(search) if options.method == "broyden" else search.run()


plan_path.register(MechanismEquilibriumMap, plan_mechanism_path)


def inverse_kinematics(
    robot: Robot,
    position: ArrayLike | None = None,
    quaternion: ArrayLike | None = None,
    *,
    start: Any = None,
    preferred: Any = None,
    tension_floor: float | Mapping[str, float] | None = None,
    rigid_bars: bool = False,
    method: str = "newton",
    tolerance: float = 1e-9,
    max_iterations: int = 300,
    length_weight: float = 1.0,
    equilibria: EquilibriumMap[Any] | None = None,
) -> InverseKinematicsResult:
    """Inverse kinematics: actuator positions for a goal pose of the output frame, and the path of equilibria.

    Args:
        robot: with actuators and an output frame.
        position: (3,) m in the world frame; None keeps the present one.
        quaternion: (4,) w, x, y, z; None keeps the present one. Only the axes that the output controls are asked for.
        start: equilibrium to start from; None is the one at the robot file's actuator positions.
        preferred, tension_floor, method, tolerance, max_iterations, length_weight: `InverseKinematicsOptions`; of
            structures alone.
        rigid_bars: bars of a structure keep exactly their rest length instead of yielding by their stiffness.
        equilibria: of the robot, for callers that plan often.

    Raises:
        UnreachableGoalError: no path leads there; has the nearest reachable equilibrium and the active limits.
        TensegrityError: the goal or an option is not a number, or the start is not a stable, tight equilibrium.
    """
    if robot.model.takes_no_goals:
        raise TensegrityError(f"{robot.name} {robot.model.takes_no_goals}.")
    options = InverseKinematicsOptions(preferred, tension_floor, method, tolerance, max_iterations, length_weight)
    if equilibria is None:
        equilibria = equilibrium_map(robot.model, robot, **({"rigid_bars": True} if rigid_bars else {}))
    goal = None if position is None or quaternion is None else make_goal(robot.output, position, quaternion)
    first = equilibria.start(start)
    goal = goal or make_goal(robot.output, position, quaternion, first.pose)
    return plan_path(equilibria, first, goal, options)
