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
from ..inverse_kinematics.mechanism_equilibria import JointShape, JointShapes
from ..inverse_kinematics.mechanism_ik import plan_path
from ..paths.joint_curve import JointCurve
from .path_controller import PathControl


class JointPositionControl(PathControl):
    """See the module's text.

    Args:
        robot: a mechanism with actuators and an output.
        rate_margin, swing_periods, brake_time: see `PathControl`.

    Attributes:
        home: the shape with the actuators at their start, whose tensions all plans keep near.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no stable shape at its start.
    """

    def __init__(
        self, robot: Robot, *, rate_margin: float = 0.9, swing_periods: float = 8.0, brake_time: float = 0.3
    ) -> None:
        self.shapes = JointShapes(robot)
        super().__init__(
            robot, self.shapes.home, rate_margin=rate_margin, swing_periods=swing_periods, brake_time=brake_time
        )

    def _shape_of(self, state: RobotState | None) -> JointShape:
        if state is None or state.positions is None:
            return self.shapes.home
        positions = np.asarray(state.positions, dtype=np.float64)
        if positions.shape != self.home.positions.shape or not np.all(np.isfinite(positions)):
            raise TensegrityError(f"positions must be {len(self.names)} finite numbers: {', '.join(self.names)}.")
        return self.shapes.solve(positions, self.shapes.home)

    def _way_to(
        self, start: JointShape, position: ArrayLike | None, quaternion: ArrayLike | None
    ) -> Sequence[JointShape]:
        return plan_path(self.shapes, start, position, quaternion)

    def _curve(self, path: Sequence[JointShape], keep: Sequence[int] = ()) -> JointCurve:
        return JointCurve(self.shapes, path)
