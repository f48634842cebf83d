"""Time laws: how far along a path, s from 0 to 1, a motion is at a time, and how fast.

    minimum jerk  s = 10 u^3 - 15 u^4 + 6 u^5     largest rate 15/8 per duration, acceleration zero at both ends
    cubic         s = 3 u^2 - 2 u^3               largest rate 3/2 per duration, acceleration jumps at both ends
    brake         ds/dt = v (1 - 3 u^2 + 2 u^3)   from the rate v to rest over half of v times the duration
    waypoints     monotone cubic through given times, at rest at both ends

with u = t / duration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator

from tensegrity_dynamics.errors import TensegrityError, unknown_name


class TimeLaw(ABC):
    """A motion along a path: starts at time 0, ends after `duration` [s]."""

    duration: float

    @abstractmethod
    def at(self, time: float) -> tuple[float, float]:
        """Place s in [0, 1] and rate ds/dt [1/s] at a time [s], which is clipped to the motion."""


@dataclass(frozen=True)
class MinimumJerk(TimeLaw):
    """From rest at 0 to rest at 1 with the least integral of squared jerk."""

    duration: float
    peak = 1.875

    def at(self, time: float) -> tuple[float, float]:
        if time >= self.duration:
            return 1.0, 0.0
        u = max(time, 0.0) / self.duration
        rest = 1.0 - u
        return u * u * u * (10.0 + u * (6.0 * u - 15.0)), 30.0 * u * u * rest * rest / self.duration


@dataclass(frozen=True)
class Cubic(TimeLaw):
    """From rest at 0 to rest at 1 with the least integral of squared acceleration."""

    duration: float
    peak = 1.5

    def at(self, time: float) -> tuple[float, float]:
        if time >= self.duration:
            return 1.0, 0.0
        u = max(time, 0.0) / self.duration
        return u * u * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u) / self.duration


@dataclass(frozen=True)
class Brake(TimeLaw):
    """From place and rate at time 0 to rest, with the rate continuous.

    Args:
        duration: s.
        place: s at the start.
        rate: ds/dt at the start [1/s]. The end lies half of rate times duration further on.
    """

    duration: float
    place: float
    rate: float

    def at(self, time: float) -> tuple[float, float]:
        u = min(max(time / self.duration, 0.0), 1.0) if self.duration > 0.0 else 1.0
        way = u - u**3 + 0.5 * u**4
        return self.place + self.rate * self.duration * way, self.rate * (1.0 - u * u * (3.0 - 2.0 * u))


class Waypoints(TimeLaw):
    """Through places at given times, at rest at the first and at the last.

    Args:
        times: (w,) s, increasing, the first is 0.
        places: (w,) s at these times, from 0 to 1, not decreasing.
    """

    def __init__(self, times: ArrayLike, places: ArrayLike) -> None:
        knots, values = np.asarray(times, dtype=np.float64), np.asarray(places, dtype=np.float64)
        if knots.ndim != 1 or knots.size < 2 or not np.all(np.isfinite(knots)) or np.any(np.diff(knots) <= 0.0):
            raise TensegrityError(f"waypoint times {knots.tolist()} must be finite and increase from one to the next.")
        self.duration = float(knots[-1])
        # A still point before and after makes the one-sided slopes at the ends zero.
        knots = np.concatenate(([-1.0], knots, [knots[-1] + 1.0]))
        values = np.concatenate(([0.0], values, [values[-1]]))
        self._place = PchipInterpolator(knots, values)
        self._rate = self._place.derivative()

    def at(self, time: float) -> tuple[float, float]:
        if time >= self.duration:
            return 1.0, 0.0
        time = max(time, 0.0)
        return min(max(float(self._place(time)), 0.0), 1.0), float(self._rate(time))


PROFILES: dict[str, type[MinimumJerk] | type[Cubic]] = {"minimum_jerk": MinimumJerk, "cubic": Cubic}


def profile_named(name: str) -> type[MinimumJerk] | type[Cubic]:
    """The time law called `name`. Raises TensegrityError with the known names."""
    try:
        return PROFILES[name]
    except KeyError:
        raise TensegrityError(unknown_name("profile", name, PROFILES)) from None
