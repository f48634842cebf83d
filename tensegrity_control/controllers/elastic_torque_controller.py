"""What torque controllers of elastic mechanisms share: ways through shapes at rest, and followers of plans."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.robots.robot import Robot

from ..controller import RobotState
from ..inverse_kinematics.mechanism_equilibria import PathEquilibrium, PathEquilibriumSolver
from ..inverse_kinematics.mechanism_ik import plan_path
from ..inverse_kinematics.pose_goal import make_goal
from ..motion_planning.trajectory_tracking import LinearFeedbackTracker, TrackingPlan
from ..trajectories.path_clock import Progress
from .goal_controller import Follower, GoalFeasibility, MotionController

Array = NDArray[np.float64]

LOST = 0.3
"""rad or m of a coordinate between robot and plan from which feedback would break more than it mends."""
SETTLING = 2.0
"""Slowest periods of the shapes that a goal without a duration takes at least."""


class ElasticTorqueController(MotionController):
    """See the module; `MotionController` for the arguments.

    Args:
        model: that plans are made with. follower: another one of the same kind that plans are followed with, so that a
            plan can be made while another one is followed.
    """

    def __init__(
        self,
        robot: Robot,
        model: ReducedModel,
        follower: ReducedModel,
        period: float,
        rate_margin: float,
        brake_time: float,
    ) -> None:
        super().__init__(robot, period=period, rate_margin=rate_margin, brake_time=brake_time)
        self.model, self._follower_model, self.shapes = model, follower, PathEquilibriumSolver(robot)
        self._drives = np.array([robot.mechanism.positions_of(each).start for each in self.shapes.joints])

    def _static(self, shape: PathEquilibrium, gain: Array) -> LinearFeedbackTracker:
        """A follower that holds a shape with a gain (u, 2n)."""
        place = shape.shape.q[self.model.q_index]
        inputs = shape.shape.effort[self.model.drives]
        plan = TrackingPlan(
            np.zeros(1), np.concatenate((place, np.zeros(place.size)))[None], inputs[None], gain[None], place[None],
            inputs[None], shape.shape.q[None],
        )  # fmt: skip
        return LinearFeedbackTracker(self._follower_model, plan)

    def _shape_at(self, q: Array) -> PathEquilibrium:
        """The shape at rest with the actuators as at q (nq,)."""
        return self.shapes.solve(q[self._drives], q)

    def _present(self, state: RobotState) -> PathEquilibrium:
        assert state.q is not None
        positions = state.q[self._drives] if state.positions is None else np.asarray(state.positions, dtype=np.float64)
        return self.shapes.solve(positions, np.array(state.q))

    def _way(self, q: Array, position: ArrayLike | None, quaternion: ArrayLike | None) -> GoalFeasibility:
        first = self._shape_at(q)
        make_goal(self.robot.output, position, quaternion, first.pose)
        path = plan_path(self.shapes, first, position, quaternion)
        rates = np.array([each.rate for each in self.robot.actuators])
        travel = sum(
            (np.abs(after.positions - before.positions) for before, after in pairwise(path)),
            np.zeros(rates.size),
        )
        slowest = int(np.argmax(travel / rates))
        settling = SETTLING * max(self.shapes.slopes(shape).slowest_period for shape in (path[0], path[-1]))
        end = self._coordinates(path[-1].shape.q)
        return GoalFeasibility(end, float(travel[slowest] / rates[slowest]), self.names[slowest], settling)

    def _values(self, follower: Follower, progress: Progress, state: RobotState | None) -> Array:
        assert isinstance(follower, LinearFeedbackTracker)
        place, pace, _ = progress
        if state is None:
            return follower.feed_forward(place, pace)
        assert state.q is not None and state.v is not None
        away = follower.distance(place, state.q, pace)
        if not away < LOST:
            raise InfeasibleControlError(
                f"the robot is {away:.2g} rad or m from its plan, which was made for places near it; hold, then go on."
            )
        return follower.effort(place, state.q, state.v, pace)

    def _checked(self, follower: LinearFeedbackTracker) -> LinearFeedbackTracker:
        """The follower with a model of its own, if its plan keeps the actuators' rates and efforts."""
        follower.model = self._follower_model
        plan, count = follower.plan, self.model.index.size
        places = {int(k): n for n, k in enumerate(self.model.index)}
        if all(int(k) in places for k in self.model.drives):
            rows = count + np.array([places[int(k)] for k in self.model.drives])
            self._check_rates(np.max(np.abs(plan.states[:, rows]), axis=0))
        worst = np.max(np.abs(plan.inputs), axis=0)
        for actuator, used in zip(self.robot.actuators, worst, strict=True):
            if used > actuator.effort:
                raise TensegrityError(
                    f"the path needs {used:.3g} {actuator.units[2]} of {actuator.name}, above its limit of "
                    f"{actuator.effort:.3g}; take more time for it."
                )
        return follower
