"""Time of a robot on hardware: that of the computer when it begins, and from there on what really passes.

A computer's clock is set: by NTP some seconds after it started, by people, by hours and by years. What a controller
does with the time of a state, and how old a command is, must not change with it. So states are stamped by a clock that
begins as the computer's and goes on with one that nobody sets. That one counts while the computer sleeps, too: on
waking the driver sees how long its servos did what they were commanded last. Emulated servos have a time of their own,
which falls behind where the computer is busy; theirs counts then, and the computer's is no measure of it.
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

    def begin(self, own: Callable[[], int | None] = lambda: None) -> None:
        """Take over the computer's time.

        Args:
            own: time of the hardware, which counts from here on where it has one.
        """
        self._own = own if own() is not None else None
        self._began = self._steady()
        self._system_begin = self._system()
        self._offset = self._system_begin - self.steady

    @property
    def steady(self) -> int:
        """Time that goes on evenly, of the hardware or of the computer; differences of it are times that passed."""
        own = None if self._own is None else self._own()
        return self._steady() if own is None else own

    @property
    def is_own(self) -> bool:
        """Whether the hardware has a time of its own."""
        return self._own is not None

    @property
    def pace(self) -> float:
        """s of the robot's time per s of the computer's since `begin`; 1 where the hardware has no time of its own."""
        passed = self._steady() - self._began
        return 1.0 if self._own is None or passed <= 0 else (self.now - self._system_begin) / passed

    @property
    def now(self) -> int:
        """Present time of the robot."""
        return self.steady + self._offset

    @property
    def set_by(self) -> int:
        """By how much the computer's clock has been set forwards since `begin`."""
        return self._system() - self._system_begin - (self._steady() - self._began)
