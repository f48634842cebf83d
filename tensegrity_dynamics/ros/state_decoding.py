"""Conversion of StructureState and TendonState messages to the state of a robot in its order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..robots.layout import RobotLayout
from ..robots.robot import Robot
from ..robots.robot_types import type_of
from ..robots.state_record import FIGURES, DecodedState, StateRecord
from .geometry_messages import state_pose

W_FIRST = [6, 3, 4, 5]
"""Columns of the quaternion wxyz in the pose of a body; ROS has w last."""


NAMES = ("node_name", "body_name", "coordinate_name")
VALUES = ("node_position", "body_pose", "q")
"""Field of the values for each list of names."""


def record_of(message: Any) -> StateRecord | None:
    """Record of a StructureState created in this process, else None; it must not be changed."""
    return getattr(message, "record", None)


def state_names(message: Any, layout: RobotLayout | None) -> tuple[tuple[str, ...], ...]:
    """Names of nodes, bodies and coordinates of a StructureState: those of the message, else those of its layout.

    Lists without values in the message are empty.

    Raises:
        TensegrityError: the message has the hash of another layout, or has no names and there is no layout.
    """
    own = tuple(message.node_name), tuple(message.body_name), tuple(message.coordinate_name)
    hashed = getattr(message, "layout", "")  # missing in old recordings
    if not hashed or any(own):
        return own
    if layout is None:
        raise TensegrityError(
            f"the state has the layout {hashed[:20]!r} and no names; listen to robot_layout for them."
        )
    layout.check(hashed)
    return tuple(
        getattr(layout, names) if len(getattr(message, values)) else ()
        for names, values in zip(NAMES, VALUES, strict=True)
    )


def state_record(message: Any, layout: RobotLayout | None = None) -> StateRecord:
    """Record of a StructureState message.

    Args:
        layout: layout of the robot with the names, for messages that contain its hash in place of names.

    Raises:
        TensegrityError: the numbers of names and values of nodes or bodies differ, a row is incomplete, or the message
            has another layout.
    """
    nodes, bodies, coordinates = state_names(message, layout)
    poses = _rows(message.body_pose, 7, "body_pose")
    where = _rows(message.node_position, 3, "node_position")
    for what, names, values in (("nodes", nodes, where), ("bodies", bodies, poses)):
        if len(names) != len(values):
            raise TensegrityError(f"the state lists {len(names)} {what} but {len(values)} positions.")
    twist = message.output_twist
    return StateRecord(
        node_name=nodes,
        node_position=where,
        node_velocity=_rows(message.node_velocity, 3, "node_velocity"),
        body_name=bodies,
        body_position=poses[:, :3],
        body_quaternion=poses[:, W_FIRST],
        body_twist=_rows(message.body_twist, 6, "body_twist"),
        coordinate_name=coordinates,
        q=np.array(message.q, dtype=np.float64),
        v=np.array(message.v, dtype=np.float64),
        output_name=message.output_name,
        output_pose=state_pose(message),
        output_twist=np.array(
            (twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.x, twist.angular.y, twist.angular.z)
        ),
        converged=message.converged,
        layout=getattr(message, "layout", ""),  # missing in old recordings
        **{name: getattr(message, name, 0.0) for name in FIGURES},
    )


def coordinate_record(message: Any, layout: RobotLayout | None = None) -> StateRecord:
    """As `state_record`, for a robot with coordinates: only the coordinates, without the redundant poses of bodies.

    Raises:
        TensegrityError: as `state_record`.
    """
    nodes, bodies, coordinates = state_names(message, layout)
    for what, names, values, width in (
        ("nodes", nodes, message.node_position, 3), ("bodies", bodies, message.body_pose, 7)
    ):  # fmt: skip
        if len(values) != width * len(names):
            raise TensegrityError(f"the state lists {len(names)} {what} but {len(values) / width:g} positions.")
    return StateRecord(
        coordinate_name=coordinates,
        q=np.array(message.q, dtype=np.float64),
        v=np.array(message.v, dtype=np.float64),
        layout=getattr(message, "layout", ""),
    )


def _rows(values: Any, width: int, field: str) -> NDArray[np.float64]:
    """(n, width) array from a flat field."""
    found = np.array(values, dtype=np.float64)
    if found.size % width:
        raise TensegrityError(f"{field} of the state has {found.size} numbers, which is no multiple of {width}.")
    return found.reshape(-1, width)


class StateDecoder:
    """Decoder for StructureState and TendonState messages of one robot.

    Args:
        robot: robot of any kind.
    """

    def __init__(self, robot: Robot) -> None:
        self._codec = type_of(robot).codec(robot)

    def state(self, message: Any) -> DecodedState:
        """Configuration and velocity of a StructureState. Raises TensegrityError if it belongs to another robot."""
        return self._codec.decode(state_record(message, self._codec.layout))

    def configuration(self, message: Any) -> NDArray[np.float64]:
        """Nodes (n, 3) [m] of a structure, q (nq,) of a mechanism. Raises TensegrityError as `state`."""
        return self.state(message).configuration

    def tensions(self, message: Any | None, configuration: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,) tensions [N] by member or cable at a configuration, from a TendonState or None; NaN if not available.

        Raises:
            TensegrityError: the message has another layout.
        """
        if message is None:
            return self._codec.tensions((), (), configuration)
        if self._codec.layout is not None and (found := getattr(message, "layout", "")):
            self._codec.layout.check(found)
        return self._codec.tensions(message.name, message.tension, configuration)
