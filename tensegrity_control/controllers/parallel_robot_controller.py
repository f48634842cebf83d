"""Kinematic control and computed torque of parallel mechanisms as controllers: goals and trajectories of the output.

Every path is looked through for Type 2 singularities before it is taken: one that crosses without satisfying the
criterion is refused with place and time (`singularity`). The interpolation "crossing" plans through three places, of
which the middle one lies on a singularity, so that the criterion is satisfied.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.robot_kinematics import loop_kinematics
from tensegrity_dynamics.robots.robot import Robot

from ..controller import RobotState
from ..inverse_kinematics.pose_goal import make_goal
from ..motion_planning.singularity_crossing import check_path, crossing_trajectory, crossings
from ..trajectories.path_clock import Progress
from ..trajectories.splines import HermiteSpline, PiecewisePolynomial
from .computed_torque import ComputedTorqueTracker
from .goal_controller import Follower, GoalFeasibility, MotionController
from .kinematic import KinematicTracker
from .path_controller import check_ranges

Array = NDArray[np.float64]

SAMPLES = 101


class ParallelRobotController(MotionController):
    """What both controllers share.

    Args:
        robot: a parallel mechanism of rigid links; `MotionController` for the rest.
        gains: by name, each from 0 to `largest`.

    Raises:
        TensegrityError: a gain is out of range, its output controls rotations, or the number of its actuators is
            another than that of the output's coordinates.
    """

    def __init__(
        self,
        robot: Robot,
        gains: dict[str, float],
        largest: float,
        period: float,
        rate_margin: float,
        brake_time: float,
    ) -> None:
        self._gains, self._largest = gains, largest
        self._check_gains(gains)
        super().__init__(robot, period=period, rate_margin=rate_margin, brake_time=brake_time)
        # one to plan with and one to follow with, so that both may be done at the same time
        self.kinematics, self._following = loop_kinematics(robot), loop_kinematics(robot)
        output = robot.output
        if any(axis.startswith("r") for axis in output.controlled):  # type: ignore[union-attr]
            raise TensegrityError(f"output {output.name} controls rotations; paths are of positions, name x, y, z.")
        self._rows = output.rows  # type: ignore[union-attr]
        mechanism = self.kinematics.mechanism
        self._active_v = [mechanism.velocities_of(name).start for name in self.kinematics.active]

    interpolations = ("smooth", "minimum_jerk", "cubic", "crossing")

    @property
    def distance(self) -> float:
        """To the nearest Type 2 singularity, at the last position that was commanded for; 0 on it."""
        return self._distance

    _distance = np.inf

    def gains(self) -> dict[str, float]:
        return dict(self._gains)

    def set_gains(self, **values: float) -> None:
        wanted = {**self._gains, **self.known_gains(values)}
        self._check_gains(wanted)
        self._gains = wanted
        for _, follower in self._motions:
            self._tune(follower)

    def _check_gains(self, gains: dict[str, float]) -> None:
        check_ranges(*((name, value, 0.0, self._largest) for name, value in gains.items()))

    def _holding(self, state: RobotState) -> Follower:
        q = np.array(state.q)
        still = self.kinematics.output_values(q)
        return self._plan(HermiteSpline([0.0, 1.0], [still, still], np.zeros((2, still.size))), q)

    def _coordinates(self, q: Array) -> Array:
        return self.kinematics.output_values(q)

    def _way(self, q: Array, position: ArrayLike | None, quaternion: ArrayLike | None) -> GoalFeasibility:
        pose = self._plan_places.update(q).output(self.robot.output)[0]  # type: ignore[arg-type]
        goal = make_goal(self.robot.output, position, quaternion, pose)
        end = goal.position[self._rows]
        first, there, travel = self.kinematics.output_values(q), q, np.zeros(len(self.names))
        for share in np.linspace(0.0, 1.0, SAMPLES)[1:]:
            before = there
            there = self.kinematics.inverse(first + share * (end - first), there)
            travel += np.abs(self._joints(there) - self._joints(before))
        self._check_places(there, "goal")
        rates = np.array([each.rate for each in self.robot.actuators])
        slowest = int(np.argmax(travel / rates))
        return GoalFeasibility(end, float(travel[slowest] / rates[slowest]), self.names[slowest])

    def _check_places(self, q: Array, what: str) -> None:
        """Raise TensegrityError where an actuator is outside its position limits at q (nq,)."""
        for actuator, value in zip(self.robot.actuators, self._joints(q), strict=True):
            low, high = actuator.position
            if not low <= value <= high:
                raise TensegrityError(
                    f"the {what} needs {actuator.name} at {value:.4g} {actuator.units[0]}, outside its limits of "
                    f"{low:.4g} to {high:.4g} {actuator.units[0]}."
                )

    def _joints(self, q: Array) -> Array:
        mechanism = self.kinematics.mechanism
        return np.array([q[mechanism.positions_of(name).start] for name in self.kinematics.active])

    def _through(self, times: list[float], values: Array, interpolation: str, q: Array) -> PiecewisePolynomial:
        if interpolation == "crossing":
            return crossing_trajectory(self.kinematics, values, times, q)
        return super()._through(times, values, interpolation, q)

    def _follower(self, path: PiecewisePolynomial, q: Array, before: Follower, last: float) -> Follower:
        check_path(self.kinematics, path, q)
        follower = self._plan(path, q)
        used, there = np.zeros(len(self.names)), q
        for time in np.linspace(0.0, path.end, SAMPLES):
            there = self.kinematics.inverse(path.value(float(time)), there)
            self._check_places(there, "path")
            first = self.kinematics.first_order(there)
            used = np.maximum(used, np.abs(np.linalg.solve(first.b, first.a @ path.value(float(time), 1))))
        self._check_rates(used)
        return follower

    @abstractmethod
    def _plan(self, path: PiecewisePolynomial, q: Array) -> Follower:
        """A follower of a path that has been looked through, from q (nq,)."""

    def _watch(self, q: Array) -> None:
        self._distance = self._following.first_order(q).type_2


class _ComputedTorqueFollower(ComputedTorqueTracker):
    crosses = False  # a singularity, as planned
    last_effort: Array | None = None
    last_rates: Array | None = None

    def motion(self, time: float, pace: float = 1.0) -> tuple[Array, Array]:
        try:
            wanted = self.reference(time, pace)
        except InfeasibleControlError:
            if not self.crosses or self.last_rates is None:
                raise
            return self._last, self.last_rates  # on the singularity itself the rates are those of just before
        self.last_rates = wanted.v
        return wanted.q, wanted.v


class ComputedTorqueController(ParallelRobotController):
    """Computed torque (`computed_torque`).

    Args:
        robot: see `ParallelRobotController`. period, rate_margin, brake_time: see `MotionController`.
        stiffness: K_p [1/s^2]. damping: K_d [1/s].
        nearest: distance to a Type 2 singularity below which a planned crossing goes on without feedback, which has
            no hold there.

    Raises:
        TensegrityError: a parameter is out of range.
    """

    GAINS = ("stiffness", "damping", "nearest")

    def __init__(
        self,
        robot: Robot,
        *,
        period: float = 0.005,
        rate_margin: float = 0.5,
        brake_time: float = 0.5,
        stiffness: float = 1.0,
        damping: float = 2.0,
        nearest: float = 0.02,
    ) -> None:
        gains = {"stiffness": stiffness, "damping": damping, "nearest": nearest}
        super().__init__(robot, gains, 1e6, period, rate_margin, brake_time)

    def _tune(self, follower: Follower) -> None:
        for name in ("stiffness", "damping"):
            setattr(follower, name, self._gains[name])

    def _plan(self, path: PiecewisePolynomial, q: Array) -> Follower:
        limits = np.array([each.effort for each in self.robot.actuators])
        gains = {name: self._gains[name] for name in ("stiffness", "damping")}
        follower = _ComputedTorqueFollower(self._following, path, q, limits=limits, **gains)
        follower.crosses = bool(crossings(self.kinematics, path, q))
        return follower

    def _values(self, follower: Follower, progress: Progress, state: RobotState | None) -> Array:
        """Feedback; on a planned crossing the plan's own efforts beside the singularity, and the last ones on it."""
        assert isinstance(follower, _ComputedTorqueFollower)
        try:
            q, v = follower.motion(progress.place, progress.pace)
            beside = follower.crosses and self._following.first_order(q).type_2 < self._gains["nearest"]
            if state is not None and not beside:
                assert state.q is not None and state.v is not None
                q, v = state.q, state.v
            self._watch(q)
            follower.last_effort = follower.effort(progress.place, q, v, progress.pace, progress.change)
        except InfeasibleControlError:
            if follower.last_effort is None or not follower.crosses:
                raise
        return follower.last_effort


