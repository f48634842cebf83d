"""Delay of the response of the output to commands, estimated from commanded and measured changes of the rate.

This estimate is for plants that do not report the delay. In every period the rate of the output changes by dv, apart
from the planned change. The command of j periods before would have changed it by d_j, apart from the planned change.
Both are small unless the loop is disturbed and oscillates. Over some periods, with exponential forgetting, the delay j
with the smallest residual is searched:

    R_j = sum |dv - d_j|^2,   P = sum |d_j|^2

Disturbances and model errors add the same amount to all R_j; a response that is later than expected does not. Another
delay than the expected one is accepted if its residual is less than `CLEARLY` times that of the expected delay, and if
the latter is more than `WRONG` times P. Both must hold for `SURE` consecutive periods in which the delay changes by at
most one period: single jolts, for example when a limit becomes inactive, fit at delays that jump from period to period.

Impedance actuators realise part of a command by their position error, so that the first estimate is between the
expected delay and the true one. The expected delay changes by at most `STEP` periods, and the search starts again from
there.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.types import Array

LONGEST = 10
"""Largest delay of the search, in periods."""
REMEMBERED = 40
"""Time constant of the forgetting, in periods."""
CLEARLY, WRONG = 0.7, 0.25
"""See the module."""
SURE = 15
"""Number of consecutive periods for which another delay must fit better."""
STEP = 2
"""Largest change of the expected delay at once, in periods."""
SLIGHT = 0.1
"""Commanded change of rate within the memory, relative to the largest rate, below which no conclusion is drawn."""


@allocation_free
def remember(period, fastest, output, planned, commanded, energy):
    """Shift the stored changes by one period and insert a new change (k,) and its square; see `AnswerDelay.record`."""
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
    """Update R and P of the module for all delays with a measured change (k,); returns the delay with the smallest R.

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
    """Estimator of the response delay; see the module.

    Args:
        outputs: number k of outputs.

    Attributes:
        periods: estimated delay in periods; None as long as no other delay than the expected one was found.
    """

    def __init__(self, outputs: int) -> None:
        self._commanded = np.zeros((LONGEST + 1, outputs))
        self._energy, self._left, self._size = np.zeros((3, LONGEST + 1))
        self._remember, self._compare = QuickCall(remember), QuickCall(compare)
        self.forget()

    def forget(self) -> None:
        """Forget all measurements and the estimated delay."""
        self._commanded[:] = 0.0
        self._energy[:] = self._left[:] = self._size[:] = 0.0
        self._count = self._seen = self._best = 0
        self.periods: int | None = None

    def record(self, period: float, fastest: Array, output: Array, planned: Array) -> None:
        """Store the command of this period.

        Args:
            period: s.
            fastest: (k,) largest rates, for scaling.
            output: (k,) acceleration of the output under the command.
            planned: (k,) planned part of it.
        """
        self._remember(period, fastest, output, planned, self._commanded, self._energy)

    def see(self, period: float, fastest: Array, rate: Array, before: Array, planned: Array, expected: int) -> bool:
        """Process a measurement; returns whether a delay other than the expected one was found.

        Call it before `record` of the same period.

        Args:
            period, fastest, planned: as in `record`.
            rate, before: (k,) rates of the output at this state and at the last one.
            expected: expected delay in periods.
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
