"""Commands on their way to the actuators: prediction of the state at which the next command will act.

A command answers a past state and acts with a delay. Commands sent before it act in the meantime, and the accelerations
that they cause were computed when they were made. So the state at t is predicted at t + L, when the next command will
act, with the commands for the time between,

    v(t + L) = v(t) + sum a_j h_j,   q(t + L) = q(t) + L v + sum a_j h_j (r_j + h_j / 2)

with a_j the accelerations under command j, h_j the time for which the command acts within L, and r_j the time left of L
after it. This is a Smith predictor for any mechanism. It uses the measured delay of each state and has no gain of its
own.

Actuators with position control follow their commands. Their set points continue from the end of the last command, plus
the deviation of the measured positions from the set points of that time. If set points started from measured positions
and rates instead, each transient caused by a command would be commanded again by a later one.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from tensegrity_dynamics.impedance import travelled
from tensegrity_dynamics.numerics.types import Array

KEPT = 64
"""Number of stored commands."""


class Sent(NamedTuple):
    """A command that was sent.

    Attributes:
        begin: s, time from which the command acts.
        lasts: s, duration of its accelerations.
        acceleration: (n,) accelerations under the command.
        position: (a,) set points of the actuators at `begin`.
        rate: (a,) rate at which the set points move on.
        left: (a,) rate of the set points at the end of the command.
        stamp: s, time of the state that the command answers.
        confirmed: whether the plant has reported `begin`; it is an estimate until then.
        forces: (a + nv,) efforts, then the forces of friction that they overcome.
    """

    begin: float
    lasts: float
    acceleration: Array
    position: Array
    rate: Array
    left: Array
    stamp: float = -np.inf
    confirmed: bool = False
    forces: Array | None = None


class PendingCommands:
    """The last commands and the times from which they act.

    Args:
        lead: s for which set points move on at their rate before they brake, see `impedance.travelled`.
    """

    def __init__(self, lead: float) -> None:
        self.lead = lead
        self._sent: deque[Sent] = deque(maxlen=KEPT)

    def clear(self) -> None:
        """Remove all commands."""
        self._sent.clear()

    def send(self, command: Sent) -> None:
        """Add a command; commands with a later begin are removed, since they never act."""
        while self._sent and self._sent[-1].begin >= command.begin:
            self._sent.pop()
        self._sent.append(command)

    def acted(self, stamp: float, begin: float) -> None:
        """Note that the command for the state of `stamp` acts from `begin` [s] on, which was an estimate until now.

        Earlier commands without a report were overtaken and are removed; later commands begin later.
        """
        sent, later = self._sent, []
        while sent and sent[-1].stamp > stamp:
            later.append(sent.pop())
        if sent and sent[-1].stamp == stamp:
            each = sent.pop()
            while sent and not (sent[-1].confirmed and sent[-1].begin < begin):
                sent.pop()  # older commands were handled at the confirmation of this one
            shift = begin - each.begin
            position = each.position + shift * each.rate if shift else each.position
            sent.append(each._replace(begin=begin, position=position, confirmed=True))
        for each in reversed(later):
            if sent and each.begin <= sent[-1].begin:
                shift = sent[-1].begin + each.lasts - each.begin
                each = each._replace(begin=each.begin + shift, position=each.position + shift * each.rate)
            sent.append(each)

    def change(self, begin: float, end: float) -> tuple[Array, Array] | None:
        """(n,) change of the rates from `begin` to `end` [s], and (n,) displacement caused by it; None without a
        change."""
        rate = travel = None
        for lasts, left, acceleration in self._acting(begin, end):
            more, further = lasts * acceleration, lasts * (left + 0.5 * lasts) * acceleration
            rate, travel = (more, further) if rate is None or travel is None else (rate + more, travel + further)
        return None if rate is None or travel is None else (rate, travel)

    def mean_forces(self, begin: float, end: float) -> Array | None:
        """(a + nv,) mean `forces` from `begin` to `end` [s]; None if no command acted at `begin`."""
        total, until = None, end
        for each in reversed(self._sent):
            if each.begin < until and each.forces is not None:
                part = (until - max(each.begin, begin)) * each.forces
                total = part if total is None else total + part
                until = max(each.begin, begin)
            if each.begin <= begin:
                return None if total is None or until > begin else total / (end - begin)
        return None

    def rate_change(self, begin: float, end: float) -> tuple[float, Array] | None:
        """Duration [s] and accelerations (n,) whose product is the change of the rates from `begin` to `end` [s]; None:
        no change."""
        acting = self._acting(begin, end)
        if len(acting) == 1:
            return acting[0][0], acting[0][2]
        change = self.change(begin, end)
        return None if change is None else (1.0, change[0])

    def _acting(self, begin: float, end: float) -> list[tuple[float, float, Array]]:
        """For each command that acts from `begin` to `end` [s]: its duration, the time left after it, its accelerations
        (n,)."""
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
        """(a,) set points and rates at `begin` [s], then set points and rates at `end` under the last command; None if
        no command acts at `begin`."""
        seen = next((each for each in reversed(self._sent) if each.begin <= begin), None)
        if seen is None:
            return None
        last, (here, pace) = self._sent[-1], self.gone(begin - seen.begin)
        position, rate = seen.position + here * seen.rate, pace * seen.rate
        if last is seen and end == begin:
            return position, rate, position, pace * last.left
        there, left = self.gone(end - last.begin)
        return position, rate, last.position + there * last.rate, left * last.left

    def gone(self, time: float) -> tuple[float, float]:
        """Time [s] of travel of a set point `time` s after its begin, and the remaining fraction of its rate."""
        return travelled(time, self.lead), min(max(1.5 - 0.5 * time / self.lead, 0.0), 1.0)
