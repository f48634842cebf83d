"""Conversion of actuator motions to waypoints of a trajectory message without loss: interpolation between the waypoints
reproduces the motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array

from .quintic import minimum_jerk
from .splines import HermiteSpline, PiecewisePolynomial
from .trajectory_file import NamedTrajectory


@dataclass(frozen=True, eq=False)
class ActuatorTable:
    """Waypoints of actuators.

    Attributes:
        names: (k,) actuator names.
        times: (w,) time from the start [s].
        positions: (w, k) [m or rad].
        velocities, accelerations: (w, k) first and second time derivatives of the positions, or None.
    """

    names: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array | None = None
    accelerations: Array | None = None

    def moved(self, offset: Array) -> ActuatorTable:
        """Copy of the motion with an offset (k,) added to all positions [m or rad]."""
        return ActuatorTable(self.names, self.times, self.positions + offset, self.velocities, self.accelerations)


def table_of(motion: NamedTrajectory) -> ActuatorTable:
    """Waypoints of a motion from a file. Raises TensegrityError for an orientation or a pose."""
    spline = motion.trajectory
    if not isinstance(spline, PiecewisePolynomial):
        raise TensegrityError("a motion of actuators has a kind of plain coordinates: cubic Hermite or quintic.")
    knots = np.array(motion.knots)
    rows = [spline.value(knots, derivative) for derivative in (0, 1, 2)]
    bends = None if isinstance(spline, HermiteSpline) or spline.polynomial.c.shape[0] == 4 else rows[2]
    return ActuatorTable(motion.names, knots - knots[0], rows[0], rows[1], bends)


def table_between(names: tuple[str, ...], first: Array, last: Array, rates: Array) -> ActuatorTable:
    """Minimum-jerk motion on a straight line between two positions (k,) [m or rad].

    The largest rate is half of the rate limits (k,) [m/s or rad/s], and the duration at least 0.1 s.
    """
    peak = 1.875
    duration = max(2.0 * peak * float(np.max(np.abs(last - first) / rates)), 0.1)
    spline = minimum_jerk(0.0, duration, first, last)
    ends = np.array([0.0, duration])
    return ActuatorTable(names, ends, *(spline.value(ends, derivative) for derivative in (0, 1, 2)))
