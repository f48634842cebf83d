"""Periodic work at a given rate, with a limited share of the processor time."""

from __future__ import annotations

SHARE = 0.25
"""Largest fraction of the time that the work may take. If it takes longer, because the processor is busy or there is
more work, the rate is reduced, so that display work never delays the control of a robot."""


class Beat:
    """Schedule of periodic work. Single delays do not accumulate: the mean rate is the requested one.

    Args:
        rate: rate [1/s].
    """

    def __init__(self, rate: float) -> None:
        self.period = 1.0 / rate
        self._due = -1e300

    def next(self, began: float, ended: float) -> float:
        """Time [s] of the next start, for work with the given start and end times [s]; missed starts are skipped."""
        pause = max(self.period, (ended - began) / SHARE)
        self._due = max(self._due + pause, began + pause - self.period)
        return self._due
