"""Actions for trajectories of actuators: `follow_actuators`, and `~/follow_joint_trajectory` if control_msgs is
installed.

These motions bypass the controller: while one runs, the node sends its set points, and at its end the controller takes
over from the present state of the robot. `ControllerNode` owns the server and calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future
from tensegrity.action import FollowActuators
from trajectory_msgs.msg import JointTrajectory

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Command, Status
from ..controllers.actuator_motion import ActuatorMotion

try:
    from control_msgs.action import FollowJointTrajectory
except ImportError:
    FollowJointTrajectory = None
NO_CONTROL_MSGS = "not offered: control_msgs is not installed; follow_actuators does the same"
TOLERANCE = 1e-3
"""m or rad, default tolerance for the arrival of an actuator."""
SETTLING = 1.0
"""s after the end within which actuators may still arrive."""
BRAKE_TIME = 0.3
"""s, duration of the brake when a motion is aborted."""
_NONE: Array = np.zeros(0)
INVALID_GOAL, PATH_VIOLATED, GOAL_VIOLATED = -1, -4, -5
"""Error codes of control_msgs/FollowJointTrajectory."""


class MotionEnded(TensegrityError):
    """Reason why a motion of actuators failed, with its error code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def motion_of(
    message: JointTrajectory, robot: Robot, now: float, positions: Array, rates: Array | None
) -> ActuatorMotion:
    """Motion for a message, from set points (a,) and their rates. Raises TensegrityError if the message is invalid."""
    columns: dict[str, list[Any]] = {name: [] for name in ("positions", "velocities", "accelerations")}
    times = []
    for number, point in enumerate(message.points):
        times.append(point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec)
        if len(point.effort):
            raise TensegrityError(
                f"waypoint {number} has efforts, but only positions can be followed; leave effort empty."
            )
        for name, rows in columns.items():
            row = getattr(point, name)
            if len(row) not in ((len(message.joint_names),) if name == "positions" else (0, len(message.joint_names))):
                raise TensegrityError(
                    f"waypoint {number} has {len(row)} {name} for {len(message.joint_names)} joint_names."
                )
            if len(row):
                rows.append(row)
    for name, rows in columns.items():
        if len(rows) not in (0, len(times)):
            raise TensegrityError(f"{len(rows)} of {len(times)} waypoints have {name}; give them to all or to none.")
    velocities, accelerations = (columns[name] or None for name in ("velocities", "accelerations"))
    return ActuatorMotion(
        robot, now, positions, rates, message.joint_names, times, columns["positions"], velocities, accelerations
    )


def asked_by(handle: Any) -> str:
    """Action of a goal handle, in the format of `Goal.asked_by`."""
    name = "follow_actuators" if isinstance(handle.request, FollowActuators.Goal) else "follow_joint_trajectory"
    return f"action {name}"


