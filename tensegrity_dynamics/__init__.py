"""What a tensegrity robot is and how it moves: robots, structures, shapes, prestress, mechanisms, simulation."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The public face (DESIGN section 3); loaded on first use, so that importing one part does not load the others.
_FACE = {
    "Actuator": "robot",
    "BusError": "errors",
    "CommandRefused": "errors",
    "InfeasibleControlError": "errors",
    "NoEquilibriumError": "errors",
    "OutputFrame": "output_frame",
    "Robot": "robot",
    "RobotFileError": "errors",
    "Shape": "statics.shape",
    "ShapeSolver": "statics.solver",
    "Simulation": "simulation",
    "Structure": "structure",
    "TensegrityError": "errors",
    "UnreachableGoalError": "errors",
    "analyze_prestress": "statics.prestress",
    "competing": "statics.competing",
    "forward_kinematics": "statics.forward_kinematics",
    "load_robot": "robot_file",
    "make_structure": "structure",
    "parse_robot": "robot_file",
    "shipped_robots": "robot_file",
}

__all__ = sorted(_FACE)


def __getattr__(name: str) -> Any:
    if name in _FACE:
        return getattr(import_module(f"{__name__}.{_FACE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
