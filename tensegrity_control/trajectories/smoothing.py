"""Smoothing of a trajectory to continuous acceleration, for machines whose forces cannot change abruptly.

    P_s(t) = integral of K(s) P(t - s w/2) ds over [-1, 1],   K(s) = (1 - s^2)^4 (a - b s^2)

with a and b such that the integral of K is 1 and that of s^2 K is 0. Polynomials up to third degree pass unchanged, so
a cubic spline keeps its values except within w/2 of a knot where its acceleration jumps; there it differs by less than
w^2/48 times the jump. All derivatives up to the fourth of K vanish at the ends, so P_s has four more than P.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array

from .splines import PiecewisePolynomial

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def _kernel_numbers() -> tuple[float, float]:
    shape = (1.0 - _NODES**2) ** 4
    zeroth, second, fourth = (float(np.sum(_WEIGHTS * shape * _NODES**k)) for k in (0, 2, 4))
    b = 1.0 / (zeroth * fourth / second - second)
    return b * fourth / second, b


_A, _B = _kernel_numbers()


def smoothed(trajectory: PiecewisePolynomial, width: float, times: ArrayLike) -> tuple[Array, Array, Array]:
    """Value, rate and acceleration of the smoothed trajectory, each (k, n), at times (k,) s.

    Args:
        trajectory: piecewise cubic polynomial.
        width: width w of the kernel [s]; the effects of knots with a smaller distance overlap.

    Raises:
        TensegrityError: the width is not a time above zero.
    """
    if not (np.isfinite(width) and width > 0.0):
        raise TensegrityError(f"the width of the smoothing is {width} s; give a time above zero.")
    instants = np.atleast_1d(np.asarray(times, dtype=np.float64))
    rows = [np.array(trajectory.value(instants, derivative)) for derivative in range(3)]
    half, knots = 0.5 * width, np.asarray(trajectory.knots, dtype=np.float64)
    near = np.flatnonzero(np.min(np.abs(instants[:, None] - knots[None, :]), axis=1) < half)
    points, weights = [], []
    for instant in instants[near].tolist():
        inside = knots[np.abs(knots - instant) < half]
        cuts = np.concatenate(([-1.0], np.sort((instant - inside) / half), [1.0]))
        middle, reach = 0.5 * (cuts[1:] + cuts[:-1]), 0.5 * np.diff(cuts)
        points.append((middle[:, None] + reach[:, None] * _NODES).ravel())
        weights.append((reach[:, None] * _WEIGHTS).ravel())
    if near.size:
        begins = np.cumsum([0, *(each.size for each in points[:-1])])
        at = np.repeat(instants[near], [each.size for each in points]) - half * np.concatenate(points)
        square = np.concatenate(points) ** 2
        share = np.concatenate(weights) * (1.0 - square) ** 4 * (_A - _B * square)
        for derivative in range(3):
            rows[derivative][near] = np.add.reduceat(share[:, None] * trajectory.value(at, derivative), begins, axis=0)
    return rows[0], rows[1], rows[2]
