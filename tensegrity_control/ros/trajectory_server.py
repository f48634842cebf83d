"""Action `follow_trajectory`: waypoints of the output, one trajectory at a time.

`ControllerNode` owns the server; the controller plans and follows, the server tells the client of progress and end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future
from tensegrity.action import FollowTrajectory
from tensegrity.msg import Goal

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.output_frame import Pose, pose_error
from tensegrity_dynamics.ros.geometry_messages import stated_pose

from ..controllers.goal_controller import MAX_WAYPOINTS
from ..resting_error import ORIENTATION_TOLERANCE, POSITION_TOLERANCE
from .actuator_motion_server import SETTLING

ROUNDING = 1e-6
"""Tolerance for times in comparisons [s]."""


def check_tolerances(request: FollowTrajectory.Goal) -> None:
    """Raise TensegrityError where a tolerance of a request is negative or not a number."""
    for name in ("position_tolerance", "orientation_tolerance"):
        if not getattr(request, name) >= 0.0:
            raise TensegrityError(
                f"{name} is {getattr(request, name):g}; give a positive number, or 0 for the default."
            )


def tolerances(request: FollowTrajectory.Goal) -> tuple[float, float]:
    """Tolerances of a request at its end [m, rad]."""
    return (
        request.position_tolerance or POSITION_TOLERANCE,
        request.orientation_tolerance or ORIENTATION_TOLERANCE,
    )


def check_cancelled(handle: Any) -> None:
    """Raise TensegrityError where an action goal was cancelled."""
    if handle.is_cancel_requested:
        raise TensegrityError("the trajectory was cancelled")


class TrajectoryServer:
    """Server of the action; see the module.

    Args:
        node: controller node, whose planner and controller make the motion.
        failures: exceptions that end a trajectory with their words instead of the node.
    """

    def __init__(self, node: Any, failures: tuple[type[Exception], ...]) -> None:
        self._node, self._failures = node, failures
        self._running: Any = None  # goal handle and the future that ends it
        self._ended: Future | None = None
        self._arrival, self._planned_for = -np.inf, None  # its end, at least [s]; handle whose plan is in computation
        self._server = ActionServer(
            node, FollowTrajectory, "follow_trajectory", execute_callback=self.follow,
            goal_callback=lambda _: GoalResponse.ACCEPT, cancel_callback=self.cancel,
        )  # fmt: skip

    @property
    def moving(self) -> bool:
        """Whether a trajectory runs."""
        return self._ended is not None and not self._ended.done()

    async def follow(self, handle: Any) -> FollowTrajectory.Result:
        node, request, result = self._node, handle.request, FollowTrajectory.Result()
        try:
            node.ready(whole=True)
            if len(request.waypoint) != len(request.time_from_start):
                raise TensegrityError(f"{len(request.waypoint)} waypoints for {len(request.time_from_start)} times.")
            if len(request.waypoint) > MAX_WAYPOINTS:  # before the waypoints are checked
                raise TensegrityError(f"{len(request.waypoint)} waypoints; send up to {MAX_WAYPOINTS} at once.")
            times = [each.sec + 1e-9 * each.nanosec for each in request.time_from_start]
            waypoints = node.goals(request.header.frame_id, times, request.waypoint)
            here = node.output_pose
            ignored = "" if here is None or not waypoints else waypoints[-1][1].note(here)
            interpolation = request.interpolation or "smooth"
            check_tolerances(request)
            check_cancelled(handle)  # before planning started
            if not node.planner.busy:  # otherwise it is refused
                self._planned_for = handle
            accepted = await node.planned(node.planner.through(node.controller, waypoints, interpolation))
            self.finish(False, "a new trajectory replaced it")
            if handle.is_cancel_requested:  # planned, but not yet active
                node.controller.hold(node.now)
                check_cancelled(handle)
        except self._failures as error:
            if handle.is_cancel_requested:
                handle.canceled()
            else:
                handle.abort()
            result.reason = str(error) or type(error).__name__
            node.asked.trajectory(request, result.reason)
            return result
        finally:
            if self._planned_for is handle:
                self._planned_for = None
        node.asked.trajectory(request, None, accepted.arrival)
        ended = Future()
        self._running, self._ended, self._arrival = handle, ended, accepted.arrival
        node.floor.watch()
        await ended
        success, result.reason = ended.result()
        if self._ended is ended:  # else another trajectory has replaced it
            self._running = self._ended = None
        result.reason = "; ".join(filter(None, (result.reason, accepted.note, ignored, node.floor.seen())))
        position, orientation = self.errors(request.waypoint[-1])
        result.position_error, result.orientation_error = position, orientation
        if success and not self._is_there(request):
            off, within = (
                f"{1e3 * each[0]:.3g} mm and {np.degrees(each[1]):.3g} deg"
                for each in ((position, orientation), tolerances(request))
            )
            off = f"the end is {off} off, tolerated are {within}"
            success, result.reason = False, "; ".join(filter(None, (off, result.reason)))
        result.success = success
        if handle.is_cancel_requested:
            handle.canceled()
        elif success:
            handle.succeed()
        else:
            handle.abort()
        return result

    def cancel(self, handle: Any) -> CancelResponse:
        """Cancel a trajectory. One that waits, was replaced or has ended must not end another client's motion."""
        node = self._node
        planned, running = (
            each is not None and each.goal_id == handle.goal_id for each in (self._planned_for, self._running)
        )
        if planned:
            node.planner.cancel("the trajectory was cancelled")
        elif running:
            node.controller.hold(node.now)
            self.finish(False, "cancelled: holding")
        if planned or running:
            node.asked.trigger(Goal.CANCEL, "action follow_trajectory", True, "holding")
        return CancelResponse.ACCEPT

    def finish(self, success: bool, reason: str) -> None:
        """End the running trajectory with a reason."""
        if self._ended is not None and not self._ended.done():
            self._ended.set_result((success, reason))

    def publish_feedback(self) -> None:
        """Tell the client of the progress, and end the trajectory where the motion has ended."""
        if self._running is None or self._ended is None or self._ended.done():
            return
        node = self._node
        status = node.controller.status(node.now)
        planned, pose = node.controller.reference(node.now).pose, node.output_pose
        if pose is not None:
            error = pose_error(planned, pose)
            feedback = FollowTrajectory.Feedback(
                progress=float(status.progress), position_error=float(np.linalg.norm(error[:3])),
                orientation_error=float(np.linalg.norm(error[3:])),
            )  # fmt: skip
            self._running.publish_feedback(feedback)
        if status.phase == "moving":
            self._arrival = max(self._arrival, node.now)  # a reference that waits for its robot ends later
            return
        if node.now < self._arrival - ROUNDING:  # a path may end where it began: the place does not tell
            self.finish(False, "; ".join(("the motion ended before its last waypoint", *status.relaxed)))
        elif node.now >= self._arrival + SETTLING or self._is_there(self._running.request):
            self.finish(True, "")

    def _is_there(self, request: FollowTrajectory.Goal) -> bool:
        """Whether the output is within the tolerances of a request at its last waypoint; False if it is unknown."""
        return all(
            off <= most for off, most in zip(self.errors(request.waypoint[-1]), tolerances(request), strict=True)
        )

    def errors(self, goal: Any) -> tuple[float, float]:
        """Distance [m] and angle [rad] from the last state to a goal; a goal without orientation counts no angle."""
        actual: Pose | None = self._node.output_pose
        if actual is None:
            return float("nan"), float("nan")
        position, target = [goal.position.x, goal.position.y, goal.position.z], stated_pose(goal)
        output = self._node.controller.robot.output
        return output.distance_to_request(position, None if target is None else target[1], actual)
