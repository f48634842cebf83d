"""Bandwidth of the output's loop: what the control period, the cables' stretch and late commands allow.

With both poles at w the loop crosses one at 2.06 w, and has 76 degrees of phase there. The bandwidth is such that the
delays by design, half a period of holding and some periods of late commands, cost `PHASE` of them at most.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables

LAGS = 4.0
"""Time constant of the output's loop in parts of what delays it."""
UNFORESEEN = 0.4
"""Part of the cables' slowest stretch that efforts do not foresee, where the cables differ somewhat from the model."""
DELAYED, PHASE = 3.0, 0.95
"""Periods by which commands may be late, and rad of phase that these may cost."""
ON_SERVOS = 11.0
"""The same periods on servos: a bus cycle of a busy computer lasts up to six, commands come up to five late."""


def affordable(period: float, latest: float, delayed: float = DELAYED) -> float:
    """Part of its bandwidth that the output's loop can afford where commands came `latest` s apart instead of `period`.

    What each is held longer adds to the `delayed` periods and the half one of `bandwidth_of`.
    """
    allowed = (delayed + 0.5) * period
    return allowed / (allowed + max(latest - period, 0.0))


def bandwidth_of(equations: TightCables, period: float, delayed: float = DELAYED) -> float:
    """w [1/s] of the output's loop, at the last state of the equations.

    Slower by `LAGS` than the period together with what of the slowest stretch of the cables is not foreseen; and slow
    enough for `delayed` periods of delay.
    """
    frequencies = equations.stretch_frequencies()
    lag = period + (UNFORESEEN / float(np.min(frequencies)) if frequencies.size else 0.0)
    return float(min(1.0 / (LAGS * lag), PHASE / (2.06 * (delayed + 0.5) * period)))
