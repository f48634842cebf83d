"""What drives the hoist of `hoist`: its winch lets the rope out and in, so that the load comes to rest at a height.

Imported, it registers the kind of robot and the controller: it is what a package of its own names as entry point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hoist import HOIST, Hoist

from tensegrity_control.controller import Reference, RobotState
from tensegrity_control.controllers.goal_controller import GoalController, GoalPath, RestPoint
from tensegrity_control.inverse_kinematics.pose_goal import PoseGoal
from tensegrity_control.registry import CONTROLLERS
from tensegrity_control.trajectories.time_scaling import PEAK, Progress, TimeLaw, Waypoints, profile_named
from tensegrity_dynamics import Robot, TensegrityError, register_robot_type
from tensegrity_dynamics.robots.output_frame import Pose


@dataclass(frozen=True)
class LengthPlan:
    """Rest length from `first` to `last` [m] by a time law."""

    model: Hoist
    first: float
    last: float
    law: TimeLaw

    def length(self, time: float) -> float:
        return self.first + self.law.at(time)[0] * (self.last - self.first)

    def command(self, progress: Progress, state: RobotState | None = None) -> np.ndarray:
        return np.array([self.length(progress.time)])


class HoistController(GoalController):
    """Lowers and lifts the load through shapes at rest."""

    model_type = Hoist

    def __init__(self, robot: Robot, *, rate_margin: float = 0.5, brake_time: float = 0.5) -> None:
        super().__init__(robot, rate_margin=rate_margin, brake_time=brake_time)
        self.model, (self.winch,) = robot.model_as(Hoist), robot.actuators

    def _pose(self, length: float) -> Pose:
        return self.model.output_pose(self.robot.output, np.array([self.model.height(length)]))

    def _hold_tracker(self, state: RobotState | None) -> LengthPlan:
        seen = None if state is None else state.positions
        length = self.model.rest_length if seen is None else float(seen[0])
        return LengthPlan(self.model, length, length, profile_named("cubic")(1.0))

    def _configuration(self, tracker: LengthPlan, time: float) -> np.ndarray:
        return np.array([tracker.length(time)])

    def _reference(self, tracker: LengthPlan, progress: Progress) -> Reference:
        rate = progress.pace * tracker.law.at(progress.time)[1] * (tracker.first - tracker.last)
        return Reference(self._pose(tracker.length(progress.time)), np.array([0.0, 0.0, rate, 0.0, 0.0, 0.0]))

    def _length(self, goal: PoseGoal) -> float:
        length = self.model.rest_length + self.model.height(self.model.rest_length) - float(goal.position[2])
        low, high = self.winch.position
        if not low <= length <= high:
            raise TensegrityError(f"the goal needs {length:.3g} m of rope, outside of {low:g} to {high:g} m.")
        return length

    def _plan_path(self, rest: RestPoint, goal: PoseGoal, profile: str) -> GoalPath:
        last = self._length(goal)
        least = PEAK * abs(last - rest.configuration[0]) / (self.rate_margin * self.winch.rate)
        return GoalPath(last, least, least + 1.0, self.winch.name)

    def _make_tracker(self, rest: RestPoint, path: GoalPath, duration: float, profile: str) -> LengthPlan:
        return LengthPlan(self.model, float(rest.configuration[0]), path.path, profile_named(profile)(duration))

    def _make_waypoint_tracker(
        self, rest: RestPoint, times: Sequence[float], goals: Sequence[PoseGoal], interpolation: str
    ) -> LengthPlan:
        lengths = [float(rest.configuration[0]), *map(self._length, goals)]
        return LengthPlan(self.model, 0.0, 1.0, Waypoints(times, lengths))

    def _end_pose(self, tracker: LengthPlan, goal: PoseGoal) -> Pose:
        return self._pose(tracker.last)


register_robot_type(HOIST)
CONTROLLERS["winch"] = HoistController
