"""Time laws, which give path parameter and rate of a motion over time, and the clock with which every motion is braked.

    minimum jerk  s = 10 u^3 - 15 u^4 + 6 u^5     largest rate 15/8 per duration, acceleration zero at both ends
    cubic         s = 3 u^2 - 2 u^3               largest rate 3/2 per duration, acceleration jumps at both ends
    waypoints     monotone cubic through times, at rest at both ends

with u = t / duration. A plan has its own time tau, which runs with the clock and slows down to rest when the motion is
braked. During a brake over T from t0, with x = (t - t0) / T,

    tau' = 1 - (10 x^3 - 15 x^4 + 6 x^5),   tau = tau0 + T (x - (5/2 x^4 - 3 x^5 + x^6))

so that position, pace and rate of the pace are continuous, and the brake takes T / 2 of the time of the plan.

A motion that waits for its robot (`PathClock.wait`) runs at a pace that its controller sets repeatedly; its rate is
then that of the actual motion.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError, unknown_name


class TooFastError(InfeasibleControlError):
    """A path needs more than an actuator's rate, its effort, or what its motor can do (named in `limit`), so that it
    takes longer by a factor."""

    def __init__(self, message: str, actuator: str, factor: float, limit: str = "") -> None:
        super().__init__(message)
        self.factor, self.limit = factor, limit or f"the rate limit of {actuator}"


class TimeLaw(ABC):
    """A motion along a path: starts at time 0, ends after `duration` [s]."""

    duration: float

    @abstractmethod
    def at(self, time: float) -> tuple[float, float]:
        """Path parameter s in [0, 1] and its rate [1/s] at a time [s], which is clipped to the duration."""

    def remapped(self, before: ArrayLike, after: ArrayLike) -> TimeLaw:
        """Same law for a path whose points have parameters `after` (k,) instead of `before`, both from 0 to 1."""
        return self


@dataclass(frozen=True)
class MinimumJerk(TimeLaw):
    """From rest at 0 to rest at 1 with the minimum integral of the squared jerk."""

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
    """From rest at 0 to rest at 1 with the minimum integral of the squared acceleration."""

    duration: float
    peak = 1.5

    def at(self, time: float) -> tuple[float, float]:
        if time >= self.duration:
            return 1.0, 0.0
        u = max(time, 0.0) / self.duration
        return u * u * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u) / self.duration


class Waypoints(TimeLaw):
    """Through path parameters at given times, at rest at the first and the last one.

    Args:
        times: (w,) s, increasing, the first is 0.
        parameters: (w,) path parameter s at these times, from 0 to 1, not decreasing.

    Raises:
        TensegrityError: times are not finite or not increasing.
    """

    def __init__(self, times: ArrayLike, parameters: ArrayLike) -> None:
        knots, values = np.asarray(times, dtype=np.float64), np.asarray(parameters, dtype=np.float64)
        if knots.ndim != 1 or knots.size < 2 or not np.all(np.isfinite(knots)) or np.any(np.diff(knots) <= 0.0):
            raise TensegrityError(f"waypoint times {knots.tolist()} must be finite and increase from one to the next.")
        self.duration, self._times, self._values = float(knots[-1]), knots, values
        # An additional point at rest at each end makes the slopes at the ends zero.
        knots = np.concatenate(([-1.0], knots, [knots[-1] + 1.0]))
        values = np.concatenate(([0.0], values, [values[-1]]))
        self._parameter = PchipInterpolator(knots, values)
        self._rate = self._parameter.derivative()

    def remapped(self, before: ArrayLike, after: ArrayLike) -> Waypoints:
        return Waypoints(self._times, np.interp(self._values, np.asarray(before), np.asarray(after)))

    def at(self, time: float) -> tuple[float, float]:
        if time >= self.duration:
            return 1.0, 0.0
        time = max(time, 0.0)
        return min(max(float(self._parameter(time)), 0.0), 1.0), float(self._rate(time))


PROFILES: dict[str, type[MinimumJerk] | type[Cubic]] = {"minimum_jerk": MinimumJerk, "cubic": Cubic}


def profile_named(name: str) -> type[MinimumJerk] | type[Cubic]:
    """Time law called `name`. Raises TensegrityError with the available names."""
    try:
        return PROFILES[name]
    except KeyError:
        raise TensegrityError(unknown_name("profile", name, PROFILES)) from None


PEAK = 1.875
"""Ratio of the largest to the mean rate of the quintic from rest to rest."""

LEAST_PACE = 0.1
"""Least pace for which the end of a motion that waits is predicted."""


class Progress(NamedTuple):
    """Progress of a plan: its time tau [s], the pace tau' (1 on schedule, 0 at rest) and tau'' [1/s]."""

    time: float
    pace: float
    change: float


