"""Control of a structure by its rest lengths: paths of equilibria from the inverse kinematics, walked in time.

See `position_controller`; `pose_feedback` removes what a wrong model leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import Structure

from ..controller import RobotState, Setting, positions_of
from ..inverse_kinematics.ik_result import InverseKinematicsOptions
from ..inverse_kinematics.structure_equilibria import StructureEquilibriumMap
from ..inverse_kinematics.tension_limits import TendonGuard
from ..paths.timed_path import TimedPath
from ..trajectories.time_scaling import Progress
from .goal_controller import check_ranges
from .pose_feedback import PoseFeedback
from .position_controller import PositionController


class TendonLengthController(PositionController):
    """See `PositionController`; all plans keep near the tensions and rest lengths of `home`.

    Args:
        robot: a pin-jointed robot with actuated tendons.
        rigid_bars: plan with bars that keep their length, as the simulator has them.
        rate_margin, swing_periods, brake_time, period: see `PositionController`.
        feedback_gain: 1/s of the integral correction while holding; 0 switches it off. More corrects faster; keep it
            well below the slowest frequency of the structure, above which the correction excites it.
        feedback_limit: m, largest correction of one rest length.
        tension_floor: N, see `inverse_kinematics`.

    Attributes:
        slowest_period: s, of the small oscillations about `home`.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no stable start shape.
    """

    model_type = Structure
    GAINS = ("feedback_gain", "feedback_limit")
    ABOUT: ClassVar[Mapping[str, Setting]] = {
        "feedback_gain": Setting("integral gain on the pose while holding [1/s]; larger: faster correction; 0: off"),
        "feedback_limit": Setting("largest correction of one rest length [m]"),
    }
    equilibria: StructureEquilibriumMap

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
        period: float = 0.02,
    ) -> None:
        check_ranges(("feedback_gain", feedback_gain, 0.0, 1e6), ("feedback_limit", feedback_limit, 0.0, 1e6))
        equilibria = StructureEquilibriumMap(robot, rigid_bars=rigid_bars)
        options = InverseKinematicsOptions(preferred=equilibria.home, tension_floor=tension_floor)
        super().__init__(
            equilibria, options, rate_margin=rate_margin, swing_periods=swing_periods, brake_time=brake_time,
            period=period,
        )  # fmt: skip
        self.feedback_gain, self.feedback_limit = feedback_gain, feedback_limit
        self.guard = TendonGuard(robot, self.home, tension_floor)
        self.slowest_period = equilibria.slowest_period(self.home)
        self._feedback: PoseFeedback | None = None
        self._correction = np.zeros(len(robot.actuators))
        self._last_time = -np.inf

    def reset(self, time: float, state: RobotState | None = None) -> None:
        super().reset(time, state)
        self._feedback, self._correction, self._last_time = None, np.zeros(len(self.names)), time

    def gains(self) -> dict[str, float]:
        return {"feedback_gain": self.feedback_gain, "feedback_limit": self.feedback_limit}

    def set_gains(self, **values: float) -> None:
        gains = {**self.gains(), **self.checked_gains(values)}
        check_ranges(*((name, value, 0.0, 1e6) for name, value in gains.items()))
        self.feedback_gain, self.feedback_limit = gains["feedback_gain"], gains["feedback_limit"]
        self._feedback = None  # made anew; what it has added stays

    def _hold_tracker(self, state: RobotState | None) -> TimedPath:
        positions = positions_of(self.robot, None if state is None else state.positions)
        lengths = self.equilibria.rest_lengths(positions, self.home)
        nodes = self.home.nodes if state is None or state.nodes is None else state.nodes
        return self._hold(self.equilibria.start(self.equilibria.solve_lengths(lengths, nodes)))

    def _command_values(self, time: float, tracker: TimedPath, progress: Progress, state: RobotState | None) -> Array:
        lengths = tracker.command(progress, state)
        is_moving = time < self._motions[-1][0].end
        if is_moving:
            self._feedback = None  # made anew for the equilibrium that is held next
        if self.feedback_gain > 0.0:
            if not is_moving and self._phase == "holding" and state is not None and state.pose is not None:
                self._correct(tracker, progress, state.pose, max(time - self._last_time, 0.0))
            lengths = lengths + self._correction
        self._last_time = time
        return lengths

    def _correct(self, tracker: TimedPath, progress: Progress, measured: Pose, step: float) -> None:
        if self._feedback is None:
            self._feedback = PoseFeedback(
                self.equilibria, self.guard, tracker.equilibrium(progress.time), self.feedback_gain,
                self.feedback_limit,
            )  # fmt: skip
        assert self._goal is not None
        self._correction = self._feedback.corrected(self._correction, self._goal, measured, step)
