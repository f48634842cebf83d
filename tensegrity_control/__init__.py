"""What a tensegrity robot should do: inverse kinematics, trajectories, controllers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Imported at once, since the module of the same name would take the function's place in the package otherwise.
from .inverse_kinematics import inverse_kinematics as inverse_kinematics

# The rest of the public face; loaded on first use.
_FACE = {
    "Accepted": "controller",
    "Command": "controller",
    "Controller": "controller",
    "FreeUnknowns": "free_accelerations",
    "HermiteSpline": "trajectories",
    "Inequalities": "free_accelerations",
    "InputOptimizer": "input_optimization",
    "InputProblem": "free_accelerations",
    "InputSolution": "free_accelerations",
    "NearRigidControl": "near_rigid",
    "NearRigidLaw": "near_rigid",
    "OrientationSpline": "point_to_point",
    "Plan": "plan",
    "PoseGoal": "pose_goal",
    "QuinticSpline": "point_to_point",
    "Reference": "controller",
    "RobotState": "controller",
    "Status": "controller",
    "TaskControl": "task_control",
    "TaskModel": "task_model",
    "Trajectory": "trajectories",
    "load_trajectory": "trajectory_file",
    "make_controller": "controllers",
    "minimum_jerk": "point_to_point",
    "plan_task": "task_plan",
}

__all__ = sorted([*_FACE, "inverse_kinematics"])


def __getattr__(name: str) -> Any:
    if name in _FACE:
        return getattr(import_module(f"{__name__}.{_FACE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
