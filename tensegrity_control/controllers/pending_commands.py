"""What commands that were sent before do until the next one acts: the motion from the state that was seen to the one
that will be met.

A command answers a state that is already past, and it acts later still. In between act those that were sent before it;
what each of them does to the robot was known when it was made. So what is seen at t is moved on to t + L, when the next
command will act, by what was commanded for the time between,

    v(t + L) = v(t) + sum a_j h_j,   q(t + L) = q(t) + L v + sum a_j h_j (r_j + h_j / 2)

with a_j the accelerations under command j, h_j the time for which they act within L and r_j what is left of L after
them: a Smith predictor for any mechanism, with the measured delay of each single state and no gain of its own.
Actuators that close their position themselves follow their commands: their set points go on from where the last command
will have led them, by as much off that as they were seen off what they had been commanded for that time. To start from
what they were seen at, and from their rates, would tell each transient of one command to them again by a later one.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from tensegrity_dynamics.impedance import travelled
from tensegrity_dynamics.numerics.types import Array

KEPT = 64
"""Commands that are remembered."""


class Sent(NamedTuple):
    """A command: it acts from `begin` [s] on, its accelerations (n,) for `lasts` s; set points of the actuators (a,) at
    `begin`, the rate at which they move on, and the rate with which they are left. `stamp` [s] is that of the state
    which it answers; `confirmed` says that it began then, which is a guess until it is reported. `effort` (a,)."""

    begin: float
    lasts: float
    acceleration: Array
    position: Array
    rate: Array
    left: Array
    stamp: float = -np.inf
    confirmed: bool = False
    effort: Array | None = None


class PendingCommands:
    """The last commands and from when on they act.

    Args:
        lead: s for which set points move on at their rate until they brake by themselves, see `impedance.travelled`.
    """

    def __init__(self, lead: float) -> None:
        self.lead = lead
        self._sent: deque[Sent] = deque(maxlen=KEPT)

    def clear(self) -> None:
        """None is under way."""
        self._sent.clear()

    def send(self, command: Sent) -> None:
        """The next one; those that would have begun later never act."""
        while self._sent and self._sent[-1].begin >= command.begin:
            self._sent.pop()
        self._sent.append(command)

    def acted(self, stamp: float, begin: float) -> None:
        """The command that answered the state of `stamp` acts from `begin` on [s], which was a guess until now.

        Those before it of which nothing was reported never will, they were overtaken; those after it begin later.
        """
        sent, later = self._sent, []
        while sent and sent[-1].stamp > stamp:
            later.append(sent.pop())
        if sent and sent[-1].stamp == stamp:
            each = sent.pop()
            while sent and not (sent[-1].confirmed and sent[-1].begin < begin):
                sent.pop()  # older ones than these were looked at when they were confirmed
            shift = begin - each.begin
            sent.append(each._replace(begin=begin, position=each.position + shift * each.rate, confirmed=True))
        for each in reversed(later):
            if sent and each.begin <= sent[-1].begin:
                shift = sent[-1].begin + each.lasts - each.begin
                each = each._replace(begin=each.begin + shift, position=each.position + shift * each.rate)
            sent.append(each)

    def change(self, begin: float, end: float) -> tuple[Array, Array] | None:
        """(n,) by which rates change from `begin` to `end` [s], and (n,) what is travelled for it; None: by nothing."""
        rate = travel = None
        for lasts, left, acceleration in self._acting(begin, end):
            more, further = lasts * acceleration, lasts * (left + 0.5 * lasts) * acceleration
            rate, travel = (more, further) if rate is None or travel is None else (rate + more, travel + further)
        return None if rate is None or travel is None else (rate, travel)

    def mean_effort(self, begin: float, end: float) -> Array | None:
        """(a,) mean efforts from `begin` to `end` [s]; None: no command acted at `begin`."""
        total, until = None, end
        for each in reversed(self._sent):
            if each.begin < until and each.effort is not None:
                part = (until - max(each.begin, begin)) * each.effort
                total = part if total is None else total + part
                until = max(each.begin, begin)
            if each.begin <= begin:
                return None if total is None or until > begin else total / (end - begin)
        return None

    def rate_change(self, begin: float, end: float) -> tuple[float, Array] | None:
        """s and (n,) accelerations for so long, by which rates change from `begin` to `end` [s]; None: by nothing."""
        acting = self._acting(begin, end)
        if len(acting) == 1:
            return acting[0][0], acting[0][2]
        change = self.change(begin, end)
        return None if change is None else (1.0, change[0])

    def _acting(self, begin: float, end: float) -> list[tuple[float, float, Array]]:
        """s for which a command acts from `begin` to `end` [s], what is left then, and its accelerations (n,)."""
        found, until = [], end
        for each in reversed(self._sent):
            starts = each.begin
            first, last = max(starts, begin), min(until, starts + each.lasts)
            until = min(starts, end)
            if last > first:
                found.append((last - first, end - last, each.acceleration))
            if starts <= begin:
                break
        return found

    def commanded(self, begin: float, end: float) -> tuple[Array, Array, Array, Array] | None:
        """(a,) set points and rates that hold at `begin` [s], and those with which the last command leaves the
        actuators at `end`; None: nothing was commanded for `begin`."""
        seen = next((each for each in reversed(self._sent) if each.begin <= begin), None)
        if seen is None:
            return None
        last = self._sent[-1]
        (here, pace), (there, left) = self.gone(begin - seen.begin), self.gone(end - last.begin)
        return seen.position + here * seen.rate, pace * seen.rate, last.position + there * last.rate, left * last.left

    def gone(self, time: float) -> tuple[float, float]:
        """s for which a set point has moved on `time` s after it began, and what is left of its rate."""
        return travelled(time, self.lead), min(max(1.5 - 0.5 * time / self.lead, 0.0), 1.0)
