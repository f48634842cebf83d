"""Trajectories: values that change smoothly with time, as piecewise polynomials (`scipy.interpolate.PPoly`).

The cubic Hermite spline is 000 (4.1.7), (4.2.2), (4.2.7), with D before M_H ((4.3.2) prints them in the wrong order).

A control loop needs value, rate and acceleration at one time: `PiecewisePolynomial.sample` computes them in compiled
code in 2 us, compared with 18 us for three calls of `PPoly` (`benchmarks/qp_solvers.py`).

Outside its time range a trajectory rests at the nearer end: the value is constant and all derivatives are zero. At a
knot the derivatives are those of the piece that begins there; at the end time they are those of the last piece.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicHermiteSpline, PPoly

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.compilation import QuickCall, compiled
from tensegrity_dynamics.numerics.types import Array

LARGEST_FACTOR = 1e15
"""Largest factor by which a motion can be slowed down; the smallest factor is its inverse."""


class Trajectory(Protocol):
    """Value over time; the module docstring defines it outside the time range."""

    @property
    def start(self) -> float:
        """Time [s] of the first waypoint."""

    @property
    def end(self) -> float:
        """Time [s] of the last waypoint."""

    def value(self, t: ArrayLike, derivative: int = 0) -> Array:
        """Value or derivative at times (k,) [s] as (k, n), at a scalar time as (n,). Raises TensegrityError for NaN."""

    def largest(self, derivative: int) -> Array:
        """Largest absolute values of a derivative, as `within_limits` compares them with limits."""

    def stretched(self, factor: float) -> Trajectory:
        """Same path from the same start time, slowed down by `factor`."""


@compiled
def sample_polynomial(knots, coefficients, t, out):  # type: ignore[no-untyped-def]
    """Write value and two derivatives at one time to `out` (3, n), from breakpoints and coefficients of a `PPoly`."""
    low, high = 0, knots.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= t:
            low = middle
        else:
            high = middle
    u = min(max(t, knots[0]), knots[-1]) - knots[low]
    inside = 1.0 if knots[0] <= t <= knots[-1] else 0.0
    for i in range(coefficients.shape[2]):
        value, rate, acceleration = coefficients[0, low, i], 0.0, 0.0
        for k in range(1, coefficients.shape[0]):
            acceleration = acceleration * u + rate
            rate = rate * u + value
            value = value * u + coefficients[k, low, i]
        out[0, i], out[1, i], out[2, i] = value, inside * rate, inside * 2.0 * acceleration


# the arrays of all polynomials have the same types; output arrays of the caller may be parts of larger arrays
_sample = QuickCall(sample_polynomial)


class PiecewisePolynomial:
    """Piecewise polynomial over time.

    Args:
        polynomial: with increasing breakpoints (s + 1,) [s] and coefficients (degree + 1, s, n).

    Raises:
        TensegrityError: a coefficient is not finite.
    """

    def __init__(self, polynomial: PPoly) -> None:
        if not (np.all(np.isfinite(polynomial.c)) and np.all(np.isfinite(polynomial.x))):
            raise TensegrityError("a coefficient is not finite; give finite values and knots that are not too close.")
        self.polynomial = PPoly(np.ascontiguousarray(polynomial.c), polynomial.x)
        self._sampled = self.polynomial.x, self.polynomial.c  # access through SciPy is slower than evaluation
        self.size = int(polynomial.c.shape[2])
        self.start, self.end = float(polynomial.x[0]), float(polynomial.x[-1])

    @property
    def knots(self) -> Array:
        """(s + 1,) times of the knots [s], increasing."""
        return np.asarray(self.polynomial.x)

    def value(self, t: ArrayLike, derivative: int = 0) -> Array:
        """Value or derivative at times (k,) [s] as (k, n), at a scalar time as (n,).

        Raises:
            TensegrityError: a time is NaN or not a scalar or vector, or the derivative is not an integer from 0 on.
        """
        times = checked_query(t, derivative)
        values = np.asarray(self.polynomial(np.clip(times, self.start, self.end), int(derivative)))
        if derivative > 0:
            values[(times < self.start) | (times > self.end)] = 0.0
        return values

    def sample(self, t: float, out: Array | None = None) -> Array:
        """(3, n) value, rate and acceleration at one time [s], written to `out` if given. Raises for NaN."""
        if t != t:
            raise TensegrityError("the time is NaN; give a number of seconds.")
        if out is None:
            rows = np.empty((3, self.size))
            _sample(*self._sampled, float(t), rows)
            return rows
        sample_polynomial(*self._sampled, float(t), out)
        return out

    def largest(self, derivative: int) -> Array:
        """(n,) largest absolute value of each component of a derivative (exact)."""
        rates = self.polynomial.derivative(derivative) if derivative else self.polynomial
        ends = np.concatenate((self.knots[:-1], np.nextafter(self.knots[1:], -np.inf)))
        best = np.max(np.abs(rates(ends)), axis=0)
        for component, roots in enumerate(rates.derivative().roots(extrapolate=False)):
            inside = roots[np.isfinite(roots)]
            if inside.size:
                best[component] = max(best[component], float(np.max(np.abs(rates(inside)[:, component]))))
        return np.asarray(best)

    def stretched(self, factor: float) -> PiecewisePolynomial:
        """Same path from the same start time, slowed down by `factor`. Raises TensegrityError unless it is above
        zero."""
        checked_factor(factor)
        powers = np.arange(self.polynomial.c.shape[0])[::-1, None, None]
        knots = self.start + factor * (self.knots - self.start)
        return PiecewisePolynomial(PPoly(self.polynomial.c / factor**powers, knots))


class HermiteSpline(PiecewisePolynomial):
    """Cubic Hermite spline, C1 through all knots: 000 (4.3.1)-(4.3.3).

    Args:
        times: (s + 1,) times of the knots [s], increasing, with any spacing.
        values: (s + 1, n), or (s + 1,) for one component.
        rates: time derivatives in the shape of `values` [1/s]; None: zero, i.e. rest at every knot.

    Raises:
        TensegrityError: wrong shapes, NaN, times that do not increase.
    """

    def __init__(self, times: ArrayLike, values: ArrayLike, rates: ArrayLike | None = None) -> None:
        knots = checked_times(times)
        points = checked_rows(values, knots, "values")
        slopes = np.zeros_like(points) if rates is None else checked_rows(rates, knots, "rates", points.shape)
        super().__init__(CubicHermiteSpline(knots, points, slopes))


def uniform_hermite_spline(
    start: float, step: float, values: ArrayLike, rates: ArrayLike | None = None
) -> HermiteSpline:
    """Cubic Hermite spline with equally spaced knots start, start + step, ... [s]; 000 section 4.1.

    Raises:
        TensegrityError: the step is not above zero, or see `HermiteSpline`.
    """
    if not (np.isfinite(start) and np.isfinite(step) and step > 0.0):
        raise TensegrityError(f"knots from {start} s in steps of {step} s; give finite numbers and a step above zero.")
    return HermiteSpline(start + step * np.arange(np.asarray(values).shape[0]), values, rates)


def chained(first: PiecewisePolynomial, *others: PiecewisePolynomial, tolerance: float = 1e-9) -> PiecewisePolynomial:
    """Concatenation of motions, each shifted in time to start at the end of the previous one; C1 at the joints.

    Raises:
        TensegrityError: value or rate would jump by more than `tolerance` (relative above one), or sizes differ.
    """
    knots, pieces = [first.knots], [first.polynomial.c]
    end, last = first.end, first
    for number, part in enumerate(others, start=2):
        if part.size != first.size:
            raise TensegrityError(f"part {number} has {part.size} components, the first has {first.size}.")
        for derivative, word in enumerate(("value", "rate")):
            before, after = last.value(last.end, derivative), part.value(part.start, derivative)
            if np.any(np.abs(after - before) > tolerance * np.maximum(1.0, np.abs(before))):
                raise TensegrityError(
                    f"the {word} jumps from {before} to {after} where part {number} begins; join them."
                )
        knots.append(part.knots[1:] - part.start + end)
        pieces.append(part.polynomial.c)
        end, last = float(knots[-1][-1]), part
    top = max(piece.shape[0] for piece in pieces)
    padded = [np.pad(piece, ((top - piece.shape[0], 0), (0, 0), (0, 0))) for piece in pieces]
    return PiecewisePolynomial(PPoly(np.concatenate(padded, axis=1), np.concatenate(knots)))


def within_limits(
    trajectory: Trajectory, velocity: ArrayLike | None = None, acceleration: ArrayLike | None = None
) -> tuple[Trajectory, float]:
    """Trajectory slowed down in time to satisfy limits, and the factor, at least 1.

    Args:
        velocity: limit for each value of `Trajectory.largest` [1/s], or one for all; None: no limit.
        acceleration: likewise for the second derivative [1/s^2].

    Raises:
        TensegrityError: a limit is not above zero, or has another shape.
    """
    factor = 1.0
    for derivative, word, limit in ((1, "velocity", velocity), (2, "acceleration", acceleration)):
        if limit is None:
            continue
        peak = trajectory.largest(derivative)
        allowed = np.asarray(limit, dtype=np.float64)
        if allowed.shape not in ((), peak.shape) or not np.all(allowed > 0.0):
            shown = ", ".join(f"{each:g}" for each in np.ravel(allowed))
            raise TensegrityError(f"the {word} limit is {shown}; give one number above zero, or {peak.size} of them.")
        factor = max(factor, float(np.max(peak / allowed)) ** (1.0 / derivative))
    return (trajectory, 1.0) if factor == 1.0 else (trajectory.stretched(factor * (1.0 + 1e-12)), factor)


def checked_times(times: ArrayLike) -> Array:
    """(s + 1,) at least two finite, increasing times. Raises TensegrityError that names the first invalid one."""
    try:
        knots = np.array(times, dtype=np.float64)
    except (TypeError, ValueError):
        raise TensegrityError(f"times {times!r} are not numbers; give one per waypoint, in seconds.") from None
    if knots.ndim != 1 or knots.size < 2:
        raise TensegrityError(f"times have shape {knots.shape}; give a list of at least two, in seconds.")
    if not np.all(np.isfinite(knots)):
        raise TensegrityError(f"time {int(np.argmin(np.isfinite(knots)))} is not finite; give seconds.")
    wrong = np.flatnonzero(np.diff(knots) <= 0.0)
    if wrong.size:
        i = int(wrong[0]) + 1
        word = "repeats" if knots[i] == knots[i - 1] else "comes before"
        raise TensegrityError(
            f"time {i} ({knots[i]:g} s) {word} time {i - 1} ({knots[i - 1]:g} s); let times increase."
        )
    return knots


def checked_rows(rows: ArrayLike, knots: Array, what: str, shape: tuple[int, ...] | None = None) -> Array:
    """(s + 1, n) finite values, one row per time. Raises TensegrityError that states both shapes."""
    try:
        array = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise TensegrityError(f"{what} are not a table of numbers with one row per time.") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != knots.size or array.shape[1] == 0 or shape not in (None, array.shape):
        needed = shape or (knots.size, "n")
        raise TensegrityError(f"{what} have shape {array.shape}; needed is {needed}, one row per time.")
    if not np.all(np.isfinite(array)):
        row = int(np.argmin(np.all(np.isfinite(array), axis=1)))
        raise TensegrityError(f"{what} at time {row} ({knots[row]:g} s) are {array[row]}; give finite numbers.")
    return array


def checked_query(t: ArrayLike, derivative: int) -> Array:
    """Times as an array of dimension 0 or 1. Raises TensegrityError for NaN, other shapes or invalid derivatives."""
    times = np.asarray(t, dtype=np.float64)
    if times.ndim > 1 or np.any(np.isnan(times)):
        raise TensegrityError("times to evaluate at must be one number or a vector without NaN, in seconds.")
    if derivative < 0 or derivative != int(derivative):
        raise TensegrityError(f"derivative {derivative} does not exist; give a whole number from 0 on.")
    return times


def checked_factor(factor: float) -> None:
    """Raise TensegrityError unless the factor is between 1 / `LARGEST_FACTOR` and `LARGEST_FACTOR`."""
    if not 1.0 / LARGEST_FACTOR <= factor <= LARGEST_FACTOR:
        raise TensegrityError(
            f"a trajectory cannot be stretched by {factor:g}; give a factor from {1.0 / LARGEST_FACTOR:g} to "
            f"{LARGEST_FACTOR:g}."
        )
