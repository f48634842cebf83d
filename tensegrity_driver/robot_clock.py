"""Time of a robot on hardware: that of the computer when it begins, and from there on what really passes.

A computer's clock is set: by NTP some seconds after it started, by people, by hours and by years. What a controller
does with the time of a state, and how old a command is, must not change with it. So states are stamped by a clock that
begins as the computer's and goes on with one that nobody sets. That one counts while the computer sleeps, too: on
waking the driver sees how long its servos did what they were commanded last.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_time() -> int:
    """Time that nobody sets, which counts while the computer sleeps, too [ns]."""
    return time.clock_gettime_ns(_STEADY)


class RobotClock:
    """See the module; all times in ns.

    Args:
        system: the computer's clock, which may be set. steady: one that goes on evenly.
    """

    def __init__(self, system: Callable[[], int] = time.time_ns, steady: Callable[[], int] = steady_time) -> None:
        self._system, self._steady = system, steady
        self.begin()

    def begin(self) -> None:
        """Take over the computer's time."""
        self._offset = self._system() - self._steady()

    @property
    def now(self) -> int:
        """Present time of the robot."""
        return self.at(self._steady())

    def at(self, steady: int) -> int:
        """Time of the robot at a time of the steady clock."""
        return steady + self._offset

    @property
    def set_by(self) -> int:
        """By how much the computer's clock has been set forwards since `begin`."""
        return self._system() - self.now
