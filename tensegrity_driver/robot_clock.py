"""Clock of a robot on hardware: the computer's time at the start, and elapsed time from there on.

The clock of a computer may be set, by NTP some seconds after its start or by users, by hours or years. The time of a
state and the age of a command must not change with it. So states are stamped by a clock that starts at the computer's
time and continues with a steady clock. The steady clock also counts while the computer sleeps: when it wakes, the
driver knows for how long its servos followed the last command.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_time() -> int:
    """Time that cannot be set and also counts while the computer sleeps [ns]."""
    return time.clock_gettime_ns(_STEADY)


class RobotClock:
    """Clock of a robot, see the module; all times in ns.

    Args:
        system: the computer's clock, which may be set.
        steady: a steady clock.
    """

    def __init__(self, system: Callable[[], int] = time.time_ns, steady: Callable[[], int] = steady_time) -> None:
        self.system, self.steady = system, steady
        self.begin()

    def begin(self) -> None:
        """Start at the computer's time."""
        self._offset = self.system() - self.steady()

    @property
    def now(self) -> int:
        """Present time of the robot."""
        return self.at(self.steady())

    def at(self, steady: int) -> int:
        """Time of the robot for a time of the steady clock."""
        return steady + self._offset

    @property
    def set_by(self) -> int:
        """Time by which the computer's clock was set forward since `begin`."""
        return self.system() - self.now
