"""Controllers of mechanisms that follow a planned path by efforts or velocities: goals, trajectories, hold and stop.

A goal becomes a path of the controlled coordinates from where the mechanism rests, the path becomes a plan with its
own feedback (a follower), and a clock runs the plan (`path_clock`). A goal that comes on the way lets the present
motion brake first and begins where that will come to rest. What is planned is checked before anything changes: a
refused goal leaves the motion as it was.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError, unknown_name
from tensegrity_dynamics.mechanisms.mechanism_model import BodyPoses, MechanismModel
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Accepted, Command, Controller, Reference, RobotState, Status
from ..trajectories.path_clock import PathClock, Progress
from ..trajectories.quintic import QuinticSpline, minimum_jerk
from ..trajectories.splines import HermiteSpline, PiecewisePolynomial
from .path_controller import Waypoint, check_ranges

Array = NDArray[np.float64]

PROFILES = ("minimum_jerk", "cubic")
LONGEST, MOST_PERIODS, FEWEST = 600.0, 100_000, 20
"""s and control periods that a motion may take, and periods that it must."""
PEAK = {"minimum_jerk": 1.875, "cubic": 1.5}
"""Largest rate of a profile, as a factor on its mean."""


class Follower(Protocol):
    """A plan with its feedback."""

    def motion(self, time: float, pace: float = 1.0) -> tuple[Array, Array]:
        """Position (nq,) and velocity (nv,) of the mechanism on the plan."""


class TooFastError(InfeasibleControlError):
    """A path asks an actuator for more than its rate, by a factor."""

    def __init__(self, message: str, actuator: str, factor: float) -> None:
        super().__init__(message)
        self.actuator, self.factor = actuator, factor


@dataclass(frozen=True, eq=False)
class GoalFeasibility:
    """What is known of the way to a goal before it is planned.

    Attributes:
        end: (k,) the controlled coordinates at the goal. shortest: s for a mean rate of 1 at every actuator's limit.
        slowest: name of the actuator that this is about. settling: s below which the robot could not follow.
    """

    end: Array
    shortest: float
    slowest: str
    settling: float = 0.0


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """A motion that can begin: its follower, duration [s], a note for whoever asked, what it rests on, and its goal."""

    follower: Follower
    duration: float
    note: str
    version: int
    goal: Pose


class MotionController(Controller):
    """See the module. A subclass says how shapes at rest, ways and followers are made.

    Args:
        robot: a mechanism with actuators and an output.
        period: s between two commands, for which they are held.
        rate_margin: part of the actuators' rate limits that goals without a duration use, above 0 and at most 1.
        brake_time: s, longest time in which a motion is broken off.

    Raises:
        TensegrityError: a parameter is out of range.
    """

    mode = "effort"
    interpolations: tuple[str, ...] = ("smooth", "minimum_jerk", "cubic")

    def __init__(
        self, robot: Robot, *, period: float = 0.005, rate_margin: float = 0.5, brake_time: float = 0.5
    ) -> None:
        check_ranges(
            ("period", period, 1e-5, 1.0),
            ("rate_margin", rate_margin, 1e-6, 1.0),
            ("brake_time", brake_time, 1e-6, 1e6),
        )
        self.robot, self.period, self.rate_margin, self.brake_time = robot, period, rate_margin, brake_time
        self.names = tuple(each.name for each in robot.actuators)
        self._places, self._plan_places = (
            BodyPoses(robot.model_as(MechanismModel)),
            BodyPoses(robot.model_as(MechanismModel)),
        )
        self.longest = min(LONGEST, MOST_PERIODS * period)
        self._phase = "idle"
        self._motions: list[tuple[PathClock, Follower]] = []
        self._goal: Pose | None = None
        self._version = 0
        self.blind = 0
        """Commands that were given without a state."""

    # -- what a subclass says -------------------------------------------------------------------------------------

    @abstractmethod
    def _holding(self, state: RobotState) -> Follower:
        """A follower that holds the shape at rest that belongs to a state with q."""

    @abstractmethod
    def _coordinates(self, q: Array) -> Array:
        """(k,) controlled coordinates at a position (nq,)."""

    @abstractmethod
    def _way(self, q: Array, position: ArrayLike | None, quaternion: ArrayLike | None) -> GoalFeasibility:
        """The way from the shape at rest at q (nq,) to a pose. Raises UnreachableGoalError, TensegrityError."""

    @abstractmethod
    def _follower(self, path: PiecewisePolynomial, q: Array, before: Follower, last: float) -> Follower:
        """A follower of a path of the controlled coordinates that begins at rest at q, where `before` will have ended.

        Args:
            path: from time 0 on. q: (nq,). last: s, the time of `before` at which it rests.

        Raises:
            TensegrityError: there is no such motion.
        """

    @abstractmethod
    def _values(self, follower: Follower, progress: Progress, state: RobotState | None) -> Array:
        """(a,) what the actuators are sent."""

    def _tune(self, follower: Follower) -> None:
        """Give a follower the present gains, if it was made with others. Raises TensegrityError."""

    # -- the controller's face ------------------------------------------------------------------------------------

    def reset(self, time: float, state: RobotState | None = None) -> None:
        """Hold the shape at rest that belongs to a state's positions from `time` [s] on. A stop stays in force.

        Raises:
            TensegrityError: the state has no q, or no stable shape belongs to it.
        """
        if state is None or state.q is None:
            raise TensegrityError("this controller needs q and v in structure_state; is the robot a mechanism?")
        follower = self._holding(state)
        self._motions = [(PathClock(time, 0.0), follower)]
        self._goal = self._pose(follower, 0.0)
        self._version += 1
        self._phase = "stopped" if self._phase == "stopped" else "holding"

    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Set points for a time [s]; without a state those of the plan alone."""
        clock, follower = self._active(time)
        known = state if state is not None and state.q is not None and state.v is not None else None
        self.blind += known is None
        return Command(self.mode, self.names, self._values(follower, clock.at(time), known))

    def reference(self, time: float) -> Reference:
        """Pose and twist of the plan at a time [s]."""
        clock, follower = self._active(time)
        place, pace, _ = clock.at(time)
        pose, twist = self._places.move(*follower.motion(place, pace)).output(self.robot.output)  # type: ignore
        return Reference(pose, twist)

    def status(self, time: float) -> Status:
        """What the controller is doing at a time [s]."""
        if not self._motions:
            return Status(self._phase, 1.0, -np.inf, None)
        begin, end = self._motions[0][0].begin, self._motions[-1][0].end
        if time >= end:
            return Status(self._phase, 1.0, end, self._goal)
        phase = "stopped" if self._phase == "stopped" else "moving"
        return Status(phase, min(max((time - begin) / max(end - begin, 1e-12), 0.0), 1.0), end, self._goal)

    # -- goals ----------------------------------------------------------------------------------------------------

    def check_goal(self, duration: float | None = None, profile: str = "minimum_jerk") -> None:
        """Raise TensegrityError for what is wrong with a goal whatever its place."""
        self._ready()
        if profile not in PROFILES:
            raise TensegrityError(unknown_name("profile", profile, PROFILES))
        if duration is not None and not 0.0 <= duration <= self.longest:
            raise TensegrityError(f"the duration is {duration}; give 0 for the shortest, or up to {self.longest:g} s.")

    def check_waypoints(self, waypoints: Sequence[Waypoint], interpolation: str = "smooth") -> None:
        """Raise TensegrityError for what is wrong with waypoints whatever their places."""
        self._ready()
        if interpolation not in self.interpolations:
            raise TensegrityError(unknown_name("interpolation", interpolation, self.interpolations))
        times = [0.0] + [float(waypoint[0]) for waypoint in waypoints]
        if not waypoints or not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0.0):
            raise TensegrityError(f"waypoint times {times[1:]} must be seconds above zero that increase, at least one.")
        if times[-1] > self.longest or np.min(np.diff(times)) < self.period or times[-1] < FEWEST * self.period:
            raise TensegrityError(
                f"waypoint times {times[1:]} must be at least a control period of {self.period:g} s apart, {FEWEST} of "
                f"them in all, and at most {self.longest:g} s."
            )

    def rest(self, now: float) -> Array:
        """q (nq,) of the shape at rest in which the present motion will end, if it is braked now."""
        follower, last = self._braked(now)
        return follower.motion(last, 0.0)[0].copy()

    def plan_goal(
        self,
        now: float,
        position: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
        q: Array | None = None,
    ) -> PlannedMotion:
        """A motion to a pose, for `begin`; nothing changes yet, so that it may be planned in another thread.

        Args:
            now: s. position: (3,) m; quaternion: (4,) w, x, y, z. Only what the output controls counts.
            duration: s from rest to rest; None or 0 for the shortest that limits allow. One that would need more than
                the actuators' rates is lengthened, which the note says.
            profile: "minimum_jerk" or "cubic". q: `rest` at that time, taken where the control runs.

        Raises:
            UnreachableGoalError, InfeasibleControlError, TensegrityError: refused.
        """
        version = self._version
        self.check_goal(duration, profile)
        q = self.rest(now) if q is None else q
        way = self._way(q, position, quaternion)
        least = max(PEAK[profile] * way.shortest, FEWEST * self.period)
        took = duration or max(least / self.rate_margin, way.settling)
        first = self._coordinates(q)
        reason = f"by the rate limit of {way.slowest}"
        for left in (2, 1, 0):
            took = self.period * np.ceil(max(took, least) / self.period - 1e-9)
            if took > self.longest:
                raise TensegrityError(f"the way would take {took:.3g} s, above {self.longest:g} s; go in steps.")
            if profile == "cubic":
                path: PiecewisePolynomial = HermiteSpline([0.0, took], [first, way.end], np.zeros((2, first.size)))
            else:
                path = minimum_jerk(0.0, took, first, way.end)
            note = ""
            if duration and took > duration + self.period:
                note = f"{duration:.3g} s asked for, {took:.3g} s needed {reason}"
            try:
                return self._planned(now, path, q, note, version)
            except TooFastError as error:  # the way is not travelled evenly
                if not left:
                    raise
                least, reason = 1.01 * error.factor * took, f"by the rate limit of {error.actuator}"
        raise AssertionError("unreachable")

    def plan_through(
        self, now: float, waypoints: Sequence[Waypoint], interpolation: str = "smooth", q: Array | None = None
    ) -> PlannedMotion:
        """A motion through poses (time from the start [s], position, quaternion), for `begin`.

        Args:
            interpolation: "smooth" passes without stopping and rests at the last; "minimum_jerk" and "cubic" rest at
                every one. q: as for `plan_goal`. Times are rounded up to whole control periods.

        Raises:
            UnreachableGoalError, InfeasibleControlError, TensegrityError: refused.
        """
        version = self._version
        self.check_waypoints(waypoints, interpolation)
        q = self.rest(now) if q is None else q
        periods = np.ceil(np.array([0.0] + [float(waypoint[0]) for waypoint in waypoints]) / self.period - 1e-9)
        values = [self._coordinates(q)]
        values += [self._way(q, position, quaternion).end for _, position, quaternion in waypoints]
        path = self._through((self.period * periods).tolist(), np.array(values), interpolation, q)
        return self._planned(now, path, q, "", version)

    def begin(self, now: float, planned: PlannedMotion) -> Accepted:
        """Begin a planned motion; one that is under way brakes first.

        Raises:
            TensegrityError: something else has been begun since it was planned.
        """
        self._ready()
        if planned.version != self._version:
            raise TensegrityError("another command came while the motion was planned; send it again.")
        clock, before = self._active(now)
        self._tune(planned.follower)
        clock.brake(now, self.brake_time)
        begin = max(now, clock.end)
        self._motions = [(clock, before), (PathClock(begin, planned.duration), planned.follower)]
        self._goal = planned.goal
        self._version += 1
        return Accepted(begin + planned.duration, begin + planned.duration - now, planned.note)

    def set_goal(
        self,
        now: float,
        position: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
    ) -> Accepted:
        """`plan_goal` and `begin`; refused, it leaves the present motion as it was."""
        planned = self.plan_goal(now, position, quaternion, duration=duration, profile=profile)
        return self.begin(now, planned)

    def follow(self, now: float, waypoints: Sequence[Waypoint], interpolation: str = "smooth") -> Accepted:
        """`plan_through` and `begin`; refused, it leaves the present motion as it was."""
        return self.begin(now, self.plan_through(now, waypoints, interpolation))

    def hold(self, now: float) -> None:
        """Break the motion off and hold what is reached then."""
        if not self._motions:
            return
        self._motions = self._motions[: 1 + self._motions.index(self._active(now))]
        clock, follower = self._motions[-1]
        clock.brake(now, self.brake_time)
        self._goal = self._pose(follower, clock.last)
        self._version += 1

    def stop(self, now: float) -> None:
        """As `hold`, and refuse goals until `release`."""
        self.hold(now)
        self._phase = "stopped"

    def release(self) -> None:
        """Allow goals again after `stop`."""
        if self._phase == "stopped":
            self._phase = "holding" if self._motions else "idle"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _through(self, times: list[float], values: Array, interpolation: str, q: Array) -> PiecewisePolynomial:
        still = np.zeros_like(values)
        if interpolation == "cubic":
            return HermiteSpline(times, values, still)
        rest = still if interpolation == "minimum_jerk" else None
        return QuinticSpline(times, values, rest, rest)

    def _active(self, time: float) -> tuple[PathClock, Follower]:
        """The motion under way; the last one begins when the one before has ended."""
        if not self._motions:
            raise TensegrityError("the controller has not seen the robot yet; reset it with a state first.")
        return next((each for each in reversed(self._motions) if time >= each[0].begin), self._motions[0])

    def _braked(self, now: float) -> tuple[Follower, float]:
        """The motion under way, and its own time [s] at which it will rest if it is braked now."""
        clock, follower = self._active(now)
        braking = copy(clock)
        braking.brake(now, self.brake_time)
        return follower, braking.last

    def _planned(self, now: float, path: PiecewisePolynomial, q: Array, note: str, version: int) -> PlannedMotion:
        follower = self._follower(path, q, *self._braked(now))
        pose = self._plan_places.move(*follower.motion(path.end, 0.0)).output(self.robot.output)[0]  # type: ignore
        return PlannedMotion(follower, path.end, note, version, pose)

    def _pose(self, follower: Follower, time: float) -> Pose:
        return self._places.move(*follower.motion(time, 0.0)).output(self.robot.output)[0]  # type: ignore[arg-type]

    def _check_rates(self, used: Array) -> None:
        """Raise TooFastError where rates (a,) of the actuators are above their limits."""
        limits = np.array([each.rate for each in self.robot.actuators])
        worst = int(np.argmax(used / limits))
        factor = float(used[worst] / limits[worst])
        if factor > 1.0:
            actuator = self.robot.actuators[worst]
            raise TooFastError(
                f"the path asks {actuator.name} for {used[worst]:.4g} {actuator.units[1]}, above its rate limit of "
                f"{actuator.rate:.4g} {actuator.units[1]}; stretch all times by a factor of {factor:.3g} or more.",
                actuator.name,
                factor,
            )
