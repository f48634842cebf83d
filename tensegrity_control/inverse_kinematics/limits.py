"""Limits of tensions and actuator positions as rows, with words for what binds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensegrity_dynamics.numerics.types import Array

QUANTITIES = {
    "tension": ("N", "floor", "ceiling"), "rest length": ("m", "shortest", "longest"),
    "angle": ("rad", "lowest", "highest"), "position": ("m", "lowest", "highest"),
}  # fmt: skip
"""Unit and words for the two ends of what is limited."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Rows with a lowest and a highest value, each with its words.

    Attributes:
        low, high: (r,) N or m; infinite where there is no limit.
        scale: (r,) size of a typical value, to judge what counts as touching.
        names: r member names.
        quantities: r of `QUANTITIES`.
    """

    low: Array
    high: Array
    scale: Array
    names: tuple[str, ...]
    quantities: tuple[str, ...]

    def violation(self, values: Array) -> float:
        """Largest excess over a limit, in units of the rows' scale; zero or negative inside."""
        return float(np.max(np.maximum(self.low - values, values - self.high) / self.scale, initial=-np.inf))

    def touched(self, values: Array, tolerance: float) -> list[int]:
        """Rows within `tolerance` (relative to their scale) of a limit."""
        distance = np.minimum(values - self.low, self.high - values) / self.scale
        return [int(row) for row in np.flatnonzero(distance < tolerance)]

    def describe(self, row: int, value: float) -> str:
        """What binds and with which value, as in 'draw_3: tension 4.45 N at its floor of 4.45 N'."""
        at_low = value - self.low[row] < self.high[row] - value
        bound = self.low[row] if at_low else self.high[row]
        unit, lowest, highest = QUANTITIES[self.quantities[row]]
        word = lowest if at_low else highest
        return f"{self.names[row]}: {self.quantities[row]} {value:.4g} {unit} at its {word} of {bound:.4g} {unit}"
