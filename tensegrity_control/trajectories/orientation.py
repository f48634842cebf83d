"""Orientation trajectories: C2 splines of unit quaternions through waypoints.

On each piece the frame rotates from its first waypoint by a rotation vector r(t) in world axes, a quintic polynomial:

    R = exp(r) R_i    w = J r'    dw/dt = J r'' + J' r'

`scipy.spatial.transform.RotationSpline` implements these maps for rotation vectors in body axes. Applied to the inverse
rotations R' = R_i' exp(-r), it returns the values in world axes with the opposite sign, so its evaluation is reused
here. Its own cubic interpolation, which does not start at rest, is replaced by the quintic polynomial.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PPoly
from scipy.spatial.transform import Rotation, RotationSpline

from tensegrity_dynamics.errors import TensegrityError

from .quintic import Points, least_jerk, open_rows, quintic_polynomial
from .splines import Array, checked_factor, checked_query, checked_rows, checked_times

LARGEST_TURN = np.pi - 1e-3
"""Largest rotation between two neighbouring waypoints [rad]; the axis of half a turn is not unique."""
SAMPLES_PER_PIECE = 33
"""Number of samples per piece in the search for the largest derivative, before refinement."""


class OrientationSpline:
    """C2 spline of unit quaternions (w, x, y, z) through waypoints; angular velocity and acceleration in world axes.

    The value is the quaternion, derivative 1 the angular velocity [rad/s], derivative 2 the angular acceleration
    [rad/s^2]. The signs of the quaternions make them continuous. Between two waypoints, from rest to rest, the axis is
    constant and the angle is a minimum-jerk motion.

    Args:
        times: (s + 1,) s, increasing.
        quaternions: (s + 1, 4), each normalised; neighbours less than half a turn apart.
        velocities: (s + 1, 3) angular velocities at the waypoints [rad/s].
        accelerations: (s + 1, 3) angular accelerations [rad/s^2]. Open rows of both (see `QuinticSpline`) minimise the
            jerk of the cumulative sum of the rotation vectors between waypoints.

    Raises:
        TensegrityError: wrong shapes, NaN, a zero quaternion, times that do not increase, neighbours half a turn apart.
    """

    size = 4

    def __init__(
        self, times: ArrayLike, quaternions: ArrayLike, velocities: Points = None, accelerations: Points = None
    ) -> None:
        knots = checked_times(times)
        rows = checked_rows(quaternions, knots, "quaternions", (knots.size, 4))
        norms = np.linalg.norm(rows, axis=1)
        if np.any(norms < 1e-9):
            raise TensegrityError(f"quaternion {int(np.argmin(norms))} is zero; give w, x, y, z of a rotation.")
        bases = rows / norms[:, None]
        for i in range(1, knots.size):
            bases[i] *= np.copysign(1.0, bases[i] @ bases[i - 1])
        rotations = _rotations(bases)
        turns = (rotations[1:] * rotations[:-1].inv()).as_rotvec()
        wide = np.flatnonzero(np.linalg.norm(turns, axis=1) > LARGEST_TURN)
        if wide.size:
            raise TensegrityError(
                f"orientations {wide[0]} and {wide[0] + 1} are half a turn apart; put a waypoint between them."
            )
        path = np.concatenate((np.zeros((1, 3)), np.cumsum(turns, axis=0)))
        speeds = open_rows(velocities, knots, "angular velocities", path.shape)
        bends = open_rows(accelerations, knots, "angular accelerations", path.shape)
        speeds, bends = least_jerk(knots, path, speeds, bends)
        pieces = []
        for i, vector in enumerate(turns):
            rate, bend = _vector_rates(vector, speeds[i + 1], bends[i + 1])
            ends = np.stack((np.zeros(3), vector)), np.stack((speeds[i], rate)), np.stack((bends[i], bend))
            pieces.append(quintic_polynomial(knots[i : i + 2], *ends).c)
        self._set(PPoly(np.concatenate(pieces, axis=1), knots), bases)

    def _set(self, vectors: PPoly, bases: Array) -> None:
        self._vectors, self._bases = vectors, bases
        self._inverse = _spline(PPoly(-vectors.c, vectors.x), _rotations(bases[:-1]).inv())
        self.start, self.end = float(vectors.x[0]), float(vectors.x[-1])

    @property
    def knots(self) -> Array:
        """(s + 1,) times of the waypoints [s]."""
        return np.asarray(self._vectors.x)

    def value(self, t: ArrayLike, derivative: int = 0) -> Array:
        """Quaternions (k, 4), angular velocities or accelerations (k, 3) for derivative 0, 1, 2; one row for a scalar
        time.

        Raises:
            TensegrityError: a time is NaN, or the derivative is above two.
        """
        times = checked_query(t, derivative)
        if derivative > 2:
            raise TensegrityError(f"orientations have derivatives 0, 1 and 2; {derivative} was requested.")
        inside = np.atleast_1d(np.clip(times, self.start, self.end))
        if derivative == 0:
            rows = np.roll(self._inverse(inside).inv().as_quat(), 1, axis=1)
            piece = np.clip(np.searchsorted(self.knots, inside, side="right") - 1, 0, self.knots.size - 2)
            rows *= np.copysign(1.0, np.sum(rows * self._bases[piece], axis=1))[:, None]
        else:
            rows = -np.asarray(self._inverse(inside, int(derivative)))
            rows[np.atleast_1d((times < self.start) | (times > self.end))] = 0.0
        return rows if times.ndim else rows[0]

    def largest(self, derivative: int) -> Array:
        """(1,) largest norm of angular velocity [rad/s] (1) or acceleration [rad/s^2] (2): sampled, then refined."""
        if derivative not in (1, 2):
            raise TensegrityError(f"the largest angular velocity is 1, acceleration 2; {derivative} was requested.")
        parts = np.linspace(0.0, 1.0, SAMPLES_PER_PIECE)
        times = (self.knots[:-1, None] + np.diff(self.knots)[:, None] * parts).ravel()
        sizes = np.linalg.norm(self.value(times, derivative), axis=1)
        best = float(np.max(sizes))
        before = np.concatenate((sizes[:1], sizes[:-1]))
        after = np.concatenate((sizes[1:], sizes[-1:]))
        for i in np.flatnonzero((sizes >= before) & (sizes >= after) & (sizes > 0.8 * best)):
            low, high = times[max(i - 2, 0)], times[min(i + 2, times.size - 1)]  # knots occur twice
            for _ in range(4):  # each pass narrows the interval of a peak to 1/16
                grid = low + (high - low) * parts
                close = np.linalg.norm(self.value(grid, derivative), axis=1)
                peak = int(np.argmax(close))
                best = max(best, float(close[peak]))
                low, high = grid[max(peak - 1, 0)], grid[min(peak + 1, SAMPLES_PER_PIECE - 1)]
        return np.array([best])

    def stretched(self, factor: float) -> OrientationSpline:
        """Same path from the same start time, slowed down by `factor`."""
        checked_factor(factor)
        powers = np.arange(self._vectors.c.shape[0])[::-1, None, None]
        knots = self.start + factor * (self.knots - self.start)
        slower = object.__new__(OrientationSpline)
        slower._set(PPoly(self._vectors.c / factor**powers, knots), self._bases)
        return slower


def _rotations(quaternions: Array) -> Rotation:
    """Rotations from rows of quaternions w, x, y, z."""
    return Rotation.from_quat(np.roll(quaternions, -1, axis=1))


def _spline(vectors: PPoly, rotations: Rotation) -> RotationSpline:
    """SciPy spline that evaluates rotations[i] exp(vectors) for the given rotation vectors."""
    spline = object.__new__(RotationSpline)
    spline.times, spline.rotations, spline.interpolator = vectors.x, rotations, vectors
    return spline


def _vector_rates(vector: Array, velocity: Array, acceleration: Array) -> tuple[Array, Array]:
    """Rate and acceleration of a rotation vector (3,) from angular velocity and acceleration, all in world axes."""

    def forward(rate: Array, bend: Array) -> tuple[Array, Array]:
        polynomial = PPoly(-np.stack((0.5 * bend, rate, vector))[:, None], [0.0, 1.0])
        spline = _spline(polynomial, Rotation.identity(1))
        return -np.asarray(spline(0.0, 1)), -np.asarray(spline(0.0, 2))

    jacobian = np.stack([forward(axis, np.zeros(3))[0] for axis in np.eye(3)], axis=1)
    rate: Array = np.asarray(np.linalg.solve(jacobian, velocity), dtype=np.float64)
    bend: Array = np.asarray(np.linalg.solve(jacobian, acceleration - forward(rate, np.zeros(3))[1]), dtype=np.float64)
    return rate, bend
