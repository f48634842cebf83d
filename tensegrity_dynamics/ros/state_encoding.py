"""From arrays to messages; the counterpart of `shape_messages`."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Twist, Vector3
from geometry_msgs.msg import Pose as PoseMessage
from numpy.typing import NDArray
from tensegrity.msg import StructureState

from ..mechanisms.mechanism_model import BodyPoses
from ..robots.output_frame import Pose
from ..robots.robot import Robot
from ..structures.structure import Structure
from .state_decoding import fill_pose

WORLD = "world"


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


class StructureWriter:
    """StructureState of a structure.

    Args:
        robot: whose nodes they are.
    """

    def __init__(self, robot: Robot) -> None:
        self.tendons = tuple(
            name
            for name, kind in zip(robot.structure.member_names, robot.structure.kinds, strict=True)
            if kind != "bar"
        )
        self._names = robot.structure.node_names
        self._output = robot.outputs[0].name if robot.outputs else ""

    def write(
        self, stamp: Time, source: str, state: Any, pose: Pose | None, twist: NDArray[np.float64] | None,
        residual: float = 0.0, converged: bool = True,
    ) -> StructureState:  # fmt: skip
        """The message of a state that has nodes (n, 3) m and velocities (n, 3) m/s."""
        return structure_state(
            stamp, WORLD, source, self._names, state.nodes, state.velocities, self._output, pose, twist, residual,
            converged,
        )  # fmt: skip


class MechanismWriter:
    """StructureState of a mechanism.

    Args:
        robot: whose bodies and coordinates they are.
    """

    def __init__(self, robot: Robot) -> None:
        model = robot.mechanism
        self.tendons = model.cable_names
        self._bodies, self._places = list(model.body_names), BodyPoses(model)
        self._coordinates = list(model.mechanism.coordinate_names())
        self._output = robot.outputs[0].name if robot.outputs else ""

    def write(
        self, stamp: Time, source: str, state: Any, pose: Pose | None, twist: NDArray[np.float64] | None,
        residual: float = 0.0, converged: bool = True,
    ) -> StructureState:  # fmt: skip
        """The message of a state that has q (nq,) and v (nv,)."""
        places = self._places.move(state.q, state.v)
        message = StructureState(source=source, residual=float(residual), converged=bool(converged))
        message.header.stamp, message.header.frame_id = stamp, WORLD
        message.body_name, message.coordinate_name = self._bodies, self._coordinates
        message.body_pose = [
            fill_pose(PoseMessage(), position, quaternion)
            for position, quaternion in zip(places.positions, places.quaternions, strict=True)
        ]
        message.body_twist = [fill_twist(Twist(), each) for each in places.twists]
        message.q, message.v = state.q.tolist(), state.v.tolist()
        message.output_name = self._output
        if pose is not None:
            fill_pose(message.output_pose, *pose)
        if twist is not None:
            fill_twist(message.output_twist, twist)
        return message


def state_writer(robot: Robot) -> StructureWriter | MechanismWriter:
    """The writer that suits the robot's model."""
    return StructureWriter(robot) if isinstance(robot.model, Structure) else MechanismWriter(robot)
