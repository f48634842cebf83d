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
    "Plan": "plan",
    "PoseGoal": "pose_goal",
    "Reference": "controller",
    "RobotState": "controller",
    "Status": "controller",
    "make_controller": "controllers",
}

__all__ = sorted([*_FACE, "inverse_kinematics"])


def __getattr__(name: str) -> Any:
    if name in _FACE:
        return getattr(import_module(f"{__name__}.{_FACE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
