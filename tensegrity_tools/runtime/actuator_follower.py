"""Execution of an actuator motion on the running robot by the action `follow_actuators`, with monitoring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Duration
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from tensegrity.action import FollowActuators
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from tensegrity_control.trajectories.actuator_table import ActuatorTable
from tensegrity_dynamics.errors import TensegrityError

from .robot_client import Watcher
from .watched_action import WatchedAction


@dataclass(frozen=True)
class FollowedActuators:
    """Result of a motion by actuator: error at the end, and largest error during the motion [m or rad]."""

    success: bool
    reason: str
    error: dict[str, float]
    largest: float


def trajectory_message(table: ActuatorTable) -> JointTrajectory:
    """Trajectory message of a table."""
    message = JointTrajectory(joint_names=list(table.names))
    for k, when in enumerate(table.times.tolist()):
        nanoseconds = round(1e9 * when)
        point = JointTrajectoryPoint(
            positions=table.positions[k].tolist(),
            time_from_start=Duration(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9),
        )
        if table.velocities is not None:
            point.velocities = table.velocities[k].tolist()
        if table.accelerations is not None:
            point.accelerations = table.accelerations[k].tolist()
        message.points.append(point)
    return message


class ActuatorFollower:
    """Client for motions of actuators on the running robot.

    Args:
        watcher: client of the robot.
    """

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self._action = WatchedAction(watcher, FollowActuators, "follow_actuators", "trajectories of actuators")
        self._positions: dict[str, float] = {}
        self._largest = 0.0
        watcher.node.create_subscription(JointState, "joint_states", self._keep_joints, QoSProfile(depth=1))

    def close(self) -> None:
        """Close the action client."""
        self._action.close()

    def positions(self, names: Sequence[str]) -> np.ndarray:
        """Present positions of these actuators. Raises TensegrityError if no node publishes them."""
        if not self.watcher.wait_until(lambda: all(name in self._positions for name in names), 5.0):
            missing = [name for name in names if name not in self._positions]
            raise TensegrityError(f"joint_states has no {', '.join(missing)}; is this the robot that runs?")
        return np.array([self._positions[name] for name in names])

    def follow(self, table: ActuatorTable, show: Callable[[float], None] = lambda part: None) -> FollowedActuators:
        """Send a table and wait for its end.

        Args:
            show: function that is called often with the progress of the motion, 0 to 1.

        Raises:
            TensegrityError: no node offers the action.
            KeyboardInterrupt: interrupted by the user; the motion is cancelled and the robot holds.
        """
        self._largest = 0.0
        goal = FollowActuators.Goal(trajectory=trajectory_message(table))
        result, reason = self._action.run(goal, self._keep, show)
        errors = dict(zip(table.names, result.error, strict=False))
        return FollowedActuators(bool(result.success), reason, errors, self._largest)

    def _keep(self, feedback: FollowActuators.Feedback) -> None:
        self._largest = max(self._largest, *(abs(each) for each in feedback.error), 0.0)

    def _keep_joints(self, message: JointState) -> None:
        self._positions = dict(zip(message.name, message.position, strict=False))
