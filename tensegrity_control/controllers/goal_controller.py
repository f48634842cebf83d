"""Controllers that take goals: a goal becomes a plan with feedback (a tracker), which a clock runs and can brake.

A new goal during a motion first brakes that motion. The new motion starts from the resulting rest point. A plan is
checked before anything changes: a refused goal leaves the motion as it was. Planning (`plan_goal`) and beginning
(`begin`) are separate, so that plans can be made in another thread during control.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError, is_finite_number, unknown_name
from tensegrity_dynamics.impedance import lead_of, travelled
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.motor_limits import MotorLimits
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Accepted, Command, Controller, Reference, RobotState, Setting, Status
from ..inverse_kinematics.pose_goal import PoseGoal, make_goal
from ..trajectories.time_scaling import PathClock, Progress, TooFastError, profile_named
from .goal_taker import GoalTaker, PlannedMotion, Waypoint

MAX_DURATION, MAX_PERIODS, MIN_PERIODS = 600.0, 100_000, 20
"""Longest duration of a motion [s]; most and least control periods of a motion of a sampled controller."""
MAX_WAYPOINTS = 500
"""Largest number of waypoints of a trajectory; longer ones are sent in pieces. Each needs a path of equilibria."""
ROUNDING = 1e-9
"""Relative excess over its limit that is tolerated for an effort at rest."""
RESUMPTION = 4.0
"""Time in which a motion that its actuators braked returns to full pace, in units of the time in which they braked;
its largest acceleration is then that of the brake."""


@dataclass(frozen=True, eq=False)
class RestPoint:
    """Rest point of a motion, present or after braking.

    Attributes:
        tracker: of that motion. time: of its plan [s].
        configuration: (nq,) position of a mechanism, or (a,) positions of the actuators.
    """

    tracker: Any
    time: float
    configuration: Array


@dataclass(frozen=True, eq=False)
class GoalPath:
    """Path to a goal and its least duration.

    Attributes:
        path: from which the tracker is made; its type is up to the controller.
        minimum_duration: s. preferred_duration: s, for goals without one. limiting_actuator: whose rate limit
            determines the minimum. limit: name of what determines it otherwise.
    """

    path: Any
    minimum_duration: float
    preferred_duration: float
    limiting_actuator: str
    limit: str = ""


class GoalController(GoalTaker):
    """Controller for goals, see the module. A subclass makes paths and trackers.

    Args:
        robot: with actuators and an output.
        rate_margin: fraction of the actuators' rate limits that motions use, above 0 and at most 1; smaller is slower.
        brake_time: longest time in which a motion is braked [s]; shorter needs more of the actuators.
        period: between two commands, for which they are held [s]; None: commands may come at any time.

    Attributes:
        waits_for_robot: after a gap without commands, in which the actuators have stopped, motions continue from there
            instead of from the planned position. Default with impedances; see `wait_for_robot`.
        gaps: number of such gaps.

    Raises:
        TensegrityError: a parameter is out of range.
    """

    interpolations: ClassVar[tuple[str, ...]] = ("smooth",)
    """Interpolations of trajectories: "smooth" passes the waypoints without stopping, others rest at each."""

    def __init__(self, robot: Robot, *, rate_margin: float, brake_time: float, period: float | None = None) -> None:
        check_ranges(("rate_margin", rate_margin, 1e-6, 1.0), ("brake_time", brake_time, 1e-6, 1e6))
        if period is not None:
            check_ranges(("period", period, 1e-5, 1.0))
        self.robot, self.period, self.rate_margin, self.brake_time = robot, period, rate_margin, brake_time
        self.names = tuple(each.name for each in robot.actuators)
        self.motors = MotorLimits(robot.actuators)
        self.longest = MAX_DURATION if period is None else min(MAX_DURATION, MAX_PERIODS * period)
        self._phase = "idle"
        self._motions: list[tuple[PathClock, Any]] = []
        self._goal: Pose | None = None
        self._began, self._version = -np.inf, 0
        self._commanded, self.gaps = -np.inf, 0
        self.waits_for_robot = self.output_mode == "impedance"

    # -- interface of subclasses -----------------------------------------------------------------------------------

    @abstractmethod
    def _hold_tracker(self, state: RobotState | None) -> Any:
        """A tracker that holds the equilibrium of a state."""

    @abstractmethod
    def _configuration(self, tracker: Any, time: float) -> Array:
        """Configuration of the plan at a time [s] of rest, see `RestPoint`."""

    @abstractmethod
    def _reference(self, tracker: Any, progress: Progress) -> Reference:
        """Pose and twist of a plan; called in the control thread."""

    @abstractmethod
    def _plan_path(self, rest: RestPoint, goal: PoseGoal, profile: str) -> GoalPath:
        """Path from rest to a pose. Raises UnreachableGoalError, TensegrityError."""

    @abstractmethod
    def _make_tracker(self, rest: RestPoint, path: GoalPath, duration: float, profile: str) -> Any:
        """A tracker of a path in a duration [s]. Raises TooFastError, TensegrityError."""

    @abstractmethod
    def _make_waypoint_tracker(
        self, rest: RestPoint, times: Sequence[float], goals: Sequence[PoseGoal], interpolation: str
    ) -> Any:
        """A tracker through poses at times [s]; the first time is 0, at rest. Raises TensegrityError."""

    @abstractmethod
    def _end_pose(self, tracker: Any, goal: PoseGoal) -> Pose:
        """Pose at the end of a plan to a goal; not called in the control thread."""

    @property
    def lead(self) -> float:
        """Time for which the actuators continue without a new command [s]."""
        return lead_of(self.period or 0.0)

    def _check_motors(self, rates: ArrayLike, efforts: ArrayLike | None = None) -> None:
        """Raise where rates (k, a) along a path are too fast for the motors at efforts (k, a): TooFastError, or
        InfeasibleControlError where a motor stalls."""
        use = self.motors.use(rates, efforts)
        if use.factor <= 1.0:
            return
        if not np.isfinite(use.factor):
            raise InfeasibleControlError(f"the path overloads {use.words}; choose another goal, or more time.")
        raise TooFastError(
            f"the path is {use.factor:.3g} times too fast for {use.words}; stretch all times by this factor or more.",
            self.names[use.row], use.factor, use.words,
        )  # fmt: skip

    def _refuse_overload(self, efforts: ArrayLike) -> None:
        """Raise TensegrityError where actuators would need more than their effort limit to hold.

        Args:
            efforts: (a,) at rest [N or N m]; nan counts as zero.
        """
        over = [
            f"{each.name} {used:.3g} of {each.effort:.3g} {each.units[2]}"
            for each, used in zip(self.robot.actuators, np.abs(np.asarray(efforts)).tolist(), strict=True)
            if used > (1.0 + ROUNDING) * each.effort
        ]
        if over:
            raise TensegrityError(
                f"{self.robot.name} cannot be held at rest: the efforts exceed their limits: {', '.join(over)}. "
                "Start it in another configuration, or use stronger actuators (`effort` in the robot file)."
            )

    def _wait_for_robot(self, time: float, clock: PathClock) -> None:
        """After a gap without commands continue from where the actuators have braked to, see `impedance`.

        A brake that was requested meanwhile, or not completed, is completed first: the next motion starts at its end.
        """
        last, self._commanded = self._commanded, time
        lead, gap = self.lead, time - last
        if not lead * (1.0 + 1e-6) < gap < np.inf:
            return
        active = self.motion_at(last)
        moving = active[0]
        before = moving.at(last)
        passed = before.time + before.pace * travelled(gap, lead)
        pace = before.pace * max(0.0, 1.0 - 0.5 * (gap - lead) / lead)
        if moving.brakes and before.pace != 0.0:
            moving.settle(time, passed, pace, self.brake_time)
            for follows, _ in self._motions[1 + self._motions.index(active) :]:
                follows.begin = max(follows.begin, moving.end)
        else:
            before = clock.at(last)
            passed = before.time + before.pace * travelled(gap, lead)
            clock.resume(time, passed, pace, RESUMPTION * lead)
        self.gaps += 1

    def _make_command(self, time: float, tracker: Any, progress: Progress, state: RobotState | None) -> Command:
        """Command to the actuators at a time [s]."""
        return Command(self.output_mode, self.names, np.array(self._command_values(time, tracker, progress, state)))

    def _command_values(self, time: float, tracker: Any, progress: Progress, state: RobotState | None) -> Array:
        """(a,) values of the command at a time [s]."""
        return np.asarray(tracker.command(progress, state))

    def _apply_gains(self, tracker: Any) -> None:
        """Prepare a tracker for control: present gains, arrays of the control thread."""

    # -- public interface ------------------------------------------------------------------------------------------

    def reset(self, time: float, state: RobotState | None = None) -> None:
        """Hold the equilibrium of a state from `time` [s] on. A stop stays in force.

        Raises:
            TensegrityError: the state lacks necessary values or is of another robot, or no stable equilibrium belongs
                to it.
        """
        self.refuse_other_state(state)
        tracker = self._hold_tracker(state)
        self._motions = [(PathClock(time, 0.0), tracker)]
        self._goal = self._reference(tracker, Progress(0.0, 0.0, 0.0)).pose
        self._began = self._commanded = time
        self._version += 1
        self._phase = "stopped" if self._phase == "stopped" else "holding"

    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Set points at a time [s]; without a state those of the plan alone. Raises TensegrityError: the state is of
        another robot."""
        self.refuse_other_state(state)
        clock, tracker = self.motion_at(time)
        if self.waits_for_robot:
            self._wait_for_robot(time, clock)
            clock, tracker = self.motion_at(time)
        return self._make_command(time, tracker, clock.at(time), state)

    def reference(self, time: float) -> Reference:
        """Pose and twist of the plan at a time [s]."""
        clock, tracker = self.motion_at(time)
        return self._reference(tracker, clock.at(time))

    def status(self, time: float) -> Status:
        """Present activity at a time [s]."""
        relaxed = self.relaxed()
        if not self._motions:
            return Status(self._phase, 1.0, -np.inf, None, relaxed)
        end = self._motions[-1][0].end
        if time >= end:
            return Status(self._phase, 1.0, end, self._goal, relaxed)
        phase = "stopped" if self._phase == "stopped" else "moving"
        progress = (time - self._began) / max(end - self._began, 1e-12)
        return Status(phase, min(max(progress, 0.0), 1.0), end, self._goal, relaxed)

    def relaxed(self) -> tuple[str, ...]:
        """Names of the constraints that the last command relaxed; empty where all were met."""
        return ()

    # -- goals ----------------------------------------------------------------------------------------------------

    def make_goal(self, now: float, position: ArrayLike | None, quaternion: ArrayLike | None = None) -> PoseGoal:
        """Goal pose: position (3,) [m], quaternion (4,) w, x, y, z; None keeps the value at which the motion will rest.

        Raises:
            TensegrityError: goals are refused at present, or this is no pose.
        """
        self._takes_goals()
        return make_goal(self.robot.output, position, quaternion, self._rest_pose(now))

    def make_waypoints(self, now: float, waypoints: Sequence[Waypoint]) -> list[tuple[float, PoseGoal]]:
        """Poses to pass; None keeps the value of the previous one. Raises as `make_goal`."""
        self._takes_goals()
        made, pose = [], self._rest_pose(now)
        for time, position, quaternion in waypoints:
            goal = make_goal(self.robot.output, position, quaternion, pose)
            made.append((float(time), goal))
            pose = goal.pose
        return made

    def _takes_goals(self) -> None:
        self._ready()
        if self.robot.model.takes_no_goals:
            raise TensegrityError(f"{self.robot.name} {self.robot.model.takes_no_goals}.")

    def check_goal(self, duration: float | None = None, profile: str = "minimum_jerk") -> None:
        """Raise TensegrityError for invalid properties of a goal other than its pose."""
        self._ready()
        profile_named(profile)
        if duration is not None and not (np.isfinite(duration) and 0.0 <= duration <= self.longest):
            raise TensegrityError(f"the duration is {duration}; give 0 to {self.longest:g} s (0: the shortest).")

    def check_waypoints(self, times: Sequence[float], interpolation: str = "smooth") -> None:
        """Raise TensegrityError for invalid properties of waypoints other than poses; times [s] from the start."""
        self._ready()
        if interpolation not in self.interpolations:
            raise TensegrityError(unknown_name("interpolation of this controller", interpolation, self.interpolations))
        if len(times) > MAX_WAYPOINTS:
            raise TensegrityError(f"{len(times)} waypoints; send up to {MAX_WAYPOINTS} at once, the rest afterwards.")
        knots = [0.0, *times]
        if len(knots) < 2 or not np.all(np.isfinite(knots)) or np.any(np.diff(knots) <= 0.0):
            raise TensegrityError(
                f"waypoint times {knots[1:]} must increase and be above zero, in seconds; give one or more."
            )
        if self.period is None:
            if knots[-1] > self.longest:
                raise TensegrityError(f"the last waypoint is at {knots[-1]:g} s; give up to {self.longest:g} s.")
            return
        if knots[-1] > self.longest or np.min(np.diff(knots)) < self.period or knots[-1] < MIN_PERIODS * self.period:
            raise TensegrityError(
                f"waypoint times {knots[1:]} must be at least a control period of {self.period:g} s apart, the last "
                f"one {MIN_PERIODS} control periods or later, and at most {self.longest:g} s."
            )

    def rest(self, now: float) -> RestPoint:
        """Rest point of the present motion if it is braked now."""
        clock, tracker = self.motion_at(now)
        braking = copy(clock)
        braking.brake(now, self.brake_time)
        return RestPoint(tracker, braking.last, self._configuration(tracker, braking.last))

    def plan_goal(
        self,
        now: float,
        goal: PoseGoal,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
        rest: RestPoint | None = None,
    ) -> PlannedMotion:
        """Motion to a pose, for `begin`. Nothing changes yet, so that it may be planned in another thread.

        Args:
            now: s. goal: see `make_goal`; only the controlled components count.
            duration: s from rest to rest; None or 0 for the shortest within limits. A duration that needs more than the
                actuators' rates is lengthened, which the note reports.
            profile: "minimum_jerk" or "cubic". rest: `rest` at that time, taken in the control thread.

        Raises:
            UnreachableGoalError, InfeasibleControlError, TensegrityError: refused.
        """
        version = self._version
        self.check_goal(duration, profile)
        rest = rest or self.rest(now)
        path = self._plan_path(rest, goal, profile)
        least = max(path.minimum_duration, MIN_PERIODS * (self.period or 0.0))
        took = duration or max(path.preferred_duration, least)
        limited_by = path.limit or f"the rate limit of {path.limiting_actuator}"
        for tries_left in (2, 1, 0):
            took = self._whole_periods(max(took, least))
            if took > self.longest:
                raise TensegrityError(
                    f"the motion would take {took:.3g} s, more than the allowed {self.longest:g} s, because of "
                    f"{limited_by}; go in several steps."
                )
            note = ""
            if duration and took > duration + (self.period or 0.0):
                note = f"{duration:.3g} s requested, {took:.3g} s needed by {limited_by}"
            try:
                tracker = self._make_tracker(rest, path, took, profile)
                return PlannedMotion(tracker, took, note, self._end_pose(tracker, goal), version)
            except TooFastError as error:  # actuator speed varies along the path
                if not tries_left:
                    raise
                least, limited_by = 1.01 * error.factor * took, error.limit
        raise AssertionError("unreachable")

    def plan_through(
        self,
        now: float,
        waypoints: Sequence[tuple[float, PoseGoal]],
        interpolation: str = "smooth",
        rest: RestPoint | None = None,
    ) -> PlannedMotion:
        """Motion through poses at times from its start [s], for `begin`; it rests at the last.

        Args:
            interpolation: one of `interpolations`. rest: as for `plan_goal`. A sampled controller rounds times up to
                whole control periods.

        Raises:
            InfeasibleControlError: the times need more than an actuator's rate; the message gives the least duration.
            UnreachableGoalError, TensegrityError: refused.
        """
        version = self._version
        self.check_waypoints([time for time, _ in waypoints], interpolation)
        rest = rest or self.rest(now)
        times = [0.0, *(self._whole_periods(time) for time, _ in waypoints)]
        goals = [goal for _, goal in waypoints]
        tracker = self._make_waypoint_tracker(rest, times, goals, interpolation)
        return PlannedMotion(tracker, times[-1], "", self._end_pose(tracker, goals[-1]), version)

    def begin(self, now: float, planned: PlannedMotion) -> Accepted:
        """Begin a planned motion, after braking the present one.

        Raises:
            TensegrityError: another motion was begun after it was planned.
        """
        self._ready()
        if planned.version != self._version:
            raise TensegrityError("another command came while the motion was planned; send it again.")
        clock, before = self.motion_at(now)
        self._apply_gains(planned.tracker)
        clock.brake(now, self.brake_time)
        begin = max(now, clock.end)
        self._motions = [(clock, before), (PathClock(begin, planned.duration), planned.tracker)]
        self._goal, self._began = planned.goal, now
        self._version += 1
        return Accepted(begin + planned.duration, begin + planned.duration - now, planned.note)

    def hold(self, now: float) -> None:
        """Brake the present motion and hold the resulting rest point."""
        if not self._motions:
            return
        clock, tracker = self.motion_at(now)
        self._motions = self._motions[: 1 + self._motions.index((clock, tracker))]
        if now < clock.end:
            self._began = now
        clock.brake(now, self.brake_time)
        self._goal = self._reference(tracker, Progress(clock.last, 0.0, 0.0)).pose
        self._version += 1

    def stop(self, now: float) -> None:
        """Hold, and refuse goals until `release`."""
        self.hold(now)
        self._phase = "stopped"

    def release(self) -> None:
        """Allow goals again after `stop`."""
        if self._phase == "stopped":
            self._phase = "holding" if self._motions else "idle"

    # -- inside ---------------------------------------------------------------------------------------------------

    def motion_at(self, time: float) -> tuple[PathClock, Any]:
        """Active motion; the latest one begins when the previous one has ended."""
        if not self._motions:
            raise TensegrityError("the controller has not received a state yet; call reset with a state first.")
        for each in reversed(self._motions):
            if time >= each[0].begin:
                return each
        return self._motions[0]

    def _rest_pose(self, now: float) -> Pose:
        rest = self.rest(now)
        return self._reference(rest.tracker, Progress(rest.time, 0.0, 0.0)).pose

    def _whole_periods(self, duration: float) -> float:
        """Duration [s], rounded up to whole control periods where there are any."""
        return duration if self.period is None else float(self.period * np.ceil(duration / self.period - 1e-9))


def wait_for_robot(controller: Controller) -> None:
    """Let a controller continue after a gap from where its actuators have stopped.

    Positions are sent with their rates, so that a robot brakes by itself where commands stop. Continuing at the planned
    position would be a jump, which makes cables slack.
    """
    if isinstance(controller, GoalController):
        controller.waits_for_robot |= controller.output_mode == "position"


def check_settings(about: Mapping[str, Setting], values: Mapping[str, float]) -> None:
    """Check gains by the ranges of a controller, as `check_ranges`."""
    check_ranges(*((name, value, about[name].low, about[name].high) for name, value in values.items()))


def check_ranges(*parameters: tuple[str, float, float, float]) -> None:
    """Raise TensegrityError where a (name, value, lowest, highest) is not a number within its range."""
    for name, value, low, high in parameters:
        if not (is_finite_number(value) and low <= value <= high):
            raise TensegrityError(f"{name} is {value!r}; give a number from {low:g} to {high:g}.")
