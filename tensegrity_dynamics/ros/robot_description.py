"""What never changes of a robot, published once and latched: the text of its file and the layout of its states."""

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
    """The message of a layout; robot: its name."""
    message = LayoutMessage(hash=layout.hash, kind=layout.kind, robot=robot, package_version=package_version())
    for field in NAMES:
        setattr(message, field, list(getattr(layout, field)))
    return message


def layout_of_message(message: Any) -> RobotLayout:
    """The layout that a message tells. Raises TensegrityError where its hash is not that of its names."""
    layout = RobotLayout(message.kind, *(tuple(getattr(message, field)) for field in NAMES))
    if layout.hash != message.hash:
        raise TensegrityError(
            f"robot_layout of {message.robot or 'a robot'} says the hash {message.hash!r}, its names have "
            f"{layout.hash!r}; it was made by another version of this package, or changed on the way."
        )
    return layout


def package_version() -> str:
    """Of these libraries, or nothing where they run without being installed."""
    try:
        return version("tensegrity-robotics")
    except PackageNotFoundError:
        return ""


class DescriptionPublisher:
    """Publishes `robot_file` and `robot_layout` of a robot, latched, as long as it is kept.

    Attributes:
        hash: that states carry, or empty.

    Args:
        node: of the robot's source of states, a simulator or a driver.
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
