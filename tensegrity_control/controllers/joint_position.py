"""Control of a mechanism by the positions of its actuators: joints and pulleys turn so that it passes equilibria."""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.robots.robot import Robot

from ..controller import RobotState
from ..inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from ..paths.timed_path import TimedPath
from .position_controller import PositionController


class JointPositionController(PositionController):
    """See `PositionController`; tensions are kept near those of `home`.

    Args:
        robot: a mechanism with actuators and an output.
        rate_margin, swing_periods, brake_time, period: see `PositionController`.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no stable equilibrium at its start.
    """

    model_type = MechanismModel
    equilibria: MechanismEquilibriumMap

    def __init__(
        self,
        robot: Robot,
        *,
        rate_margin: float = 0.9,
        swing_periods: float = 8.0,
        brake_time: float = 0.3,
        period: float = 0.02,
    ) -> None:
        super().__init__(
            MechanismEquilibriumMap(robot), None, rate_margin=rate_margin, swing_periods=swing_periods,
            brake_time=brake_time, period=period,
        )  # fmt: skip

    def _hold_tracker(self, state: RobotState | None) -> TimedPath:
        if state is None or state.positions is None:
            return self._hold(self.home)
        positions = np.asarray(state.positions, dtype=np.float64)
        if positions.shape != self.home.positions.shape or not np.all(np.isfinite(positions)):
            raise TensegrityError(f"positions must be {len(self.names)} finite numbers: {', '.join(self.names)}.")
        return self._hold(self.equilibria.solve(positions, self.home))
