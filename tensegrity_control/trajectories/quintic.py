"""Quintic C2 splines through two or more points; derivatives that are not given minimise the jerk.

Each piece is the quintic polynomial with the value, rate and acceleration of its two ends. Open rates and accelerations
minimise the integral of the squared jerk over the whole motion, which makes the spline C4 at knots where neither is
given. From rest to rest between two points the result is the minimum-jerk motion 10 u^3 - 15 u^4 + 6 u^5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BPoly, PPoly
from scipy.sparse import coo_array, csc_array
from scipy.sparse.linalg import spsolve

from tensegrity_dynamics.errors import TensegrityError

from .splines import Array, PiecewisePolynomial, checked_rows, checked_times

QUINTIC = np.array(
    [
        [1.0, 0.0, 0.0, -10.0, 15.0, -6.0],
        [0.0, 1.0, 0.0, -6.0, 8.0, -3.0],
        [0.0, 0.0, 0.5, -1.5, 1.5, -0.5],
        [0.0, 0.0, 0.0, 10.0, -15.0, 6.0],
        [0.0, 0.0, 0.0, -4.0, 7.0, -3.0],
        [0.0, 0.0, 0.0, 0.5, -1.0, 0.5],
    ]
)
"""Coefficients of u^k on [0, 1] for P_i, h P'_i, h^2 P''_i, P_i+1, h P'_i+1, h^2 P''_i+1."""
# Integral of the squared third derivative over u, as a quadratic form in the same six values.
_THIRD = QUINTIC[:, 3:] * np.array([6.0, 24.0, 60.0])
JERK = _THIRD @ np.array([[1.0 / (k + m + 1) for m in range(3)] for k in range(3)]) @ _THIRD.T

Points = ArrayLike | Sequence[ArrayLike | None] | None


class QuinticSpline(PiecewisePolynomial):
    """C2 quintic spline through waypoints; open rates and accelerations follow from minimum jerk.

    Args:
        times: (s + 1,) s, increasing.
        values: (s + 1, n), or (s + 1,) for one component.
        rates: time derivatives in the shape of `values` [1/s]; None for all, or None for single rows, leaves them open.
            Open rates at the first and last knot are zero.
        accelerations: second derivatives, likewise [1/s^2].

    Raises:
        TensegrityError: wrong shapes, NaN, times that do not increase.
    """

    def __init__(self, times: ArrayLike, values: ArrayLike, rates: Points = None, accelerations: Points = None) -> None:
        knots = checked_times(times)
        points = checked_rows(values, knots, "values")
        speeds = open_rows(rates, knots, "rates", points.shape)
        bends = open_rows(accelerations, knots, "accelerations", points.shape)
        super().__init__(quintic_polynomial(knots, points, *least_jerk(knots, points, speeds, bends)))


def minimum_jerk(start: float, end: float, first: ArrayLike, last: ArrayLike) -> QuinticSpline:
    """Minimum-jerk trajectory from rest at a value (n,) to rest at another, between two times [s]."""
    return QuinticSpline([start, end], [np.atleast_1d(first), np.atleast_1d(last)])


def remaining(x: float) -> float:
    """Remaining fraction of a minimum-jerk motion, from 1 to 0 for relative times `x` from 0 to 1."""
    x = min(max(x, 0.0), 1.0)
    return 1.0 - x**3 * (10.0 - 15.0 * x + 6.0 * x * x)


def quintic_polynomial(knots: Array, points: Array, rates: Array, accelerations: Array) -> PPoly:
    """C2 polynomial from values and derivatives (s + 1, n) at the knots."""
    return PPoly.from_bernstein_basis(BPoly.from_derivatives(knots, np.stack((points, rates, accelerations), axis=1)))


def least_jerk(knots: Array, points: Array, rates: Array, accelerations: Array) -> tuple[Array, Array]:
    """Rates and accelerations (s + 1, n) whose NaN rows are filled with the minimum of the integral of squared jerk."""
    open_rows = np.stack((np.zeros(knots.size, dtype=bool), np.isnan(rates[:, 0]), np.isnan(accelerations[:, 0])), 1)
    free = np.flatnonzero(open_rows.reshape(-1))
    if free.size == 0:
        return rates, accelerations
    unit = float(np.mean(np.diff(knots)))  # time in units of the mean piece, for good conditioning
    h = np.diff(knots) / unit
    conditions = np.stack((points, rates * unit, accelerations * unit**2), axis=1).reshape(3 * knots.size, -1)
    scale = np.stack([h**k for k in (0, 1, 2, 0, 1, 2)], axis=1)
    blocks = JERK[None] * scale[:, :, None] * scale[:, None, :] / h[:, None, None] ** 5
    index = 3 * np.arange(h.size)[:, None] + np.arange(6)[None]
    rows, columns = np.repeat(index, 6, axis=1).reshape(-1), np.tile(index, (1, 6)).reshape(-1)
    total = csc_array(coo_array((blocks.reshape(-1), (rows, columns)), shape=(3 * knots.size,) * 2))
    fixed = np.setdiff1d(np.arange(3 * knots.size), free)
    conditions[free] = np.asarray(spsolve(total[free][:, free], -(total[free][:, fixed] @ conditions[fixed]))).reshape(
        free.size, -1
    )
    filled = conditions.reshape(knots.size, 3, -1)
    return filled[:, 1] / unit, filled[:, 2] / unit**2


def open_rows(rows: Points, knots: Array, what: str, shape: tuple[int, ...]) -> Array:
    """Rows (s + 1, n) with NaN for open ones; open first and last rows are zero."""
    result = np.full(shape, np.nan)
    if rows is None:
        is_set = np.zeros(shape[0], dtype=bool)
    elif isinstance(rows, Sequence) and any(row is None for row in rows):
        if len(rows) != shape[0]:
            raise TensegrityError(f"{what} have {len(rows)} rows; needed are {shape[0]}, one per time.")
        is_set = np.array([row is not None for row in rows])
        filled = [np.zeros(shape[1]) if row is None else np.atleast_1d(np.asarray(row, np.float64)) for row in rows]
        if any(row.shape != (shape[1],) for row in filled):
            raise TensegrityError(f"each row of {what} must have {shape[1]} components, or be None.")
        result[is_set] = checked_rows(np.array(filled), knots, what, shape)[is_set]
    else:
        return checked_rows(rows, knots, what, shape)  # type: ignore[arg-type]
    for end in (0, -1):
        result[end] = result[end] if is_set[end] else 0.0
    return result
