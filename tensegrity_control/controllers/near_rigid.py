"""Torque control of mechanisms with stiff cables: joint coordinates follow a path with all cables tight (`near_rigid`).

The reference changes smoothly from the held equilibrium to a plan with other tensions. Both are equilibria with the
same tracked coordinates, and so are, to first order, the states in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..controller import STIFFNESS_SETTINGS, Setting
from ..inverse_kinematics.mechanism_equilibria import PathEquilibrium
from ..inverse_kinematics.pose_goal import PoseGoal
from ..inverse_kinematics.solve_ik import plan_path
from ..motion_planning.near_rigid_model import NearRigidModel, PlannedStiffness
from ..motion_planning.near_rigid_tracker import NearRigidTracker, NearRigidWeights, regulator_gain
from ..motion_planning.strain_planner import own_floor, rest_at
from ..motion_planning.trajectory_tracking import LinearFeedbackTracker
from ..trajectories.splines import PiecewisePolynomial
from ..trajectories.time_scaling import TooFastError
from .elastic_torque_controller import ElasticTorqueController
from .goal_controller import RestPoint, check_settings

MAX_FADE = 0.5
"""s, longest transition from the held tensions to those of a plan; at most half of the motion."""
LOWER = (1.2, 1.0)
"""Parts of the stated floors that plans keep which cannot keep the tensions of the start: with a reserve for vibrations
if possible."""


class NearRigidController(ElasticTorqueController):
    """Near-rigid control, see `SampledController`; the gains are the deviations of `NearRigidWeights` and take effect
    at once.

    Args:
        robot: see `NearRigidModel`.
        tracked: names of the tracked coordinates; None: those with the largest inertia. Motions along which these come
            near a singularity are planned in other coordinates.
        period, rate_margin, brake_time, actuation: see `SampledController`.
        floor: N, tension floor of every cable (one value, or one per cable). None: the tensions at the start; for
            robots that hang, in which no self-stress raises all tensions, and for motions on which these tensions
            take more effort than there is, the `minimum_tension` of the actuators.
        ceiling: N, upper bound of tensions in plans; 0 for none.
        level: N, desired tension in plans; 0 for the smallest tensions above the floor. With several self-stresses see
            `self_stress_choice`.
        stiffness: N/m of the output along the direction stiffness_x, _y, _z (world frame, any length), which plans hold
            by choice of self-stress; 0 for no requirement.
        position, rate, strain, strain_rate, effort: see `NearRigidWeights`.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no such model.
    """

    model: NearRigidModel
    _control_model: NearRigidModel

    GAINS = ("position", "rate", "strain", "strain_rate", "effort")
    SETTINGS = ("ceiling", "level", *STIFFNESS_SETTINGS)
    ABOUT: ClassVar[Mapping[str, Setting]] = {
        "position": Setting("tolerated deviation of the tracked coordinates [rad or m]; smaller: stiffer feedback"),
        "rate": Setting("tolerated deviation of their rates [rad/s or m/s]; smaller: more damping"),
        "strain": Setting("tolerated deviation of the cables' strain, relative to that of the floor"),
        "strain_rate": Setting(
            "tolerated deviation of the strain rate [1/s], relative; smaller: more damping of cables"
        ),
        "effort": Setting("tolerated deviation of the efforts [N m or N]; larger: stronger feedback"),
        "ceiling": Setting("largest planned tension of every cable [N]; 0: no limit", high=1e9),
        "level": Setting("desired tension of every cable in plans [N]; 0: the smallest above the floor", high=1e9),
        **STIFFNESS_SETTINGS,
    }

    def __init__(
        self,
        robot: Robot,
        *,
        tracked: Sequence[str] | None = None,
        period: float = 0.005,
        rate_margin: float = 0.5,
        brake_time: float = 0.5,
        actuation: str = "impedance",
        floor: ArrayLike | None = None,
        ceiling: float = 0.0,
        level: float = 0.0,
        stiffness: float = 0.0,
        stiffness_x: float = 0.0,
        stiffness_y: float = 0.0,
        stiffness_z: float = 1.0,
        position: float = NearRigidWeights.position,
        rate: float = NearRigidWeights.rate,
        strain: float = NearRigidWeights.strain,
        strain_rate: float = NearRigidWeights.strain_rate,
        effort: float = NearRigidWeights.effort,
    ) -> None:
        self.weights = NearRigidWeights(position, rate, strain, strain_rate, effort)
        model, control_model = NearRigidModel(robot, tracked), NearRigidModel(robot, tracked)
        if not model.radii.size:
            raise TensegrityError(f"{robot.name} has no cables; near_rigid is for mechanisms with stiff cables.")
        direction = np.array([stiffness_x, stiffness_y, stiffness_z])
        given = (ceiling, level, stiffness, *direction)
        check_settings(self.ABOUT, dict(zip(self.SETTINGS, given, strict=True)))
        for each in (model, control_model):
            each.held_stiffness = PlannedStiffness(robot, direction, stiffness) if stiffness > 0.0 else None
            each.tension_ceiling[:] = ceiling or np.inf
            each.tension_level = level or None
        super().__init__(robot, model, control_model, period, rate_margin, brake_time, actuation)
        start = self.model.stiffness * robot.model.initial_configuration[self.model.q_strains]
        lower: tuple[Array, ...] = ()
        if floor is None:
            own = {each.drives: each.minimum_tension for each in robot.actuators}
            least = np.array([own.get(entry.name, 0.0) for entry in robot.model_as(MechanismModel).entries])
            floor = own_floor(model, np.array(robot.model.initial_configuration), start, least)
            lower = tuple(np.minimum(part * least, floor) for part in LOWER) if np.all(least > 0.0) else ()
        self.floor = np.broadcast_to(np.asarray(floor, dtype=np.float64), start.shape)
        self._floors = (self.floor, *lower)  # N, of plans: the first with which there is one
        if ceiling and not np.all(self.floor < ceiling):
            raise TensegrityError(
                f"ceiling is {ceiling:.4g} N, but the floor of a cable is {np.max(self.floor):.4g} N."
            )
        if stiffness > 0.0:
            rest_at(model, np.array(robot.model.initial_configuration), self.floor)  # raises if out of reach

    def gains(self) -> dict[str, float]:
        return dict(vars(self.weights))

    def set_gains(self, **values: float) -> None:
        before = self.weights
        self.weights = replace(before, **self.checked_gains(values))
        try:
            for _, tracker in self._motions[-1:]:
                self._apply_gains(tracker)
        except TensegrityError:
            self.weights = before
            raise

    def _apply_gains(self, tracker: LinearFeedbackTracker) -> None:
        super()._apply_gains(tracker)
        if isinstance(tracker, NearRigidTracker):
            tracker.reweigh(self.weights)
        elif tracker.end is not None:
            tracker.plan = replace(tracker.plan, gains=self._hold_gain(tracker.end, tracker.model)[None])  # type: ignore[arg-type]

    def _hold_gain(self, equilibrium: PathEquilibrium, model: NearRigidModel | None = None) -> Array:
        effort, still = equilibrium.effort[self.model.drives], np.zeros(self.model.index.size)
        return regulator_gain(model or self.model, equilibrium.q, still, effort, self.weights, self.floor, self.period)

    def _in_coordinates(self, robot: Robot, index: ArrayLike, centre: Array) -> NearRigidModel:
        model = NearRigidModel(robot, self.model.tracked)
        model.tension_ceiling, model.tension_level = self.model.tension_ceiling, self.model.tension_level
        held = self.model.held_stiffness
        model.held_stiffness = held and PlannedStiffness(robot, held.direction, held.stiffness)
        model.take_coordinates(index, centre)
        return model

    def _holding(
        self, equilibrium: PathEquilibrium, planning: ReducedModel, following: ReducedModel
    ) -> LinearFeedbackTracker:
        """As the base class; raises TensegrityError if cables are slack at rest, since the first plan would jerk
        them."""
        tracker = super()._holding(equilibrium, planning, following)
        names = self.robot.model.tension_names
        slack = [name for name, pull in zip(names, tracker.end.tensions, strict=True) if not pull > 0.0]
        if slack:
            raise TensegrityError(
                f"cables of {self.robot.name} are slack at rest: {', '.join(slack)}. near_rigid begins with all of "
                "them tight; tighten them first (strain in the robot file, or the controller joint_position)."
            )
        return tracker

    def _coordinates(self, equilibrium: PathEquilibrium, model: NearRigidModel) -> Array:
        return model.tracked_at(equilibrium.q)

    def _start_coordinates(self, rest: RestPoint, equilibrium: PathEquilibrium, model: NearRigidModel) -> Array:
        return model.tracked_at(rest.configuration)

    def _waypoint_coordinates(
        self, rest: RestPoint, goals: Sequence[PoseGoal]
    ) -> tuple[Array, Sequence[PathEquilibrium]]:
        passed, ends = [self._equilibrium_at(rest)], []
        for goal in goals:
            passed.extend(plan_path(self.equilibria, passed[-1], goal).path)
            ends.append(passed[-1])
        model = self._models_at(np.array([each.q for each in passed]))[0]
        assert isinstance(model, NearRigidModel)
        return np.array([model.tracked_at(q) for q in (rest.configuration, *(each.q for each in ends))]), passed

    def _track(
        self, rest: RestPoint, trajectory: PiecewisePolynomial, equilibria: Sequence[PathEquilibrium]
    ) -> NearRigidTracker:
        q, before = rest.configuration, rest.tracker
        model = self._models_at(np.array([each.q for each in equilibria]))[0]
        assert isinstance(model, NearRigidModel)
        tracker = self._tracked(model, trajectory, q)
        tracker.fade_from(q, before.feed_forward(rest.time, 0.0), min(MAX_FADE, 0.5 * trajectory.end))
        return tracker

    def _tracked(self, model: NearRigidModel, trajectory: PiecewisePolynomial, q: Array) -> NearRigidTracker:
        """Tracker of a trajectory of the tracked coordinates from near q (nq,)."""
        for k, floor in enumerate(self._floors):
            try:
                tracker = self._planned(model, trajectory, q, floor)
                break
            except TooFastError:
                raise
            except InfeasibleControlError:
                if k == len(self._floors) - 1:
                    raise
        self._prepared(tracker, model)
        return tracker

    def _planned(
        self, model: NearRigidModel, trajectory: PiecewisePolynomial, q: Array, floor: Array
    ) -> NearRigidTracker:
        """Tracker of a plan that keeps tension floors (c,) N. Raises TensegrityError: limits do not allow it."""
        tracker = NearRigidTracker(
            self.robot, model.tracked, trajectory, period=self.period, floor=floor, weights=self.weights,
            model=model, start=q,
        )  # fmt: skip
        self._check_plan(tracker.plan)
        return tracker

    def _moved_anew(self, tracker: NearRigidTracker) -> NearRigidTracker:
        model, _ = self._models_in(tracker.model.index, tracker.model.centre)
        assert isinstance(model, NearRigidModel)
        return self._tracked(model, tracker.trajectory, tracker.plan.position)
