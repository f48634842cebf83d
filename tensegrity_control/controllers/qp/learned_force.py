"""Estimate of an unknown force on the output, learned from the difference between its measured and predicted
acceleration.

    f' = w_d L (y'' seen - y'' predicted)

with the inertia L of the output (inverse of its mobility) and the learning rate w_d; W f of 000 (1.2.31). For rotations
of the output it is a moment.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.linear_algebra import lu_factor, lu_solve
from tensegrity_dynamics.numerics.types import Array


@allocation_free
def learn_force(matrix, rate, before, lasts, foreseen, share, result, factor, column, pivots):
    """Add to result (k,) a fraction of the force that explains the unpredicted change of a rate (k,), with the mobility
    `matrix` (k, k); False if the mobility is singular.

    Args:
        lasts: s, duration of the predicted accelerations at the end of `foreseen`.
    """
    count = rate.shape[0]
    first = foreseen.shape[0] - count
    for i in range(count):
        column[i] = rate[i] - (before[i] + lasts * foreseen[first + i])
        for k in range(count):
            factor[i, k] = matrix[i, k]
    lu_factor(factor, count, pivots)
    for i in range(count):
        if factor[i, i] == 0.0:
            return False
    lu_solve(factor, count, pivots, column)
    for i in range(count):
        result[i] += share * column[i]
    return True


@allocation_free
def fill_load(loads, body, point, centre, force, selection, load):
    """Fill load (b, 6), moments first, with the known loads (b, 6) plus a force (k,) at a point (3,) of a body.

    Args:
        centre: (b, 3) m, reference points of the bodies.
        selection: (k, 6), directions along which the force acts.
    """
    for b in range(loads.shape[0]):
        for m in range(6):
            load[b, m] = loads[b, m]
    x, y, z = point[0] - centre[body, 0], point[1] - centre[body, 1], point[2] - centre[body, 2]
    for k in range(force.shape[0]):
        a, b, c = force[k] * selection[k, 0], force[k] * selection[k, 1], force[k] * selection[k, 2]
        load[body, 0] += y * c - z * b + force[k] * selection[k, 3]
        load[body, 1] += z * a - x * c + force[k] * selection[k, 4]
        load[body, 2] += x * b - y * a + force[k] * selection[k, 5]
        load[body, 3] += a
        load[body, 4] += b
        load[body, 5] += c


class LearnedForce:
    """Estimated force (k,) [N, N m] along the controlled axes of the output.

    Attributes:
        force: (k,) present estimate.
    """

    def __init__(self, count: int) -> None:
        self.force = np.zeros(count)
        self._learn, self._fill = QuickCall(learn_force), QuickCall(fill_load)
        self._scratch = np.zeros((count, count)), np.zeros(count), np.zeros(count, np.int64)

    def learn(
        self, mobility: Array, rate: Array, before: Array, lasts: float, foreseen: Array, share_per_s: float
    ) -> bool:
        """Update from the rate (k,) of the output, its rate at the state before, and the prediction; False if the
        mobility (k, k) is singular. See `learn_force`."""
        return bool(self._learn(mobility, rate, before, lasts, foreseen, share_per_s, self.force, *self._scratch))

    def apply(
        self, loads: Array, body: int, point: Array, centre: Array, force: Array, axes: Array, load: Array
    ) -> None:
        """Fill the load (b, 6) of the equations, see `fill_load`."""
        self._fill(loads, body, point, centre, force, axes, load)
