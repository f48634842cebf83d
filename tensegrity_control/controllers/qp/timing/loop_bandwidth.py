"""Bandwidth of the output's loop, limited by the control period, the stretch of the cables and late commands.

With both poles at w the loop has its crossover at 2.06 w and a phase margin of 76 degrees there. The bandwidth is
chosen so that the expected delays, half a period of holding and some periods of late commands, cost at most `PHASE` of
it.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables

LAGS = 4.0
"""Time constant of the output's loop, in multiples of its lag."""
UNFORESEEN = 0.4
"""Fraction of the slowest stretch of the cables that the efforts do not compensate, since real cables differ from the
model."""
DELAYED, PHASE = 3.0, 0.95
"""Allowed delay of commands in periods, and phase [rad] that it may cost."""
MARGIN = 2.0
"""Delay in periods that is allowed for beyond the known one, which changes from command to command."""
ON_SERVOS = 11.0
"""The same delay in periods for servos: a bus cycle of a busy computer lasts up to six periods, commands are up to five
late."""


def affordable(period: float, latest: float, delayed: float = DELAYED, late: float = 0.0) -> float:
    """Fraction of its bandwidth that the output's loop can use if commands came `latest` s apart instead of `period`,
    each `late` s after its state.

    The longer duration of each command, and the known delay as far as it leaves less than `MARGIN` of the `delayed`
    periods, add to the delays of `bandwidth_of`. A known delay counts although the state is predicted: the prediction
    contains no vibrations of the robot on its actuators, which a faster loop excites.
    """
    allowed = (delayed + 0.5) * period
    more = max(latest - period, 0.0) + max(late + (MARGIN - delayed) * period, 0.0)
    return allowed / (allowed + more)


def bandwidth_of(equations: TightCables, period: float, delayed: float = DELAYED) -> float:
    """w [1/s] of the output's loop, at the last state of the equations.

    The time constant is at least `LAGS` times the sum of the period and the uncompensated part of the slowest stretch
    of the cables; the delay of `delayed` periods is allowed for.
    """
    frequencies = equations.stretch_frequencies()
    lag = period + (UNFORESEEN / float(np.min(frequencies)) if frequencies.size else 0.0)
    return float(min(1.0 / (LAGS * lag), PHASE / (2.06 * (delayed + 0.5) * period)))
