"""Torque control of mechanisms with stiff cables: joint coordinates follow a path with all cables tight (`near_rigid`).

From the shape that is held to a plan with other tensions the reference goes over smoothly; both are shapes at rest
with the same tracked coordinates, and so is, to first order, what lies between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from ..controller import RobotState
from ..motion_planning.near_rigid_model import NearRigidModel
from ..motion_planning.near_rigid_tracker import NearRigidTracker, Weights, regulator_gain
from ..motion_planning.trajectory_tracking import LinearFeedbackTracker
from ..trajectories.splines import PiecewisePolynomial
from .elastic_torque_controller import ElasticTorqueController
from .goal_controller import Follower

Array = NDArray[np.float64]

FADE = 0.5
"""s in which tensions go over from those that are held to those of a plan."""


class NearRigidController(ElasticTorqueController):
    """See `MotionController`; gains are the deviations of `near_rigid.Weights`, which count at once.

    Args:
        robot: see `NearRigidModel`. tracked: names of the tracked coordinates; None: those that carry the most mass.
        period, rate_margin, brake_time: see `MotionController`.
        floor: N that every cable keeps (one, or one per cable); None takes the tensions of the shape at the start.
        position, rate, strain, strain_rate, effort: see `near_rigid.Weights`.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no such model.
    """

    model: NearRigidModel

    GAINS = ("position", "rate", "strain", "strain_rate", "effort")

    def __init__(
        self,
        robot: Robot,
        *,
        tracked: Sequence[str] | None = None,
        period: float = 0.005,
        rate_margin: float = 0.5,
        brake_time: float = 0.5,
        floor: ArrayLike | None = None,
        position: float = Weights.position,
        rate: float = Weights.rate,
        strain: float = Weights.strain,
        strain_rate: float = Weights.strain_rate,
        effort: float = Weights.effort,
    ) -> None:
        self.weights = Weights(position, rate, strain, strain_rate, effort)
        model, follower = NearRigidModel(robot, tracked), NearRigidModel(robot, tracked)
        if not model.radii.size:
            raise TensegrityError(f"{robot.name} has no cables; near_rigid is for mechanisms with stiff cables.")
        super().__init__(robot, model, follower, period, rate_margin, brake_time)
        self._follower_near_rigid = follower
        start = self.model.stiffness * robot.model.initial_configuration[self.model.q_strains]
        self.floor = start if floor is None else np.broadcast_to(np.asarray(floor, dtype=np.float64), start.shape)

    def gains(self) -> dict[str, float]:
        return dict(vars(self.weights))

    def set_gains(self, **values: float) -> None:
        before = self.weights
        self.weights = replace(before, **self.known_gains(values))
        try:
            for _, follower in self._motions[-1:]:
                self._tune(follower)
        except TensegrityError:
            self.weights = before
            raise

    def _tune(self, follower: Follower) -> None:
        if isinstance(follower, NearRigidTracker):
            follower.reweigh(self.weights)
        elif isinstance(follower, LinearFeedbackTracker):
            plan = follower.plan
            still = np.zeros(self.model.index.size)
            gain = regulator_gain(
                self._follower_near_rigid, plan.position, still, plan.inputs[0], self.weights, self.floor, self.period
            )
            follower.plan = replace(plan, gains=gain[None])

    def _holding(self, state: RobotState) -> Follower:
        shape = self._present(state)
        effort, still = shape.shape.effort[self.model.drives], np.zeros(self.model.index.size)
        gain = regulator_gain(self.model, shape.shape.q, still, effort, self.weights, self.floor, self.period)
        return self._static(shape, gain)

    def _coordinates(self, q: Array) -> Array:
        return np.asarray(q[self.model.q_y])

    def _follower(self, path: PiecewisePolynomial, q: Array, before: Follower, last: float) -> Follower:
        follower = NearRigidTracker(
            self.robot, self.model.tracked, path, period=self.period, floor=self.floor, weights=self.weights,
            model=self.model, start=q,
        )  # fmt: skip
        assert isinstance(before, LinearFeedbackTracker)
        follower.fade_from(q, before.feed_forward(last, 0.0), min(FADE, 0.5 * path.end))
        return self._checked(follower)