class ActuatorMotionServer:
    """Server of both actions; see the module.

    Args:
        node: controller node.
        robot: controlled robot.

    Attributes:
        motion: running motion, or None.
    """

    def __init__(self, node: Any, robot: Robot) -> None:
        self._node, self._robot = node, robot
        self.motion: ActuatorMotion | None = None
        self._ended: Future | None = None
        self._handle: Any = None
        self._over: MotionEnded | None = None
        self._sent_end: ActuatorMotion | None = None
        self._goal_tolerance: Array = np.zeros(0)
        self._path_tolerance: Array = np.zeros(0)
        self._settling, self._error, self._actual = SETTLING, _NONE, _NONE
        callbacks = {"goal_callback": lambda _: GoalResponse.ACCEPT, "cancel_callback": self.cancel}
        self._own = ActionServer(node, FollowActuators, "follow_actuators", execute_callback=self.follow, **callbacks)
        if FollowJointTrajectory is None:
            node.get_logger().info(f"~/follow_joint_trajectory is {NO_CONTROL_MSGS}")
        else:
            self._usual = ActionServer(
                node,
                FollowJointTrajectory,
                "~/follow_joint_trajectory",
                execute_callback=self._follow_joints,
                **callbacks,
            )

    # -- for the controller node ------------------------------------------------------------------------------------

    @property
    def moving(self) -> bool:
        """Whether a motion runs."""
        return self.motion is not None

    def status(self, now: float) -> Status:
        """Status of the running motion."""
        assert self.motion is not None
        return Status("moving", self.motion.progress(now), self.motion.end, None)

    def command(self, now: float, positions: Mapping[str, float]) -> Command | None:
        """Set points at a time [s]; None when the motion has ended and the controller takes over.

        Args:
            positions: measured positions by actuator.
        """
        motion = self.motion
        assert motion is not None
        points, _ = motion.set_points(now)
        actual = self._actual = np.array([positions.get(name, np.nan) for name in motion.names])
        self._error = actual - points[motion.rows]
        beyond = np.flatnonzero(np.abs(self._error) > self._path_tolerance)
        if self._over is None and beyond.size and now < motion.end:
            name, off = motion.names[beyond[0]], self._error[beyond[0]]
            self.break_off(now, f"{name} is {off:.3g} off its path", PATH_VIOLATED)
        if now >= motion.end and self._sent_end is not motion:  # the last set point must still be sent
            self._sent_end = motion
        elif now >= motion.end:
            missed = np.flatnonzero(~(np.abs(actual - motion.goal) <= self._goal_tolerance))
            if self._over is not None:
                self._finish(self._over)
                return None
            if not missed.size or now >= motion.end + self._settling:
                late = ", ".join(f"{motion.names[k]} by {actual[k] - motion.goal[k]:.3g}" for k in missed[:4].tolist())
                self._finish(MotionEnded(f"not at the goal: {late}", GOAL_VIOLATED) if missed.size else None)
                return None
        return motion.command(now)

    def publish_feedback(self, now: float) -> None:
        """Publish feedback of the running motion to its action client."""
        motion, handle = self.motion, self._handle
        if motion is None or handle is None or self._ended is None or self._ended.done():
            return
        points, rates = motion.set_points(now)
        if isinstance(handle.request, FollowActuators.Goal):
            handle.publish_feedback(
                FollowActuators.Feedback(
                    progress=motion.progress(now), position=points[motion.rows].tolist(), error=self._error.tolist()
                )
            )
            return
        feedback = FollowJointTrajectory.Feedback(joint_names=list(motion.names))
        feedback.desired.positions, feedback.desired.velocities = points[motion.rows], rates[motion.rows]
        feedback.actual.positions = points[motion.rows] + self._error
        feedback.error.positions = -self._error  # desired minus actual, as in control_msgs
        handle.publish_feedback(feedback)

    def break_off(self, now: float, reason: str, code: int = 0) -> None:
        """Brake the motion; its action client receives the reason when it rests."""
        if self.motion is not None and self._over is None:
            self._over = MotionEnded(reason, code)
            self.motion.brake(now, BRAKE_TIME)

    def forget(self, reason: str) -> None:
        """End the motion at once, without a brake."""
        self._finish(MotionEnded(reason, 0))

    def _finish(self, problem: MotionEnded | None) -> None:
        motion, self.motion, self._over = self.motion, None, None
        if self._ended is not None and not self._ended.done():
            # read now: the next motion, which may have other actuators, begins before this one's client is answered
            off = self._actual - motion.goal if motion is not None and self._actual.size == motion.goal.size else _NONE
            self._ended.set_result((problem, off.tolist(), self._node.floor.seen()))

    # -- the actions ----------------------------------------------------------------------------------------------

    def begin(self, trajectory: JointTrajectory) -> ActuatorMotion:
        """Start the motion of a message; it replaces a running motion of actuators. Raises TensegrityError."""
        now, positions, rates = self._node.set_points()
        motion = motion_of(trajectory, self._robot, now, positions, rates)
        self._finish(self._over or MotionEnded("a new trajectory replaced it", 0))
        self.motion = motion
        return motion

    async def follow(self, handle: Any) -> FollowActuators.Result:
        request = handle.request
        tolerance = np.full(len(request.trajectory.joint_names), request.tolerance or TOLERANCE)
        free = np.full(len(tolerance), np.inf)
        problem, note, error = await self._run(handle, tolerance, free, SETTLING)
        return FollowActuators.Result(success=problem is None, reason=note, error=error)

    async def _follow_joints(self, handle: Any) -> Any:
        request, names = handle.request, list(handle.request.trajectory.joint_names)
        goal, path = np.full(len(names), TOLERANCE), np.full(len(names), np.inf)
        for given, kept in ((request.goal_tolerance, goal), (request.path_tolerance, path)):
            for each in given:
                if each.name in names and each.position != 0.0:  # negative: no tolerance is checked
                    kept[names.index(each.name)] = each.position if each.position > 0.0 else np.inf
        settling = request.goal_time_tolerance.sec + 1e-9 * request.goal_time_tolerance.nanosec
        problem, note, _ = await self._run(handle, goal, path, settling or SETTLING)
        code = 0 if problem is None else problem.code or INVALID_GOAL
        return FollowJointTrajectory.Result(error_code=code, error_string=note)

    async def _run(
        self, handle: Any, goal: Array, path: Array, settling: float
    ) -> tuple[MotionEnded | None, str, list[float]]:
        """Start a motion, wait for its end, and finish the action.

        Returns the failure, or None; what the client should know: why it failed, and tendons below their floors; and
        (k,) measured positions minus the goal [m or rad], empty if the motion never moved.
        """
        trajectory, problem, error, broken = handle.request.trajectory, None, [], ""
        tightest = float(goal.min()) if goal.size else 0.0
        try:
            if handle.is_cancel_requested:  # before the motion started
                raise TensegrityError("the trajectory was cancelled")
            if not np.all(goal > 0.0):
                raise TensegrityError("the tolerance must be above zero, or zero for the default.")
            motion = self.begin(trajectory)
            self._error = self._actual = _NONE
            self._node.floor.watch()
        except Exception as refusal:  # unexpected errors refuse the goal as well
            problem = MotionEnded(str(refusal) or type(refusal).__name__, INVALID_GOAL)
            self._node.announce_actuators(asked_by(handle), trajectory, tightest, str(problem))
        else:
            ended = self._ended = Future()
            self._handle, self._goal_tolerance, self._path_tolerance, self._settling = handle, goal, path, settling
            self._node.announce_actuators(asked_by(handle), trajectory, tightest, None, motion.end)
            await ended
            problem, error, broken = ended.result()
            if self._ended is ended:
                self._handle = self._ended = None
        if handle.is_cancel_requested:
            handle.canceled()
        elif problem is None:
            handle.succeed()
        else:
            handle.abort()
        return problem, "; ".join(filter(None, ("" if problem is None else str(problem), broken))), error

    def cancel(self, handle: Any) -> CancelResponse:
        if self._handle is not None and handle.goal_id == self._handle.goal_id:
            self._node.cancel_actuators(asked_by(handle))
        return CancelResponse.ACCEPT
