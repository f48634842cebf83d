"""From messages to arrays in the robot's own order; needs no rclpy, because it only reads fields."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import TensegrityError, unknown_name
from ..robots.output_frame import Pose
from ..robots.robot import Robot
from ..visualization.structure_picture import shows_mechanism


class Reader(Protocol):
    """Reads the messages of one robot."""

    def shape(self, message: Any) -> NDArray[np.float64]:
        """Of a StructureState: nodes (n, 3) m of a structure, q (nq,) of a mechanism. Raises TensegrityError."""

    def tensions(self, message: Any | None, shape: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of a TendonState: (m,) N by member, or (c,) N by cable; NaN where nothing is known."""


def make_reader(robot: Robot) -> Reader:
    """The reader that suits the robot's kind of model."""
    if shows_mechanism(robot):
        from .mechanism_messages import MechanismReader

        return MechanismReader(robot)
    return ShapeReader(robot)


class ShapeReader:
    """Reads StructureState and TendonState of one robot.

    Args:
        robot: a robot whose model is a structure.
    """

    def __init__(self, robot: Robot) -> None:
        self._structure = robot.structure
        self._rows = {name: row for row, name in enumerate(self._structure.member_names)}
        for actuator in robot.actuators:  # tendons may be listed by their actuators
            self._rows.setdefault(actuator.name, self._structure.member(actuator.drives))
        driven = robot.actuated_members() if robot.actuators else np.zeros(0, dtype=np.int64)
        self._passive = np.setdiff1d(np.flatnonzero(self._structure.unilateral), driven)
        self._places: dict[tuple[str, ...], NDArray[np.int64]] = {}

    def nodes(self, message: Any) -> NDArray[np.float64]:
        """(n, 3) m of a StructureState, in the order of the structure.

        Raises:
            TensegrityError: the message lacks a node, or names one that this robot does not have.
        """
        names = tuple(message.node_name)
        if names not in self._places:
            known = self._structure.node_names
            if len(message.node_position) != len(names):
                raise TensegrityError(f"the state lists {len(names)} nodes but {len(message.node_position)} positions.")
            for name in names:
                if name not in known:
                    raise TensegrityError(unknown_name("node", name, known) + " Do all nodes run the same robot?")
            missing = [name for name in known if name not in names]
            if missing:
                raise TensegrityError(f"the state lacks the nodes {', '.join(missing)}.")
            self._places = {names: np.array([names.index(name) for name in known], dtype=np.int64)}
        points = np.array([(point.x, point.y, point.z) for point in message.node_position], dtype=np.float64)
        return points.reshape(-1, 3)[self._places[names]]

    shape = nodes

    def tensions(self, message: Any | None, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,) N by member: as the TendonState says; of other springs and passive tendons what their stretch gives.

        NaN where nothing is known (bars, and driven tendons that the message does not name). Unknown names are passed
        over: a driver may report more than the structure has.
        """
        structure = self._structure
        tensions = np.full(len(structure.member_names), np.nan)
        rows = self._passive
        ends = structure.members[rows]
        stretch = np.linalg.norm(nodes[ends[:, 0]] - nodes[ends[:, 1]], axis=1) - structure.rest_lengths[rows]
        tensions[rows] = structure.stiffness[rows] * np.maximum(stretch, 0.0)
        if message is not None:
            for name, tension in zip(message.name, message.tension, strict=False):
                row = self._rows.get(name)
                if row is not None:
                    tensions[row] = tension
        return tensions


def pose_from_message(message: Any) -> Pose | None:
    """Position (3,) m and quaternion wxyz (4,) of a geometry_msgs/Pose.

    None where it is not finite, has no orientation, or was never set: nobody means exactly the world's own frame.
    """
    position = np.array([message.position.x, message.position.y, message.position.z])
    quaternion = np.array([message.orientation.w, message.orientation.x, message.orientation.y, message.orientation.z])
    norm = float(np.linalg.norm(quaternion))
    if not np.all(np.isfinite(position)) or not np.isfinite(norm) or norm < 1e-6:
        return None
    if not np.any(position) and quaternion.tolist() == [1.0, 0.0, 0.0, 0.0]:
        return None
    return position, quaternion / norm


def seconds(stamp: Any) -> float:
    """Time of a builtin_interfaces/Time [s]."""
    return stamp.sec + 1e-9 * stamp.nanosec


def fill_pose(message: Any, position: ArrayLike, quaternion: ArrayLike) -> Any:
    """Write position (3,) m and quaternion wxyz (4,) into a geometry_msgs/Pose; returns it."""
    message.position.x, message.position.y, message.position.z = np.asarray(position, dtype=np.float64).tolist()
    orientation = message.orientation
    orientation.w, orientation.x, orientation.y, orientation.z = np.asarray(quaternion, dtype=np.float64).tolist()
    return message
