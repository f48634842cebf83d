"""From arrays to messages; the counterpart of `shape_messages`."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Vector3
from numpy.typing import NDArray
from tensegrity.msg import StructureState

from ..output_frame import Pose
from .shape_messages import fill_pose


def time_message(nanoseconds: int) -> Time:
    """A time of so many nanoseconds."""
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def nanoseconds(stamp: Any) -> int:
    """Nanoseconds of a builtin_interfaces/Time."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def fill_twist(message: Any, twist: NDArray[np.float64]) -> Any:
    """Write a twist (6,), linear then angular, into a geometry_msgs/Twist; returns it."""
    values = np.asarray(twist, dtype=np.float64).tolist()
    message.linear.x, message.linear.y, message.linear.z = values[:3]
    message.angular.x, message.angular.y, message.angular.z = values[3:]
    return message


def structure_state(
    stamp: Time,
    frame: str,
    source: str,
    names: tuple[str, ...],
    nodes: NDArray[np.float64],
    velocities: NDArray[np.float64],
    output: str,
    pose: Pose | None,
    twist: NDArray[np.float64] | None,
    residual: float,
    converged: bool,
) -> StructureState:
    """A StructureState of nodes (n, 3) m moving at velocities (n, 3) m/s."""
    message = StructureState(source=source, node_name=list(names), residual=float(residual), converged=bool(converged))
    message.header.stamp, message.header.frame_id = stamp, frame
    message.node_position = [Point(x=x, y=y, z=z) for x, y, z in nodes.tolist()]
    message.node_velocity = [Vector3(x=x, y=y, z=z) for x, y, z in velocities.tolist()]
    message.output_name = output
    if pose is not None:
        fill_pose(message.output_pose, *pose)
    if twist is not None:
        fill_twist(message.output_twist, twist)
    return message
