"""Type 2 singularities on a path: detected, refused, or crossed as in 002, chapter 4.

At a Type 2 singularity the output can move along a free motion v0 while all active joints are at rest. Active joints do
no work on it, so the criterion

    v0' (M a + c - p) = 0

must hold without them; for a moving point mass it is (002, 4.2). All accelerations a follow from that of the output,
p'', since only the map from the active joints is singular. So the criterion is one linear condition on p''. A path that
crosses without satisfying it needs unbounded efforts near the singularity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BPoly, PPoly

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.mechanisms.dynamics.inverse_dynamics import inverse_dynamics
from tensegrity_dynamics.mechanisms.kinematics.parallel_kinematics import LoopKinematics
from tensegrity_dynamics.numerics.types import Array

from ..cancellation import checkpoint
from ..trajectories.splines import PiecewisePolynomial, Trajectory

SAMPLES = 201
"""Number of times along a path at which singularities are searched."""
TOLERANCE = 1e-6
"""Tolerance of the criterion relative to its largest term."""


class SingularPathError(TensegrityError):
    """A path crosses a Type 2 singularity without satisfying the criterion.

    Attributes:
        time: s.
        position: (n,) of the output.
        force: N, force along the free motion that would be necessary and that no active joint can apply.
    """

    def __init__(self, message: str, time: float, position: Array, force: float) -> None:
        super().__init__(message)
        self.time, self.position, self.force = time, position, force


@dataclass(frozen=True, eq=False)
class Crossing:
    """A point at which a path crosses a Type 2 singularity.

    Attributes:
        time: s.
        position: (n,) of the output.
        force: v0' (M a + c - p), in N for v0 scaled to a unit motion of the output.
        scale: its largest term.
    """

    time: float
    position: Array
    force: float
    scale: float

    @property
    def is_satisfied(self) -> bool:
        """Whether the criterion holds."""
        return abs(self.force) <= TOLERANCE * max(self.scale, 1.0)


def distances(kinematics: LoopKinematics, path: Trajectory, start: Array) -> tuple[Array, Array]:
    """Times (k,) s along a path, and det dq_active/dp at them, whose zeros are Type 2 singularities.

    Raises:
        UnreachableGoalError: the path leaves the workspace of the working mode of `start`.
    """
    times, q = np.linspace(path.start, path.end, SAMPLES), np.array(start, dtype=np.float64)
    signs = []
    for time in times:
        checkpoint()
        q = kinematics.inverse(path.value(float(time)), q)
        signs.append(kinematics.free_motion(q)[1])
    return times, np.array(signs)


def crossings(kinematics: LoopKinematics, path: Trajectory, start: Array) -> tuple[Crossing, ...]:
    """Crossings of Type 2 singularities along a path, with their criteria. Raises as `distances`."""
    times, signs = distances(kinematics, path, start)
    met = []
    for k in range(SAMPLES - 1):
        if signs[k] == 0.0 or signs[k] * signs[k + 1] < 0.0:
            low, high = times[k], times[k + 1]
            q = kinematics.inverse(path.value(float(low)), start)
            sign = np.sign(signs[k])
            for _ in range(60):  # to the last bit: the criterion is meaningful only on the singularity
                middle = 0.5 * (low + high)
                q = kinematics.inverse(path.value(float(middle)), q)
                if kinematics.free_motion(q)[1] * sign > 0.0:
                    low = middle
                else:
                    high = middle
            time = float(0.5 * (low + high))
            q = kinematics.inverse(path.value(time), q)
            force, scale = criterion(kinematics, q, path.value(time, 1), path.value(time, 2))
            met.append(Crossing(time, kinematics.output_values(q), force, scale))
    return tuple(met)


def criterion(kinematics: LoopKinematics, q: Array, rate: Array, acceleration: Array) -> tuple[float, float]:
    """v0' (M a + c - p) at a configuration (nq,) for velocity and acceleration (n,) of the output, and its largest
    term."""
    free, _ = kinematics.free_motion(q)
    size = float(np.linalg.norm(kinematics.first_order(q).output @ free))
    v, a = kinematics.from_output(q, rate, acceleration)
    parts = equations(kinematics.mechanism, q, v)
    terms = np.concatenate((free * (parts.mass @ a), free * (parts.bias - parts.passive))) / size
    return float(np.sum(terms)), float(np.max(np.abs(terms), initial=0.0))


def check_path(kinematics: LoopKinematics, path: Trajectory, start: Array) -> tuple[Crossing, ...]:
    """Crossings of a path, if all of them satisfy the criterion.

    Raises:
        SingularPathError: the path crosses a Type 2 singularity without satisfying the criterion; contains time,
            position and missing force.
        UnreachableGoalError: as `distances`.
    """
    met = crossings(kinematics, path, start)
    for crossing in met:
        if not crossing.is_satisfied:
            location = ", ".join(f"{value:.4g}" for value in crossing.position)
            raise SingularPathError(
                f"the path crosses a Type 2 singularity at {crossing.time:.4g} s, at ({location}), and would need "
                f"{crossing.force:.3g} N along a motion that no active joint holds; choose its acceleration there by "
                "`crossing_trajectory`, or choose a path around the singularity.",
                crossing.time, crossing.position, crossing.force,
            )  # fmt: skip
    return met


def crossing_trajectory(
    kinematics: LoopKinematics,
    positions: ArrayLike,
    times: ArrayLike,
    start: Array,
    rate: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
) -> PiecewisePolynomial:
    """Path from rest through a Type 2 singularity to rest that satisfies the criterion at the crossing.

    The path is C3. Near the singularity efforts are the quotient of two numbers that both approach zero, so that at the
    crossing they depend on the jerk, and would jump with it.

    Args:
        positions: (3, n) of the output: start, a point on the singularity, end.
        times: (3,) s.
        start: (nq,), defines the working mode.
        rate: (n,) velocity at the crossing; None for that of the straight line from start to end.
        acceleration: (n,) desired at the crossing; the nearest one that satisfies the criterion is used. None: the one
            that would reach `rate` from rest in the shorter of the two parts, so that the path crosses in motion and
            with forces.

    Raises:
        TensegrityError: the middle position is not on a singularity, the criterion does not depend on the acceleration,
            or shapes or numbers are invalid.
    """
    points, instants = np.array(positions, dtype=np.float64), np.array(times, dtype=np.float64)
    count = len(kinematics.active)
    if points.shape != (3, count) or instants.shape != (3,) or not np.all(np.diff(instants) > 0.0):
        raise TensegrityError(f"positions must be (3, {count}) and times (3,), increasing.")
    speed = (points[2] - points[0]) / (instants[2] - instants[0]) if rate is None else np.asarray(rate, dtype=float)
    shorter = float(np.min(np.diff(instants)))
    requested = speed / shorter if acceleration is None else np.asarray(acceleration, dtype=float)
    for name, value in (("rate", speed), ("acceleration", requested)):
        if value.shape != (count,) or not np.all(np.isfinite(value)):
            raise TensegrityError(f"{name} must be {count} finite numbers.")
    first = kinematics.inverse(points[0], start)
    q = kinematics.inverse(points[1], first)
    reach = kinematics.free_motion(kinematics.inverse(0.5 * (points[0] + points[1]), first))[1]
    if abs(kinematics.free_motion(q)[1]) > 1e-6 * max(1.0, abs(reach)):
        raise TensegrityError(
            f"the position {points[1].tolist()} is on no Type 2 singularity; give the one where the path crosses it."
        )
    base, scale = criterion(kinematics, q, speed, np.zeros(count))
    slope = np.array([criterion(kinematics, q, speed, unit)[0] - base for unit in np.eye(count)])
    if np.linalg.norm(slope) <= 1e-12 * max(1.0, scale):
        raise TensegrityError("no acceleration of the output changes the force along the free motion; it has no mass.")
    nearest = requested - (base + slope @ requested) * slope / (slope @ slope)
    return smooth_crossing(instants, points, speed, nearest)


def smooth_crossing(times: Array, points: Array, rate: ArrayLike, acceleration: ArrayLike) -> PiecewisePolynomial:
    """C3 path from rest through a point with given velocity and acceleration to rest, with the least integral of
    squared jerk.

    It consists of two polynomials of degree seven with zero velocity, acceleration and jerk at the outer ends.

    Args:
        times: (3,) s, increasing.
        points: (3, n).
        rate, acceleration: (n,) at the middle point.
    """
    still = np.zeros_like(np.asarray(rate, dtype=np.float64))

    def pieces(jerk: Array) -> PPoly:
        middle = [points[1], rate, acceleration, jerk]
        ends = [[points[0], still, still, still], middle, [points[2], still, still, still]]
        return PPoly.from_bernstein_basis(BPoly.from_derivatives(times, np.array(ends)))

    # the path is linear in the jerk at its middle: least squares over both pieces, exact by Gauss-Legendre
    nodes, weights = np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(times)[:, None]
    instants, weight = (times[:-1, None] + half * (1.0 + nodes)).reshape(-1), (half * weights).reshape(-1)
    base = pieces(still)(instants, 3)
    slope = pieces(still + 1.0)(instants, 3) - base
    return PiecewisePolynomial(pieces(-(weight @ (base * slope)) / (weight @ slope**2)))


def efforts_along(kinematics: LoopKinematics, path: Trajectory, start: Array, times: ArrayLike) -> Array:
    """(k, n) efforts of the active joints at times (k,) s along a path [N or N m]."""
    q, efforts = np.array(start, dtype=np.float64), []
    rows = [kinematics.mechanism.velocities_of(name).start for name in kinematics.active]
    for time in np.atleast_1d(np.asarray(times, dtype=np.float64)):
        q = kinematics.inverse(path.value(float(time)), q)
        v, a = kinematics.from_output(q, path.value(float(time), 1), path.value(float(time), 2))
        efforts.append(inverse_dynamics(kinematics.mechanism, q, v, a, kinematics.active).effort[rows])
    return np.array(efforts)
