"""From messages to what controllers know of a robot: positions of actuators, shape, pose and velocity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.ros.state_decoding import make_reader, pose_from_message
from tensegrity_dynamics.structures.structure import Structure

from ..controller import RobotState


class StateReader:
    """Reads the state of one robot.

    Args:
        robot: whose shape and actuators they are.
    """

    def __init__(self, robot: Robot) -> None:
        self._shapes, self._is_structure = make_reader(robot), isinstance(robot.model, Structure)
        self._actuators = [each.name for each in robot.actuators]

    def read(self, state: Any, joints: Any) -> RobotState:
        """From a StructureState and the JointState of the same time. Raises TensegrityError where a part is missing."""
        positions, seen = self.positions(joints), self.observe(state)
        if self._is_structure:
            return replace(seen, positions=positions, nodes=self._shapes.shape(state))
        return replace(seen, positions=positions, q=self._shapes.shape(state))

    def observe(self, state: Any) -> RobotState:
        """What feedback needs of a StructureState: the pose, and q and v of a mechanism; nothing where it is unsure."""
        if not state.converged:
            return RobotState()
        pose = pose_from_message(state.output_pose)
        if self._is_structure:
            return RobotState(pose=pose)
        return RobotState(pose=pose, q=self._shapes.shape(state), v=np.array(state.v, dtype=np.float64))

    def positions(self, joints: Any) -> np.ndarray:
        """(a,) of the actuators in the robot's order. Raises TensegrityError where one is missing."""
        found = {} if joints is None else dict(zip(joints.name, joints.position, strict=False))
        missing = [name for name in self._actuators if name not in found]
        if missing:
            raise TensegrityError(f"joint_states lacks {', '.join(missing)}; do all nodes run the same robot?")
        return np.array([found[name] for name in self._actuators], dtype=np.float64)
