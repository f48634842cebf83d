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
    for i in near:
        inside = knots[np.abs(knots - instants[i]) < half]
        cuts = np.concatenate(([-1.0], np.sort((instants[i] - inside) / half), [1.0]))
        middle, reach = 0.5 * (cuts[1:] + cuts[:-1]), 0.5 * np.diff(cuts)
        points = (middle[:, None] + reach[:, None] * _NODES).ravel()
        weights = (reach[:, None] * _WEIGHTS).ravel() * (1.0 - points**2) ** 4 * (_A - _B * points**2)
        for derivative in range(3):
            rows[derivative][i] = weights @ trajectory.value(instants[i] - half * points, derivative)
    return rows[0], rows[1], rows[2]
