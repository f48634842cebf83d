"""Timing of commands as seen by a controller: their intervals, their latency, and the duration of the next command."""

from __future__ import annotations

import math
from collections import deque

FORGETTING = 1.0
"""s, time constant after which a gap between two commands no longer slows down the reference."""
SPACINGS = 3
"""Number of intervals for the median that predicts the next one."""
USUAL = 15
"""Number of latencies for the median that is the usual latency; single late starts and gaps have no effect on it."""


class CommandTiming:
    """Intervals and latency of the commands of one controller.

    Args:
        period: s, control period.
        longest: s, longest duration of a command.

    Attributes:
        elapsed: s since the last command.
        latest: s, longest recent interval, which decays to the period within `FORGETTING`.
        repeated: s, second longest one, which decays alike.
        held: s, expected duration of the next command.
        late: s from the last state until its command acts.
        usual_latency: s, median of the last latencies.
    """

    def __init__(self, period: float, longest: float) -> None:
        self.period, self.longest = period, longest
        self.elapsed = self.latest = self.repeated = self.held = period
        self.late = self.usual_latency = 0.0
        self._intervals: deque[float] = deque([period] * SPACINGS, SPACINGS)
        self._latencies: deque[float] = deque([0.0] * USUAL, USUAL)

    def forget_latencies(self) -> None:
        """Reset all latencies to zero."""
        self._latencies.extend([0.0] * USUAL)
        self.usual_latency = 0.0

    def acts_after(self, late: float) -> None:
        """Note that the command for the present state acts `late` s after it."""
        self.late = late
        oldest = self._latencies[0]
        self._latencies.append(late)
        if late != oldest:
            self.usual_latency = sorted(self._latencies)[USUAL // 2]

    def interval(self, *times: float) -> None:
        """Add intervals [s] between commands. Their median is the expected duration of the next command, limited by
        `longest`; a single gap has no effect on it."""
        self._intervals.extend(times)
        self.held = min(sorted(self._intervals)[SPACINGS // 2], self.longest)

    def came(self, elapsed: float) -> None:
        """Note that a command is computed `elapsed` s after the last one."""
        self.elapsed = elapsed = max(elapsed, self.period)
        fading = math.exp(-elapsed / FORGETTING)
        latest = self.period + (self.latest - self.period) * fading
        repeated = self.period + (self.repeated - self.period) * fading
        self.latest, self.repeated = max(latest, elapsed), max(repeated, min(latest, elapsed))
        self.interval(self.elapsed)

    def begin_anew(self) -> None:
        """Reset the measured intervals."""
        self.latest = self.repeated = self.period
        self.interval(*[self.period] * SPACINGS)
