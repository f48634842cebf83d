"""From StructureState and TendonState messages to the state of a robot in its own order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..robots.robot import Robot
from ..robots.robot_types import type_of
from ..robots.state_record import DecodedState, StateRecord
from .geometry_messages import pose_from_message


def state_record(message: Any) -> StateRecord:
    """The record of a StructureState message.

    Raises:
        TensegrityError: names and values of the nodes or the bodies are not equally many.
    """
    nodes, bodies = tuple(message.node_name), tuple(message.body_name)
    for what, names, values in (("nodes", nodes, message.node_position), ("bodies", bodies, message.body_pose)):
        if len(names) != len(values):
            raise TensegrityError(f"the state lists {len(names)} {what} but {len(values)} positions.")
    poses = [(p.position.x, p.position.y, p.position.z, p.orientation.w, p.orientation.x, p.orientation.y,
              p.orientation.z) for p in message.body_pose]  # fmt: skip
    placed = np.array(poses, dtype=np.float64).reshape(-1, 7)
    twist = message.output_twist
    return StateRecord(
        node_name=nodes,
        node_position=_vectors(message.node_position),
        node_velocity=_vectors(message.node_velocity),
        body_name=bodies,
        body_position=placed[:, :3],
        body_quaternion=placed[:, 3:],
        body_twist=np.hstack(
            (_vectors([t.linear for t in message.body_twist]), _vectors([t.angular for t in message.body_twist]))
        ),
        coordinate_name=tuple(message.coordinate_name),
        q=np.array(message.q, dtype=np.float64),
        v=np.array(message.v, dtype=np.float64),
        output_name=message.output_name,
        output_pose=pose_from_message(message.output_pose),
        output_twist=np.hstack((_vectors([twist.linear]), _vectors([twist.angular])))[0],
        residual=message.residual,
        converged=message.converged,
    )


def _vectors(points: Any) -> NDArray[np.float64]:
    return np.array([(point.x, point.y, point.z) for point in points], dtype=np.float64).reshape(-1, 3)


class StateDecoder:
    """Reads StructureState and TendonState of one robot.

    Args:
        robot: of any kind.
    """

    def __init__(self, robot: Robot) -> None:
        self._codec = type_of(robot).codec(robot)

    def state(self, message: Any) -> DecodedState:
        """Configuration and velocity of a StructureState. Raises TensegrityError where it is not of this robot."""
        return self._codec.decode(state_record(message))

    def configuration(self, message: Any) -> NDArray[np.float64]:
        """Nodes (n, 3) m of a structure, q (nq,) of a mechanism. Raises TensegrityError as `state` does."""
        return self.state(message).configuration

    def tensions(self, message: Any | None, configuration: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,) N by member or cable at a configuration, from a TendonState or None; NaN where nothing is known."""
        if message is None:
            return self._codec.tensions((), (), configuration)
        return self._codec.tensions(message.name, message.tension, configuration)
