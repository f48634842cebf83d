"""Covariance of a Kalman filter: prediction with a linear model, sequential correction with readings."""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import QuickCall, allocation_free
from ...numerics.types import Array


@allocation_free
def correct(covariance, rows, variance, innovation, change, column):
    """Correct a covariance (x, x) with readings, and fill change (x,) with the correction of the state.

    The readings have the rows (y, x), the variances (y,) and the innovations (y,). Their errors are independent, so
    that sequential corrections are equal to a joint correction, without a matrix inverse. Returns the sum of the
    squared innovations, each relative to its standard deviation; its mean is y if the model is correct.
    """
    count, total = covariance.shape[0], 0.0
    for i in range(count):
        change[i] = 0.0
    for j in range(rows.shape[0]):
        for i in range(count):
            column[i] = 0.0
        left, spread = innovation[j], variance[j]
        for k in range(count):
            entry = rows[j, k]
            if entry != 0.0:
                left -= entry * change[k]
                for i in range(count):
                    column[i] += covariance[k, i] * entry
        for k in range(count):
            spread += rows[j, k] * column[k]
        total += left * left / spread
        for i in range(count):
            gain = column[i] / spread
            change[i] += gain * left
            for k in range(count):
                covariance[i, k] -= gain * column[k]
    return total


def white_noise_system(flow: Array, spread: Array, interval: float) -> tuple[Array, Array]:
    """F (x, x) and Q (x, x) over an interval [s] of x' = A x + white noise of density S,

        F = exp(A t),   Q = integral of exp(A s) S exp(A s)' over 0 < s < t

    with A `flow` and S `spread`. Both are computed by doubling of the interval, F(2h) = F(h)^2 and
    Q(2h) = Q(h) + F(h) Q(h) F(h)'. This stays exact if modes decay within the interval (the usual block exponential
    does not).

    Noise that is constant over the interval would give a different result: the best estimate of a rate from positions
    would be v = 2 (q - q_before) / t - v_before, which oscillates without decay. Moreover, an actuator with an internal
    loop does not give a constant effort within the interval. With white noise, the error of a reading decays by the
    factor -(2 - sqrt 3) at the next reading.
    """
    from scipy.linalg import expm  # imported here to keep the package import fast

    size = float(np.linalg.norm(flow, 1)) * interval
    halvings = max(0, int(np.ceil(np.log2(max(size, 1.0)))) + 1)
    step = interval / 2.0**halvings
    half = expm(0.5 * step * flow)
    ahead = half @ half
    process = step / 6.0 * (spread + 4.0 * half @ spread @ half.T + ahead @ spread @ ahead.T)
    for _ in range(halvings):
        process = process + ahead @ process @ ahead.T
        ahead = ahead @ ahead
    return np.ascontiguousarray(ahead), 0.5 * (process + process.T)


class Covariance:
    """Covariance of a state (x,), with its own work arrays.

    Attributes:
        value: (x, x) covariance.
    """

    def __init__(self, size: int) -> None:
        self.value = np.zeros((size, size))
        self._correct = QuickCall(correct)
        self._product, self._column, self._change = np.zeros((size, size)), np.zeros(size), np.zeros(size)

    def predict(self, ahead: Array, process: Array) -> None:
        """Prediction P = F P F' + Q with F `ahead` and Q `process`, (x, x) each."""
        np.dot(ahead, self.value, out=self._product)
        np.dot(self._product, ahead.T, out=self.value)
        self.value += process
        np.add(self.value, self.value.T, out=self._product)
        np.multiply(self._product, 0.5, out=self.value)

    def correct(self, rows: Array, variance: Array, innovation: Array) -> tuple[Array, float]:
        """Correction of the state (x,), valid until the next call, and sum of the normalised squared innovations; see
        `correct`."""
        surprise = self._correct(self.value, rows, variance, innovation, self._change, self._column)
        return self._change, surprise

    def gains(self, rows: Array, variance: Array) -> Array:
        """K (x, y): correction of the state by `correct` per reading."""
        crossed = rows @ self.value
        return np.asarray(np.linalg.solve(crossed @ rows.T + np.diag(variance), crossed).T)
