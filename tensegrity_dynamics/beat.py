"""Work that is done so many times a second, as far as the machine can, and never takes all of its time."""

from __future__ import annotations

SHARE = 0.25
"""Of the time, at most, that the work may take: where it takes longer, because the processor is somebody else's or
because there is much to do, it is done less often, so that what is shown never keeps what moves a robot waiting."""


class Beat:
    """When the work begins next. Single times that are late do not add up: the mean rate is that which was asked for.

    Args:
        rate: times per second.
    """

    def __init__(self, rate: float) -> None:
        self.period = 1.0 / rate
        self._due = -1e300

    def next(self, began: float, ended: float) -> float:
        """Time [s] at which the work that began and ended then is to begin again; after a stall once, not often."""
        pause = max(self.period, (ended - began) / SHARE)
        self._due = max(self._due + pause, began + pause - self.period)
        return self._due
