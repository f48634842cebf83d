"""A motion of actuators as the waypoints of a trajectory message, without loss: what lies between them is the same."""

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
        names: (k,) of actuators. times: (w,) s from the start. positions: (w, k) m or rad. velocities, accelerations:
            the same, or None.
    """

    names: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array | None = None
    accelerations: Array | None = None

    def moved(self, offset: Array) -> ActuatorTable:
        """The same motion with every actuator (k,) m or rad further."""
        return ActuatorTable(self.names, self.times, self.positions + offset, self.velocities, self.accelerations)


def table_of(motion: NamedTrajectory) -> ActuatorTable:
    """The waypoints of a motion from a file. Raises TensegrityError: it is none of plain coordinates."""
    spline = motion.trajectory
    if not isinstance(spline, PiecewisePolynomial):
        raise TensegrityError("a motion of actuators has a kind of plain coordinates: cubic Hermite or quintic.")
    knots = np.array(motion.knots)
    rows = [spline.value(knots, derivative) for derivative in (0, 1, 2)]
    bends = None if isinstance(spline, HermiteSpline) or spline.polynomial.c.shape[0] == 4 else rows[2]
    return ActuatorTable(motion.names, knots - knots[0], rows[0], rows[1], bends)


def table_between(names: tuple[str, ...], first: Array, last: Array, rates: Array) -> ActuatorTable:
    """Straight from (k,) positions to others with least jerk, at half of the rate limits (k,) per second."""
    peak = 1.875
    duration = max(2.0 * peak * float(np.max(np.abs(last - first) / rates)), 0.1)
    spline = minimum_jerk(0.0, duration, first, last)
    ends = np.array([0.0, duration])
    return ActuatorTable(names, ends, *(spline.value(ends, derivative) for derivative in (0, 1, 2)))