class _KinematicFollower(KinematicTracker):
    def __init__(self, *arguments: object, start: Array, **options: float) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._last = start

    def motion(self, time: float, pace: float = 1.0) -> tuple[Array, Array]:
        self._last = self.kinematics.inverse(self.path.value(time), self._last)
        rate = pace * self.path.value(time, 1)
        return self._last, self.kinematics.from_output(self._last, rate, np.zeros(rate.size))[0]


class KinematicController(ParallelRobotController):
    """Kinematic control (`kinematic`): rates of the actuators.

    Args:
        robot: see `ParallelRobotController`. period, rate_margin, brake_time: see `MotionController`.
        gain: 1/s of the correction.

    Raises:
        TensegrityError: a parameter is out of range.
    """

    mode = "velocity"

    GAINS = ("gain",)

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

    def _tune(self, follower: Follower) -> None:
        follower.gain = self._gains["gain"]  # type: ignore[attr-defined]

    def _plan(self, path: PiecewisePolynomial, q: Array) -> Follower:
        return _KinematicFollower(self._following, path, gain=self._gains["gain"], start=q)

    def _values(self, follower: Follower, progress: Progress, state: RobotState | None) -> Array:
        assert isinstance(follower, _KinematicFollower)
        if state is None:
            _, v = follower.motion(progress.place, progress.pace)
            return np.asarray(v[self._active_v])
        assert state.q is not None
        self._watch(state.q)
        return follower.velocity(progress.place, state.q, progress.pace)
