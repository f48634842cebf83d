"""From StructureState and TendonState messages to the state of a robot in its own order."""

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
"""Columns of a body's pose that are its quaternion wxyz; ROS has w last."""


NAMES = ("node_name", "body_name", "coordinate_name")
VALUES = ("node_position", "body_pose", "q")
"""Field whose numbers each list of names counts."""


def record_of(message: Any) -> StateRecord | None:
    """What a StructureState was made of, where that was in this process; nobody may change it."""
    return getattr(message, "record", None)


def state_names(message: Any, layout: RobotLayout | None) -> tuple[tuple[str, ...], ...]:
    """Names of nodes, bodies and coordinates of a StructureState: its own, else those of the layout that it is of.

    Lists that the message has no numbers for stay empty.

    Raises:
        TensegrityError: it has the hash of another layout, or no names where no layout is known.
    """
    own = tuple(message.node_name), tuple(message.body_name), tuple(message.coordinate_name)
    hashed = getattr(message, "layout", "")  # recordings of before have none
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
    """The record of a StructureState message.

    Args:
        layout: of the robot, whose names belong to a message that carries its hash in place of names.

    Raises:
        TensegrityError: names and values of the nodes or the bodies are not equally many, a row is not whole, or the
            message is of another layout.
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
        layout=getattr(message, "layout", ""),  # recordings of before lack some
        **{name: getattr(message, name, 0.0) for name in FIGURES},
    )


def coordinate_record(message: Any, layout: RobotLayout | None = None) -> StateRecord:
    """As `state_record`, of a robot with coordinates: these alone, which say all, and not where its bodies are.

    Raises:
        TensegrityError: as there.
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
    """(n, width) of a flat field."""
    found = np.array(values, dtype=np.float64)
    if found.size % width:
        raise TensegrityError(f"{field} of the state has {found.size} numbers, which is no multiple of {width}.")
    return found.reshape(-1, width)


class StateDecoder:
    """Reads StructureState and TendonState of one robot.

    Args:
        robot: of any kind.
    """

    def __init__(self, robot: Robot) -> None:
        self._codec = type_of(robot).codec(robot)

    def state(self, message: Any) -> DecodedState:
        """Configuration and velocity of a StructureState. Raises TensegrityError where it is not of this robot."""
        return self._codec.decode(state_record(message, self._codec.layout))

    def configuration(self, message: Any) -> NDArray[np.float64]:
        """Nodes (n, 3) m of a structure, q (nq,) of a mechanism. Raises TensegrityError as `state` does."""
        return self.state(message).configuration

    def tensions(self, message: Any | None, configuration: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,) N by member or cable at a configuration, from a TendonState or None; NaN where nothing is known.

        Raises:
            TensegrityError: it is of another layout.
        """
        if message is None:
            return self._codec.tensions((), (), configuration)
        if self._codec.layout is not None and (found := getattr(message, "layout", "")):
            self._codec.layout.check(found)
        return self._codec.tensions(message.name, message.tension, configuration)
