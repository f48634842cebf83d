"""Control of a structure by its rest lengths: a goal pose becomes a path of equilibria, walked in time.

A goal is planned from the present set points (`inverse_kinematics`), made a smooth curve (`equilibrium_curve`) and
given a time law (`time_scaling`). The commands start bit for bit at the present set points and end at the plan's. A
goal that arrives on the way brakes along the present curve first, so the rate of every tendon stays continuous. The
plan is open loop and exact where model and robot agree; `pose_feedback` removes what a wrong model leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.output_frame import Pose
from tensegrity_dynamics.robot import Robot
from tensegrity_dynamics.statics.shape import Shape

from .controller import Accepted, Command, Controller, Reference, RobotState, Status, positions_of
from .equilibrium_curve import EquilibriumCurve
from .inverse_kinematics import inverse_kinematics
from .motion import Motion, Rest, through, timed
from .plan import Plan
from .pose_feedback import PoseFeedback
from .pose_goal import make_goal
from .pose_jacobian import longest_period
from .start_shape import shape_solver, start_shape
from .tendon_guard import TendonGuard
from .time_scaling import profile_named

Array = NDArray[np.float64]
Waypoint = tuple[float, "ArrayLike | None", "ArrayLike | None"]


class TendonLengthControl(Controller):
    """See the module's text.

    Args:
        robot: a pin-jointed robot with actuated tendons.
        rigid_bars: plan with bars that keep their length, as the simulator has them.
        rate_margin: part of the actuators' rate limits that motions use, above 0 and at most 1; smaller is slower.
        swing_periods: a motion whose duration is left open lasts at least so many of the slowest periods of the
            shapes at both ends, so that the structure follows its equilibria without swinging; 0 leaves this out.
        brake_time: s, longest time in which a motion is broken off; shorter when the way ends before.
        feedback_gain: 1/s of the integral correction while holding; 0 switches it off. Keep it well below the slowest
            frequency of the structure: above, the correction excites it.
        feedback_limit: m, largest correction of one rest length.
        tension_floor: N, see `inverse_kinematics`.

    Attributes:
        home: the shape at the robot file's rest lengths, whose posture all plans keep near.
        slowest_period: s, of the small oscillations about it.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no stable start shape.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        rigid_bars: bool = True,
        rate_margin: float = 0.9,
        swing_periods: float = 4.0,
        brake_time: float = 0.3,
        feedback_gain: float = 0.0,
        feedback_limit: float = 0.01,
        tension_floor: float | None = None,
    ) -> None:
        for name, value, low, high in (
            ("rate_margin", rate_margin, 1e-6, 1.0),
            ("swing_periods", swing_periods, 0.0, 1e6),
            ("brake_time", brake_time, 1e-6, 1e6),
            ("feedback_gain", feedback_gain, 0.0, 1e6),
            ("feedback_limit", feedback_limit, 0.0, 1e6),
        ):
            if not (np.isfinite(value) and low <= value <= high):
                raise TensegrityError(f"{name} is {value}; give a number from {low:g} to {high:g}.")
        self.robot, self.rigid_bars, self.tension_floor = robot, rigid_bars, tension_floor
        self.rate_margin, self.swing_periods, self.brake_time = rate_margin, swing_periods, brake_time
        self.feedback_gain, self.feedback_limit = feedback_gain, feedback_limit
        self.names = tuple(actuator.name for actuator in robot.actuators)
        self.solver = shape_solver(robot, rigid_bars)
        self.home = start_shape(robot, None, self.solver)
        self.guard = TendonGuard(robot, self.home, tension_floor)
        self.slowest_period = longest_period(self.home, rigid_bars=rigid_bars)
        self._phase = "idle"
        self._motions: list[Motion] = []
        self._rest = Rest(EquilibriumCurve(robot, (self.home,), self.solver), 1.0)
        self._goal: Pose | None = None
        self._feedback: PoseFeedback | None = None
        self._correction = np.zeros(len(self.names))
        self._arrival = self._last_time = -np.inf

    # -- the controller's face ------------------------------------------------------------------------------------

    def reset(self, time: float, state: RobotState | None = None) -> None:
        """Hold the state's rest lengths (the robot file's where none are given) from `time` [s] on.

        A stop stays in force.

        Raises:
            TensegrityError: the lengths are no numbers, or no stable equilibrium with tight tendons belongs to them.
        """
        lengths = np.array(self.home.rest_lengths)
        lengths[self.guard.members] = positions_of(self.robot, None if state is None else state.positions)
        nodes = self.home.nodes if state is None or state.nodes is None else state.nodes
        shape = start_shape(self.robot, self.solver.solve(lengths, start=nodes), self.solver)
        self._rest = Rest(EquilibriumCurve(self.robot, (shape,), self.solver), 1.0)
        self._motions, self._goal, self._feedback = [], shape.pose, None
        self._phase = "stopped" if self._phase == "stopped" else "holding"
        self._correction = np.zeros(len(self.names))
        self._arrival = self._last_time = time

    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Rest lengths [m] for a time [s]; a measured pose in the state drives the feedback while holding."""
        self._finish(time)
        motion = self._motion(time)
        lengths = self._rest.lengths if motion is None else motion.curve.lengths(motion.at(time)[0])
        if self.feedback_gain > 0.0:
            if motion is None and self._phase == "holding" and state is not None and state.pose is not None:
                self._correct(state.pose, max(time - self._last_time, 0.0))
            lengths = lengths + self._correction
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
        curve = EquilibriumCurve(self.robot, path, self.solver)
        timing, note = timed(curve, duration or None, law, self.rate_margin, self.swing_periods)
        return self._start(now, brake, Motion(now if brake is None else brake.end, timing, curve), note)

    def follow(self, now: float, waypoints: Sequence[Waypoint]) -> Accepted:
        """Pass through poses (time from the start [s], position, quaternion) without stopping, at rest at the last.

        The times count from `now`, or from the end of braking where a motion is under way.

        Raises:
            InfeasibleControlError: the times ask for more than an actuator's rate; the message says how much longer.
            UnreachableGoalError, TensegrityError: a waypoint is refused. The present motion goes on in every case.
        """
        self._ready()
        times = [0.0] + [float(waypoint[0]) for waypoint in waypoints]
        if not waypoints or not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0.0):
            raise TensegrityError(f"waypoint times {times[1:]} must be seconds above zero that increase, at least one.")
        brake, path, ends = self._way(now, [(position, quaternion) for _, position, quaternion in waypoints])
        curve = EquilibriumCurve(self.robot, path, self.solver, keep=ends)
        timing = through(curve, times, curve.path_places[ends])
        return self._start(now, brake, Motion(now if brake is None else brake.end, timing, curve), "")

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

    def plan(self, start: Shape, position: ArrayLike | None, quaternion: ArrayLike | None) -> Plan:
        """The equilibrium path from a shape to a pose, with the posture of the robot file's rest lengths."""
        return inverse_kinematics(
            self.robot, position, quaternion, start=start, preferred=self.home,
            tension_floor=self.tension_floor, rigid_bars=self.rigid_bars, solver=self.solver,
        )  # fmt: skip

    # -- inside ---------------------------------------------------------------------------------------------------

    def _ready(self) -> None:
        if self._phase == "idle":
            raise TensegrityError("the controller has not seen the robot yet; reset it with a state first.")
        if self._phase == "stopped":
            raise TensegrityError("the controller is stopped; release it before sending a goal.")

    def _way(
        self, now: float, poses: Sequence[tuple[ArrayLike | None, ArrayLike | None]]
    ) -> tuple[Motion | None, list[Shape], list[int]]:
        """Braking motion if any, shapes through all poses from its end, and the index of each pose's shape."""
        for position, quaternion in poses:
            make_goal(self.robot.output, position, quaternion, self._rest.pose)
        self._finish(now)
        motion = self._motion(now)
        brake = None if motion is None else motion.brake(now, self.brake_time)
        rest = self._rest if brake is None else Rest(brake.curve, brake.at(brake.end)[0])
        path, ends = [rest.shape()], [0]
        for position, quaternion in poses:
            path.extend(self.plan(path[-1], position, quaternion).path[1:])
            ends.append(len(path) - 1)
        return brake, path, ends

    def _start(self, now: float, brake: Motion | None, motion: Motion, note: str) -> Accepted:
        self._motions = [motion] if brake is None else [brake, motion]
        self._goal, self._feedback = motion.curve.last.pose, None
        return Accepted(motion.end, motion.end - now, note)

    def _motion(self, time: float) -> Motion | None:
        """The motion under way at a time."""
        for motion in self._motions:
            if time < motion.end:
                return motion
        return None

    def _rest_at(self, time: float) -> Rest:
        """Where the robot rests at a time at which no motion is under way."""
        if not self._motions or time < self._motions[0].begin:
            return self._rest
        last = self._motions[-1]
        return Rest(last.curve, last.at(last.end)[0])

    def _finish(self, time: float) -> None:
        """Forget motions once they are over."""
        if self._motions and time >= self._motions[-1].end:
            self._rest, self._arrival = self._rest_at(time), self._motions[-1].end
            self._motions, self._feedback = [], None

    def _correct(self, measured: Pose, step: float) -> None:
        if self._feedback is None:
            self._feedback = PoseFeedback(
                self.robot, self.guard, self._rest.shape(), self.rigid_bars, self.feedback_gain, self.feedback_limit
            )
        assert self._goal is not None
        self._correction = self._feedback.corrected(self._correction, self._goal, measured, step)
