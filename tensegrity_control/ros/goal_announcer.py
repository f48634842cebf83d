"""The latched topic `goal`: requests to the controller with its answers, one message per request.

Goals arrive by services and an action, which other nodes cannot observe. The topic publishes them, and a replay of its
recording can repeat the same requests at the same states.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from rclpy.qos import DurabilityPolicy, QoSProfile
from tensegrity.msg import Goal
from tensegrity.srv import SetGoalPose

from tensegrity_dynamics.ros.geometry_messages import LATEST, time_message

GOALS = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""A recording keeps every request, and its recorder may read late on a busy computer. Subscribers of depth 1 that come
later get the last one."""


class GoalAnnouncer:
    """Publishes requests with their answers.

    Args:
        node: controller node.
        stamp: returns the time [ns] of the state that the controller answered last, or None.
    """

    def __init__(self, node: Any, stamp: Callable[[], int | None]) -> None:
        self._stamp = stamp
        self._publisher = node.create_publisher(Goal, "goal", GOALS)

    def announced(
        self, answer: Callable[[Any, Any], Awaitable[SetGoalPose.Response]]
    ) -> Callable[..., Awaitable[SetGoalPose.Response]]:
        """Wrap a callback of set_goal_pose so that its answers are published; the third argument is `asked_by`."""

        async def announce(
            request: SetGoalPose.Request, response: SetGoalPose.Response, asked_by: str = "service set_goal_pose"
        ) -> SetGoalPose.Response:
            given = await answer(request, response)
            message = Goal(
                request=Goal.POSE, asked_by=asked_by, waypoint=[request.target.pose], orientation=request.orientation,
                duration=request.duration, profile=request.profile,
                accepted=given.accepted, reason=given.reason, predicted_arrival=given.predicted_arrival,
                nearest=given.nearest, binding=given.binding,
            )  # fmt: skip
            self._publish(message, request.target.header.frame_id)
            return given

        return announce

    def trajectory(self, request: Any, refused: str | None, arrival: float = 0.0) -> None:
        """Publish a goal of follow_trajectory: refused with a reason, or (None) accepted with its arrival [s]."""
        message = Goal(
            request=Goal.TRAJECTORY, asked_by="action follow_trajectory",
            waypoint=request.waypoint, time_from_start=request.time_from_start,
            profile=request.interpolation, position_tolerance=request.position_tolerance,
            orientation_tolerance=request.orientation_tolerance, accepted=refused is None, reason=refused or "",
            predicted_arrival=time_message(round(1e9 * min(arrival, LATEST))),
        )  # fmt: skip
        self._publish(message, request.header.frame_id)

    def actuators(self, asked_by: str, trajectory: Any, tolerance: float, refused: str | None, arrival: float) -> None:
        """Publish a trajectory of actuators: refused with a reason, or (None) accepted with its arrival [s]."""
        message = Goal(
            request=Goal.ACTUATORS, asked_by=asked_by, trajectory=trajectory,
            accepted=refused is None, reason=refused or "", position_tolerance=tolerance,
            predicted_arrival=time_message(round(1e9 * min(arrival, LATEST))),
        )  # fmt: skip
        self._publish(message, trajectory.header.frame_id)

    def trigger(self, request: int, asked_by: str, accepted: bool, reason: str) -> None:
        """Publish `Goal.HOLD`, `Goal.STOP` or `Goal.CANCEL`."""
        self._publish(Goal(request=request, asked_by=asked_by, accepted=accepted, reason=reason), "")

    def _publish(self, message: Goal, frame: str) -> None:
        message.header.stamp = time_message(self._stamp() or 0)
        message.header.frame_id = frame
        self._publisher.publish(message)
