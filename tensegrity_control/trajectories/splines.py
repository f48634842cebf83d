"""Trajectories: values that change smoothly with time; cubic Hermite splines, and what all piecewise polynomials share.

On the piece from t_i to t_i+1, with h = t_i+1 - t_i and u = (t - t_i) / h,

    P(t) = sum_k c_k u^k        d^l P / dt^l = sum_k k! / (k - l)! c_k u^(k-l) / h^l

and for the cubic Hermite spline c = [P_i, h P'_i, P_i+1, h P'_i+1] M_H in the basis u^k / k!: 000 (4.1.7), (4.2.2),
(4.2.7), with D before M_H ((4.3.2) prints them in the wrong order).

Outside of its range a trajectory rests at its nearer end: the value holds, all derivatives are zero. At a knot the
derivatives are those of the piece that begins there, at the very end those of the last piece.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.compilation import compiled

Array = NDArray[np.float64]

HERMITE = np.array(
    [[1.0, 0.0, -6.0, 12.0], [0.0, 1.0, -4.0, 6.0], [0.0, 0.0, 6.0, -12.0], [0.0, 0.0, -2.0, 6.0]]
)  # M_H of 000 (4.1.7)
FACTORIALS = np.array([1.0, 1.0, 2.0, 6.0])
DENSE = 33  # samples of a piece where extremes are looked for, besides the exact ones


class Sample(NamedTuple):
    """Value, rate [1/s] and acceleration [1/s^2] of a trajectory at one time."""

    value: Array
    rate: Array
    acceleration: Array


class Trajectory(Protocol):
    """A value over time; see the module for what holds outside of its range."""

    @property
    def start(self) -> float:
        """Time [s] of the first waypoint."""

    @property
    def end(self) -> float:
        """Time [s] of the last waypoint."""

    def value(self, t: ArrayLike, derivative: int = 0) -> Array:
        """The derivative at times (k,) s as (k, n), at one time as (n,). Raises TensegrityError for NaN."""

    def new_sample(self) -> Sample:
        """Arrays of the right sizes to be written by `sample`."""

    def sample(self, t: float, out: Sample | None = None) -> Sample:
        """Value, rate and acceleration at one time [s]; written into `out` where given, without allocation."""

    def largest(self, derivative: int, norm: bool = False) -> Array:
        """(n,) largest absolute value of each component of a derivative, or (1,) of its norm."""

    def stretched(self, factor: float) -> Trajectory:
        """The same way from the same start, `factor` times as slow."""

    def shifted(self, delay: float) -> Trajectory:
        """The same motion `delay` s later."""


@compiled
def piece_at(knots, t):  # type: ignore[no-untyped-def]
    """Index of the piece in which a time lies: the last that begins at or before it."""
    low, high = 0, knots.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= t:
            low = middle
        else:
            high = middle
    return low


@compiled
def sample_polynomial(knots, coefficients, t, value, rate, acceleration):  # type: ignore[no-untyped-def]
    """Value and two derivatives at one time, by Horner's rule, into (n,) arrays; returns the piece."""
    inside = knots[0] <= t <= knots[-1]
    t = min(max(t, knots[0]), knots[-1])
    piece = piece_at(knots, t)
    h = knots[piece + 1] - knots[piece]
    u = (t - knots[piece]) / h
    top = coefficients.shape[1] - 1
    for i in range(coefficients.shape[2]):
        p, d, dd = coefficients[piece, top, i], 0.0, 0.0
        for k in range(top - 1, -1, -1):
            dd = dd * u + d
            d = d * u + p
            p = p * u + coefficients[piece, k, i]
        value[i] = p
        rate[i] = d / h if inside else 0.0
        acceleration[i] = 2.0 * dd / (h * h) if inside else 0.0
    return piece


@compiled
def evaluate_polynomial(knots, coefficients, times, derivative, out):  # type: ignore[no-untyped-def]
    """One derivative at times (k,) into (k, n)."""
    top = coefficients.shape[1] - 1
    for row in range(times.shape[0]):
        t = times[row]
        held = t < knots[0] or t > knots[-1]
        t = min(max(t, knots[0]), knots[-1])
        piece = piece_at(knots, t)
        h = knots[piece + 1] - knots[piece]
        u = (t - knots[piece]) / h
        for i in range(coefficients.shape[2]):
            p = 0.0
            if not (held and derivative > 0):
                for k in range(top, derivative - 1, -1):
                    factor = 1.0
                    for j in range(derivative):
                        factor *= (k - j) / h
                    p = p * u + factor * coefficients[piece, k, i]
            out[row, i] = p


