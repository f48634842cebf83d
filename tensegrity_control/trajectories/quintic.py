"""Quintic motions, point to point and through many points, with the least jerk where nothing else is asked; C2.

Each piece is the quintic that has value, rate and acceleration of its two ends, in u = (t - t_i) / h,

    c = [P_i, h P'_i, h^2 P''_i, P_i+1, h P'_i+1, h^2 P''_i+1] Q

Rates and accelerations that are not given minimise the integral of the squared jerk over the whole motion, which makes
the spline C4 at points where neither is given; from rest to rest between two points that is the minimum-jerk motion
10 u^3 - 15 u^4 + 6 u^5.

Orientations turn on each piece from its first waypoint by a rotation vector r(t) in world axes, a quintic as above:

    R = exp(r) R_i    w = J r'    dw/dt = J r'' + J' r'    J = 1 + a [r] + b [r]^2
    a = (1 - cos x) / x^2    b = (x - sin x) / x^3    x = |r|
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csc_array
from scipy.sparse.linalg import spsolve

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.compilation import compiled

from .splines import (
    DENSE,
    Array,
    PiecewisePolynomial,
    Sample,
    checked_factor,
    checked_query,
    checked_rows,
    checked_times,
    sample_polynomial,
)

QUINTIC = np.array(
    [
        [1.0, 0.0, 0.0, -10.0, 15.0, -6.0],
        [0.0, 1.0, 0.0, -6.0, 8.0, -3.0],
        [0.0, 0.0, 0.5, -1.5, 1.5, -0.5],
        [0.0, 0.0, 0.0, 10.0, -15.0, 6.0],
        [0.0, 0.0, 0.0, -4.0, 7.0, -3.0],
        [0.0, 0.0, 0.0, 0.5, -1.0, 0.5],
    ]
)  # Q
# Integral of the squared third derivative over u, as a form in P_i, h P'_i, h^2 P''_i, P_i+1, h P'_i+1, h^2 P''_i+1.
_THIRD = QUINTIC[:, 3:] * np.array([6.0, 24.0, 60.0])
JERK = _THIRD @ np.array([[1.0 / (k + m + 1) for m in range(3)] for k in range(3)]) @ _THIRD.T
NEARLY_HALF_TURN = np.pi - 1e-3
SMALL = 0.25  # rad^2, below which the factors of J come from their series

Points = ArrayLike | Sequence[ArrayLike | None] | None


class QuinticSpline(PiecewisePolynomial):
    """Through waypoints, C2, with the least jerk where rates and accelerations are left open.

    Args:
        times: (s + 1,) s, increasing.
        values: (s + 1, n), or (s + 1,) for one component.
        rates: as values [1/s]; None, or None in place of single rows, leaves them open.
        accelerations: the same [1/s^2].
        natural_ends: leave open what is not given at the first and the last waypoint too, instead of resting there.

    Raises:
        TensegrityError: wrong shapes, NaN, times that do not increase, natural ends with fewer than three givens.
    """

    def __init__(
        self,
        times: ArrayLike,
        values: ArrayLike,
        rates: Points = None,
        accelerations: Points = None,
        natural_ends: bool = False,
    ) -> None:
        knots = checked_times(times)
        points = checked_rows(values, knots, "values")
        speeds = _open_rows(rates, knots, "rates", points.shape, natural_ends)
        bends = _open_rows(accelerations, knots, "accelerations", points.shape, natural_ends)
        speeds, bends = least_jerk(knots, points, speeds, bends)
        super().__init__(knots, quintic_coefficients(knots, points, speeds, bends))


def minimum_jerk(start: float, end: float, first: ArrayLike, last: ArrayLike) -> QuinticSpline:
    """From rest at a value (n,) to rest at another, between two times [s], with the least integral of squared jerk."""
    return QuinticSpline([start, end], [np.atleast_1d(first), np.atleast_1d(last)])


def quintic_coefficients(knots: Array, points: Array, rates: Array, accelerations: Array) -> Array:
    """(s, 6, n) of u^k, from values and derivatives (s + 1, n) at the knots."""
    h = np.diff(knots)[:, None]
    ends = (points, rates, accelerations)
    control = [h**k * end[:-1] for k, end in enumerate(ends)] + [h**k * end[1:] for k, end in enumerate(ends)]
    return np.einsum("jk,sjn->skn", QUINTIC, np.stack(control, axis=1))


def least_jerk(knots: Array, points: Array, rates: Array, accelerations: Array) -> tuple[Array, Array]:
    """Rates and accelerations (s + 1, n) with their NaN rows filled so that the integral of squared jerk is least."""
    open_rows = np.stack((np.zeros(knots.size, dtype=bool), np.isnan(rates[:, 0]), np.isnan(accelerations[:, 0])), 1)
    free = np.flatnonzero(open_rows.reshape(-1))
    if free.size == 0:
        return rates, accelerations
    if 3 * knots.size - free.size < 3:
        raise TensegrityError("natural ends need three waypoints, or two and a rate or acceleration; give one more.")
    unit = float(np.mean(np.diff(knots)))  # time in mean pieces keeps the numbers near one
    h = np.diff(knots) / unit
    known = np.stack((points, rates * unit, accelerations * unit**2), axis=1).reshape(3 * knots.size, -1)
    scale = np.stack([h**k for k in (0, 1, 2, 0, 1, 2)], axis=1)
    blocks = JERK[None] * scale[:, :, None] * scale[:, None, :] / h[:, None, None] ** 5
    place = 3 * np.arange(h.size)[:, None] + np.arange(6)[None]
    rows, columns = np.repeat(place, 6, axis=1).reshape(-1), np.tile(place, (1, 6)).reshape(-1)
    total = csc_array(coo_array((blocks.reshape(-1), (rows, columns)), shape=(3 * knots.size,) * 2))
    fixed = np.setdiff1d(np.arange(3 * knots.size), free)
    known[free] = np.asarray(spsolve(total[free][:, free], -(total[free][:, fixed] @ known[fixed]))).reshape(
        free.size, -1
    )
    filled = known.reshape(knots.size, 3, -1)
    return filled[:, 1] / unit, filled[:, 2] / unit**2


def _open_rows(rows: Points, knots: Array, what: str, shape: tuple[int, ...], natural_ends: bool) -> Array:
    """(s + 1, n) with NaN in rows that are left open."""
    result = np.full(shape, np.nan)
    if rows is None:
        given = np.zeros(shape[0], dtype=bool)
    elif isinstance(rows, Sequence) and any(row is None for row in rows):
        if len(rows) != shape[0]:
            raise TensegrityError(f"{what} have {len(rows)} rows; needed are {shape[0]}, one per time.")
        given = np.array([row is not None for row in rows])
        filled = [np.zeros(shape[1]) if row is None else np.atleast_1d(np.asarray(row, np.float64)) for row in rows]
        if any(row.shape != (shape[1],) for row in filled):
            raise TensegrityError(f"each row of {what} must have {shape[1]} components, or be None.")
        result[given] = checked_rows(np.array(filled), knots, what, shape)[given]
    else:
        return checked_rows(rows, knots, what, shape)  # type: ignore[arg-type]
    if not natural_ends:
        for end in (0, -1):
            result[end] = result[end] if given[end] else 0.0
    return result


@compiled
def turn(r, dr, ddr, base, quaternion, velocity, acceleration):  # type: ignore[no-untyped-def]
    """Quaternion, angular velocity and acceleration (world axes) of exp(r) applied to a base orientation."""
    square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    mixed = r[0] * dr[0] + r[1] * dr[1] + r[2] * dr[2]
    x = np.sqrt(square)
    if square < SMALL:
        # a, b and their derivatives by x divided by x, whose closed forms cancel
        s = square
        a = 1.0 / 2 - s * (1.0 / 24 - s * (1.0 / 720 - s * (1.0 / 40320 - s * (1.0 / 3628800 - s / 479001600))))
        b = 1.0 / 6 - s * (1.0 / 120 - s * (1.0 / 5040 - s * (1.0 / 362880 - s * (1.0 / 39916800 - s / 6227020800))))
        da = -1.0 / 12 + s * (1.0 / 180 - s * (1.0 / 6720 - s * (1.0 / 453600 - s / 47900160)))
        db = -1.0 / 60 + s * (1.0 / 1260 - s * (1.0 / 60480 - s * (1.0 / 4989600 - s / 622702080)))
        half = 0.5 - s * (1.0 / 48 - s * (1.0 / 3840 - s * (1.0 / 645120 - s / 185794560)))  # sin(x / 2) / x
    else:
        a = (1.0 - np.cos(x)) / square
        b = (x - np.sin(x)) / (square * x)
        da = (np.sin(x) / x - 2.0 * a) / square
        db = (a - 3.0 * b) / square
        half = np.sin(0.5 * x) / x
    c0, c1, c2 = r[1] * dr[2] - r[2] * dr[1], r[2] * dr[0] - r[0] * dr[2], r[0] * dr[1] - r[1] * dr[0]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        cross = c0 if i == 0 else (c1 if i == 1 else c2)
        double = r[i] * mixed - dr[i] * square  # r x (r x r')
        cross2 = r[j] * ddr[k] - r[k] * ddr[j]
        double2 = r[i] * (r[0] * ddr[0] + r[1] * ddr[1] + r[2] * ddr[2]) - ddr[i] * square
        twist = r[i] * (dr[0] * dr[0] + dr[1] * dr[1] + dr[2] * dr[2]) - dr[i] * mixed  # r' x (r x r')
        velocity[i] = dr[i] + a * cross + b * double
        acceleration[i] = ddr[i] + a * cross2 + b * (double2 + twist) + mixed * (da * cross + db * double)
    w, p0, p1, p2 = np.cos(0.5 * x), half * r[0], half * r[1], half * r[2]
    quaternion[0] = w * base[0] - p0 * base[1] - p1 * base[2] - p2 * base[3]
    quaternion[1] = w * base[1] + p0 * base[0] + p1 * base[3] - p2 * base[2]
    quaternion[2] = w * base[2] + p1 * base[0] + p2 * base[1] - p0 * base[3]
    quaternion[3] = w * base[3] + p2 * base[0] + p0 * base[2] - p1 * base[1]


@compiled
def sample_orientation(knots, coefficients, bases, t, vector, quaternion, velocity, acceleration):  # type: ignore
    """Quaternion (4,), angular velocity and acceleration (3,) at one time; `vector` (3, 3) is work space."""
    piece = sample_polynomial(knots, coefficients, t, vector[0], vector[1], vector[2])
    turn(vector[0], vector[1], vector[2], bases[piece], quaternion, velocity, acceleration)


@compiled
def evaluate_orientation(knots, coefficients, bases, times, quaternions, velocities, accelerations):  # type: ignore
    """The same at times (k,) into (k, 4) and (k, 3)."""
    vector = np.empty((3, 3))
    for i in range(times.shape[0]):
        into = quaternions[i], velocities[i], accelerations[i]
        sample_orientation(knots, coefficients, bases, times[i], vector, into[0], into[1], into[2])


class OrientationSpline:
    """Unit quaternions (w, x, y, z) through waypoints, C2, with angular velocity and acceleration about world axes.

    The value is the quaternion, derivative 1 the angular velocity [rad/s], derivative 2 its rate [rad/s^2]. Signs of
    the quaternions are those that make them continuous. Between two waypoints, from rest to rest, the axis is fixed and
    the angle has the least jerk.

    Args:
        times: (s + 1,) s, increasing.
        quaternions: (s + 1, 4), each normalised; neighbours less than half a turn apart.
        velocities: (s + 1, 3) rad/s at the waypoints, accelerations: (s + 1, 3) rad/s^2; where open (see
            `QuinticSpline`) those of the least jerk of the turns laid end to end.

    Raises:
        TensegrityError: wrong shapes, NaN, a zero quaternion, times that do not increase, neighbours half a turn apart.
    """

    size = 4

    def __init__(
        self, times: ArrayLike, quaternions: ArrayLike, velocities: Points = None, accelerations: Points = None
    ) -> None:
        knots = checked_times(times)
        given = checked_rows(quaternions, knots, "quaternions", (knots.size, 4))
        norms = np.linalg.norm(given, axis=1)
        if np.any(norms < 1e-9):
            raise TensegrityError(f"quaternion {int(np.argmin(norms))} is zero; give w, x, y, z of a rotation.")
        bases = given / norms[:, None]
        turns = np.zeros((knots.size - 1, 3))
        for i in range(1, knots.size):
            if bases[i] @ bases[i - 1] < 0.0:
                bases[i] = -bases[i]
            turns[i - 1] = _rotation_between(bases[i - 1], bases[i])
            if np.linalg.norm(turns[i - 1]) > NEARLY_HALF_TURN:
                raise TensegrityError(
                    f"orientations {i - 1} and {i} are half a turn apart; put a waypoint between them."
                )
        path = np.concatenate((np.zeros((1, 3)), np.cumsum(turns, axis=0)))
        speeds = _open_rows(velocities, knots, "angular velocities", path.shape, False)
        bends = _open_rows(accelerations, knots, "angular accelerations", path.shape, False)
        speeds, bends = least_jerk(knots, path, speeds, bends)
        pieces = []
        for i, vector in enumerate(turns):
            rate, bend = _vector_rates(vector, speeds[i + 1], bends[i + 1])
            ends = np.stack((np.zeros(3), vector)), np.stack((speeds[i], rate)), np.stack((bends[i], bend))
            pieces.append(quintic_coefficients(knots[i : i + 2], *ends)[0])
        self._vector = PiecewisePolynomial(knots, pieces)
        self._bases = np.ascontiguousarray(bases)
        self._work = np.zeros((3, 3))

    @property
    def start(self) -> float:
        """Time [s] of the first waypoint."""
        return self._vector.start

    @property
    def end(self) -> float:
        """Time [s] of the last waypoint."""
        return self._vector.end

    @property
    def knots(self) -> Array:
        """(s + 1,) s."""
        return self._vector.knots

    def value(self, t: ArrayLike, derivative: int = 0) -> Array:
        """Quaternions (k, 4), angular velocities or accelerations (k, 3) for derivative 0, 1, 2; one row for one time.

        Raises:
            TensegrityError: a time is NaN, or the derivative is above two.
        """
        times = checked_query(t, derivative)
        if derivative > 2:
            raise TensegrityError(f"orientations have derivatives 0, 1 and 2; {derivative} was asked for.")
        all_three = np.empty((times.size, 4)), np.empty((times.size, 3)), np.empty((times.size, 3))
        vector = self._vector
        evaluate_orientation(vector.knots, vector.coefficients, self._bases, times.reshape(-1), *all_three)
        rows = all_three[int(derivative)]
        return rows if times.ndim else rows[0]

    def new_sample(self) -> Sample:
        """Arrays (4,), (3,), (3,) to be written by `sample`."""
        return Sample(np.zeros(4), np.zeros(3), np.zeros(3))

    def sample(self, t: float, out: Sample | None = None) -> Sample:
        """Quaternion, angular velocity and acceleration at one time [s]; written into `out` where given."""
        if t != t:
            raise TensegrityError("the time is NaN; give a number of seconds.")
        into = self.new_sample() if out is None else out
        vector = self._vector
        sample_orientation(vector.knots, vector.coefficients, self._bases, float(t), self._work, *into)
        return into

    def largest(self, derivative: int, norm: bool = False) -> Array:
        """(3,) largest component or (1,) norm of angular velocity (1) or acceleration (2): sampled, then refined."""
        if derivative not in (1, 2):
            raise TensegrityError(f"the largest angular velocity is 1, acceleration 2; {derivative} was asked for.")
        times = np.concatenate([np.linspace(a, b, DENSE) for a, b in zip(self.knots[:-1], self.knots[1:], strict=True)])

        def sizes(t: ArrayLike) -> Array:
            rows = np.atleast_2d(self.value(t, derivative))
            return np.linalg.norm(rows, axis=1)[:, None] if norm else np.abs(rows)

        sampled = sizes(times)
        best = np.max(sampled, axis=0)
        before, after = np.maximum(np.arange(times.size) - 1, 0), np.minimum(np.arange(times.size) + 1, times.size - 1)
        peaks = (sampled >= sampled[before]) & (sampled >= sampled[after]) & (sampled > 0.8 * best)
        for row, i in np.argwhere(peaks):
            low, high = times[before[row]], times[after[row]]
            for _ in range(4):  # a peak between neighbours, narrowed down sixteenfold each time
                grid = np.linspace(low, high, DENSE)
                close = sizes(grid)[:, i]
                at = int(np.argmax(close))
                best[i] = max(best[i], close[at])
                low, high = grid[max(at - 1, 0)], grid[min(at + 1, DENSE - 1)]
        return best

    def stretched(self, factor: float) -> OrientationSpline:
        """The same way from the same start, `factor` times as slow."""
        checked_factor(factor)
        return self._with(self._vector.stretched(factor))

    def shifted(self, delay: float) -> OrientationSpline:
        """The same motion `delay` s later."""
        return self._with(self._vector.shifted(delay))

    def _with(self, vector: PiecewisePolynomial) -> OrientationSpline:
        made = object.__new__(OrientationSpline)
        made._vector, made._bases, made._work = vector, self._bases, np.zeros((3, 3))
        return made


def _rotation_between(first: Array, second: Array) -> Array:
    """(3,) rotation vector in world axes that takes one unit quaternion to another within half a turn of it."""
    w = first @ second
    x = first[0] * second[1:] - second[0] * first[1:] + np.cross(first[1:], second[1:])
    sine = np.linalg.norm(x)
    return 2.0 * x if sine < 1e-15 else 2.0 * np.arctan2(sine, w) / sine * x


def _vector_rates(vector: Array, velocity: Array, acceleration: Array) -> tuple[Array, Array]:
    """Rate and acceleration of the rotation vector that give an angular velocity and acceleration."""

    def forward(rate: Array, bend: Array) -> tuple[Array, Array]:
        result = np.zeros(3), np.zeros(3)
        turn(vector, rate, bend, np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(4), *result)
        return result

    jacobian = np.stack([forward(axis, np.zeros(3))[0] for axis in np.eye(3)], axis=1)
    rate: Array = np.asarray(np.linalg.solve(jacobian, velocity), dtype=np.float64)
    bend: Array = np.asarray(np.linalg.solve(jacobian, acceleration - forward(rate, np.zeros(3))[1]), dtype=np.float64)
    return rate, bend
