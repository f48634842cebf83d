"""How commands come in time, as a controller sees it: how far apart, how late they act, how long the next is held."""

from __future__ import annotations

import math
from collections import deque

FORGETTING = 1.0
"""s after which a gap between two commands no longer slows the reference."""
SPACINGS = 3
"""Intervals between commands of which the median is expected next."""
USUAL = 15
"""Commands of which the median says how late they usually act: a late start or a gap says nothing of the loop."""


class CommandTiming:
    """Intervals and latency of the commands of one controller.

    Args:
        period: s, the control period. longest: s for which a command is held at most.

    Attributes:
        elapsed: s since the last command. latest: s, the longest interval of late, fading to the period within
            `FORGETTING`. held: s for which the next command will be held. late: s from the last state until its
            command acts.
    """

    def __init__(self, period: float, longest: float) -> None:
        self.period, self.longest = period, longest
        self.elapsed = self.latest = self.held = period
        self.late = 0.0
        self._intervals: deque[float] = deque([period] * SPACINGS, SPACINGS)
        self._latencies: deque[float] = deque([0.0] * USUAL, USUAL)

    def forget_latencies(self) -> None:
        """Commands act at once, as far as is known."""
        self._latencies.extend([0.0] * USUAL)

    def acts_after(self, late: float) -> None:
        """The command that answers the present state acts `late` s after it."""
        self.late = late
        self._latencies.append(late)

    @property
    def usual_latency(self) -> float:
        """s, the median of the last ones."""
        return sorted(self._latencies)[len(self._latencies) // 2]

    def interval(self, *times: float) -> None:
        """Intervals [s] between commands: the median of the last ones says how long the next will be held, as long as
        it moves on by itself at most; one gap says nothing of the next."""
        self._intervals.extend(times)
        self.held = min(sorted(self._intervals)[SPACINGS // 2], self.longest)

    def came(self, elapsed: float) -> None:
        """A command is made `elapsed` s after the last one."""
        self.elapsed = max(elapsed, self.period)
        fading = (self.latest - self.period) * math.exp(-self.elapsed / FORGETTING)
        self.latest = max(self.elapsed, self.period + fading)
        self.interval(self.elapsed)

    def begin_anew(self) -> None:
        """What was measured of intervals says nothing any more."""
        self.latest = self.period
        self.interval(*[self.period] * SPACINGS)
