"""Built-in kinds of robot, one file each, which is imported when the first robot of its kind is loaded."""

from __future__ import annotations

from ..robots.robot_types import RobotType, register_late


def _structure() -> RobotType:
    from .structure import STRUCTURE

    return STRUCTURE


def _mechanism() -> RobotType:
    from .mechanism import MECHANISM

    return MECHANISM


def register_built_in_types() -> None:
    """Register structures and mechanisms as kinds of robot."""
    register_late("structure", _structure)
    register_late("mechanism", _mechanism)
