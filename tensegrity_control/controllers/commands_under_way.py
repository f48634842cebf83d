"""What commands that were sent before do until the next one acts: the way from the state that was seen to the one that
will be met.

A command answers a state that is already past, and it acts later still. In between act those that were sent before it;
what each of them does to the robot was known when it was made. So the state is moved on to the time at which the next
command will act,

    v(t + L) = v(t) + sum a_j h_j,   q(t + L) = q(t) + L v + sum a_j h_j (r_j + h_j / 2)

with a_j the accelerations under command j, h_j the time for which they act within L and r_j what is left of L after
them: a Smith predictor for any mechanism, with the measured delay of each single state and no gain of its own.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from tensegrity_dynamics.numerics.types import Array

KEPT = 64
"""Commands that are remembered."""


class CommandsUnderWay:
    """The accelerations of the last commands and from when on they act.

    Args:
        longest: s for which the accelerations of one command last at most; set points that move on with a constant rate
            have none after the period that they were made for.
    """

    def __init__(self, longest: float) -> None:
        self.longest = longest
        self._sent: deque[tuple[float, Array]] = deque(maxlen=KEPT)

    def clear(self) -> None:
        """None is under way."""
        self._sent.clear()

    def send(self, begin: float, acceleration: Array) -> None:
        """A command that acts from `begin` [s] on, with accelerations (n,) of whatever is to be predicted."""
        while self._sent and self._sent[-1][0] >= begin:  # the later one takes its place
            self._sent.pop()
        self._sent.append((begin, acceleration))

    def change(self, begin: float, end: float) -> tuple[Array, Array] | None:
        """(n,) by which rates change from `begin` to `end` [s], and (n,) what is travelled for it; None: by nothing."""
        rate = travel = None
        until = np.inf
        for start, acceleration in reversed(self._sent):
            first, last = max(start, begin), min(until, start + self.longest, end)
            until = start
            if last > first:
                lasts = last - first
                if rate is None or travel is None:
                    rate, travel = np.zeros_like(acceleration), np.zeros_like(acceleration)
                rate += lasts * acceleration
                travel += lasts * (end - last + 0.5 * lasts) * acceleration
            if start <= begin:
                break
        return None if rate is None or travel is None else (rate, travel)
