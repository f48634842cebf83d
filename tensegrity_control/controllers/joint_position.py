"""Control of a mechanism by the positions of its actuators: pulleys turn so that it passes through shapes at rest.

See `path_control`. Shapes are static: the motion must be slow beside the mechanism's vibrations, for which
`swing_periods` cares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from ..controller import RobotState
from ..inverse_kinematics.mechanism_equilibria import PathEquilibrium, PathEquilibriumSolver
from ..inverse_kinematics.mechanism_ik import plan_path
from ..paths.joint_curve import MechanismEquilibriumPath
from .path_controller import PathController


class JointPositionController(PathController):
    """See the module's text.

    Args:
        robot: a mechanism with actuators and an output.
        rate_margin, swing_periods, brake_time: see `PathController`.

    Attributes:
        home: the shape with the actuators at their start, whose tensions all plans keep near.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no stable shape at its start.
    """

    def __init__(
        self, robot: Robot, *, rate_margin: float = 0.9, swing_periods: float = 8.0, brake_time: float = 0.3
    ) -> None:
        self.shapes = PathEquilibriumSolver(robot)
        super().__init__(
            robot, self.shapes.home, rate_margin=rate_margin, swing_periods=swing_periods, brake_time=brake_time
        )

    def _shape_of(self, state: RobotState | None) -> PathEquilibrium:
        if state is None or state.positions is None:
            return self.shapes.home
        positions = np.asarray(state.positions, dtype=np.float64)
        if positions.shape != self.home.positions.shape or not np.all(np.isfinite(positions)):
            raise TensegrityError(f"positions must be {len(self.names)} finite numbers: {', '.join(self.names)}.")
        return self.shapes.solve(positions, self.shapes.home)

    def _way_to(
        self, start: PathEquilibrium, position: ArrayLike | None, quaternion: ArrayLike | None
    ) -> Sequence[PathEquilibrium]:
        return plan_path(self.shapes, start, position, quaternion)

    def _curve(self, path: Sequence[PathEquilibrium], keep: Sequence[int] = ()) -> MechanismEquilibriumPath:
        return MechanismEquilibriumPath(self.shapes, path)
