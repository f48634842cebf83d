"""Paths of positions and rotation vectors whose rates are velocities and angular velocities in world axes.

With R = exp(w) and t = |w|,

    omega = J(w) w',   alpha = J(w) w'' + d/dt J(w) w',   J(w) = I + a [w]x + b [w]x^2
    a = (1 - cos t) / t^2,   b = (t - sin t) / t^3

(left Jacobian of the rotation group).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.numerics.types import Array

from .splines import PiecewisePolynomial

SMALL = 1e-2
"""rad below which the coefficients come from their series."""


class TurningPath(PiecewisePolynomial):
    """A path of which three components are a rotation vector [rad] in the world.

    Args:
        path: of the components themselves. turning: (3,) which of them are the rotation vector.
    """

    def __init__(self, path: PiecewisePolynomial, turning: NDArray[np.int64]) -> None:
        super().__init__(path.polynomial)
        self.turning = np.asarray(turning)

    def value(self, t: ArrayLike, derivative: int = 0) -> Array:
        """As of the path; the first two derivatives are those of `sample`."""
        if derivative not in (1, 2):
            return super().value(t, derivative)
        values = super().value(t, derivative)
        times, rows = np.atleast_1d(np.asarray(t, dtype=np.float64)), np.atleast_2d(values)
        for row, time in zip(rows, times, strict=True):
            if self.start <= time <= self.end:
                row[:] = self.sample(float(time))[derivative]
        return rows.reshape(values.shape)

    def sample(self, t: float, out: Array | None = None) -> Array:
        """(3, n) value, velocity and acceleration at one time [s]; of turns angular ones in rad/s and rad/s^2."""
        rows = super().sample(t, out)
        k = self.turning
        rows[1, k], rows[2, k] = angular_motion(rows[0, k], rows[1, k], rows[2, k])
        return rows


def angular_motion(vector: Array, rate: Array, acceleration: Array) -> tuple[Array, Array]:
    """omega [rad/s] and alpha [rad/s^2], each (3,), of a rotation vector (3,) rad with its rate and acceleration."""
    square = float(vector @ vector)
    t = float(np.sqrt(square))
    if t < SMALL:
        a, b = 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
        da, db = -1.0 / 12.0 + square / 180.0, -1.0 / 60.0 + square / 1260.0  # da/dt / t and db/dt / t
    else:
        sine, cosine = np.sin(t), np.cos(t)
        a, b = (1.0 - cosine) / square, (t - sine) / (square * t)
        da = (t * sine - 2.0 * (1.0 - cosine)) / square**2
        db = (t * (1.0 - cosine) - 3.0 * (t - sine)) / (square**2 * t)
    along = float(vector @ rate)
    once = np.cross(vector, rate)
    twice = np.cross(vector, once)
    omega = rate + a * once + b * twice
    alpha = acceleration + a * np.cross(vector, acceleration) + b * np.cross(vector, np.cross(vector, acceleration))
    alpha += along * (da * once + db * twice) + b * np.cross(rate, once)
    return omega, alpha
