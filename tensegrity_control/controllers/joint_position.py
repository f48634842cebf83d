"""Control of a mechanism by the positions of its actuators: joints and pulleys turn so that it passes through
equilibria.

With friction of routed cables the shape at given actuator positions depends on the history, which no plan contains.
While the controller holds a pose, a slow integral of the estimated pose error corrects the positions, dc/dt = gain J+ e
with the Jacobian J of the plan. If contacts stick, a correction moves the output less than J predicts, so that the goal
is reached later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose, pose_error
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Command, Reference, RobotState, Setting
from ..inverse_kinematics.mechanism_equilibria import FRICTION_MARGIN, MechanismEquilibriumMap, PathEquilibrium
from ..inverse_kinematics.pose_goal import PoseGoal
from ..inverse_kinematics.solve_ik import plan_path
from ..paths.equilibrium_path import EquilibriumPath
from ..paths.standing_margin import standing_stretch
from ..paths.timed_path import TimedPath
from ..trajectories.time_scaling import Progress, TooFastError
from .goal_controller import GoalPath, RestPoint, check_settings
from .known_loads import LoadTakingController
from .position_controller import PositionController

FEEDBACK = 1.0
"""1/s, integral gain of the pose feedback for robots with friction of routed cables."""
SLOW = 0.1
"""Largest rate of a correction, as a fraction of the rate limits; a correction must never compete with a motion."""


class JointPositionController(LoadTakingController, PositionController):
    """Joint position control, see `PositionController`; tensions are kept near those of `home`.

    If no equilibrium is found at the present actuator positions, the actuators hold these positions, see
    `HeldActuators`.

    Args:
        robot: a mechanism with actuators and an output.
        rate_margin, swing_periods, brake_time, period: see `PositionController`.
        feedback_gain: 1/s, gain of the integral correction while holding. 0 switches it off; -1 selects `FEEDBACK` with
            friction of routed cables and 0 otherwise.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no stable equilibrium at its start.
    """

    model_type = MechanismModel
    GAINS = ("feedback_gain",)
    ABOUT: ClassVar[Mapping[str, Setting]] = {
        "feedback_gain": Setting(
            f"integral gain on the estimated pose at rest [1/s]; 0: off, -1: {FEEDBACK:g} with cable friction", low=-1.0
        )
    }
    equilibria: MechanismEquilibriumMap

    def __init__(
        self,
        robot: Robot,
        *,
        rate_margin: float = 0.9,
        swing_periods: float = 8.0,
        brake_time: float = 0.3,
        period: float = 0.02,
        feedback_gain: float = -1.0,
    ) -> None:
        self._set_feedback(robot, feedback_gain)
        super().__init__(
            MechanismEquilibriumMap(robot), None, rate_margin=rate_margin, swing_periods=swing_periods,
            brake_time=brake_time, period=period,
        )  # fmt: skip
        self._low, self._high = np.array([each.position for each in robot.actuators]).T
        self._rates = np.array([each.rate for each in robot.actuators])
        self._inverse: Array | None = None
        self._correction, self._last_time = np.zeros(len(self.names)), -np.inf
        self._begin_loads()

    def _set_feedback(self, robot: Robot, gain: float) -> None:
        check_settings(self.ABOUT, {"feedback_gain": gain})
        rubs = any(route.rubs for route in robot.model_as(MechanismModel).routes)
        self.feedback_gain, self._gain = gain, (FEEDBACK if rubs else 0.0) if gain < 0.0 else gain

    def gains(self) -> dict[str, float]:
        return {"feedback_gain": self.feedback_gain}

    def set_gains(self, **values: float) -> None:
        self._set_feedback(self.robot, {**self.gains(), **self.checked_gains(values)}["feedback_gain"])

    def reset(self, time: float, state: RobotState | None = None) -> None:
        super().reset(time, state)
        self._correction, self._inverse, self._last_time = np.zeros(len(self.names)), None, time
        if self._gain > 0.0 and state is not None and state.pose is not None and np.isfinite(state.pose[0]).all():
            self._goal = state.pose  # hold the measured pose, not the pose without friction

    def _command_values(self, time: float, tracker: Any, progress: Progress, state: RobotState | None) -> Array:
        values = np.asarray(tracker.command(progress, state))
        if time < self._motions[-1][0].end:
            self._inverse = None  # to be computed for the next equilibrium
        elif self._gain > 0.0 and self._phase == "holding" and state is not None and state.pose is not None:
            if isinstance(tracker, TimedPath):
                step = min(max(time - self._last_time, 0.0), self.command_period)
                self._correct(values, tracker.equilibrium(progress.time), state.pose, step)
        self._last_time = time
        return np.clip(values + self._correction, self._low, self._high) if self._correction.any() else values

    def _make_tracker(self, rest: RestPoint, path: GoalPath, duration: float, profile: str) -> TimedPath:
        tracker = super()._make_tracker(rest, path, duration, profile)
        self._refuse_hurry(tracker)
        return tracker

    def _make_waypoint_tracker(
        self, rest: RestPoint, times: Sequence[float], goals: Sequence[PoseGoal], interpolation: str
    ) -> TimedPath:
        tracker = super()._make_waypoint_tracker(rest, times, goals, interpolation)
        self._refuse_hurry(tracker)
        return tracker

    def _refuse_hurry(self, tracker: TimedPath) -> None:
        """Raise TooFastError if feet of a robot that only the ground holds would slide by its inertia, or lift."""
        if not self.equilibria.stands or tracker.path.span <= 0.0:
            return
        factor = standing_stretch(self.equilibria.model.mechanism, tracker.path, tracker.law, FRICTION_MARGIN)
        if factor > 1.0:
            if not np.isfinite(factor):
                raise InfeasibleControlError(
                    f"the feet of {self.robot.name} cannot carry any inertia on the way: it would tip over or slide. "
                    "Choose a goal that keeps its weight between its feet."
                )
            limit = "what its feet carry without sliding or tipping over"
            raise TooFastError(
                f"the motion is too fast for {limit}; stretch all times by a factor of {factor:.3g} or more.",
                "", factor, limit,
            )  # fmt: skip

    def _make_command(
        self, time: float, tracker: TimedPath | HeldActuators, progress: Progress, state: RobotState | None
    ) -> Command:
        command = super()._make_command(time, tracker, progress, state)  # type: ignore[arg-type]
        left = self._fading(time)
        return (
            command if left is None else replace(command, values=np.clip(command.values + left, self._low, self._high))
        )

    # -- loads that are announced -----------------------------------------------------------------------------------

    def _parts_for(self, robot: Robot) -> dict[str, Any]:
        return {"robot": robot, "equilibria": MechanismEquilibriumMap(robot)}

    def _at_pose_of(self, before: PathEquilibrium, near: PathEquilibrium | Array) -> PathEquilibrium:
        """Equilibrium with the former pose of the output, on the path from the equilibrium `near`, or from one near q
        (nq,)."""
        sagged = self.equilibria.solve(before.positions, near) if isinstance(near, np.ndarray) else near
        goal = PoseGoal(*before.pose, self.robot.output)
        found: PathEquilibrium = plan_path(self.equilibria, sagged, goal, self.options).equilibrium
        return found

    def _held_anew(self, rest: RestPoint, pose: Pose) -> TimedPath | HeldActuators:
        tracker = rest.tracker
        if isinstance(tracker, HeldActuators):
            return tracker
        before = tracker.equilibrium(rest.time)
        equilibrium = self._at_pose_of(before, before.q)
        self._refuse_overload(self.equilibria.efforts(equilibrium))
        return self._hold(equilibrium)

    def _moved_anew(self, tracker: TimedPath) -> TimedPath:
        passed = list[PathEquilibrium]()
        for before in tracker.path.equilibria_on_it:
            passed.append(self._at_pose_of(before, passed[-1] if passed else before.q))
            self._refuse_overload(self.equilibria.efforts(passed[-1]))
        path = EquilibriumPath(self.equilibria, passed, range(len(passed)))
        return TimedPath(path, tracker.law.remapped(tracker.path.parameters, path.parameters_of_path))

    def _set_points_at(self, time: float) -> Array:
        clock, tracker = self.motion_at(time)
        return np.asarray(tracker.command(clock.at(time)))

    # -- feedback at rest -------------------------------------------------------------------------------------------

    def _correct(self, values: Array, equilibrium: PathEquilibrium, measured: Pose, step: float) -> None:
        """Update the correction of the positions (a,) for `step` s; an update that would violate position limits is
        skipped."""
        assert self._goal is not None and self.robot.output is not None
        rows = self.robot.output.rows
        if self._inverse is None:
            self._inverse = np.linalg.pinv(self.equilibria.pose_jacobian(equilibrium)[rows])
        error = pose_error(self._goal, measured)[rows]
        if not np.all(np.isfinite(error)):
            return
        change = min(self._gain * step, 1.0) * (self._inverse @ error)
        change *= min(1.0, float(np.min(SLOW * self._rates * step / np.maximum(np.abs(change), 1e-300))))
        corrected = self._correction + change
        if np.all((values + corrected >= self._low) & (values + corrected <= self._high)):
            self._correction = corrected

    def _hold_tracker(self, state: RobotState | None) -> TimedPath | HeldActuators:
        if state is None or state.positions is None:
            self._refuse_overload(self.equilibria.efforts(self.home))
            return self._hold(self.home)
        self._check(state)
        try:
            equilibrium = self._found(state)
        except TensegrityError as error:
            # Actuators that keep their positions hold a robot at rest, even without a known equilibrium.
            pose = state.pose if state.pose is not None else self._pose_of(state.q)
            if pose is None:
                raise
            return HeldActuators(self, state, pose, str(error))
        self._refuse_overload(self.equilibria.efforts(equilibrium))
        return self._hold(equilibrium)

    def _check(self, state: RobotState) -> None:
        if not all(np.all(np.isfinite(given)) for given in (state.positions, state.q) if given is not None):
            raise TensegrityError(
                f"the state must have finite actuator positions ({', '.join(self.names)}) and finite coordinates q, or "
                "none."
            )

    def _found(self, state: RobotState) -> PathEquilibrium:
        """Equilibrium at the present actuator positions, near the present configuration, or else near home.

        Raises:
            TensegrityError: there is none.
        """
        assert state.positions is not None
        if state.q is not None:
            try:
                return self.equilibria.solve(state.positions, np.asarray(state.q, dtype=np.float64))
            except TensegrityError:  # an estimate may be far from all equilibria
                pass
        return self.equilibria.solve(state.positions, self.home)

    def _pose_of(self, q: Array | None) -> Pose | None:
        output = self.equilibria.output
        return None if q is None else BodyPoses(self.equilibria.model).update(np.asarray(q)).output(output)[0]

    def diagnostics(self) -> dict[str, str]:
        held = self._motions[-1][1] if self._motions else None
        return {"held_without_equilibrium": held.reason} if isinstance(held, HeldActuators) else {}


class HeldActuators:
    """Replacement for a plan if no equilibrium was found: the actuators keep their positions.

    A new goal searches an equilibrium again, from the last measured state, and is refused if there is none.

    Args:
        control: controller of the robot.
        state: last measured state.
        pose: pose of the output in this state.
        reason: why no equilibrium was found.
    """

    duration = 0.0

    def __init__(self, control: JointPositionController, state: RobotState, pose: Pose, reason: str) -> None:
        self._control, self._pose, self.reason, self.loads = control, pose, reason, None
        self._positions = np.array(state.positions, dtype=np.float64)
        self._seen = state

    def reference(self, progress: Progress) -> Reference:
        """Reference at the measured pose of the output."""
        return Reference(self._pose, np.zeros(6))

    def command(self, progress: Progress, state: RobotState | None = None) -> Array:
        """(a,) rad or m, constant positions."""
        if state is not None and state.q is not None:
            self._seen = replace(state, positions=self._positions)
        return self._positions.copy()

    def rates(self, progress: Progress) -> Array:
        """(a,) zeros."""
        return np.zeros_like(self._positions)

    def equilibrium(self, time: float) -> PathEquilibrium:
        """Equilibrium from which a motion may begin. Raises TensegrityError with the reason if there is none."""
        try:
            return self._control._found(self._seen)
        except TensegrityError as error:
            raise TensegrityError(
                "no motion can start here: the actuators hold their positions, for which no equilibrium was found: "
                f"{error} Send the goal again when the robot rests, or move its actuators first (action "
                "follow_actuators)."
            ) from error
