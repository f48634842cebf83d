"""Base class of controllers of mechanisms that send efforts or velocities once per control period, along a trajectory.

The trajectory consists of the controlled coordinates: from rest to rest between two values of them, or through several.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.mechanisms.mechanism_model import BodyPoses, MechanismModel
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Reference, RobotState
from ..inverse_kinematics.pose_goal import PoseGoal
from ..trajectories.quintic import QuinticSpline, minimum_jerk
from ..trajectories.splines import HermiteSpline, PiecewisePolynomial
from ..trajectories.time_scaling import Progress, TooFastError, profile_named
from .goal_controller import MIN_PERIODS, GoalController, GoalPath, RestPoint

ACTUATIONS = ("impedance", "effort")
"""Kinds of commands of torque controllers."""


@dataclass(frozen=True, eq=False)
class Line:
    """A straight path of the controlled coordinates with its ends (k,), and equilibria on it, if there are any."""

    first: Array
    last: Array
    equilibria: tuple[Any, ...] = ()


class SampledController(GoalController):
    """Base class, see the module. A subclass defines how coordinates and trackers are computed.

    Args:
        robot: a mechanism with actuators and an output.
        period: s between two commands, which are constant in between. A longer period gives larger errors.
        rate_margin: fraction of the rate limits of the actuators for goals without a duration, above 0 and at most 1.
        brake_time: s, longest duration of a brake.
        actuation: for torque controllers. "impedance": the actuators close the loops of position and rate at their own
            rate, so that a late command has no effect. "effort": torques with feedback of the state, for comparison and
            for lock-step simulation.

    Attributes:
        blind: number of commands without a state.

    Raises:
        TensegrityError: a parameter is out of range.
    """

    model_type = MechanismModel
    output_mode: str = "effort"  # type: ignore[misc]
    is_sampled = True
    needs_velocities = True
    default_period = 0.01
    interpolations: ClassVar[tuple[str, ...]] = ("smooth", "minimum_jerk", "cubic")
    period: float

    def __init__(
        self, robot: Robot, *, period: float, rate_margin: float, brake_time: float, actuation: str | None = None
    ) -> None:
        if actuation is not None:
            if actuation not in ACTUATIONS:
                raise TensegrityError(unknown_name("actuation", actuation, ACTUATIONS))
            self.output_mode = actuation  # type: ignore[misc]
        super().__init__(robot, rate_margin=rate_margin, brake_time=brake_time, period=period)
        model = robot.model_as(MechanismModel)
        if model.mechanism.touches and model.mechanism.is_free:
            raise TensegrityError(
                f"only the ground holds {robot.name}, by friction at its feet, and this controller moves a robot by "
                "the efforts of its actuators: sliding has no stiffness, so a foot whose friction breaks for an "
                "instant slides away. Position control (joint_position) holds its joints stiff."
            )
        self._poses, self._planning_poses = BodyPoses(model), BodyPoses(model)
        self.blind = 0

    # -- to be defined by a subclass ------------------------------------------------------------------------------

    @abstractmethod
    def _waypoint_coordinates(self, rest: RestPoint, goals: Sequence[PoseGoal]) -> tuple[Array, Sequence[Any]]:
        """(w + 1, k) controlled coordinates at the rest point and at the poses, and equilibria for `_track`.

        Raises UnreachableGoalError, TensegrityError.
        """

    @abstractmethod
    def _track(self, rest: RestPoint, trajectory: PiecewisePolynomial, equilibria: Sequence[Any]) -> Any:
        """Tracker of a trajectory of the controlled coordinates that begins at time 0 at rest.

        Args:
            equilibria: equilibria on a straight path, if there are some, or those of `_waypoint_coordinates`.

        Raises:
            TensegrityError: there is no such motion.
        """

    # -- plans ----------------------------------------------------------------------------------------------------

    def reset(self, time: float, state: RobotState | None = None) -> None:
        if state is None or state.q is None:
            raise TensegrityError("this controller needs q and v in structure_state; is the robot a mechanism?")
        super().reset(time, state)

    def _configuration(self, tracker: Any, time: float) -> Array:
        return np.array(tracker.motion(time, 0.0)[0])

    def _reference(self, tracker: Any, progress: Progress) -> Reference:
        pose, twist = self._poses.update(*tracker.motion(progress.time, progress.pace)).output(self.robot.output)  # type: ignore[arg-type]
        return Reference(pose, twist)

    def _end_pose(self, tracker: Any, goal: PoseGoal) -> Pose:
        still = copy(tracker).motion(tracker.duration, 0.0)  # a copy: the original stays near the start
        return self._planning_poses.update(*still).output(self.robot.output)[0]  # type: ignore[arg-type]

    def _line(self, line: Line, travel: Array, profile: str, calm: float = 0.0) -> GoalPath:
        """Path on which the actuators travel (a,) rad or m; its default duration is at least `calm` s."""
        rates = np.array([each.rate for each in self.robot.actuators])
        slowest = int(np.argmax(travel / rates))
        minimum = profile_named(profile).peak * float(travel[slowest] / rates[slowest])
        usual = max(minimum, MIN_PERIODS * self.period) / self.rate_margin
        return GoalPath(line, minimum, max(usual, calm), self.names[slowest])

    def _make_tracker(self, rest: RestPoint, path: GoalPath, duration: float, profile: str) -> Any:
        line: Line = path.path
        if profile == "cubic":
            still = np.zeros((2, line.first.size))
            trajectory: PiecewisePolynomial = HermiteSpline([0.0, duration], [line.first, line.last], still)
        else:
            trajectory = minimum_jerk(0.0, duration, line.first, line.last)
        return self._track(rest, trajectory, line.equilibria)

    def _make_waypoint_tracker(
        self, rest: RestPoint, times: Sequence[float], goals: Sequence[PoseGoal], interpolation: str
    ) -> Any:
        values, passed = self._waypoint_coordinates(rest, goals)
        return self._track(rest, self._waypoint_trajectory(rest, times, values, interpolation), passed)

    def _waypoint_trajectory(
        self, rest: RestPoint, times: Sequence[float], values: Array, interpolation: str
    ) -> PiecewisePolynomial:
        still = np.zeros_like(values)
        if interpolation == "cubic":
            return HermiteSpline(times, values, still)
        ends = still if interpolation == "minimum_jerk" else None
        return QuinticSpline(times, values, ends, ends)

    def _command_values(self, time: float, tracker: Any, progress: Progress, state: RobotState | None) -> Array:
        if state is not None and (state.q is None or state.v is None):
            state = None
        self.blind += state is None
        return np.asarray(tracker.command(progress, state))

    def _check_positions(self, positions: Array, what: str) -> None:
        """Raise TensegrityError if an actuator is outside its limits at positions (..., a) of a path or goal."""
        for actuator, values in zip(self.robot.actuators, np.atleast_2d(positions).T, strict=True):
            low, high = actuator.position
            off = np.maximum(low - values, values - high)
            if not np.max(off) <= 0.0:
                unit = actuator.units[0]
                raise TensegrityError(
                    f"the {what} needs {actuator.name} at {values[np.argmax(off)]:.4g} {unit}, outside its position "
                    f"limits of {low:.4g} to {high:.4g} {unit}."
                )

    def _check_rates(self, used: Array) -> None:
        """Raise TooFastError if rates (a,) of the actuators exceed their limits."""
        limits = np.array([each.rate for each in self.robot.actuators])
        worst = int(np.argmax(used / limits))
        factor = float(used[worst] / limits[worst])
        if factor > 1.0:
            actuator = self.robot.actuators[worst]
            raise TooFastError(
                f"the path moves {actuator.name} at {used[worst]:.4g} {actuator.units[1]}, above its rate limit of "
                f"{actuator.rate:.4g} {actuator.units[1]}; stretch all times by a factor of {factor:.3g} or more.",
                actuator.name,
                factor,
            )
