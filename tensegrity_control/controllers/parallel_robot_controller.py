"""Controllers of parallel mechanisms by kinematic control and by computed torque: goals and trajectories of the output.

Every path is checked for Type 2 singularities before it starts. A path that crosses one without satisfying the crossing
criterion is refused with position and time (`singularity_crossing`). The interpolation "crossing" plans through three
positions, the middle one on a singularity, such that the criterion is satisfied.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError, UnreachableGoalError
from tensegrity_dynamics.mechanisms.body_frame import BodyFrame
from tensegrity_dynamics.mechanisms.dynamics.inverse_dynamics import inverse_dynamics
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.mechanisms.kinematics.independent_coordinates import wrench_jacobian
from tensegrity_dynamics.mechanisms.loads import Payload
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.robot_kinematics import loop_kinematics
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, rotation_vector
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..cancellation import checkpoint
from ..controller import Command, RobotState, Setting
from ..inverse_kinematics.pose_goal import PoseGoal
from ..motion_planning.impedance_gains import ImpedanceGains, impedance_gains
from ..motion_planning.singularity_crossing import check_path, crossing_trajectory
from ..trajectories.splines import HermiteSpline, PiecewisePolynomial
from ..trajectories.time_scaling import Progress
from ..trajectories.turning_path import TurningPath
from .computed_torque import ComputedTorqueTracker
from .goal_controller import GoalPath, RestPoint, check_ranges
from .kinematic import KinematicTracker
from .known_loads import KnownLoads, wrenches_of
from .sampled_controller import Line, SampledController

SAMPLES = 101
"""Number of points of a path at which rates and position limits are checked."""


class ParallelRobotController(SampledController):
    """Base class of both controllers.

    Args:
        robot: a parallel mechanism of rigid links; see `SampledController` for the rest.
        gains: gains by name, each from 0 to `largest`.

    Raises:
        TensegrityError: a gain is out of range, the number of actuators differs from that of the output's coordinates,
            or the output controls some rotations but turns about other axes as well.
    """

    interpolations = ("smooth", "minimum_jerk", "cubic", "crossing")

    def __init__(
        self,
        robot: Robot,
        gains: dict[str, float],
        largest: float,
        period: float,
        rate_margin: float,
        brake_time: float,
        actuation: str | None = None,
    ) -> None:
        self._gains, self._largest = gains, largest
        self._check_gains(gains)
        super().__init__(robot, period=period, rate_margin=rate_margin, brake_time=brake_time, actuation=actuation)
        stretch = robot.model_as(MechanismModel).tension_names
        if stretch:
            raise TensegrityError(
                f"{robot.name} has elastic cables ({', '.join(stretch)}); this controller needs rigid links "
                "between actuators and output. Use qp, near_rigid or joint_position."
            )
        # one for planning and one for control, which may run at the same time
        self.kinematics, self._control_kinematics = loop_kinematics(robot), loop_kinematics(robot)
        output = robot.output
        self._rows = output.rows  # type: ignore[union-attr]
        self._turning = np.flatnonzero(self._rows >= 3)
        if 0 < self._turning.size < 3:
            self._check_plane()
        self._distance = np.inf

    def _check_plane(self) -> None:
        """Raise TensegrityError if the output turns about axes that it does not control."""
        output: BodyFrame = self.robot.output  # type: ignore[assignment]
        q = self.robot.model.initial_configuration
        assert q is not None
        free = np.setdiff1d(np.arange(3), self._rows[self._turning] - 3)
        moves = wrench_jacobian(self.robot.mechanism, q, output.body)[free] @ self.kinematics.basis(q)
        turned = rotation_vector(self.kinematics.output_pose(q)[0])[free]
        if max(np.max(np.abs(moves)), np.max(np.abs(turned))) > 1e-9:
            raise TensegrityError(
                f"output {output.name} controls {', '.join(output.controlled)} but turns about other axes as well; "
                "list all of rx, ry and rz in `controlled`, or none."
            )

    def _goal_values(self, goal: PoseGoal) -> Array:
        """(k,) controlled coordinates of a goal: m, and rotation vector [rad]."""
        turn = rotation_vector(matrix_from_quaternion(goal.quaternion))
        return np.concatenate((goal.position, turn))[self._rows]

    @property
    def singularity_distance(self) -> float:
        """Distance to the nearest Type 2 singularity at the last command; 0 on the singularity."""
        return self._distance

    def gains(self) -> dict[str, float]:
        return dict(self._gains)

    def set_gains(self, **values: float) -> None:
        gains = {**self._gains, **self.checked_gains(values)}
        self._check_gains(gains)
        self._gains = gains
        for _, tracker in self._motions:
            self._apply_gains(tracker)

    def _check_gains(self, gains: dict[str, float]) -> None:
        check_ranges(*((name, value, 0.0, self._largest) for name, value in gains.items()))

    @abstractmethod
    def _path_tracker(self, path: PiecewisePolynomial, q: Array, crosses: bool) -> Any:
        """Tracker of a checked path from q (nq,); `crosses` says whether the path crosses a singularity."""

    def _apply_gains(self, tracker: Any) -> None:
        tracker.kinematics = self._control_kinematics

    def _hold_tracker(self, state: RobotState | None) -> Any:
        assert state is not None and state.q is not None
        q = np.array(state.q)
        self._refuse_overload(self._efforts_at_rest(q))
        still = self._control_kinematics.output_values(q)
        path = HermiteSpline([0.0, 1.0], [still, still], np.zeros((2, still.size)))
        tracker = self._path_tracker(path, q, False)
        self._apply_gains(tracker)
        return tracker

    def _efforts_at_rest(self, q: Array) -> Array:
        """(a,) efforts that hold a configuration (nq,)."""
        mechanism, joints = self._control_kinematics.mechanism, self._control_kinematics.active
        still = np.zeros(mechanism.velocity_count)
        effort = inverse_dynamics(mechanism, q, still, still, joints).effort
        return np.asarray(effort[[mechanism.velocities_of(name).start for name in joints]])

    def _plan_path(self, rest: RestPoint, goal: PoseGoal, profile: str) -> GoalPath:
        q, travel = rest.configuration, np.zeros(len(self.names))
        first, end = self.kinematics.output_values(q), self._goal_values(goal)
        for share in np.linspace(0.0, 1.0, SAMPLES)[1:]:
            checkpoint()
            try:
                before, q = q, self.kinematics.inverse(first + share * (end - first), q)
            except UnreachableGoalError:
                self.kinematics.inverse(end, q)  # names the goal, not this point of the way
                raise
            travel += np.abs(self._joints(q) - self._joints(before))
        self._check_positions(self._joints(q), "goal")
        return self._line(Line(first, end), travel, profile)

    def _waypoint_coordinates(self, rest: RestPoint, goals: Sequence[PoseGoal]) -> tuple[Array, Sequence[Any]]:
        values = [self.kinematics.output_values(rest.configuration)]
        for goal in goals:
            checkpoint()
            values.append(self._goal_values(goal))
            self._check_positions(self._joints(self.kinematics.inverse(values[-1], rest.configuration)), "goal")
        return np.array(values), ()

    def _waypoint_trajectory(
        self, rest: RestPoint, times: Sequence[float], values: Array, interpolation: str
    ) -> PiecewisePolynomial:
        if interpolation == "crossing":
            if self._turning.size == 3:
                raise TensegrityError(
                    "a path across a singularity may control positions and a turn about one axis, not rx, ry and rz "
                    "together."
                )
            return crossing_trajectory(self.kinematics, values, times, rest.configuration)
        return super()._waypoint_trajectory(rest, times, values, interpolation)

    def _track(self, rest: RestPoint, trajectory: PiecewisePolynomial, equilibria: Sequence[Any]) -> Any:
        q, used = rest.configuration, []
        if self._turning.size == 3:
            trajectory = TurningPath(trajectory, self._turning)
        crosses = bool(check_path(self.kinematics, trajectory, q))
        tracker = self._path_tracker(trajectory, q, crosses)
        for time in np.linspace(0.0, trajectory.end, SAMPLES):
            checkpoint()
            position, rate, _ = trajectory.sample(float(time))
            q = self.kinematics.inverse(position, q)
            self._check_positions(self._joints(q), "path")
            first = self.kinematics.first_order(q)
            used.append(-np.linalg.solve(first.b, first.a @ rate))
        tracker.check_singularity(trajectory.end, first)  # where it stands afterwards
        self._check_rates(np.max(np.abs(used), axis=0))
        if self.motors.any_motor:
            self._check_motors(used, self._efforts(tracker, np.linspace(0.0, trajectory.end, SAMPLES)))
        return tracker

    def _efforts(self, tracker: Any, times: Array) -> Array | None:
        """(k, a) N or N m, efforts for the path of a tracker at times (k,) s; None if unknown."""
        return None

    def _joints(self, q: Array) -> Array:
        mechanism = self.kinematics.mechanism
        return np.array([q[mechanism.positions_of(name).start] for name in self.kinematics.active])

    def _update_singularity_distance(self, q: Array) -> None:
        self._distance = self._control_kinematics.first_order(q).type_2


class CrossingTracker(ComputedTorqueTracker):
    """Computed torque that crosses a singularity if `crosses`; see `ComputedTorqueController`."""

    crosses = False
    last_effort: Array | None = None
    last_rates: Array | None = None
    last_set_points: tuple[Array, Array]

    @property
    def last_position(self) -> Array:
        """(nq,) configuration of the last reference."""
        return self._last

    def motion(self, time: float, pace: float = 1.0) -> tuple[Array, Array]:
        try:
            reference = self.reference(time, pace)
        except InfeasibleControlError:
            if not self.crosses or self.last_rates is None:
                raise
            return self._last, self.last_rates  # on the singularity itself the last rates are used
        self.last_rates = reference.v
        return reference.q, reference.v


class ComputedTorqueController(ParallelRobotController):
    """Computed torque (`computed_torque`).

    Args:
        robot: see `ParallelRobotController`.
        period, rate_margin, brake_time, actuation: see `SampledController`. With impedances the feed-forward is the
            computed torque along the path, and the gains follow from the model.
        stiffness: K_p [1/s^2], damping: K_d [1/s]; see `ComputedTorqueTracker`.
        nearest: distance to a Type 2 singularity below which a planned crossing continues without feedback, which is
            ineffective there; a larger value leaves more of the path without feedback.

    Raises:
        TensegrityError: a parameter is out of range.
    """

    GAINS = ("stiffness", "damping", "nearest")
    ABOUT: ClassVar[Mapping[str, Setting]] = {
        "stiffness": Setting("proportional gain K_p [1/s^2]; larger: smaller errors, less robust to latency"),
        "damping": Setting("derivative gain K_d [1/s]; larger: errors decay with less oscillation"),
        "nearest": Setting("singularity distance below which a planned crossing continues without feedback"),
    }
    takes_loads = takes_payloads = True

    def __init__(
        self,
        robot: Robot,
        *,
        period: float = 0.005,
        rate_margin: float = 0.5,
        brake_time: float = 0.5,
        actuation: str = "impedance",
        stiffness: float = 1.0,
        damping: float = 2.0,
        nearest: float = 0.02,
    ) -> None:
        gains = {"stiffness": stiffness, "damping": damping, "nearest": nearest}
        super().__init__(robot, gains, 1e6, period, rate_margin, brake_time, actuation)
        self._impedance: ImpedanceGains | None = None
        if actuation == "impedance":
            model = ReducedModel(robot)
            self._impedance = impedance_gains(model, robot.model.initial_configuration, np.zeros(len(self.names)))
        self._robot_alone, self._loads, self._overload = robot, KnownLoads(), ""

    def set_loads(self, forces: Any) -> None:
        """Announce wrenches, in the format of `Simulation.apply_forces`; the next command contains them."""
        self._take_loads(replace(self._loads, wrenches=wrenches_of(self._robot_alone, forces)))

    def carry(self, payloads: Sequence[Payload]) -> None:
        """Announce payloads in addition to those of the robot file; the next command contains them."""
        self._take_loads(replace(self._loads, payloads=tuple(payloads)))

    def _take_loads(self, loads: KnownLoads) -> None:
        """Use other loads: efforts change at once, as the loads do; gains of impedances do not change."""
        if loads == self._loads:
            return
        robot = loads.on(self._robot_alone)
        # a plan in progress continues with the former objects; loads do not change a path
        self.robot, self._loads, self._overload = robot, loads, ""
        self.kinematics, self._control_kinematics = loop_kinematics(robot), loop_kinematics(robot)
        for _, tracker in self._motions:
            self._apply_gains(tracker)
        if self._motions:
            try:
                self._refuse_overload(self._efforts_at_rest(self._motions[-1][1].last_position))
            except TensegrityError as error:
                self._overload = str(error)

    def relaxed(self) -> tuple[str, ...]:
        return (self._overload,) if self._overload else ()

    def diagnostics(self) -> dict[str, str]:
        values = super().diagnostics()
        return values | {"loads_too_large": self._overload} if self._overload else values

    def _apply_gains(self, tracker: CrossingTracker) -> None:
        super()._apply_gains(tracker)
        tracker.stiffness, tracker.damping = self._gains["stiffness"], self._gains["damping"]

    def _path_tracker(self, path: PiecewisePolynomial, q: Array, crosses: bool) -> CrossingTracker:
        limits = np.array([each.effort for each in self.robot.actuators])
        stiffness, damping = self._gains["stiffness"], self._gains["damping"]
        tracker = CrossingTracker(self.kinematics, path, q, limits=limits, stiffness=stiffness, damping=damping)
        tracker.crosses = crosses
        return tracker

    def _efforts(self, tracker: CrossingTracker, times: Array) -> Array | None:
        if tracker.crosses:
            return None
        unbounded = copy(tracker)
        unbounded.limits = np.full(len(self.names), np.inf)
        efforts = []
        for time in times.tolist():
            checkpoint()
            efforts.append(unbounded.effort(time, *unbounded.motion(time)))
        return np.array(efforts)

    def _make_command(
        self, time: float, tracker: CrossingTracker, progress: Progress, state: RobotState | None
    ) -> Command:
        if self._impedance is None:
            return super()._make_command(time, tracker, progress, state)
        seen = None if state is None else state.q
        self.blind += seen is None
        try:
            reference = tracker.reference(progress.time, progress.pace, progress.change)
            tracker.last_effort = tracker.feed_forward(progress.time, progress.pace, progress.change)
            middle = self._joint_rates(reference.v) + 0.5 * self.period * reference.acceleration
            tracker.last_set_points = self._joints(reference.q), middle
        except InfeasibleControlError:
            if tracker.last_effort is None or not tracker.crosses:
                raise
            # on the singularity itself the last rates continue
            position, middle = tracker.last_set_points
            tracker.last_set_points = position + self.period * middle, middle
        self._update_singularity_distance(tracker.last_position if seen is None else seen)
        position, middle = tracker.last_set_points
        gains = self._impedance
        return Command(
            "impedance", self.names, np.array(tracker.last_effort), position, middle, gains.stiffness, gains.damping
        )

    def _joint_rates(self, v: Array) -> Array:
        mechanism = self.kinematics.mechanism
        return np.array([v[mechanism.velocities_of(name).start] for name in self.kinematics.active])

    def _command_values(
        self, time: float, tracker: CrossingTracker, progress: Progress, state: RobotState | None
    ) -> Array:
        """Efforts with feedback; on a planned crossing those of the plan near the singularity, and the last ones on
        it."""
        has_state = state is not None and state.q is not None and state.v is not None
        self.blind += not has_state
        try:
            q, v = tracker.motion(progress.time, progress.pace)
            nearest = self._gains["nearest"]
            beside = tracker.crosses and self._control_kinematics.first_order(q).type_2 < nearest
            if has_state and not beside:
                assert state is not None and state.q is not None and state.v is not None
                q, v = state.q, state.v
            self._update_singularity_distance(q)
            tracker.last_effort = tracker.effort(progress.time, q, v, progress.pace, progress.change)
        except InfeasibleControlError:
            if tracker.last_effort is None or not tracker.crosses:
                raise
        return tracker.last_effort


class KinematicController(ParallelRobotController):
    """Kinematic control (`kinematic`): rates of the actuators.

    Args:
        robot: see `ParallelRobotController`.
        period, rate_margin, brake_time: see `SampledController`.
        gain: 1/s, gain of the correction, at most one per period; see `KinematicTracker`.

    Raises:
        TensegrityError: a parameter is out of range.
    """

    output_mode: str = "velocity"  # type: ignore[misc]
    needs_velocities = False
    default_period = 0.02
    no_loads = (
        "kinematic commands rates, which the actuators keep under any load, so payloads and wrenches do not change its "
        "commands; it does not check whether the efforts are sufficient for them."
    )

    GAINS = ("gain",)
    ABOUT: ClassVar[Mapping[str, Setting]] = {
        "gain": Setting("gain of the position error [1/s], at most one per period; larger: faster correction"),
    }

    def __init__(
        self,
        robot: Robot,
        *,
        period: float = 0.005,
        rate_margin: float = 0.5,
        brake_time: float = 0.5,
        gain: float = 2.0,
    ) -> None:
        super().__init__(robot, {"gain": gain}, 1.0 / period, period, rate_margin, brake_time)

    def _apply_gains(self, tracker: KinematicTracker) -> None:
        super()._apply_gains(tracker)
        tracker.gain = self._gains["gain"]

    def _path_tracker(self, path: PiecewisePolynomial, q: Array, crosses: bool) -> KinematicTracker:
        return KinematicTracker(self.kinematics, path, q, gain=self._gains["gain"])

    def _command_values(
        self, time: float, tracker: KinematicTracker, progress: Progress, state: RobotState | None
    ) -> Array:
        if state is not None and state.q is not None and state.v is not None:
            self._update_singularity_distance(state.q)
        return super()._command_values(time, tracker, progress, state)
