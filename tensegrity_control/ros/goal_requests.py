"""Goal poses from the service `set_goal_pose` and the topic `goal_pose`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped, Quaternion
from tensegrity.srv import SetGoalPose

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.ros.geometry_messages import LATEST, fill_pose, time_message
from tensegrity_dynamics.ros.robot_node import STATE

REPLACED = "a new goal replaced it"
"""Reason for the end of a trajectory on whose way another goal came."""
STREAM_PAUSE = 1.0
"""Pause between two goals on `goal_pose` that starts a new stream [s]."""


def pose_asked(request: SetGoalPose.Request) -> Pose:
    """Pose of a request, with a zero quaternion where the orientation is kept.

    Raises:
        TensegrityError: the request is empty, or the quaternion contradicts the field `orientation`.
    """
    if request == SetGoalPose.Request():
        raise TensegrityError("the request is empty; fill in target, and its frame where the origin itself is meant.")
    turn = request.target.pose.orientation
    quaternion = (turn.w, turn.x, turn.y, turn.z)
    if request.orientation == SetGoalPose.Request.SET:
        if not any(quaternion):
            raise TensegrityError("orientation is SET, but the quaternion of target is zero; give one, or KEEP.")
        return request.target.pose
    if request.orientation != SetGoalPose.Request.KEEP:
        raise TensegrityError(f"orientation is {request.orientation}; give 0 (KEEP) or 1 (SET).")
    if any(quaternion) and quaternion != (1.0, 0.0, 0.0, 0.0):  # a quaternion that was left out arrives as w = 1
        raise TensegrityError("target has a quaternion, but orientation is KEEP (0); give 1 (SET) to turn to it.")
    return Pose(position=request.target.pose.position, orientation=Quaternion(w=0.0))


class PoseGoalRequests:
    """Service and topic; see the module.

    Args:
        node: controller node, whose planner and controller make the motions.
        failures: exceptions that refuse a goal with their words instead of ending the node.

    Attributes:
        streamed: number of goals of the topic that were taken at once. refused: why the last goal of the topic was
            refused; empty if it was taken.
    """

    def __init__(self, node: Any, failures: tuple[type[Exception], ...]) -> None:
        self._node, self._failures = node, failures
        self.streamed, self.refused, self._streamed_at = 0, "", -np.inf
        self._newest_goal: PoseStamped | None = None  # newest goal of the topic, still to be planned
        self._newest_plan: Coroutine[Any, Any, None] | None = None  # task that plans it
        node.create_subscription(PoseStamped, "goal_pose", self.take, STATE)
        # reentrant: control continues during planning, and a second goal is refused at once
        self._asked = node.asked.announced(self.answer)
        node.create_service(SetGoalPose, "set_goal_pose", self._asked, callback_group=node.attention.prompt)

    def close(self) -> None:
        """End the task that plans goals of the topic."""
        if self._newest_plan is not None:
            self._newest_plan.close()  # it may not have started before the executor ended

    def diagnostics(self) -> dict[str, Any]:
        """Values of the diagnostics."""
        values: dict[str, Any] = {}
        if self.streamed or self.refused:
            values["streamed_goals"] = self.streamed
        if self.refused:
            values["goal_pose_refused"] = self.refused
        return values

    async def answer(self, request: SetGoalPose.Request, response: SetGoalPose.Response) -> SetGoalPose.Response:
        """Plan and begin a motion to the pose of a request."""
        node = self._node
        try:
            node.ready(whole=True)
            goal = node.goals(request.target.header.frame_id, [0.0], [pose_asked(request)])[0][1]
            here = node.output_pose
            ignored = "" if here is None else goal.note(here)
            profile = request.profile or "minimum_jerk"
            accepted = await node.planned(node.planner.goal(node.controller, goal, request.duration, profile))
            node.trajectories.finish(False, REPLACED)
        except UnreachableGoalError as error:
            response.reason, response.binding = str(error), list(error.binding)
            if error.nearest is not None:
                fill_pose(response.nearest, *error.nearest.pose)
            return response
        except self._failures as error:
            response.reason = str(error) or type(error).__name__
            return response
        response.accepted, response.reason = True, " ".join(filter(None, (accepted.note, ignored)))
        response.predicted_arrival = time_message(round(1e9 * min(accepted.arrival, LATEST)))
        return response

    def take(self, message: PoseStamped) -> None:
        """Goal of the topic: immediate where the controller takes streams and needs no equilibria, else planned."""
        node = self._node
        if node.controller.streams_goals and not node.controller.needs_equilibria:
            self._stream_goal(message)
            return
        self._newest_goal = message
        if self._newest_plan is None and node.executor is not None:
            self._newest_plan = self._plan_newest_goals()
            node.executor.create_task(self._newest_plan)

    async def _plan_newest_goals(self) -> None:
        """Plan the newest goal of the topic, repeatedly while newer ones arrive; those in between are dropped."""
        try:
            while (message := self._newest_goal) is not None:
                self._newest_goal = None
                turn = message.pose.orientation
                turned = SetGoalPose.Request.SET if any((turn.w, turn.x, turn.y, turn.z)) else SetGoalPose.Request.KEEP
                request = SetGoalPose.Request(target=message, orientation=turned)
                answer = await self._asked(request, SetGoalPose.Response(), "topic goal_pose")
                self.refused = "" if answer.accepted else answer.reason
        finally:
            self._newest_plan = None

    def _stream_goal(self, message: PoseStamped) -> None:
        """One goal of a stream; an invalid one is reported in the diagnostics until a valid one arrives."""
        node = self._node
        try:
            node.ready(whole=True)
            goal = node.goals(message.header.frame_id, [0.0], [message.pose])[0][1]
            node.controller.begin(node.now, node.controller.plan_goal(node.now, goal))
            node.trajectories.finish(False, REPLACED)
            self.streamed, self.refused = self.streamed + 1, ""
            if abs(node.now - self._streamed_at) > STREAM_PAUSE:  # a stream from before a release does not count
                node.open_session()
            self._streamed_at = node.now
        except self._failures as error:
            self.refused = str(error) or type(error).__name__
