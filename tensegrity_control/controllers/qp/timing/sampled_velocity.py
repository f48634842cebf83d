"""Velocities without the ripple that sampling shows as a steady motion.

Set points that jump at every command excite vibrations of stiff cables. If their period is close to the control period,
every sample sees the same phase. The sampled velocities then differ from the mean velocity by a constant part although
the robot vibrates. A controller that treats this part as motion answers with commands that excite more vibration. In
smooth motion the mean of two sampled velocities equals the difference of the positions divided by the time T between
them, so that the ripple r is estimated from both:

    r' = w ((v_k + v_(k-1)) / 2 - (q_k - q_(k-1)) / T - r)

with the bandwidth w of the loop. In smooth motion r is of the order of T^2 times the jerk.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.mechanism import Mechanism
from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.types import Array


@allocation_free
def take_out_ripple(q, v, last_q, last_v, columns, elapsed, share, ripple, result):
    """Update the ripple (n,) from two samples, and fill result (nv,) with v minus the ripple.

    Args:
        q, v, last_q, last_v: (nq,) and (nv,) of this sample and of the last one, which this one replaces.
        columns: (2, n), indices of the coordinates in q and in v.
        elapsed: s between both samples; 0 without a last one.
        share: fraction of the difference by which the ripple is corrected.
    """
    for k in range(v.shape[0]):
        result[k] = v[k]
    for n in range(ripple.shape[0]):
        a, b = columns[0, n], columns[1, n]
        if elapsed > 0.0:
            ripple[n] += share * (0.5 * (v[b] + last_v[b]) - (q[a] - last_q[a]) / elapsed - ripple[n])
        result[b] -= ripple[n]
    for k in range(q.shape[0]):
        last_q[k] = q[k]
    for k in range(v.shape[0]):
        last_v[k] = v[k]


class SampledVelocity:
    """Estimator of the ripple; see the module.

    Args:
        mechanism: mechanism; its joints without quaternions are included.

    Attributes:
        ripple: (n,) rad/s or m/s of the coordinates of these joints.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        columns: list[tuple[int, int]] = []
        for joint in mechanism.joints:
            at, moves = mechanism.positions_of(joint.name), mechanism.velocities_of(joint.name)
            if at.stop - at.start == moves.stop - moves.start:
                columns += zip(range(at.start, at.stop), range(moves.start, moves.stop), strict=True)
        self._columns = np.array(columns, dtype=np.int64).reshape(-1, 2).T.copy()
        self.ripple = np.zeros(self._columns.shape[1])
        self._last_time = -np.inf
        self._last_q, self._last_v = np.zeros(mechanism.position_count), np.zeros(mechanism.velocity_count)
        self._take_out = QuickCall(take_out_ripple)

    def forget(self) -> None:
        """Forget the ripple and the last sample."""
        self.ripple[:] = 0.0
        self._last_time = -np.inf

    def steady(self, time: float, q: Array, v: Array, longest: float, bandwidth: float) -> Array:
        """(nv,) velocity v without its ripple, of a sample q (nq,), v (nv,) at a time [s].

        Args:
            longest: s, longest time between two samples for an update of the ripple.
            bandwidth: w [1/s].
        """
        result, elapsed = np.empty_like(v), time - self._last_time
        elapsed = elapsed if elapsed <= longest else 0.0
        share, self._last_time = min(1.0, bandwidth * elapsed), time
        self._take_out(q, v, self._last_q, self._last_v, self._columns, elapsed, share, self.ripple, result)
        return result