class PathClock:
    """Clock of a plan of `duration` s that begins at `begin` [s]."""

    def __init__(self, begin: float, duration: float) -> None:
        self.begin, self.duration = begin, duration
        self._lost = 0.0
        self._ramp: tuple[float, float, float, float] | None = None  # begin, length, plan time and pace at begin
        self._brake: tuple[float, float, float, float] | None = None  # the same
        self._wait: tuple[float, float, float, float, float] | None = None  # the same, desired pace, rate of pace
        self._settle: tuple[float, float, float, float, float] | None = None  # the same, plan time at rest

    @property
    def end(self) -> float:
        """Time [s] at which the motion ends; for one that waits, at its present pace or `LEAST_PACE`."""
        if self._settle is not None:
            return self._settle[0] + self._settle[1]
        if self._wait is not None and self._brake is None:
            return self._end_of_wait(*self._wait)
        return self.begin + self._lost + self.duration if self._brake is None else self._brake[0] + self._brake[1]

    def _end_of_wait(self, begin: float, before: float, pace: float, target: float, change: float) -> float:
        """Time [s] at which a motion from plan time `before` [s] and a pace ends, whose pace changes to a target."""
        left, ramp = self.duration - before, (target - pace) / change if change else 0.0
        if (more := left - 0.5 * (pace + target) * ramp) >= 0.0:
            return begin + ramp + more / max(target, LEAST_PACE)
        return begin + 2.0 * left / (pace + math.sqrt(max(pace * pace + 2.0 * change * left, 0.0)))

    @property
    def brakes(self) -> bool:
        """Whether it has been braked."""
        return self._brake is not None

    @property
    def last(self) -> float:
        """Time of the plan [s] at which it will rest."""
        if self._settle is not None:
            return self._settle[4]
        if self._brake is None:
            return self.duration
        _, length, before, pace = self._brake
        return before + 0.5 * pace * length

    def at(self, time: float) -> Progress:
        """Progress at a time [s]."""
        if self._wait is not None and time >= self._wait[0]:
            begin, before, pace, target, change = self._wait
            ahead = time - begin
            ramp = min(ahead, (target - pace) / change) if change else 0.0
            passed = before + pace * ramp + 0.5 * change * ramp * ramp + target * (ahead - ramp)
            if passed >= self.duration:
                return Progress(self.duration, 0.0, 0.0)
            turning = ramp == ahead and change != 0.0
            return Progress(passed, pace + change * ramp if turning else target, change if turning else 0.0)
        if time >= self.end:
            return Progress(self.last, 0.0, 0.0)
        if self._settle is not None and time >= self._settle[0]:
            begin, length, before, pace, rest = self._settle
            x, distance, first = (time - begin) / length, rest - before, pace * length
            # quintic polynomial from that pace to rest, with zero acceleration at both ends
            cube, fourth, fifth = (
                10.0 * distance - 6.0 * first,
                8.0 * first - 15.0 * distance,
                6.0 * distance - 3.0 * first,
            )
            return Progress(
                before + x * (first + x * x * (cube + x * (fourth + x * fifth))),
                (first + x * x * (3.0 * cube + x * (4.0 * fourth + 5.0 * x * fifth))) / length,
                x * (6.0 * cube + x * (12.0 * fourth + 20.0 * x * fifth)) / length**2,
            )
        if self._brake is not None and time >= self._brake[0]:
            begin, length, before, pace = self._brake
            x = (time - begin) / length
            done = x**3 * (10.0 - 15.0 * x + 6.0 * x * x)
            passed = length * (x - x**4 * (2.5 - 3.0 * x + x * x))
            change = -30.0 * (x * (1.0 - x)) ** 2 / length
            return Progress(before + pace * passed, pace * max(1.0 - done, 0.0), pace * change)
        if self._ramp is not None and time < self._ramp[0] + self._ramp[1]:
            begin, length, before, slow = self._ramp
            x = max(time - begin, 0.0) / length
            more = (1.0 - slow) * x**3 * (10.0 - 15.0 * x + 6.0 * x * x)
            passed = length * (slow * x + (1.0 - slow) * x**4 * (2.5 - 3.0 * x + x * x))
            return Progress(before + passed, slow + more, (1.0 - slow) * 30.0 * (x * (1.0 - x)) ** 2 / length)
        passed = time - self.begin - self._lost
        if passed < 0.0:
            return Progress(0.0, 0.0, 0.0)
        return Progress(passed, 1.0, 0.0)

    def resume(self, now: float, before: float, pace: float, longest: float) -> None:
        """Continue at `now` from time `before` [s] of the plan and the pace there; full pace is reached within
        `longest` s.

        For a motion that slowed down without a brake because commands were missing. The lost time is added to its
        duration. A motion that brakes, rests or has not begun is not changed.
        """
        if self._brake is not None or now < self.begin or before >= self.duration:
            return
        self._wait = None
        length = min(longest * (1.0 - pace), 2.0 / (1.0 + pace) * (self.duration - before))
        self._ramp = (now, length, before, pace) if length > 0.0 else None
        self._lost = now + 0.5 * (1.0 - pace) * length - before - self.begin

    def settle(self, now: float, before: float, pace: float, within: float) -> None:
        """Move from time `before` [s] of the plan, and the pace there, to the time at which the brake was to end, and
        rest.

        For a motion that should have braked and stopped elsewhere because commands were missing. It takes `within` s,
        or longer if the pace would exceed 1; after an overshoot it returns.
        """
        rest = self.last
        self._wait = self._ramp = None
        self._settle = (now, max(within, PEAK * abs(rest - before)), before, pace, rest)

    def wait(self, now: float, pace: float, within: float) -> None:
        """Change the pace to a value from 0 to 1, at a rate of 1 / `within` [1/s], until the next call.

        The lost time is added to the duration. A motion that brakes or does not run is not changed.
        """
        if self._brake is not None or now < self.begin or (self._wait is None and (pace >= 1.0 or now >= self.end)):
            return
        progress = self.at(now)
        self._lost, self._ramp, self._wait = now - self.begin - progress.time, None, None
        if progress.time < self.duration and not progress.pace >= 1.0 <= pace:
            target = min(max(pace, 0.0), 1.0)
            change = float(np.sign(target - progress.pace)) / within
            self._wait = (now, progress.time, progress.pace, target, change)

    def brake(self, now: float, longest: float) -> None:
        """Come to rest within `longest` s from now; a motion that brakes, rests, or ends earlier is not changed."""
        if self._brake is None and self.begin <= now < self.end and now + longest < self.end + 0.5 * longest:
            progress = self.at(now)
            self._wait = None
            self._brake = (now, longest, progress.time, progress.pace)
        elif now < self.begin:
            self._brake = (self.begin, np.finfo(float).tiny, 0.0, 0.0)
