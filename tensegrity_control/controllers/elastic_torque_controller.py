"""Base class of torque controllers of elastic mechanisms: paths of equilibria, and linear feedback on a plan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from ..command_latency import CommandTiming
from ..controller import Command, RobotState
from ..inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap, PathEquilibrium
from ..inverse_kinematics.pose_goal import PoseGoal
from ..inverse_kinematics.solve_ik import plan_path
from ..motion_planning.impedance_gains import gains_for_motion
from ..motion_planning.trajectory_tracking import LinearFeedbackTracker, TrackingPlan, check_efforts
from ..paths.timed_path import Passed, tension_margin
from ..trajectories.time_scaling import Progress, profile_named
from .goal_controller import GoalPath, RestPoint
from .known_loads import LoadTakingController
from .sampled_controller import Line, SampledController

MOST_MODELS = 8
"""Number of stored pairs of models in other coordinates than those of the start."""
FORESEEN = 3.0
"""Largest lateness of set points in periods. If a larger lateness is expected and does not occur, a set point that was
extrapolated backward from a fast part of the plan is far off; if it does occur, all actuators are late by the same
time."""
SETTLING_PERIODS = 2.0
"""Minimum duration of a goal without a duration, in slowest vibration periods of the equilibria."""


class ElasticTorqueController(LoadTakingController, SampledController):
    """Base class, see the module; for the other arguments see `SampledController`.

    Args:
        planning_model: model for planning.
        control_model: another model of the same kind for control, so that one thread can plan while another plan is
            followed.
    """

    def __init__(
        self,
        robot: Robot,
        planning_model: ReducedModel,
        control_model: ReducedModel,
        period: float,
        rate_margin: float,
        brake_time: float,
        actuation: str,
    ) -> None:
        super().__init__(robot, period=period, rate_margin=rate_margin, brake_time=brake_time, actuation=actuation)
        self.model, self._control_model = planning_model, control_model
        self._timing = CommandTiming(period, self.lead)
        self._reckoned = self._timing.uncertainty  # s, timing uncertainty of the last plan
        self._others: dict[tuple[int, ...], tuple[ReducedModel, ReducedModel]] = {}
        self._last_choice: tuple[Array | None, tuple[ReducedModel, ReducedModel]] = (
            None, (planning_model, control_model),
        )  # fmt: skip
        self._usual = planning_model.index.copy(), planning_model.centre.copy()
        self.equilibria = MechanismEquilibriumMap(robot)
        mechanism = robot.mechanism
        self._drives = np.array([mechanism.positions_of(each).start for each in self.equilibria.joints])
        self._begin_loads()

    def acted(self, stamp: float, begin: float) -> None:
        self._timing.acted(stamp, begin)

    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Set points at a time [s]; a motion slows down while the timing is worse than assumed for its plan."""
        if self.output_mode == "impedance":
            clock, _ = self.motion_at(time)
            clock.wait(time, self._timing.pace(self._reckoned), self.brake_time)
        return super().command(time, state)

    @abstractmethod
    def _hold_gain(self, equilibrium: PathEquilibrium, model: Any = None) -> Array:
        """(u, 2n) feedback gain that holds an equilibrium, in the coordinates of a model; None for `model`."""

    @abstractmethod
    def _in_coordinates(self, robot: Robot, index: ArrayLike, centre: Array) -> ReducedModel:
        """New model of the kind of `model` for a robot, in the given coordinates."""

    def _models_at(self, positions: Array) -> tuple[ReducedModel, ReducedModel]:
        """Models for planning and control in coordinates that are regular at configurations (k, nq).

        The models of the start are used as long as they are regular. Every plan keeps its own pair, so that the pair of
        the active plan does not change in the meantime.
        """
        last, found = self._last_choice
        if last is not None and np.array_equal(last, positions):
            return found
        self._last_choice = positions, self._choose_models(positions)
        return self._last_choice[1]

    def _choose_models(self, positions: Array) -> tuple[ReducedModel, ReducedModel]:
        others = self.model.regular_coordinates(positions)
        if others is None:
            return self.model, self._control_model
        return self._models_in(*others)

    def _models_in(self, index: NDArray[np.int64], centre: Array) -> tuple[ReducedModel, ReducedModel]:
        """Models for planning and control in given coordinates."""
        if np.array_equal(index, self._usual[0]) and np.array_equal(centre, self._usual[1]):
            return self.model, self._control_model
        key = *index.tolist(), *centre.tolist()
        if key not in self._others:
            if len(self._others) >= MOST_MODELS:
                del self._others[next(iter(self._others))]  # plans keep their own
            first, second = (self._in_coordinates(self.robot, index, centre) for _ in range(2))
            self._others[key] = first, second
        return self._others[key]

    @abstractmethod
    def _coordinates(self, equilibrium: PathEquilibrium, model: Any) -> Array:
        """(k,) controlled coordinates of a model at an equilibrium."""

    def _apply_gains(self, tracker: LinearFeedbackTracker) -> None:
        pairs = [(self.model, self._control_model), *self._others.values()]
        tracker.model = next((following for each, following in pairs if each is tracker.model), tracker.model)

    def _hold_tracker(self, state: RobotState | None) -> LinearFeedbackTracker:
        assert state is not None and state.q is not None
        positions = state.q[self._drives] if state.positions is None else np.asarray(state.positions, dtype=np.float64)
        equilibrium = self.equilibria.solve(positions, np.array(state.q))
        return self._holding(equilibrium, *self._models_at(equilibrium.q[None]))

    def _holding(
        self, equilibrium: PathEquilibrium, planning: ReducedModel, following: ReducedModel
    ) -> LinearFeedbackTracker:
        """Tracker that holds an equilibrium, with models for planning and control."""
        self._refuse_overload(self.equilibria.efforts(equilibrium))
        coordinates, inputs = planning.coordinates_at(equilibrium.q), equilibrium.effort[planning.drives]
        plan = TrackingPlan(
            np.zeros(1), np.concatenate((coordinates, np.zeros(coordinates.size)))[None], inputs[None],
            self._hold_gain(equilibrium, planning)[None], coordinates[None], inputs[None], equilibrium.q[None],
        )  # fmt: skip
        tracker = LinearFeedbackTracker(following, plan)
        tracker.end = equilibrium
        return self._prepared(tracker, planning)

    def _prepared(
        self, tracker: LinearFeedbackTracker, model: ReducedModel | None = None,
        ends: Sequence[tuple[Array, Array]] = (),
    ) -> LinearFeedbackTracker:  # fmt: skip
        """The tracker with gains of the actuators' loops for both ends of the plan, if the actuators close loops.

        Args:
            ends: see `gains_for_motion`.
        """
        if self.output_mode == "impedance":
            plan = tracker.plan
            first, last = ((plan.positions[k], plan.rest_inputs[k]) for k in (0, -1))
            tracker.prepare(gains_for_motion(model or self.model, first, last, ends=ends))
        return tracker

    def _make_command(
        self, time: float, tracker: LinearFeedbackTracker, progress: Progress, state: RobotState | None
    ) -> Command:
        gains = tracker.impedance
        if gains is None:
            return super()._make_command(time, tracker, progress, state)
        self.blind += state is None or state.q is None
        age = 0.0 if state is None else min(max(0.0, state.age), FORESEEN * self.period)
        self._timing.sent(time, age)
        position, velocity, effort = tracker.set_points(progress.time, progress.pace, age)
        if self.motors.inertia.any():  # acceleration of the motors, which the plan does not contain
            acts = progress.time + progress.pace * age
            effort = effort + self.motors.inertia * tracker.accelerations(acts, progress.pace)
        left = self._fading(time + age)
        if left is not None:
            position = position + left
        return Command("impedance", self.names, effort, position, velocity, gains.stiffness, gains.damping)

    def _command_values(
        self, time: float, tracker: LinearFeedbackTracker, progress: Progress, state: RobotState | None
    ) -> Array:
        left = self._fading(time)
        if left is None:
            return super()._command_values(time, tracker, progress, state)
        ahead, count = self._fading(time + self.period), len(self.names)
        assert ahead is not None
        w, inputs = left[count:-count], left[-count:]
        is_seen = state is not None and state.q is not None and state.v is not None
        self.blind += not is_seen
        shift = np.concatenate((w, (ahead[count:-count] - w) / self.period)), inputs
        return tracker.command(progress, state if is_seen else None, shift)

    # -- loads that are announced -----------------------------------------------------------------------------------

    def _parts_for(self, robot: Robot) -> dict[str, Any]:
        pair = self._in_coordinates(robot, *self._usual), self._in_coordinates(robot, *self._usual)
        return {
            "robot": robot, "model": pair[0], "_control_model": pair[1], "_others": {}, "_last_choice": (None, pair),
            "equilibria": MechanismEquilibriumMap(robot),
        }  # fmt: skip

    def _at_pose(self, near: Array, pose: Pose) -> PathEquilibrium:
        """Equilibrium with the output at a pose, on the path from the one with the actuator positions of q (nq,)."""
        sagged = self.equilibria.solve(near[self._drives], near)
        found: PathEquilibrium = plan_path(
            self.equilibria, sagged, PoseGoal(*pose, self.robot.output)
        ).equilibrium  # fmt: skip
        return found

    def _held_anew(self, rest: RestPoint, pose: Pose) -> LinearFeedbackTracker:
        coordinates = rest.tracker.model.index, rest.tracker.model.centre
        return self._holding(self._at_pose(rest.configuration, pose), *self._models_in(*coordinates))

    def _set_points_at(self, time: float) -> Array:
        clock, tracker = self.motion_at(time)
        progress = clock.at(time)
        if tracker.impedance is not None:
            return tracker.set_points(progress.time, progress.pace)[0]
        return np.concatenate(tracker.planned(progress.time, progress.pace))

    # -- plans ------------------------------------------------------------------------------------------------------

    def _equilibrium_at(self, rest: RestPoint) -> PathEquilibrium:
        """Equilibrium with the actuators as at the rest point; the end of the plan is not solved again."""
        end = rest.tracker.end
        if end is not None and rest.time >= rest.tracker.duration:
            return end  # type: ignore[no-any-return]
        return self.equilibria.solve(rest.configuration[self._drives], rest.configuration)

    def _start_coordinates(self, rest: RestPoint, equilibrium: PathEquilibrium, model: Any) -> Array:
        """(k,) controlled coordinates of a model at a rest point and its equilibrium."""
        return self._coordinates(equilibrium, model)

    def _find_path(self, start: PathEquilibrium, goal: PoseGoal) -> Sequence[PathEquilibrium]:
        """Equilibria from a start to a goal. Raises UnreachableGoalError."""
        return plan_path(self.equilibria, start, goal).path

    def _plan_path(self, rest: RestPoint, goal: PoseGoal, profile: str) -> GoalPath:
        path = self._find_path(self._equilibrium_at(rest), goal)
        travel = np.sum(np.abs(np.diff([each.positions for each in path], axis=0)), axis=0)
        calm = SETTLING_PERIODS * max(self.equilibria.slowest_period(each) for each in (path[0], path[-1]))
        model = self._models_at(np.array([each.q for each in path]))[0]
        line = Line(self._start_coordinates(rest, path[0], model), self._coordinates(path[-1], model), tuple(path))
        usual = self._line(line, travel, profile, calm)
        return replace(usual, preferred_duration=self._safe_duration(path, usual.preferred_duration, profile))

    def _safe_duration(self, path: Sequence[PathEquilibrium], duration: float, profile: str) -> float:
        """s, duration for which no tension falls below its floor if commands stop at any time of the motion."""
        rates = np.array([each.rate for each in self.robot.actuators])
        steps = np.max(np.abs(np.diff([each.positions for each in path], axis=0)) / rates, axis=1)
        kept = np.append(True, steps > 1e-9)
        if self.output_mode != "impedance" or np.count_nonzero(kept) < 2:
            return duration
        distance = np.append(0.0, np.cumsum(steps))[kept]
        passed = Passed(
            self.equilibria, [each for each, keep in zip(path, kept, strict=True) if keep], distance / distance[-1]
        )
        law = profile_named(profile)(duration)
        self._reckoned = self._timing.uncertainty
        return duration * max(1.0, tension_margin(passed, law, 0.0, self.lead, self._reckoned).stretch)

    def _check_plan(self, plan: TrackingPlan) -> None:
        """Raise TensegrityError if a plan violates position, rate or effort limits of the actuators."""
        positions = plan.positions[:, self._drives]
        rates = np.gradient(positions, plan.times, axis=0)
        self._check_positions(positions, "path")
        self._check_rates(np.max(np.abs(rates), axis=0))
        check_efforts(self.robot, plan.inputs, plan.rest_inputs)
        if self.motors.any_motor:
            accelerations = np.gradient(rates, plan.times, axis=0)
            self._check_motors(rates, plan.inputs + self.motors.inertia * accelerations)
