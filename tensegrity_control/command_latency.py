"""How long after the state that it answers a command acts: measured by what the plant reports, told until then.

The plant says of each command from when on it acts. What lies between the newest reading that was known when the
command was sent and that time is the delay of the actuators, whatever it consists of; its median over the last commands
is what the next one is expected to need. What has passed between a state and that reading comes on top, and is known
for each state.
"""

from __future__ import annotations

from collections import deque

KEPT = 64
"""Commands of which it is remembered when they were sent."""
MEASURED = 15
"""Measured delays of which the median counts."""
TIMED = 100
"""Commands of which it is remembered how well their time was foreseen."""
USUALLY_LATE = 2.0
"""Periods by which commands come later than foreseen on a computer that plans, shows and records, too."""
LONGEST = 1.0
"""s up to which a measured delay is believed."""


class CommandLatency:
    """See the module; all times in s of the robot's clock.

    Args:
        nominal: s that commands are known to need, until some have been measured.
    """

    def __init__(self, nominal: float = 0.0) -> None:
        self.nominal = nominal
        self._sent: deque[tuple[float, float]] = deque(maxlen=KEPT)  # stamp, and the newest reading when it was sent
        self._delays: deque[float] = deque(maxlen=MEASURED)
        self._began: tuple[float, float] | None = None

    def forget(self) -> None:
        """Time begins anew; what was measured stays."""
        self._sent.clear()
        self._began = None

    @property
    def measured(self) -> bool:
        """Whether the plant reports when commands act."""
        return bool(self._delays)

    @property
    def delay(self) -> float:
        """s from sending a command until it acts."""
        return sorted(self._delays)[len(self._delays) // 2] if self._delays else self.nominal

    @property
    def spread(self) -> float:
        """s between the shortest and the longest of the last delays."""
        return max(self._delays) - min(self._delays) if self._delays else 0.0

    def age(self, stamp: float, newest: float) -> float:
        """s from a state until its command will act, where the newest reading that is known is of `newest`."""
        return max(newest - stamp, 0.0) + self.delay

    def sent(self, stamp: float, newest: float) -> None:
        """A command for the state of `stamp` was sent when the newest reading was that of `newest`."""
        if self._sent and stamp < self._sent[-1][0]:
            self.forget()  # the clock has gone back
        if not self._sent or self._sent[-1][0] < stamp:
            self._sent.append((stamp, newest))

    def acted(self, stamp: float, begin: float) -> bool:
        """A command acts from `begin` on; False where that is not news, nothing of ours, or cannot be."""
        if self._began is not None and stamp <= self._began[0]:
            return False
        found = next((newest for sent, newest in reversed(self._sent) if abs(sent - stamp) < 1e-9), None)
        if found is None or not -1e-9 <= begin - found <= LONGEST:
            return False
        self._began = (stamp, begin)
        self._delays.append(max(begin - found, 0.0))
        return True


class CommandTiming:
    """By how much the times at which commands act differ from those that they were made for; all in s.

    Args:
        period: of the control. longest: more than this is not counted, as set points brake by then.
    """

    def __init__(self, period: float, longest: float) -> None:
        self.period, self.longest = period, longest
        self._expected: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._errors: deque[float] = deque(maxlen=TIMED)

    def sent(self, stamp: float, age: float) -> None:
        """A command for the state of `stamp` is made to act `age` s later."""
        self._expected.append((stamp, stamp + age))

    def acted(self, stamp: float, begin: float) -> None:
        """It acts from `begin` on."""
        for sent, expected in reversed(self._expected):
            if abs(sent - stamp) < 1e-9:
                self._errors.append(abs(begin - expected))
                return

    @property
    def uncertainty(self) -> float:
        """s: a period, for which a command acts, and two more by which it comes late where a computer is busy; or as
        much as was measured, where that is more."""
        late = max(USUALLY_LATE * self.period, max(tuple(self._errors), default=0.0))  # another thread plans
        return min(self.period + late, self.longest)
