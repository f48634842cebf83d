"""Control by actuator positions: a goal pose becomes a path of shapes at rest, walked in time.

A goal is planned from the present set points, made a smooth curve and given a time law (`time_scaling`). The commands
start bit for bit at the present set points and end at the plan's. A goal that arrives on the way brakes along the
present curve first, so the rate of every actuator stays continuous. The plan is open loop and exact where model and
robot agree.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Accepted, Command, Controller, Reference, RobotState, Status
from ..inverse_kinematics.pose_goal import make_goal
from ..paths.timed_path import RestPoint, TimedPath, through, timed
from ..trajectories.time_scaling import profile_named

Array = NDArray[np.float64]
Waypoint = tuple[float, "ArrayLike | None", "ArrayLike | None"]


class PathController(Controller):
    """What controllers of structures and of mechanisms share; see the module's text.

    A subclass says how shapes are found: `_shape_of` a measured state, the way to a pose (`_way_to`), and the curve
    through shapes (`_curve`), whose faces are those of `StructureEquilibrium` and `EquilibriumPath`.

    Args:
        robot: with actuators and an output.
        home: its shape at rest, from which it starts.
        rate_margin: part of the actuators' rate limits that motions use, above 0 and at most 1; smaller is slower.
        swing_periods: a motion whose duration is left open lasts at least so many of the slowest periods of the
            shapes at both ends, so that the robot follows its shapes without swinging; 0 leaves this out.
        brake_time: s, longest time in which a motion is broken off; shorter when the way ends before.

    Raises:
        TensegrityError: a parameter is out of range.
    """

    def __init__(
        self, robot: Robot, home: Any, *, rate_margin: float = 0.9, swing_periods: float = 4.0, brake_time: float = 0.3
    ) -> None:
        check_ranges(
            ("rate_margin", rate_margin, 1e-6, 1.0),
            ("swing_periods", swing_periods, 0.0, 1e6),
            ("brake_time", brake_time, 1e-6, 1e6),
        )
        self.robot, self.home = robot, home
        self.rate_margin, self.swing_periods, self.brake_time = rate_margin, swing_periods, brake_time
        self.names = tuple(actuator.name for actuator in robot.actuators)
        self._phase = "idle"
        self._motions: list[TimedPath] = []
        self._rest = RestPoint(self._curve((home,)), 1.0)
        self._goal: Pose | None = None
        self._arrival = self._last_time = -np.inf

    # -- what a subclass says -------------------------------------------------------------------------------------

    @abstractmethod
    def _shape_of(self, state: RobotState | None) -> Any:
        """The stable shape that belongs to a measured state; the one at rest for None."""

    @abstractmethod
    def _way_to(self, start: Any, position: ArrayLike | None, quaternion: ArrayLike | None) -> Sequence[Any]:
        """Shapes from `start` to one at a pose."""

    @abstractmethod
    def _curve(self, path: Sequence[Any], keep: Sequence[int] = ()) -> Any:
        """The curve through shapes."""

    def _correction(self, time: float, is_moving: bool, state: RobotState | None) -> Array | float:
        """What feedback adds to the set points (a,)."""
        return 0.0

    # -- the controller's face ------------------------------------------------------------------------------------

    def reset(self, time: float, state: RobotState | None = None) -> None:
        """Hold the state's positions (those at rest where none are given) from `time` [s] on. A stop stays in force.

        Raises:
            TensegrityError: the positions are no numbers, or no stable shape belongs to them.
        """
        shape = self._shape_of(state)
        self._rest = RestPoint(self._curve((shape,)), 1.0)
        self._motions, self._goal = [], shape.pose
        self._phase = "stopped" if self._phase == "stopped" else "holding"
        self._arrival = self._last_time = time

    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Positions for a time [s]; a measured pose in the state drives the feedback while holding, if there is one."""
        self._finish(time)
        motion = self._motion(time)
        lengths = self._rest.lengths if motion is None else motion.curve.lengths(motion.at(time)[0])
        lengths = lengths + self._correction(time, motion is not None, state)
        self._last_time = time
        return Command("position", self.names, np.array(lengths))

    def reference(self, time: float) -> Reference:
        """Pose and twist of the plan at a time [s]."""
        motion = self._motion(time)
        if motion is None:
            rest = self._rest_at(time)
            return Reference(rest.pose, np.zeros(6))
        place, rate = motion.at(time)
        return Reference(motion.curve.pose(place), rate * motion.curve.pose_slopes(place))

    def status(self, time: float) -> Status:
        """What the controller is doing at a time [s]."""
        if self._motion(time) is None:
            arrival = self._motions[-1].end if self._motions else self._arrival
            return Status(self._phase, 1.0, arrival, self._goal)
        begin, end = self._motions[0].begin, self._motions[-1].end
        progress = (time - begin) / max(end - begin, 1e-12)
        phase = "stopped" if self._phase == "stopped" else "moving"
        return Status(phase, min(max(progress, 0.0), 1.0), end, self._goal)

    # -- goals ----------------------------------------------------------------------------------------------------

    def set_goal(
        self,
        now: float,
        position: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
    ) -> Accepted:
        """Go to a pose; a motion under way is broken off smoothly first.

        Args:
            now: s.
            position: (3,) m, or None to keep the present one.
            quaternion: (4,) w, x, y, z, or None to keep the present one.
            duration: s from rest to rest; None or 0 for the shortest that limits allow. A duration that would need
                more than the actuators' rates is lengthened, which the answer's note says.
            profile: "minimum_jerk" or "cubic".

        Raises:
            UnreachableGoalError, TensegrityError: the goal is refused and the present motion goes on.
        """
        self._ready()
        law = profile_named(profile)
        if duration is not None and not (np.isfinite(duration) and duration >= 0.0):
            raise TensegrityError(f"the duration is {duration}; give seconds, or 0 for the shortest.")
        brake, path, _ = self._way(now, [(position, quaternion)])
        curve = self._curve(path)
        timing, note = timed(curve, duration or None, law, self.rate_margin, self.swing_periods)
        return self._start(now, brake, TimedPath(now if brake is None else brake.end, timing, curve), note)

    def follow(self, now: float, waypoints: Sequence[Waypoint], interpolation: str = "smooth") -> Accepted:
        """Pass through poses (time from the start [s], position, quaternion) without stopping, at rest at the last.

        The only interpolation of this controller is "smooth".

        The times count from `now`, or from the end of braking where a motion is under way.

        Raises:
            InfeasibleControlError: the times ask for more than an actuator's rate; the message says how much longer.
            UnreachableGoalError, TensegrityError: a waypoint is refused. The present motion goes on in every case.
        """
        self._ready()
        if interpolation != "smooth":
            raise TensegrityError(unknown_name("interpolation of this controller", interpolation, ("smooth",)))
        times = [0.0] + [float(waypoint[0]) for waypoint in waypoints]
        if not waypoints or not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0.0):
            raise TensegrityError(f"waypoint times {times[1:]} must be seconds above zero that increase, at least one.")
        brake, path, ends = self._way(now, [(position, quaternion) for _, position, quaternion in waypoints])
        curve = self._curve(path, ends)
        timing = through(curve, times, curve.path_places[ends])
        return self._start(now, brake, TimedPath(now if brake is None else brake.end, timing, curve), "")

    def hold(self, now: float) -> None:
        """Break the motion off and hold what is reached then."""
        self._finish(now)
        motion = self._motion(now)
        if motion is not None:
            brake = motion.brake(now, self.brake_time)
            self._motions = [brake]
            self._goal = brake.curve.pose(brake.at(brake.end)[0])

    def stop(self, now: float) -> None:
        """As `hold`, and refuse goals until `release`."""
        self.hold(now)
        self._phase = "stopped"

    def release(self) -> None:
        """Allow goals again after `stop`."""
        if self._phase == "stopped":
            self._phase = "holding" if np.isfinite(self._last_time) else "idle"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _way(
        self, now: float, poses: Sequence[tuple[ArrayLike | None, ArrayLike | None]]
    ) -> tuple[TimedPath | None, list[Any], list[int]]:
        """Braking motion if any, shapes through all poses from its end, and the index of each pose's shape."""
        for position, quaternion in poses:
            make_goal(self.robot.output, position, quaternion, self._rest.pose)
        self._finish(now)
        motion = self._motion(now)
        brake = None if motion is None else motion.brake(now, self.brake_time)
        rest = self._rest if brake is None else RestPoint(brake.curve, brake.at(brake.end)[0])
        path, ends = [rest.shape()], [0]
        for position, quaternion in poses:
            path.extend(self._way_to(path[-1], position, quaternion)[1:])
            ends.append(len(path) - 1)
        return brake, path, ends

    def _start(self, now: float, brake: TimedPath | None, motion: TimedPath, note: str) -> Accepted:
        self._motions = [motion] if brake is None else [brake, motion]
        self._goal = motion.curve.last.pose
        return Accepted(motion.end, motion.end - now, note)

    def _motion(self, time: float) -> TimedPath | None:
        """The motion under way at a time."""
        for motion in self._motions:
            if time < motion.end:
                return motion
        return None

    def _rest_at(self, time: float) -> RestPoint:
        """Where the robot rests at a time at which no motion is under way."""
        if not self._motions or time < self._motions[0].begin:
            return self._rest
        last = self._motions[-1]
        return RestPoint(last.curve, last.at(last.end)[0])

    def _finish(self, time: float) -> None:
        """Forget motions once they are over."""
        if self._motions and time >= self._motions[-1].end:
            self._rest, self._arrival = self._rest_at(time), self._motions[-1].end
            self._motions = []


def check_ranges(*parameters: tuple[str, float, float, float]) -> None:
    """Raise TensegrityError where a (name, value, lowest, highest) is not a number within its range."""
    for name, value, low, high in parameters:
        if not (np.isfinite(value) and low <= value <= high):
            raise TensegrityError(f"{name} is {value}; give a number from {low:g} to {high:g}.")
