"""Kinematic control of parallel mechanisms: rates of the active joints that move the output onto its path.

    p_ref' = p_t' + gain (p_t - p),   A p' + B q' = 0,   q' = -B^-1 A p_ref'        (002, 3.2 and 3.3)

The printed (3.3) subtracts the correction, so that the error grows like exp(2 gain t). The rates are constant over the
communication time, and the remaining error is proportional to it.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.kinematics.parallel_kinematics import FirstOrder, LoopKinematics
from tensegrity_dynamics.numerics.types import Array

from ..controller import RobotState
from ..trajectories.splines import PiecewisePolynomial
from ..trajectories.time_scaling import Progress


class KinematicTracker:
    """Kinematic control along a path; see the module.

    Args:
        kinematics: kinematics of the mechanism, from its active joints to its output.
        path: controlled coordinates of the output over time.
        start: (nq,), defines the working mode.
        gain: 1/s of the correction, not below zero; a larger value reduces errors faster, up to one per communication
            time.
        nearest: smallest |b_i|. Below it a joint would need a very large rate (Type 1 singularity).

    Raises:
        TensegrityError: the gain or the distance is out of range.
    """

    def __init__(
        self,
        kinematics: LoopKinematics,
        path: PiecewisePolynomial,
        start: Array,
        *,
        gain: float = 2.0,
        nearest: float = 1e-3,
    ) -> None:
        if not (np.isfinite(gain) and gain >= 0.0 and np.isfinite(nearest) and nearest > 0.0):
            raise TensegrityError(f"gain {gain} 1/s must not be negative, and nearest {nearest} must be above zero.")
        self.kinematics, self.path, self.gain, self.nearest = kinematics, path, gain, nearest
        mechanism = kinematics.mechanism
        self._v = [mechanism.velocities_of(name).start for name in kinematics.active]
        self._last = np.array(start, dtype=np.float64)

    @property
    def duration(self) -> float:
        """s, duration of the path."""
        return self.path.end

    def motion(self, time: float, pace: float = 1.0) -> tuple[Array, Array]:
        """Configuration (nq,) and velocity (nv,) of the mechanism on the path at a time [s]."""
        position, rate, _ = self.path.sample(time)
        self._last = self.kinematics.inverse(position, self._last)
        return self._last, self.kinematics.from_output(self._last, pace * rate, np.zeros(rate.size))[0]

    def command(self, progress: Progress, state: RobotState | None = None) -> Array:
        """(n,) rates of the active joints [rad/s or m/s]; without a state the feed-forward of the path."""
        if state is None:
            return np.asarray(self.motion(progress.time, progress.pace)[1][self._v])
        assert state.q is not None
        return self.velocity(progress.time, state.q, progress.pace)

    def velocity(self, time: float, q: Array, pace: float = 1.0) -> Array:
        """(n,) rates of the active joints [rad/s or m/s] at a time [s] and a configuration (nq,) with closed loops.

        Args:
            pace: rate of the time of the path; below 1 during a brake.

        Raises:
            InfeasibleControlError: a Type 1 singularity is nearer than `nearest`; the message names the joint.
        """
        first = self.kinematics.first_order(q)
        self.check_singularity(time, first)
        position, speed, _ = self.path.sample(time)
        rate = pace * speed + self.gain * self.kinematics.output_coordinates.error(q, position)
        return np.asarray(-np.linalg.solve(first.b, first.a @ rate), dtype=np.float64)

    def check_singularity(self, time: float, first: FirstOrder) -> None:
        """Raise InfeasibleControlError where a `FirstOrder` at a time [s] of the path is nearer than `nearest` to a
        Type 1 singularity."""
        distances = np.abs(np.diag(first.b))
        if np.min(distances) < self.nearest:
            joint = self.kinematics.active[int(np.argmin(distances))]
            raise InfeasibleControlError(
                f"at {time:.4g} s joint {joint} cannot move the output any more (Type 1 singularity, distance "
                f"{np.min(distances):.2g}); keep the path away from the boundary of the workspace."
            )
