"""The kinds of robot that come with the project, assembled and registered: one file each."""

from __future__ import annotations

from ..robots.robot_types import register_robot_type
from .mechanism import MECHANISM
from .structure import STRUCTURE

register_robot_type(STRUCTURE)
register_robot_type(MECHANISM)

__all__ = ["MECHANISM", "STRUCTURE"]
