"""Torque control of elastic mechanisms by planned tasks: the output follows its path (`task_plan`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.robots.robot import Robot

from ..controller import RobotState
from ..motion_planning.output_model import OutputModel
from ..motion_planning.output_planner import OutputWeights, plan_output, rest_gain
from ..trajectories.splines import PiecewisePolynomial
from .elastic_torque_controller import ElasticTorqueController
from .goal_controller import Follower
from .task_tracker import OutputTracker

Array = NDArray[np.float64]


class OutputTrackingController(ElasticTorqueController):
    """See `MotionController`; gains are the deviations of `OutputWeights`, which count from the next motion on.

    Args:
        robot: see `OutputModel`. period, rate_margin, brake_time: see `MotionController`.
        output, position, rate, effort: see `OutputWeights`.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no such model.
    """

    model: OutputModel

    GAINS = ("output", "position", "rate", "effort")

    def __init__(
        self,
        robot: Robot,
        *,
        period: float = 0.005,
        rate_margin: float = 0.5,
        brake_time: float = 0.5,
        output: float = OutputWeights.output,
        position: float = OutputWeights.position,
        rate: float = OutputWeights.rate,
        effort: float = OutputWeights.effort,
    ) -> None:
        self.weights = OutputWeights(output, position, rate, effort)
        super().__init__(robot, OutputModel(robot), OutputModel(robot), period, rate_margin, brake_time)

    def gains(self) -> dict[str, float]:
        return dict(vars(self.weights))

    def set_gains(self, **values: float) -> None:
        self.weights = replace(self.weights, **self.known_gains(values))

    def _holding(self, state: RobotState) -> Follower:
        shape = self._present(state)
        effort = shape.shape.effort[self.model.drives]
        return self._static(shape, rest_gain(self.model, shape.shape.q, effort, self.weights, self.period))

    def _coordinates(self, q: Array) -> Array:
        return self.model.output_place(q)

    def _follower(self, path: PiecewisePolynomial, q: Array, before: Follower, last: float) -> Follower:
        plan = plan_output(
            self.model, path.value, path.end, self.period, weights=self.weights, start=self._shape_at(q),
            shapes=self.shapes,
        )  # fmt: skip
        return self._checked(OutputTracker(self.model, plan))
