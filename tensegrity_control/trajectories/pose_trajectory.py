"""Motions of the output frame: position and orientation over time, and their conversion to waypoints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array

from .orientation import OrientationSpline
from .splines import Trajectory

POSITION = ("x", "y", "z")
QUATERNION = ("w", "x", "y", "z")
POSE = (*POSITION, "qw", "qx", "qy", "qz")
MAX_WAYPOINTS = 400
"""Largest number of waypoints of a converted motion; controllers accept at most 500 at once."""
POSITION_TOLERANCE, ORIENTATION_TOLERANCE = 1e-4, 1e-3
"""Largest deviation of a smooth curve through the waypoints from the motion: position [m], quaternion components
[-]."""


class PoseTrajectory:
    """Combined position and orientation: values (k, 7), position x, y, z [m] and quaternion w, x, y, z.

    Args:
        position: trajectory with three values. orientation: trajectory over the same time range.

    Raises:
        TensegrityError: start or end times differ.
    """

    def __init__(self, position: Trajectory, orientation: OrientationSpline) -> None:
        if (position.start, position.end) != (orientation.start, orientation.end):
            raise TensegrityError("position and orientation begin and end at different times; give them the same.")
        self.position, self.orientation = position, orientation

    @property
    def start(self) -> float:
        """Time [s] of the first waypoint."""
        return self.position.start

    @property
    def end(self) -> float:
        """Time [s] of the last waypoint."""
        return self.position.end

    def value(self, t: ArrayLike, derivative: int = 0) -> Array:
        """Values (k, 7), or (7,) for a scalar time; derivatives (k, 6) or (6,).

        A derivative consists of that of the position, and the angular velocity or acceleration.
        """
        both = self.position.value(t, derivative), self.orientation.value(t, derivative)
        return np.concatenate(both, axis=-1)

    def largest(self, derivative: int) -> Array:
        """(4,) largest absolute derivatives of x, y, z, and largest norm of the angular velocity or acceleration."""
        return np.concatenate((self.position.largest(derivative), np.atleast_1d(self.orientation.largest(derivative))))

    def stretched(self, factor: float) -> PoseTrajectory:
        """Same path from the same start time, slowed down by `factor`."""
        return PoseTrajectory(self.position.stretched(factor), self.orientation.stretched(factor))


def moved_columns(names: Sequence[str]) -> int:
    """Number of the first columns that are a position; the others are a quaternion, if there are any."""
    return 0 if tuple(names) == QUATERNION else len(POSITION)


Waypoint = tuple[float, Array, "Array | None"]
"""Time from the start of the motion [s], position (3,) m, quaternion w, x, y, z or None to leave it open."""


def pose_waypoints(names: Sequence[str], motion: Trajectory, knots: Sequence[float]) -> list[Waypoint]:
    """Waypoints of a motion from its start on, so close that a smooth curve through them reproduces the motion.

    Args:
        names: of the values: x, y, z, or x, y, z, qw, qx, qy, qz, or w, x, y, z of an orientation, whose positions are
            zero.
        knots: times [s] of the motion between which it is smooth, in order.

    Raises:
        TensegrityError: other names, or a motion that needs more than `MAX_WAYPOINTS`.
    """
    if tuple(names) not in (POSITION, POSE, QUATERNION):
        raise TensegrityError(
            f"a motion of the output has the columns {', '.join(POSITION)}, or {', '.join(POSE)}, or with kind: "
            f"orientation {', '.join(QUATERNION)}; found {', '.join(names)}."
        )
    moved = moved_columns(names)
    parts = 1
    while True:
        times = np.unique(np.concatenate([np.linspace(a, b, parts + 1) for a, b in pairwise(knots)]))
        if times.size > MAX_WAYPOINTS:
            raise TensegrityError(
                f"it takes more than {MAX_WAYPOINTS} waypoints to follow this motion within "
                f"{1e3 * POSITION_TOLERANCE:g} mm; cut the file into shorter ones."
            )
        values = motion.value(times)
        if times.size > 2 and _deviation(motion, times, values, moved):
            break
        parts *= 2
    positions = values[:, :3] if moved else np.zeros((times.size, 3))
    turns = values[:, moved:] if values.shape[1] > moved else [None] * times.size
    return [(float(t - times[0]), *pose) for t, *pose in zip(times, positions, turns, strict=True)]


def _deviation(motion: Trajectory, times: Array, values: Array, moved: int) -> bool:
    """Whether the curve with continuous acceleration through the waypoints stays within the tolerances; the first
    `moved` columns are positions."""
    # three points per piece: a cubic may coincide with the motion in the middle, but not at all three
    between = (times[:-1, None] + np.diff(times)[:, None] * [0.25, 0.5, 0.75]).ravel()
    ends = ((1, np.zeros(values.shape[1])),) * 2  # the robot starts and ends at rest
    off = np.abs(CubicSpline(times, values, bc_type=ends)(between) - motion.value(between))
    inner = slice(3, -3) if between.size > 6 else slice(None)  # first and last piece: start from and stop at rest
    if np.any(off[inner, :moved] > POSITION_TOLERANCE):
        return False
    return not np.any(off[inner, moved:] > ORIENTATION_TOLERANCE)
