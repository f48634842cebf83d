"""Kinematic control of parallel mechanisms: rates of the active joints that bring the output onto its path.

    p_ref' = p_t' + gain (p_t - p),   A p' + B q' = 0,   q' = -B^-1 A p_ref'        (002, 3.2 and 3.3)

Printed, (3.3) subtracts the correction; then the error grows like exp(2 gain t). The rates are held over the
communication time, which makes the error that remains proportional to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.kinematics.parallel_kinematics import LoopKinematics

from ..trajectories.splines import Trajectory

Array = NDArray[np.float64]


class KinematicTracker:
    """See the module.

    Args:
        kinematics: of the mechanism, from its active joints to its output.
        path: the output's controlled coordinates over time.
        gain: 1/s of the correction, not below zero.
        nearest: least |b_i| at which rates are still given. Below it a joint would have to run ever faster (Type 1).

    Raises:
        TensegrityError: the gain or the distance is out of range.
    """

    def __init__(
        self, kinematics: LoopKinematics, path: Trajectory, *, gain: float = 2.0, nearest: float = 1e-3
    ) -> None:
        if not (np.isfinite(gain) and gain >= 0.0 and np.isfinite(nearest) and nearest > 0.0):
            raise TensegrityError(f"gain {gain} 1/s must not be negative, and nearest {nearest} must be above zero.")
        self.kinematics, self.path, self.gain, self.nearest = kinematics, path, gain, nearest

    def velocity(self, time: float, q: Array, pace: float = 1.0) -> Array:
        """(n,) rates of the active joints [rad/s or m/s] at a time [s] and a position (nq,) with closed loops.

        Args:
            pace: at which the path's time runs; below 1 where the motion is broken off.

        Raises:
            InfeasibleControlError: a Type 1 singularity is nearer than `nearest`; the joint is named.
        """
        first = self.kinematics.first_order(q)
        distances = np.abs(np.diag(first.b))
        if np.min(distances) < self.nearest:
            joint = self.kinematics.active[int(np.argmin(distances))]
            raise InfeasibleControlError(
                f"at {time:.4g} s joint {joint} cannot move the output any more (Type 1 singularity, distance "
                f"{np.min(distances):.2g}); lead the path away from the edge of the reach."
            )
        away = self.path.value(time) - self.kinematics.output_values(q)
        wanted = pace * self.path.value(time, 1) + self.gain * away
        return np.asarray(-np.linalg.solve(first.b, first.a @ wanted), dtype=np.float64)
