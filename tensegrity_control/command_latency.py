"""Command latency: time from the state that a command answers until the command acts, measured from reports of the
plant.

The plant reports when each command starts to act. The delay of the actuators is the time from the newest reading at the
moment of sending until then, whatever it consists of. Its median over the last commands is the expected delay of the
next command; until a delay has been measured, the stated value is used. The time from a state to the newest reading
comes in addition and is available for each state.
"""

from __future__ import annotations

import math
from collections import deque

KEPT = 64
"""Number of commands whose times of sending are stored."""
MEASURED = 15
"""Number of measured delays for the median."""
TIMED = 3000
"""Number of commands whose timing errors are stored; so many that rare long cycles are among them."""
STANDS = 3.0
"""Time after which extrapolated set points stand still, in extrapolation times (`tensegrity_dynamics.impedance`)."""
RECENT = 25
"""Number of last commands that describe the present timing."""
USUALLY_LATE = 2.0
"""Usual lateness of commands, in periods, on a computer that also plans, displays and records."""
LONGEST = 1.0
"""s, largest plausible delay; longer ones are discarded."""


class CommandLatency:
    """Latency of commands, see the module; all times in s of the clock of the robot.

    Args:
        nominal: s, delay that is used until some delays have been measured.
    """

    def __init__(self, nominal: float = 0.0) -> None:
        self.nominal = nominal
        self._sent: deque[tuple[float, float]] = deque(maxlen=KEPT)  # stamp of state and of newest reading
        self._delays: deque[float] = deque(maxlen=MEASURED)
        self._began: tuple[float, float] | None = None

    def forget(self) -> None:
        """Forget the commands sent, for a clock that starts again; measured delays are kept."""
        self._sent.clear()
        self._began = None

    @property
    def measured(self) -> bool:
        """Whether a delay has been measured."""
        return bool(self._delays)

    @property
    def delay(self) -> float:
        """s, delay from sending a command until it acts."""
        return sorted(self._delays)[len(self._delays) // 2] if self._delays else self.nominal

    @property
    def spread(self) -> float:
        """s, difference between the longest and the shortest of the last delays."""
        return max(self._delays) - min(self._delays) if self._delays else 0.0

    def age(self, stamp: float, newest: float) -> float:
        """s from the state of `stamp` until its command acts, with the newest reading at `newest` [s]."""
        return max(newest - stamp, 0.0) + self.delay

    def sent(self, stamp: float, newest: float) -> None:
        """Note that a command for the state of `stamp` was sent when `newest` was the newest reading."""
        if self._sent and stamp < self._sent[-1][0]:
            self.forget()  # the clock has gone back
        if not self._sent or self._sent[-1][0] < stamp:
            self._sent.append((stamp, newest))

    def acted(self, stamp: float, begin: float) -> bool:
        """Note that a command acts from `begin` on. False if this is no news, not our command or implausible."""
        if self._began is not None and stamp <= self._began[0]:
            return False
        found = next((newest for sent, newest in reversed(self._sent) if abs(sent - stamp) < 1e-9), None)
        if found is None or not -1e-9 <= begin - found <= LONGEST:
            return False
        self._began = (stamp, begin)
        self._delays.append(max(begin - found, 0.0))
        return True


class CommandTiming:
    """Differences between the times at which commands act and the times for which they were computed; all in s.

    A command is computed for one time and acts from its arrival until the next one arrives. Its timing error is its
    lateness at the beginning, and the time elapsed since the time for which it was computed at the end.

    Args:
        period: control period.
        longest: upper bound of errors, since set points brake after this time. After `STANDS` times as long, when they
            stand still, an interval is ignored.
    """

    def __init__(self, period: float, longest: float) -> None:
        self.period, self.longest = period, longest
        self._expected: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._acting = math.nan  # time for which the last acting command was computed
        self._errors: deque[float] = deque(maxlen=TIMED)
        self._gaps: deque[float] = deque(maxlen=RECENT)

    def sent(self, stamp: float, age: float) -> None:
        """Note that a command for the state of `stamp` is computed to act `age` s later."""
        expected = stamp + age
        if self._expected:
            if stamp < self._expected[-1][0]:  # the clock has gone back
                self._expected.clear()
                self._acting = math.nan
            else:
                self._gaps.append(self._counts(expected - self._expected[-1][1]))
        self._expected.append((stamp, expected))

    def acted(self, stamp: float, begin: float) -> None:
        """Note that the command for the state of `stamp` acts from `begin` on."""
        for sent, expected in reversed(self._expected):
            if abs(sent - stamp) < 1e-9:
                error = max(abs(begin - expected), self._counts(begin - self._acting))
                self._acting = expected
                self._errors.append(error)
                self._gaps.append(error)
                return

    def _counts(self, since: float) -> float:
        """s for which a command acted; 0 if this is unknown (nan), negative or so long that the set points stood
        still."""
        return since if 0.0 < since < STANDS * self.longest else 0.0

    @property
    def uncertainty(self) -> float:
        """s, largest measured error; at least one period, for which a command acts, plus the usual lateness of a busy
        computer."""
        usual = (1.0 + USUALLY_LATE) * self.period  # a planning thread runs as well
        return min(max(usual, max(tuple(self._errors), default=0.0)), self.longest)

    def pace(self, reckoned: float) -> float:
        """Fraction of its speed at which a motion continues that was planned for an uncertainty `reckoned` [s].

        Errors of commands grow with the square of the uncertainty times the acceleration, and the acceleration grows
        with the square of the pace.
        """
        return min(1.0, reckoned / max(min(max(self._gaps, default=0.0), self.longest), 1e-9))


class FollowedCommands:
    """Detects that the robot does not execute the commands any more; all times in s of the clock of the robot.

    The robot ignores a sender that was silent for longer than `patience` until a goal or `hold` opens a new session
    (`tensegrity_dynamics.command_streams`). The sender may not notice its own silence, but it notices that none of its
    commands acts.

    Args:
        patience: s without an acting command.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.forget()

    def forget(self) -> None:
        """Forget the times of commands, until the next one acts."""
        self._since, self._session = math.nan, 0

    def acted(self, begin: float) -> None:
        """Note that a command acts from `begin` on."""
        self._since = begin if math.isnan(self._since) else max(self._since, begin)

    def away(self, now: float, session: int) -> float:
        """s without an acting command, if longer than the patience; else zero.

        Args:
            session: session of the commands; the patience starts again with each new session.
        """
        if session != self._session or now < self._since:  # or the clock has gone back
            measured, self._session = not math.isnan(self._since), session
            self._since = now if measured else math.nan
        since = now - self._since
        return since if since > self.patience else 0.0
