"""Reachability of many poses in a row: searched from a neighbour first, then from home.

The nearest pose to an unreachable goal, which `plan_path` searches for its message, is not searched here.
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
    """Equilibrium at a goal, or None with the reason.

    Args:
        near: an equilibrium near the goal, such as that of the previous pose.
        home: default start of a search; the goal counts as unreachable if neither start leads to it.
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
        return None, ", ".join(error.binding) or error.cause or str(error)
    except TensegrityError as error:
        return None, str(error)
