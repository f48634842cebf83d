"""From messages to what controllers know of a robot: positions of actuators, shape, pose and velocity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robot import Robot
from tensegrity_dynamics.ros.shape_messages import ShapeReader, pose_from_message
from tensegrity_dynamics.structure import Structure

from ..controller import RobotState, positions_of


class StructureReader:
    """Reads the state of a structure.

    Args:
        robot: whose nodes and actuators they are.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._shapes = robot, ShapeReader(robot)

    def read(self, state: Any, joints: Any) -> RobotState:
        """From a StructureState and the JointState of the same time. Raises TensegrityError where a part is missing."""
        positions = positions_of(self._robot, _by_actuator(self._robot, joints))
        return RobotState(
            positions=positions, nodes=self._shapes.nodes(state), pose=pose_from_message(state.output_pose)
        )


class MechanismReader:
    """Reads the state of a mechanism.

    Args:
        robot: whose coordinates and actuators they are.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._mechanism = robot.mechanism.mechanism
        self._names = self._mechanism.coordinate_names()

    def read(self, state: Any, joints: Any) -> RobotState:
        """From a StructureState and the JointState of the same time. Raises TensegrityError where a part is missing."""
        if tuple(state.coordinate_name) != self._names or len(state.q) != self._mechanism.position_count:
            raise TensegrityError(
                f"the state has {len(state.coordinate_name)} coordinates, {self._robot.name} has {len(self._names)} of "
                "its own. Do all nodes run the same robot?"
            )
        found = _by_actuator(self._robot, joints)
        positions: NDArray[np.float64] = np.array([found[each.name] for each in self._robot.actuators])
        return RobotState(
            positions=positions, pose=pose_from_message(state.output_pose), q=np.array(state.q), v=np.array(state.v)
        )


def state_reader(robot: Robot) -> StructureReader | MechanismReader:
    """The reader that suits the robot's model."""
    return StructureReader(robot) if isinstance(robot.model, Structure) else MechanismReader(robot)


def _by_actuator(robot: Robot, joints: Any) -> dict[str, float]:
    names = [each.name for each in robot.actuators]
    found = {name: place for name, place in zip(joints.name, joints.position, strict=False) if name in names}
    missing = [name for name in names if name not in found]
    if missing:
        raise TensegrityError(f"joint_states lacks {', '.join(missing)}; do all nodes run the same robot?")
    return found
