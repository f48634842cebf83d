"""Computed torque of parallel mechanisms: efforts with which the active joints follow like unit masses.

    v = q_t'' + K_d (q_t' - q_a') + K_p (q_t - q_a),   tau = M v + c        (002, 3.6 and 3.7)

with M and c of the whole mechanism in its active joints: the accelerations of all joints for v, and the efforts of the
active joints for them (`inverse_dynamics`). The path of the active joints follows from that of the output, in the
working mode of the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.inverse_dynamics import inverse_dynamics
from tensegrity_dynamics.mechanisms.kinematics.parallel_kinematics import FirstOrder, LoopKinematics
from tensegrity_dynamics.numerics.types import Array

from ..controller import RobotState
from ..trajectories.splines import PiecewisePolynomial
from ..trajectories.time_scaling import Progress


@dataclass(frozen=True, eq=False)
class JointReference:
    """Reference of the mechanism.

    Attributes:
        q: (nq,), v: (nv,) configuration and velocity.
        acceleration: (n,) of the active joints [m/s^2 or rad/s^2].
        free_acceleration: (nv,) of all coordinates while the active joints have no acceleration.
        motion: (nv, n), velocities of all coordinates per velocity of the active joints.
        type_2: distance to the nearest Type 2 singularity.
    """

    q: Array
    v: Array
    acceleration: Array
    free_acceleration: Array
    motion: Array
    type_2: float


class ComputedTorqueTracker:
    """Computed torque along a path; see the module.

    Args:
        kinematics: kinematics of the mechanism, from its active joints to its output.
        path: controlled coordinates of the output over time.
        start: (nq,), defines the working mode.
        stiffness: K_p [1/s^2], not below zero; a larger value reduces errors, until the sampled efforts cause
            oscillations.
        damping: K_d [1/s], not below zero; a larger value damps oscillations.
        limits: (n,) largest efforts [N or N m]; None for no limits.
        nearest: smallest distance to a Type 2 singularity; below it `effort` raises an error.

    Raises:
        TensegrityError: a gain or a limit is out of range.
    """

    def __init__(
        self,
        kinematics: LoopKinematics,
        path: PiecewisePolynomial,
        start: Array,
        *,
        stiffness: float = 1.0,
        damping: float = 2.0,
        limits: Array | None = None,
        nearest: float = 1e-6,
    ) -> None:
        for name, value in (("stiffness", stiffness), ("damping", damping), ("nearest", nearest)):
            if not (np.isfinite(value) and value >= 0.0):
                raise TensegrityError(f"{name} is {value}; give a finite number, zero or more.")
        self.kinematics, self.path = kinematics, path
        self.stiffness, self.damping, self.nearest = stiffness, damping, nearest
        count = len(kinematics.active)
        self.limits = np.full(count, np.inf) if limits is None else np.array(limits, dtype=np.float64)
        if self.limits.shape != (count,) or not np.all(self.limits > 0.0):
            raise TensegrityError(f"limits must be {count} efforts above zero.")
        mechanism = kinematics.mechanism
        self._v = np.array([mechanism.velocities_of(name).start for name in kinematics.active])
        self._q = np.array([mechanism.positions_of(name).start for name in kinematics.active])
        self._last = np.array(start, dtype=np.float64)
        self._computed: tuple[Any, JointReference | None] = (None, None)  # arguments of the last reference, and it

    @property
    def duration(self) -> float:
        """s, duration of the path."""
        return self.path.end

    def motion(self, time: float, pace: float = 1.0) -> tuple[Array, Array]:
        """Configuration (nq,) and velocity (nv,) of the mechanism on the path at a time [s]."""
        reference = self.reference(time, pace)
        return reference.q, reference.v

    def command(self, progress: Progress, state: RobotState | None = None) -> Array:
        """(n,) efforts of the active joints [N or N m]; without a state the feed-forward of the path."""
        q, v = self.motion(progress.time, progress.pace)
        if state is not None:
            assert state.q is not None and state.v is not None
            q, v = state.q, state.v
        return self.effort(progress.time, q, v, progress.pace, progress.change)

    def reference(self, time: float, pace: float = 1.0, change: float = 0.0) -> JointReference:
        """Mechanism on the path at a time [s]; successive times close to each other keep the working mode.

        Args:
            pace, change: rate of the time of the path, and rate of the pace [1/s]; see `time_scaling`.

        Raises:
            UnreachableGoalError: the path leaves the workspace of the working mode.
        """
        computed, result = self._computed
        asked = self.kinematics, time, pace, change
        if result is not None and computed == asked:
            return result
        position, speed, acceleration = self.path.sample(time)
        q = self.kinematics.inverse(position, self._last)
        self._last = q
        first = self.kinematics.first_order(q)
        try:
            rate = -np.linalg.solve(first.b, first.a @ (pace * speed))
        except np.linalg.LinAlgError:
            raise TensegrityError(
                f"at {time:.4g} s the motion of the output does not determine the joint rates (Type 1 singularity); "
                "move the robot away from this configuration by its joints first."
            ) from None
        zero = np.zeros(rate.size)
        if first.type_2 < 1e-9:
            raise InfeasibleControlError(
                f"at {time:.4g} s the path is at a Type 2 singularity; see `singularity_crossing`."
            )
        v, free, drift = self.kinematics.second_order(q, rate, zero, first)
        # the output's acceleration without any of the active joints, and what they must add
        missing = pace**2 * acceleration + change * speed - drift
        result = JointReference(q, v, -np.linalg.solve(first.b, first.a @ missing), free, first.motion, first.type_2)
        self._computed = asked, result
        return result

    def feed_forward(self, time: float, pace: float = 1.0, change: float = 0.0) -> Array:
        """(n,) efforts of the active joints [N or N m] on the path at a time [s], within the limits.

        Raises:
            InfeasibleControlError: a Type 2 singularity is nearer than `nearest`.
        """
        reference = self.reference(time, pace, change)
        self.check_singularity(time, reference)
        acceleration = reference.free_acceleration + reference.motion @ reference.acceleration
        return self._efforts(reference.q, reference.v, acceleration)

    def check_singularity(self, time: float, found: FirstOrder | JointReference) -> None:
        """Raise InfeasibleControlError where `type_2` of a reference or of a `FirstOrder` at a time [s] of the path is
        below `nearest`."""
        if found.type_2 < self.nearest:
            raise InfeasibleControlError(
                f"at {time:.4g} s the output can move while all active joints are held (Type 2 singularity, distance "
                f"{found.type_2:.2g}): no effort holds it."
            )

    def _efforts(self, q: Array, v: Array, acceleration: Array) -> Array:
        """(n,) efforts within the limits, for accelerations (nv,) of all coordinates."""
        exact = inverse_dynamics(self.kinematics.mechanism, q, v, acceleration, self.kinematics.active).effort[self._v]
        return np.asarray(np.clip(exact, -self.limits, self.limits), dtype=np.float64)

    def effort(self, time: float, q: Array, v: Array, pace: float = 1.0, change: float = 0.0) -> Array:
        """(n,) efforts of the active joints [N or N m], within the limits, at a time [s] and a state.

        Raises:
            InfeasibleControlError: a Type 2 singularity is nearer than `nearest`.
        """
        reference = self.reference(time, pace, change)
        command = reference.acceleration + self.damping * (reference.v[self._v] - v[self._v])
        command += self.stiffness * (reference.q[self._q] - q[self._q])
        first = self.kinematics.first_order(q)
        self.check_singularity(time, first)
        _, acceleration, _ = self.kinematics.second_order(q, v[self._v], command, first)
        return self._efforts(q, v, acceleration)
