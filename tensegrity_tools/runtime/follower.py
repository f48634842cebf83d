"""Execution of an output motion on the running robot by the action `follow_trajectory`, with monitoring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Pose as RosPose
from tensegrity.action import FollowTrajectory

from tensegrity_control.trajectories.pose_trajectory import Waypoint
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.output_frame import OutputFrame
from tensegrity_dynamics.ros.geometry_messages import fill_pose

from .robot_client import Watcher
from .watched_action import WatchedAction

ARRIVED = 1e-3, np.radians(0.2)
"""Tolerances for the arrival at the first waypoint [m, rad]."""
SETTLING = 10.0
"""Additional time for the motion to the first waypoint, beyond the predicted duration, in the robot's time [s]."""


@dataclass(frozen=True)
class Followed:
    """Result of a motion: errors relative to the plan at the end, and largest errors during the motion [m, rad]."""

    success: bool
    reason: str
    position_error: float
    orientation_error: float
    largest: tuple[float, float]


class Follower:
    """Client for one output motion on the running robot.

    Args:
        watcher: client of the robot. output: frame that moves.
    """

    def __init__(self, watcher: Watcher, output: OutputFrame) -> None:
        self.watcher, self._output = watcher, output
        self._action = WatchedAction(watcher, FollowTrajectory, "follow_trajectory", "trajectories")
        self._largest = [0.0, 0.0]

    def close(self) -> None:
        """Close the action client."""
        self._action.close()

    def away(self, first: Waypoint) -> tuple[float, float]:
        """Distance [m] and angle [rad] from the robot to the first waypoint."""
        return self._output.distance_to_request(first[1], first[2], self.watcher.pose)

    def approach(self, first: Waypoint) -> None:
        """Move to the first waypoint. Raises TensegrityError if the goal is refused or not reached."""
        answer = self.watcher.send_goal(first[1], first[2])
        if not answer.accepted:
            raise TensegrityError(f"the first waypoint cannot be gone to: {answer.reason}")
        arrival = answer.predicted_arrival.sec + 1e-9 * answer.predicted_arrival.nanosec
        while self.watcher.time < arrival + SETTLING:
            self.watcher.spin(0.1)
            self.watcher.check_there(self.watcher.offered("set_goal_pose"))
            if self.watcher.time >= arrival and not self.watcher.moving and self._there(first):
                return
        distance, angle = self.away(first)
        raise TensegrityError(
            f"the robot is still {1e3 * distance:.2f} mm and {np.degrees(angle):.2f} deg from the first waypoint."
        )

    def _there(self, first: Waypoint) -> bool:
        distance, angle = self.away(first)
        return distance <= ARRIVED[0] and angle <= ARRIVED[1]

    def follow(
        self, waypoints: Sequence[Waypoint], interpolation: str, show: Callable[[float], None] = lambda part: None
    ) -> Followed:
        """Send the waypoints after the first, at which the robot must be, and wait for the end.

        Args:
            interpolation: interpolation of the action.
            show: function that is called often with the progress of the motion, 0 to 1.

        Raises:
            TensegrityError: no node offers the action, or the motion is refused.
            KeyboardInterrupt: interrupted by the user; the motion is cancelled and the robot holds.
        """
        goal = FollowTrajectory.Goal(interpolation=interpolation)
        goal.header.frame_id = "world"
        for when, position, quaternion in waypoints[1:]:
            nanoseconds = round(1e9 * when)
            goal.time_from_start.append(Duration(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9))
            goal.waypoint.append(fill_pose(RosPose(), position, (0.0,) * 4 if quaternion is None else quaternion))
        result, reason = self._action.run(goal, self._keep, show)
        errors = float(result.position_error), float(result.orientation_error)
        return Followed(bool(result.success), reason, *errors, (self._largest[0], self._largest[1]))

    def _keep(self, feedback: FollowTrajectory.Feedback) -> None:
        self._largest[0] = max(self._largest[0], feedback.position_error)
        self._largest[1] = max(self._largest[1], feedback.orientation_error)
