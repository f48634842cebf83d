"""Paths of positions and rotation vectors whose derivatives are linear and angular velocities in world axes.

With R = exp(w) and t = |w|,

    omega = J(w) w',   alpha = J(w) w'' + d/dt J(w) w',   J(w) = I + a [w]x + b [w]x^2
    a = (1 - cos t) / t^2,   b = (t - sin t) / t^3

(left Jacobian of the rotation group).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.numerics.compilation import compiled
from tensegrity_dynamics.numerics.types import Array

from .splines import PiecewisePolynomial

SMALL = 1e-2
"""Angle below which the coefficients are computed by their series [rad]."""


class TurningPath(PiecewisePolynomial):
    """Path with three components that are a rotation vector in world axes [rad].

    Args:
        path: path of the components. turning: (3,) indices of the components of the rotation vector.
    """

    def __init__(self, path: PiecewisePolynomial, turning: NDArray[np.int64]) -> None:
        super().__init__(path.polynomial)
        self.turning = np.asarray(turning)

    def value(self, t: ArrayLike, derivative: int = 0) -> Array:
        """Value or derivative as for the path; derivatives 1 and 2 are those of `sample`."""
        if derivative not in (1, 2):
            return super().value(t, derivative)
        values = super().value(t, derivative)
        times, rows = np.atleast_1d(np.asarray(t, dtype=np.float64)), np.atleast_2d(values)
        for row, time in zip(rows, times, strict=True):
            if self.start <= time <= self.end:
                row[:] = self.sample(float(time))[derivative]
        return rows.reshape(values.shape)

    def sample(self, t: float, out: Array | None = None) -> Array:
        """(3, n) value, velocity and acceleration at one time [s]; angular for the rotation vector [rad/s, rad/s^2]."""
        rows = super().sample(t, out)
        k = self.turning
        rows[1, k], rows[2, k] = angular_motion(rows[0, k], rows[1, k], rows[2, k])
        return rows


def angular_motion(vector: Array, rate: Array, acceleration: Array) -> tuple[Array, Array]:
    """omega [rad/s] and alpha [rad/s^2], each (3,), of a rotation vector (3,) rad with its rate and acceleration."""
    rows = np.array((vector, rate, acceleration), dtype=np.float64)
    fill_angular_motion(rows)
    return rows[1], rows[2]


@compiled
def fill_angular_motion(rows):  # type: ignore[no-untyped-def]
    """Replace rate and acceleration of a rotation vector, rows (3, 3), with omega and alpha in place."""
    x, y, z = rows[0]
    square = x * x + y * y + z * z
    t = np.sqrt(square)
    if t < SMALL:
        a, b = 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
        da, db = -1.0 / 12.0 + square / 180.0, -1.0 / 60.0 + square / 1260.0  # da/dt / t and db/dt / t
    else:
        sine, cosine = np.sin(t), np.cos(t)
        a, b = (1.0 - cosine) / square, (t - sine) / (square * t)
        da = (t * sine - 2.0 * (1.0 - cosine)) / square**2
        db = (t * (1.0 - cosine) - 3.0 * (t - sine)) / (square**2 * t)
    p, q, r = rows[1]
    u, v, w = rows[2]
    along = x * p + y * q + z * r
    once = y * r - z * q, z * p - x * r, x * q - y * p
    twice = y * once[2] - z * once[1], z * once[0] - x * once[2], x * once[1] - y * once[0]
    bent = y * w - z * v, z * u - x * w, x * v - y * u
    bent_twice = y * bent[2] - z * bent[1], z * bent[0] - x * bent[2], x * bent[1] - y * bent[0]
    across = q * once[2] - r * once[1], r * once[0] - p * once[2], p * once[1] - q * once[0]
    for k in range(3):
        rows[1, k] += a * once[k] + b * twice[k]
        rows[2, k] += a * bent[k] + b * (bent_twice[k] + across[k]) + along * (da * once[k] + db * twice[k])
