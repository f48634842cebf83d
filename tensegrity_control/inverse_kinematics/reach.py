"""Whether a pose can be reached, for many poses in a row: from a neighbour first, else from home.

The nearest pose of an unreachable goal, which `plan_path` looks for to explain it, is not looked for here.
"""

from __future__ import annotations

from typing import Any

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError

from .continuation import Continuation
from .equilibrium_map import EquilibriumMap
from .ik_result import InverseKinematicsOptions
from .pose_goal import PoseGoal
from .solve_ik import plan_path
from .structure_equilibria import StructureEquilibriumMap


def reach(
    equilibria: EquilibriumMap[Any], near: Any, home: Any, goal: PoseGoal, options: InverseKinematicsOptions
) -> tuple[Any, str]:
    """The equilibrium at a goal, or None with what stops the motion.

    Args:
        near: an equilibrium near to the goal, such as that of the pose before. home: where every search may begin; the
            goal counts as out of reach where neither leads to it.
    """
    why = ""
    for start in (near,) if near is home else (near, home):
        found, why = _from(equilibria, start, goal, options)
        if found is not None:
            return found, ""
    return None, why


def _from(
    equilibria: EquilibriumMap[Any], start: Any, goal: PoseGoal, options: InverseKinematicsOptions
) -> tuple[Any, str]:
    if isinstance(equilibria, StructureEquilibriumMap):
        search = Continuation(equilibria, start, goal, options)
        if search.walk():
            return search.equilibrium, ""
        limits = search.guard.limits
        rows = limits.touched(search.guard.values(search.equilibrium), 1e-3)
        return None, ", ".join(dict.fromkeys(limits.names[row] for row in rows)) or search.trouble
    try:
        return plan_path(equilibria, start, goal, options).equilibrium, ""
    except UnreachableGoalError as error:
        return None, ", ".join(error.binding) or str(error)
    except TensegrityError as error:
        return None, str(error)
