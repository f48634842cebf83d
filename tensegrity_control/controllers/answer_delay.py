"""How late the motion answers to commands, from what was stated and what was seen, where nobody reports it.

Beside what is planned, the output's rate changes in every period by dv; what was stated j periods before, beside what
was planned, would have changed it by d_j. That is small unless the loop is troubled, and then swings. Over some
periods, with old ones forgotten, that delay j is found which leaves least unexplained:

    R_j = sum |dv - d_j|^2,   P = sum |d_j|^2

Pushes and errors of the model add to all R_j alike, a motion that answers later than expected does not. A delay other
than the expected one is believed where it leaves less than `CLEARLY` of what that leaves, which in turn must be more
than `WRONG` of P, for `SURE` periods on end in which it stays the same but for one period: single jolts, as where a
limit lets motion go, are like each other at delays that jump about. Actuators with impedances do part of a command by
where it finds them, so that what is found first lies between the expected delay and the true one; it goes there by
`STEP` periods at most, and is looked for again from there.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.types import Array

LONGEST = 10
"""Periods of delay that are looked for."""
REMEMBERED = 40
"""Periods after which what was seen is forgotten."""
CLEARLY, WRONG = 0.7, 0.25
"""See the module."""
SURE = 15
"""Periods on end for which another delay must be the better one."""
STEP = 2
"""Periods by which the delay that is expected changes at once."""
SLIGHT = 0.1
"""Change of rate that is commanded within what is remembered, in parts of the largest rate, below which nothing is
concluded."""


@allocation_free
def remember(period, fastest, output, planned, commanded, energy):
    """Put a change (k,) and its square before those that were commanded earlier; see `AnswerDelay.record`."""
    for j in range(commanded.shape[0] - 1, 0, -1):
        energy[j] = energy[j - 1]
        for k in range(commanded.shape[1]):
            commanded[j, k] = commanded[j - 1, k]
    energy[0] = 0.0
    for k in range(commanded.shape[1]):
        commanded[0, k] = period / fastest[k] * (output[k] - planned[k])
        energy[0] += commanded[0, k] * commanded[0, k]


@allocation_free
def compare(period, fastest, rate, before, planned, commanded, energy, left, size):
    """Add to R and P of the module, at all delays, a change (k,) that was seen; returns the delay of the least R.

    See `AnswerDelay.see`.
    """
    kept, best = 1.0 - 1.0 / REMEMBERED, 0
    for j in range(commanded.shape[0]):
        off = 0.0
        for k in range(commanded.shape[1]):
            change = (rate[k] - before[k] - period * planned[k]) / fastest[k]
            off += (change - commanded[j, k]) ** 2
        left[j] = kept * left[j] + off
        size[j] = kept * size[j] + energy[j]
        if left[j] < left[best]:
            best = j
    return best


class AnswerDelay:
    """See the module.

    Args:
        outputs: k.

    Attributes:
        periods: by which motion answers late, as far as it was found; None where nothing else than expected was.
    """

    def __init__(self, outputs: int) -> None:
        self._commanded = np.zeros((LONGEST + 1, outputs))
        self._energy, self._left, self._size = np.zeros((3, LONGEST + 1))
        self._remember, self._compare = QuickCall(remember), QuickCall(compare)
        self.forget()

    def forget(self) -> None:
        """What was seen, not what was found."""
        self._commanded[:] = 0.0
        self._energy[:] = self._left[:] = self._size[:] = 0.0
        self._count = self._seen = self._best = 0
        self.periods: int | None = None

    def record(self, period: float, fastest: Array, output: Array, planned: Array) -> None:
        """What the command of this period does: the output's acceleration (k,), of which some is planned (k,).

        Args:
            period: s. fastest: (k,) rates that count as one.
        """
        self._remember(period, fastest, output, planned, self._commanded, self._energy)

    def see(self, period: float, fastest: Array, rate: Array, before: Array, planned: Array, expected: int) -> bool:
        """Whether a delay other than the expected one, in periods, was found.

        Args:
            rate, before: (k,) of the output, now and at the last state. The others as in `record`, which comes after
            it.
        """
        best = self._compare(
            period, fastest, rate, before, planned, self._commanded, self._energy, self._left, self._size
        )  # fmt: skip
        self._seen += 1
        expected = min(expected, LONGEST)
        reported = float(self._size[expected])
        if self._seen < LONGEST or reported * REMEMBERED < SLIGHT**2:
            self._count = 0
            return False
        here = float(self._left[expected])
        clear = best not in (expected, LONGEST) and float(self._left[best]) < CLEARLY * here and here > WRONG * reported
        same, self._best = abs(best - self._best) <= 1, best
        self._count = (self._count + 1 if same else 1) if clear else 0
        if self._count < SURE:
            return False
        self._count, self.periods = 0, min(max(best, expected - STEP), expected + STEP)
        return True
