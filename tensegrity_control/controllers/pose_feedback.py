"""A slow integral of the measured pose error, for what a wrong stiffness leaves: dc/dt = gain J+ e."""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose, pose_error
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium

from ..inverse_kinematics.structure_equilibria import StructureEquilibriumMap
from ..inverse_kinematics.tension_limits import TendonGuard


class PoseFeedback:
    """Corrects rest lengths at one equilibrium; a step that would cost a tendon its floor, by the model, is left out.

    Args:
        equilibria: of the robot. guard: the limits that the model watches.
        equilibrium: that is held.
        gain: 1/s, see `TendonLengthController`.
        limit: m, largest correction of one rest length.
    """

    def __init__(
        self,
        equilibria: StructureEquilibriumMap,
        guard: TendonGuard,
        equilibrium: StructureEquilibrium,
        gain: float,
        limit: float,
    ) -> None:
        robot, slopes = equilibria.robot, equilibria.sensitivity(equilibrium)
        self.rows = robot.output.rows
        self.gain, self.limit, self.limits = gain, limit, guard.limits
        self.inverse = np.linalg.pinv(equilibria.pose_jacobian(equilibrium)[self.rows])
        self.jacobian, self.values = guard.jacobian(slopes), guard.values(equilibrium)
        self.rates = np.array([actuator.rate for actuator in robot.actuators])

    def corrected(self, correction: Array, goal: Pose, measured: Pose, step: float) -> Array:
        """The correction (a,) m after `step` s with a measured pose; unchanged where the measurement is no number."""
        error = pose_error(goal, measured)[self.rows]
        if not np.all(np.isfinite(error)):
            return correction
        change = min(self.gain * step, 1.0) * (self.inverse @ error)
        # A tenth of the rate limits: feedback is slow by its nature, and must never compete with a motion.
        change *= min(1.0, float(np.min(0.1 * self.rates * step / np.maximum(np.abs(change), 1e-300))))
        corrected = correction + change
        if np.abs(corrected).max() > self.limit:
            return correction
        allowed = max(self.limits.violation(self.values + self.jacobian @ correction), 0.0)
        if self.limits.violation(self.values + self.jacobian @ corrected) > allowed:
            return correction
        return corrected