class PiecewisePolynomial:
    """A polynomial on each piece between knots.

    Args:
        knots: (s + 1,) s, increasing.
        coefficients: (s, d + 1, n) of u^k on each piece; see the module.

    Raises:
        TensegrityError: wrong shapes, values that are not finite, knots that do not increase.
    """

    def __init__(self, knots: ArrayLike, coefficients: ArrayLike) -> None:
        self.knots = checked_times(knots)
        self.coefficients = np.array(coefficients, dtype=np.float64, order="C")
        if self.coefficients.ndim != 3 or self.coefficients.shape[0] != self.knots.size - 1:
            raise TensegrityError(
                f"coefficients have shape {self.coefficients.shape}; {self.knots.size} knots need "
                f"({self.knots.size - 1}, degree + 1, components)."
            )
        if not np.all(np.isfinite(self.coefficients)):
            raise TensegrityError("a coefficient is not finite; give finite values and knots that are not too close.")
        for array in (self.knots, self.coefficients):
            array.setflags(write=False)
        self.size = self.coefficients.shape[2]
        self.start, self.end = float(self.knots[0]), float(self.knots[-1])

    def value(self, t: ArrayLike, derivative: int = 0) -> Array:
        """The derivative at times (k,) s as (k, n), at one time as (n,).

        Raises:
            TensegrityError: a time is NaN or not a number or vector, or the derivative is no whole number from 0 on.
        """
        times = checked_query(t, derivative)
        out = np.empty((times.size, self.size))
        evaluate_polynomial(self.knots, self.coefficients, times.reshape(-1), int(derivative), out)
        return out if times.ndim else out[0]

    def new_sample(self) -> Sample:
        """Three arrays (n,) to be written by `sample`."""
        return Sample(np.zeros(self.size), np.zeros(self.size), np.zeros(self.size))

    def sample(self, t: float, out: Sample | None = None) -> Sample:
        """Value, rate and acceleration at one time [s]; written into `out` where given. Raises for NaN."""
        if t != t:
            raise TensegrityError("the time is NaN; give a number of seconds.")
        into = self.new_sample() if out is None else out
        sample_polynomial(self.knots, self.coefficients, float(t), into.value, into.rate, into.acceleration)
        return into

    def largest(self, derivative: int, norm: bool = False) -> Array:
        """(n,) largest absolute value of each component of a derivative, or (1,) of its norm; exact."""
        best = np.zeros(1 if norm else self.size)
        grid = np.linspace(0.0, 1.0, DENSE)
        for h, piece in zip(np.diff(self.knots), self.coefficients, strict=True):
            rates = polynomial.polyder(piece, derivative) / h**derivative
            if norm:
                columns = [sum((polynomial.polymul(c, c) for c in rates.T), start=np.zeros(1))]
            else:
                columns = list(rates.T)
            for i, column in enumerate(columns):
                found = float(np.max(np.abs(polynomial.polyval(_places(column, grid), column))))
                best[i] = max(best[i], np.sqrt(found) if norm else found)
        return best

    def stretched(self, factor: float) -> PiecewisePolynomial:
        """The same way from the same start, `factor` times as slow. Raises TensegrityError unless it is above zero."""
        checked_factor(factor)
        return PiecewisePolynomial(self.start + factor * (self.knots - self.start), self.coefficients)

    def shifted(self, delay: float) -> PiecewisePolynomial:
        """The same motion `delay` s later."""
        return PiecewisePolynomial(self.knots + delay, self.coefficients)


def _places(column: Array, grid: Array) -> Array:
    """Where a polynomial on [0, 1] may be extreme: a grid, and the roots of its derivative inside."""
    slope = polynomial.polyder(column)
    scale = np.max(np.abs(slope), initial=0.0)
    if scale == 0.0:
        return grid
    roots = polynomial.polyroots(polynomial.polytrim(slope, tol=1e-14 * scale))
    return np.concatenate((grid, np.clip(np.real(roots), 0.0, 1.0)))


class HermiteSpline(PiecewisePolynomial):
    """Cubic Hermite spline, C1 through all knots: 000 (4.3.1)-(4.3.3).

    Args:
        times: (s + 1,) s, increasing, at any distances.
        values: (s + 1, n), or (s + 1,) for one component.
        rates: as values, per second; None for zero, which is rest at every knot.

    Raises:
        TensegrityError: wrong shapes, NaN, times that do not increase.
    """

    def __init__(self, times: ArrayLike, values: ArrayLike, rates: ArrayLike | None = None) -> None:
        knots = checked_times(times)
        points = checked_rows(values, knots, "values")
        slopes = np.zeros_like(points) if rates is None else checked_rows(rates, knots, "rates", points.shape)
        h = np.diff(knots)[:, None]
        control = np.stack((points[:-1], h * slopes[:-1], points[1:], h * slopes[1:]), axis=1)  # C D
        super().__init__(knots, np.einsum("jk,sjn->skn", HERMITE / FACTORIALS, control))


