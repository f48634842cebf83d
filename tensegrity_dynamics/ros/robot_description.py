"""Constant data of a robot, published once on latched topics: text of its file and layout of its states."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from std_msgs.msg import String
from tensegrity.msg import RobotLayout as LayoutMessage

from ..errors import TensegrityError
from ..robots.layout import RobotLayout
from ..robots.robot import Robot
from ..robots.robot_types import type_of
from .robot_node import LATCHED, RobotNode

ROBOT_FILE, ROBOT_LAYOUT = "robot_file", "robot_layout"
NAMES = ("node_name", "body_name", "coordinate_name", "tendon_name")


def layout_message(layout: RobotLayout, robot: str) -> LayoutMessage:
    """Message of a layout; robot: name of the robot."""
    message = LayoutMessage(hash=layout.hash, kind=layout.kind, robot=robot, package_version=package_version())
    for field in NAMES:
        setattr(message, field, list(getattr(layout, field)))
    return message


def layout_of_message(message: Any) -> RobotLayout:
    """Layout of a message. Raises TensegrityError if its hash does not match its names."""
    layout = RobotLayout(message.kind, *(tuple(getattr(message, field)) for field in NAMES))
    if layout.hash != message.hash:
        raise TensegrityError(
            f"robot_layout of {message.robot or 'a robot'} says the hash {message.hash!r}, its names have "
            f"{layout.hash!r}; it was made by another version of this package, or changed in transit."
        )
    return layout


def package_version() -> str:
    """Version of these libraries; empty if they are not installed."""
    try:
        return version("tensegrity-robotics")
    except PackageNotFoundError:
        return ""


class DescriptionPublisher:
    """Latched publication of `robot_file` and `robot_layout` of a robot, during the lifetime of this object.

    Attributes:
        hash: hash in the states, or empty.

    Args:
        node: node that publishes the states of the robot, a simulator or a driver.
    """

    def __init__(self, node: RobotNode, robot: Robot) -> None:
        self._publishers: list[Any] = []
        layout = type_of(robot).codec(robot).layout
        self.hash = "" if layout is None else layout.hash
        if robot.path is not None:
            text = String(data=robot.path.read_text(encoding="utf-8"))
            self._publish(node, String, ROBOT_FILE, text)
        if layout is not None:
            self._publish(node, LayoutMessage, ROBOT_LAYOUT, layout_message(layout, robot.name))

    def _publish(self, node: RobotNode, kind: Any, topic: str, message: Any) -> None:
        publisher = node.create_publisher(kind, topic, LATCHED)
        publisher.publish(message)
        self._publishers.append(publisher)
