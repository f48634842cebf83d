"""Control of a structure by its rest lengths: paths of equilibria from the inverse kinematics, walked in time.

See `path_control`. A goal is planned by `inverse_kinematics` and made a smooth curve by `equilibrium_curve`;
`pose_feedback` removes what a wrong model leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium

from ..controller import RobotState, positions_of
from ..inverse_kinematics.ik_result import InverseKinematicsResult
from ..inverse_kinematics.solve_ik import inverse_kinematics
from ..inverse_kinematics.start_equilibrium import shape_solver, start_shape
from ..inverse_kinematics.structure_jacobian import longest_period
from ..inverse_kinematics.tension_limits import TendonGuard
from ..paths.equilibrium_path import EquilibriumPath
from .path_controller import PathController, check_ranges
from .pose_feedback import PoseFeedback

Array = NDArray[np.float64]


class TendonLengthController(PathController):
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

    GAINS = ("feedback_gain", "feedback_limit")

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
        check_ranges(("feedback_gain", feedback_gain, 0.0, 1e6), ("feedback_limit", feedback_limit, 0.0, 1e6))
        self.rigid_bars, self.tension_floor = rigid_bars, tension_floor
        self.feedback_gain, self.feedback_limit = feedback_gain, feedback_limit
        self.solver = shape_solver(robot, rigid_bars)
        home = start_shape(robot, None, self.solver)
        self.guard = TendonGuard(robot, home, tension_floor)
        self.slowest_period = longest_period(home, rigid_bars=rigid_bars)
        self._feedback: PoseFeedback | None = None
        self._fed_back = np.zeros(len(robot.actuators))
        super().__init__(
            robot, home, rate_margin=rate_margin, swing_periods=swing_periods, brake_time=brake_time
        )  # fmt: skip

    def plan(
        self, start: StructureEquilibrium, position: ArrayLike | None, quaternion: ArrayLike | None
    ) -> InverseKinematicsResult:
        """The equilibrium path from a shape to a pose, with the posture of the robot file's rest lengths."""
        return inverse_kinematics(
            self.robot, position, quaternion, start=start, preferred=self.home,
            tension_floor=self.tension_floor, rigid_bars=self.rigid_bars, solver=self.solver,
        )  # fmt: skip

    def reset(self, time: float, state: RobotState | None = None) -> None:
        super().reset(time, state)
        self._feedback, self._fed_back = None, np.zeros(len(self.names))

    def gains(self) -> dict[str, float]:
        return {"feedback_gain": self.feedback_gain, "feedback_limit": self.feedback_limit}

    def set_gains(self, **values: float) -> None:
        wanted = {**self.gains(), **self.known_gains(values)}
        check_ranges(*((name, value, 0.0, 1e6) for name, value in wanted.items()))
        self.feedback_gain, self.feedback_limit = wanted["feedback_gain"], wanted["feedback_limit"]
        self._feedback = None  # made anew; what it has added stays

    # -- how shapes are found -------------------------------------------------------------------------------------

    def _shape_of(self, state: RobotState | None) -> StructureEquilibrium:
        lengths = np.array(self.home.rest_lengths)
        lengths[self.guard.members] = positions_of(self.robot, None if state is None else state.positions)
        nodes = self.home.nodes if state is None or state.nodes is None else state.nodes
        return start_shape(self.robot, self.solver.solve(lengths, start=nodes), self.solver)

    def _way_to(
        self, start: StructureEquilibrium, position: ArrayLike | None, quaternion: ArrayLike | None
    ) -> Sequence[StructureEquilibrium]:
        return self.plan(start, position, quaternion).path

    def _curve(self, path: Sequence[StructureEquilibrium], keep: Sequence[int] = ()) -> EquilibriumPath:
        return EquilibriumPath(self.robot, path, self.solver, keep=keep)

    # -- feedback -------------------------------------------------------------------------------------------------

    def _correction(self, time: float, is_moving: bool, state: RobotState | None) -> Array | float:
        if is_moving:
            self._feedback = None  # made anew for the shape that is held next
        if self.feedback_gain <= 0.0:
            return 0.0
        if not is_moving and self._phase == "holding" and state is not None and state.pose is not None:
            self._correct(state.pose, max(time - self._last_time, 0.0))
        return self._fed_back

    def _correct(self, measured: Pose, step: float) -> None:
        if self._feedback is None:
            self._feedback = PoseFeedback(
                self.robot, self.guard, self._rest.shape(), self.rigid_bars, self.feedback_gain, self.feedback_limit
            )
        assert self._goal is not None
        self._fed_back = self._feedback.corrected(self._fed_back, self._goal, measured, step)
