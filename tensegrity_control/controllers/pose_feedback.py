"""A slow integral of the measured pose error, for what a wrong stiffness leaves: dc/dt = gain J+ e."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.robots.output_frame import Pose, pose_error
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium

from ..inverse_kinematics.structure_jacobian import sensitivity
from ..inverse_kinematics.tension_limits import TendonGuard

Array = NDArray[np.float64]


class PoseFeedback:
    """Corrects rest lengths at one shape; a step that would cost a tendon its floor, by the model, is left out.

    Args:
        guard: the limits that the model watches.
        shape: the equilibrium that is held.
        gain: 1/s, see `TendonLengthController`.
        limit: m, largest correction of one rest length.
    """

    def __init__(
        self, robot: Robot, guard: TendonGuard, shape: StructureEquilibrium, rigid_bars: bool, gain: float, limit: float
    ) -> None:
        slopes = sensitivity(shape, guard.members, rigid_bars=rigid_bars)
        assert slopes.pose is not None
        self.rows = robot.output.rows
        self.gain, self.limit, self.limits = gain, limit, guard.limits
        self.inverse = np.linalg.pinv(slopes.pose[self.rows])
        self.jacobian, self.values = guard.jacobian(slopes), guard.values(shape)
        self.rates = np.array([actuator.rate for actuator in robot.actuators])

    def corrected(self, correction: Array, goal: Pose, measured: Pose, step: float) -> Array:
        """The correction (a,) m after `step` s with a measured pose; unchanged where the measurement is no number."""
        error = pose_error(goal, measured)[self.rows]
        if not np.all(np.isfinite(error)):
            return correction
        change = min(self.gain * step, 1.0) * (self.inverse @ error)
        # A tenth of the rate limits: feedback is slow by its nature, and must never compete with a motion.
        change *= min(1.0, float(np.min(0.1 * self.rates * step / np.maximum(np.abs(change), 1e-300))))
        wanted = correction + change
        if np.abs(wanted).max() > self.limit:
            return correction
        allowed = max(self.limits.violation(self.values + self.jacobian @ correction), 0.0)
        if self.limits.violation(self.values + self.jacobian @ wanted) > allowed:
            return correction
        return wanted
