"""How long after the state that it answers a command acts: measured from the plant's reports, as stated until then.

The plant says of each command from when on it acts. What lies between the newest reading that was known when the
command was sent and that time is the delay of the actuators, whatever it consists of; its median over the last commands
is what the next one is expected to need. What has passed between a state and that reading comes on top, and is known
for each state.
"""

from __future__ import annotations

import math
from collections import deque

KEPT = 64
"""Commands of which it is remembered when they were sent."""
MEASURED = 15
"""Measured delays of which the median counts."""
TIMED = 3000
"""Commands of which it is remembered how well their time was foreseen: rare long cycles count, too."""
STANDS = 3.0
"""Times for which set points move on by themselves after which they stand (`tensegrity_dynamics.impedance`)."""
RECENT = 25
"""Commands that tell what the timing is like at present."""
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

    A command is made for one time, and acts from when it arrives until the next one does: it is off by its lateness at
    the beginning, and at the end by the time that has passed since it was made for.

    Args:
        period: of the control. longest: more than this is counted as that, as set points brake by then; and after
            `STANDS` of it, by when they stand, not at all.
    """

    def __init__(self, period: float, longest: float) -> None:
        self.period, self.longest = period, longest
        self._expected: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._acting = math.nan  # time for which the command was made that acted last
        self._errors: deque[float] = deque(maxlen=TIMED)
        self._gaps: deque[float] = deque(maxlen=RECENT)

    def sent(self, stamp: float, age: float) -> None:
        """A command for the state of `stamp` is made to act `age` s later."""
        expected = stamp + age
        if self._expected:
            if stamp < self._expected[-1][0]:  # the clock has gone back
                self._expected.clear()
                self._acting = math.nan
            else:
                self._gaps.append(self._counts(expected - self._expected[-1][1]))
        self._expected.append((stamp, expected))

    def acted(self, stamp: float, begin: float) -> None:
        """It acts from `begin` on."""
        for sent, expected in reversed(self._expected):
            if abs(sent - stamp) < 1e-9:
                error = max(abs(begin - expected), self._counts(begin - self._acting))
                self._acting = expected
                self._errors.append(error)
                self._gaps.append(error)
                return

    def _counts(self, since: float) -> float:
        """s for which a command acted, as far as that says something of motions; nan: it is not known."""
        return since if 0.0 < since < STANDS * self.longest else 0.0

    @property
    def uncertainty(self) -> float:
        """s: a period, for which a command acts, and two more by which it comes late where a computer is busy; or as
        much as was measured, where that is more."""
        usual = (1.0 + USUALLY_LATE) * self.period  # another thread plans
        return min(max(usual, max(tuple(self._errors), default=0.0)), self.longest)

    def pace(self, reckoned: float) -> float:
        """Part of its speed at which a motion goes on that was planned for an uncertainty `reckoned` [s].

        What commands are off grows with the square of the uncertainty times the acceleration, and that with the square
        of the pace.
        """
        return min(1.0, reckoned / max(min(max(self._gaps, default=0.0), self.longest), 1e-9))


class FollowedCommands:
    """Whether whoever moves the robot still follows the commands; all in s of the robot's clock.

    A sender that was away for longer than `patience` is followed no more until a goal or `hold` opens a new session
    (`tensegrity_dynamics.command_streams`), and what was not executed was not moved. It may not know that it was away;
    that none of its commands acts any more it does.

    Args:
        patience: s without a command that acts.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.forget()

    def forget(self) -> None:
        """Nothing is known, until a command acts."""
        self._since, self._session = math.nan, 0

    def acted(self, begin: float) -> None:
        """A command acts from `begin` on."""
        self._since = begin if math.isnan(self._since) else max(self._since, begin)

    def away(self, now: float, session: int) -> float:
        """s for which no command has acted, where that is longer than the patience; else zero.

        Args:
            session: of the commands; a new one is waited for as long again.
        """
        if session != self._session or now < self._since:  # or the clock has gone back
            measured, self._session = not math.isnan(self._since), session
            self._since = now if measured else math.nan
        since = now - self._since
        return since if since > self.patience else 0.0
