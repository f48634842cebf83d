"""How far a motion has come: its own time s runs with the clock, and slows down to rest where it is broken off.

While braking over T from t0, with x = (t - t0) / T,

    s' = 1 - (10 x^3 - 15 x^4 + 6 x^5),   s = s0 + T (x - (5/2 x^4 - 3 x^5 + x^6))

so that place, pace and its change are continuous and the brake takes half of T of the motion's time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Progress(NamedTuple):
    """Where a motion is: its time s, the pace s' (1 on schedule, 0 at rest) and s'' [1/s]."""

    place: float
    pace: float
    change: float


class PathClock:
    """Runs a motion of `duration` s that begins at `begin` [s]."""

    def __init__(self, begin: float, duration: float) -> None:
        self.begin, self.duration = begin, duration
        self._brake: tuple[float, float] | None = None  # begin, length

    @property
    def end(self) -> float:
        """Time [s] at which the motion is over."""
        return self.begin + self.duration if self._brake is None else sum(self._brake)

    @property
    def last(self) -> float:
        """The motion's own time at which it will rest."""
        if self._brake is None:
            return self.duration
        begin, length = self._brake
        return begin - self.begin + 0.5 * length

    def at(self, time: float) -> Progress:
        """Progress at a time [s]."""
        if time >= self.end:
            return Progress(self.last, 0.0, 0.0)
        passed = time - self.begin
        if passed < 0.0:
            return Progress(0.0, 0.0, 0.0)
        if self._brake is None or time < self._brake[0]:
            return Progress(passed, 1.0, 0.0)
        begin, length = self._brake
        x = (time - begin) / length
        done = x**3 * (10.0 - 15.0 * x + 6.0 * x * x)
        way = length * (x - x**4 * (2.5 - 3.0 * x + x * x))
        return Progress(begin - self.begin + way, max(1.0 - done, 0.0), -30.0 * (x * (1.0 - x)) ** 2 / length)

    def brake(self, now: float, longest: float) -> None:
        """Come to rest within `longest` s from now; a motion that brakes, rests, or ends before that goes on."""
        if self._brake is None and self.begin <= now < self.end and now + longest < self.end + 0.5 * longest:
            self._brake = (now, longest)
        elif now < self.begin:
            self._brake = (self.begin, np.finfo(float).tiny)