def uniform_hermite_spline(
    start: float, step: float, values: ArrayLike, rates: ArrayLike | None = None
) -> HermiteSpline:
    """Cubic Hermite spline with knots at equal distances: start, start + step, ... [s]; 000 section 4.1.

    Raises:
        TensegrityError: the step is not above zero, or see `HermiteSpline`.
    """
    if not (np.isfinite(start) and np.isfinite(step) and step > 0.0):
        raise TensegrityError(f"knots from {start} s in steps of {step} s; give finite numbers and a step above zero.")
    return HermiteSpline(start + step * np.arange(np.asarray(values).shape[0]), values, rates)


def chained(first: PiecewisePolynomial, *others: PiecewisePolynomial, tolerance: float = 1e-9) -> PiecewisePolynomial:
    """Motions one after the other, each moved in time to begin where the one before it ends, joined C1.

    Raises:
        TensegrityError: value or rate would jump by more than `tolerance` (relative above one), or sizes differ.
    """
    knots, pieces = [first.knots], [first.coefficients]
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
        pieces.append(part.coefficients)
        end, last = float(knots[-1][-1]), part
    top = max(piece.shape[1] for piece in pieces)
    padded = [np.pad(piece, ((0, 0), (0, top - piece.shape[1]), (0, 0))) for piece in pieces]
    return PiecewisePolynomial(np.concatenate(knots), np.concatenate(padded))


def preview(trajectory: Trajectory, t: float, horizon: float, step: float) -> Sample:
    """What comes: values (k, n), rates and accelerations at t, t + step, ... up to t + horizon [s].

    Raises:
        TensegrityError: the step is not above zero, or the horizon is negative.
    """
    if not (np.isfinite(step) and step > 0.0 and np.isfinite(horizon) and horizon >= 0.0):
        raise TensegrityError(f"a preview of {horizon} s by {step} s; give a step above zero, a horizon from 0.")
    times = t + step * np.arange(int(horizon / step + 1e-9) + 1)
    return Sample(*(trajectory.value(times, derivative) for derivative in range(3)))


def within_limits(
    trajectory: Trajectory,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    norm: bool = False,
    hasten: bool = False,
) -> tuple[Trajectory, float]:
    """The trajectory stretched in time so that limits hold, and the factor.

    Args:
        velocity: limit of each component [1/s], or one for all; None for no limit. acceleration: the same [1/s^2].
        norm: the limits are those of the Euclidean norm.
        hasten: go faster where the limits allow it; else the factor is never below one.

    Raises:
        TensegrityError: a limit is not above zero, or has another shape.
    """
    factor = 0.0 if hasten else 1.0
    for derivative, word, limit in ((1, "velocity", velocity), (2, "acceleration", acceleration)):
        if limit is None:
            continue
        peak = trajectory.largest(derivative, norm)
        allowed = np.asarray(limit, dtype=np.float64)
        if allowed.shape not in ((), peak.shape) or not np.all(allowed > 0.0):
            raise TensegrityError(f"the {word} limit is {limit}; give one number above zero, or {peak.size} of them.")
        factor = max(factor, float(np.max(peak / allowed)) ** (1.0 / derivative))
    if factor in (0.0, 1.0):
        return trajectory, 1.0
    return trajectory.stretched(factor * (1.0 + 1e-12)), factor


def checked_times(times: ArrayLike) -> Array:
    """(s + 1,) finite and increasing, at least two. Raises TensegrityError that names the first wrong one."""
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
    """(s + 1, n) finite values, one row per time. Raises TensegrityError with the shapes found and needed."""
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
    """Times as an array of no or one dimension. Raises TensegrityError for NaN, other shapes, odd derivatives."""
    times = np.asarray(t, dtype=np.float64)
    if times.ndim > 1 or np.any(np.isnan(times)):
        raise TensegrityError("times to evaluate at must be one number or a vector without NaN, in seconds.")
    if derivative < 0 or derivative != int(derivative):
        raise TensegrityError(f"derivative {derivative} does not exist; give a whole number from 0 on.")
    return times


def checked_factor(factor: float) -> None:
    """Raises TensegrityError unless the factor is finite and above zero."""
    if not (np.isfinite(factor) and factor > 0.0):
        raise TensegrityError(f"a trajectory cannot be stretched by {factor}; give a finite factor above zero.")
