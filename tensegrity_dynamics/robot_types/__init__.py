"""The kinds of robot that come with the project, one file each, which is imported for the first robot of its kind."""

from __future__ import annotations

from ..robots.robot_types import RobotType, register_late


def _structure() -> RobotType:
    from .structure import STRUCTURE

    return STRUCTURE


def _mechanism() -> RobotType:
    from .mechanism import MECHANISM

    return MECHANISM


def register_built_in_types() -> None:
    """Let robot files describe structures and mechanisms."""
    register_late("structure", _structure)
    register_late("mechanism", _mechanism)
