"""Online motions: one quintic polynomial from the present state of the reference to rest at a goal, within limits.

    y(t): present value, rate and acceleration at the start, rest at the goal at the end

Every goal of a stream starts a new motion from the present state of the previous one, so that the reference is C2 for
any sequence of goals. The duration is the shortest one of a geometric series for which rate and acceleration stay
within their limits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PPoly

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.compilation import compiled, compiled_part
from tensegrity_dynamics.numerics.types import Array

from .quintic import QUINTIC
from .splines import PiecewisePolynomial

SAMPLES = 24
"""Number of sample times per motion at which the limits are checked."""
GROWTH, STEPS = 1.08, 120
"""Ratio of successive durations of the series, and their number. The series starts at a lower bound of the duration and
ends at about ten thousand times this bound."""


@compiled_part
def largest_rates(start, goal, duration, table):
    """Largest |y'| and |y''| along the quintic from start (3, k) to rest at goal (k,)."""
    rate, acceleration = 0.0, 0.0
    count = goal.shape[0]
    for s in range(1, SAMPLES + 1):
        u = s / SAMPLES
        first, second = 0.0, 0.0
        for k in range(count):
            d1, d2 = 0.0, 0.0
            power = 1.0
            for m in range(1, 6):
                c = table[0, m] * start[0, k] + table[3, m] * goal[k]
                c += duration * table[1, m] * start[1, k] + duration * duration * table[2, m] * start[2, k]
                d1 += m * c * power
                if m > 1:
                    d2 += m * (m - 1) * c * power / u
                power *= u
            first += d1 * d1
            second += d2 * d2
        rate = max(rate, np.sqrt(first) / duration)
        acceleration = max(acceleration, np.sqrt(second) / (duration * duration))
    return rate, acceleration


@compiled
def shortest_duration(start, goal, rate_limit, acceleration_limit, least, table):
    """Shortest duration [s] of the series within the limits; if there is none, the one with the smallest violation."""
    distance, speed, bend = 0.0, 0.0, 0.0
    for k in range(goal.shape[0]):
        distance += (goal[k] - start[0, k]) ** 2
        speed += start[1, k] ** 2
        bend += start[2, k] ** 2
    distance, speed, bend = np.sqrt(distance), np.sqrt(speed), np.sqrt(bend)
    # the present rate and acceleration cannot be removed at once
    rates, accelerations = max(rate_limit, 1.001 * speed), max(acceleration_limit, 1.001 * bend)
    duration = max(least, 0.5 * distance / rates)
    best, excess = duration, np.inf
    for _ in range(STEPS):
        rate, acceleration = largest_rates(start, goal, duration, table)
        over = max(rate / rates, acceleration / accelerations)
        if over <= 1.0 + 1e-9:
            return duration
        if over < excess:
            best, excess = duration, over
        duration *= GROWTH
    return best


class OnlineMotion(PiecewisePolynomial):
    """Motion to a goal, see the module docstring; time zero is the start of the motion.

    Args:
        start: (3, k) value, rate and acceleration at the start.
        goal: (k,) value at the end.
        rate, acceleration: upper limits of the norms of rate and acceleration.
        duration: requested duration [s], extended if the limits require it; None: the shortest duration.
        least: smallest duration [s].

    Attributes:
        asked_too_short: whether `duration` was extended.

    Raises:
        TensegrityError: a number is not finite, or a limit is not above zero.
    """

    def __init__(
        self,
        start: Array,
        goal: ArrayLike,
        rate: float,
        acceleration: float,
        *,
        duration: float | None = None,
        least: float = 1e-3,
    ) -> None:
        goal = np.array(goal, dtype=np.float64)
        if not (rate > 0.0 and acceleration > 0.0 and least > 0.0):
            raise TensegrityError(f"limits {rate} and {acceleration} and the least time {least} s must be above zero.")
        if not (np.isfinite(start).all() and np.isfinite(goal).all()):
            raise TensegrityError("the start or the goal of a motion is not finite.")
        start = np.ascontiguousarray(start, dtype=np.float64)
        took = shortest_duration(start, goal, float(rate), float(acceleration), float(least), QUINTIC)
        self.asked_too_short = duration is not None and duration > 0.0 and took > duration * GROWTH
        if duration is not None and duration > took:
            took = float(duration)
        rows = np.stack((start[0], took * start[1], took * took * start[2], goal, 0.0 * goal, 0.0 * goal))
        coefficients = (QUINTIC.T @ rows) / took ** np.arange(6)[:, None]
        super().__init__(PPoly(coefficients[::-1, None, :], np.array([0.0, took])))
