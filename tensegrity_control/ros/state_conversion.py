"""Conversion of messages to states for controllers (positions, configuration, pose, velocity), and of commands to
messages."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from tensegrity.msg import ActuatorCommand

from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.ros.geometry_messages import pose_from_values, state_pose
from tensegrity_dynamics.ros.quick_messages import header, quick_message
from tensegrity_dynamics.ros.state_decoding import coordinate_record, record_of, state_names, state_record
from tensegrity_dynamics.ros.state_encoding import WORLD

from ..controller import Command, RobotState

MODES = {each.value: getattr(ActuatorCommand, each.name) for each in Mode}


def command_message(
    command: Command, source: str, session: int, period: float, stamp: Time, newest: Time
) -> ActuatorCommand:
    """Message of a command for the simulator and the driver.

    Args:
        source: name of the sender.
        session: session of the source.
        period: s between two commands, or 0.
        stamp: stamp of the state that the command answers.
        newest: stamp of the newest actuator reading at that time.
    """
    values = {"effort" if command.mode == "impedance" else "value": command.values}
    if command.mode == "impedance":
        values |= {field: getattr(command, field) for field in ("position", "velocity", "stiffness", "damping")}
    elif command.mode == "position" and command.velocity is not None:
        values["velocity"] = command.velocity
    return quick_message(
        ActuatorCommand, header=header(stamp, WORLD), source=source, session=session, newest_reading=newest,
        period=period, mode=MODES[command.mode], name=list(command.names),
        **{name: each.tolist() for name, each in values.items()},
    )  # fmt: skip


class StateReader:
    """Reads the state of one robot.

    Args:
        robot: robot with this configuration and these actuators.
    """

    def __init__(self, robot: Robot) -> None:
        self._codec = type_of(robot).codec(robot)
        self._actuators = [each.name for each in robot.actuators]

    def check(self, state: Any) -> None:
        """Raise TensegrityError if a StructureState has the layout of another robot."""
        record, layout = record_of(state), self._codec.layout
        if record is None or not record.layout or layout is None:
            state_names(state, layout)
        else:
            layout.check(record.layout)

    def read(self, state: Any, joints: Any) -> RobotState:
        """State from a StructureState and the JointState of the same time. Raises TensegrityError if a part is
        missing."""
        positions, seen = self.positions(joints), self.observe(state)
        configuration = self._codec.decode(state_record(state, self._codec.layout)).configuration
        if len(state.q) or state.coordinate_name:
            return replace(seen, positions=positions, q=configuration)
        return replace(seen, positions=positions, nodes=configuration)

    def observe(self, state: Any, age: float = 0.0) -> RobotState:
        """State for feedback from a StructureState: pose, and nodes, or q and v of robots with coordinates; empty if
        the estimate has not converged.

        Args:
            age: s, see `RobotState`.
        """
        if not state.converged:
            return RobotState(age=age)
        inside = record_of(state)
        if inside is not None and inside.coordinate_name:
            decoded = self._codec.decode(inside)
            at = inside.output_pose
            pose = None if at is None else pose_from_values(at[0].tolist(), at[1].tolist())
            return RobotState(pose=pose, q=decoded.configuration.copy(), v=decoded.velocity.copy(), age=age)
        pose = state_pose(state)
        if not (len(state.q) or state.coordinate_name):
            with suppress(TensegrityError):  # the pose alone is enough for most controllers
                record = state_record(state, self._codec.layout)
                return RobotState(pose=pose, nodes=self._codec.decode(record).configuration, age=age)
            return RobotState(pose=pose, age=age)
        decoded = self._codec.decode(coordinate_record(state, self._codec.layout))
        return RobotState(pose=pose, q=decoded.configuration, v=decoded.velocity, age=age)

    def names_actuators(self, joints: Any) -> bool:
        """Whether a JointState has positions of all actuators of the robot."""
        return len(joints.position) >= len(joints.name) and set(self._actuators).issubset(joints.name)

    def positions(self, joints: Any) -> np.ndarray:
        """(a,) of the actuators in the order of the robot. Raises TensegrityError if one is missing."""
        positions = {} if joints is None else dict(zip(joints.name, joints.position, strict=False))
        missing = [name for name in self._actuators if name not in positions]
        if missing:
            raise TensegrityError(f"joint_states lacks {', '.join(missing)}; do all nodes run the same robot?")
        return np.array([positions[name] for name in self._actuators], dtype=np.float64)
