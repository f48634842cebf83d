"""Control by actuator positions: the inverse kinematics turns a goal into a path of equilibria, followed over time.

The commands start exactly at the present set points and end at those of the goal. The plan is open loop, and exact if
model and robot agree. It is static, so the motion must be slow compared with the vibrations of the robot;
`swing_periods` ensures this. Positions are sent with their rates, so that the actuators move on smoothly when a command
is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tensegrity_dynamics.impedance import lead_of
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose

from ..controller import Command, Reference, RobotState
from ..inverse_kinematics.equilibrium_map import EquilibriumMap
from ..inverse_kinematics.ik_result import InverseKinematicsOptions
from ..inverse_kinematics.pose_goal import PoseGoal
from ..inverse_kinematics.solve_ik import plan_path
from ..paths.equilibrium_path import EquilibriumPath
from ..paths.timed_path import TimedPath, motor_duration, shortest_duration, tension_margin, through
from ..trajectories.time_scaling import MinimumJerk, Progress, profile_named
from .goal_controller import GoalController, GoalPath, RestPoint, check_ranges

SHORTEST = 1e-9
"""s, duration of a motion without displacement."""


class PositionController(GoalController):
    """Base class of position control; see the module.

    Args:
        equilibria: equilibria of the robot.
        options: options of the inverse kinematics.
        rate_margin: fraction of the rate limits of the actuators, above 0 and at most 1; a smaller value is slower.
        swing_periods: a motion without a given duration lasts at least this number of the slowest vibration periods at
            the equilibria of both ends. A larger number makes it slower and smoother; 0 removes this bound.
        brake_time: s, longest duration of a brake; shorter if the motion ends before.
        period: s, for which a command is constant; a longer period gives larger steps and needs slower motions.

    Attributes:
        home: equilibrium with the actuator positions of the robot file.

    Raises:
        TensegrityError: a parameter is out of range.
    """

    output_mode = "position"

    def __init__(
        self,
        equilibria: EquilibriumMap[Any],
        options: InverseKinematicsOptions | None,
        *,
        rate_margin: float,
        swing_periods: float,
        brake_time: float,
        period: float,
    ) -> None:
        check_ranges(("swing_periods", swing_periods, 0.0, 1e6), ("period", period, 1e-5, 1.0))
        self.command_period = period
        super().__init__(equilibria.robot, rate_margin=rate_margin, brake_time=brake_time)
        self.equilibria, self.options, self.swing_periods = equilibria, options, swing_periods

    @property
    def home(self) -> Any:
        """Equilibrium with the actuator positions of the robot file."""
        return self.equilibria.home

    def _hold(self, equilibrium: Any) -> TimedPath:
        """Tracker that stays at an equilibrium."""
        return TimedPath(EquilibriumPath(self.equilibria, (equilibrium,)), MinimumJerk(0.0))

    @property
    def lead(self) -> float:
        return lead_of(self.command_period)

    def _make_command(self, time: float, tracker: TimedPath, progress: Progress, state: RobotState | None) -> Command:
        command = super()._make_command(time, tracker, progress, state)
        return replace(command, velocity=tracker.rates(progress))

    def _configuration(self, tracker: TimedPath, time: float) -> Array:
        return tracker.command(Progress(time, 0.0, 0.0))

    def _reference(self, tracker: TimedPath, progress: Progress) -> Reference:
        return tracker.reference(progress)

    def _end_pose(self, tracker: TimedPath, goal: PoseGoal) -> Pose:
        pose: Pose = tracker.path.last.pose
        return pose

    def _plan_path(self, rest: RestPoint, goal: PoseGoal, profile: str) -> GoalPath:
        result = plan_path(self.equilibria, rest.tracker.equilibrium(rest.time), goal, self.options)
        path = EquilibriumPath(self.equilibria, result.path)
        if path.span <= 0.0:
            return GoalPath(path, SHORTEST, SHORTEST, "")
        used, worst = shortest_duration(path, profile_named(profile))
        motor = motor_duration(path, profile_named(profile))
        minimum = max(used, motor.factor) / self.rate_margin
        calm = self.swing_periods * path.slowest_period() if self.swing_periods > 0.0 else 0.0
        # the factor by which this duration must increase to keep the tension floors
        margin = tension_margin(path, profile_named(profile)(minimum), self.command_period, self.lead)
        limit = motor.words if motor.factor > used else ""
        if margin.stretch > 1.0:
            minimum *= margin.stretch
            limit = f"the tension of {margin.tendon}, which the motion must leave above {margin.floor:.3g} N"
        return GoalPath(path, minimum, max(minimum, calm), self.names[worst], limit)

    def _make_tracker(self, rest: RestPoint, path: GoalPath, duration: float, profile: str) -> TimedPath:
        return TimedPath(path.path, profile_named(profile)(duration))

    def _make_waypoint_tracker(
        self, rest: RestPoint, times: Sequence[float], goals: Sequence[PoseGoal], interpolation: str
    ) -> TimedPath:
        passed, ends = [rest.tracker.equilibrium(rest.time)], [0]
        for goal in goals:
            passed.extend(plan_path(self.equilibria, passed[-1], goal, self.options).path[1:])
            ends.append(len(passed) - 1)
        path = EquilibriumPath(self.equilibria, passed, ends)
        return TimedPath(path, through(path, list(times), path.parameters_of_path[ends]))
