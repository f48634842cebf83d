"""Online motions: one quintic polynomial from the present state of the reference to rest at a goal, within limits.

    y(t): present value, rate and acceleration at the start, rest at the goal at the end

Every goal of a stream starts a new motion from the present state of the previous one, so that the reference is C2 for
any sequence of goals. The duration is the shortest one of a geometric series for which rate and acceleration stay
within their limits.

A large rate v away from a goal, with its acceleration a, would be carried along for much of the quintic. Where this
is much longer than a brake, it is removed first, as if the output were told to hold:

    y(t) = quintic of the rest + brake,   brake' = v (1 - 3 x^2 + 2 x^3) + a T (x - 2 x^2 + x^3),   x = t / T <= 1

so that a goal behind the output turns it back within the time T, that of a hold or what the acceleration limit needs.
Brake and quintic together exceed this limit by at most `LEFT` of it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PPoly

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.compilation import compiled
from tensegrity_dynamics.numerics.types import Array

from .quintic import QUINTIC
from .splines import PiecewisePolynomial

SAMPLES = 24
"""Number of sample times per motion at which the limits are checked."""
GROWTH, STEPS = 1.08, 120
"""Ratio of successive durations of the series, and their number. The series starts at a lower bound of the duration and
ends at about ten thousand times this bound."""
STEEPEST = 1.5
"""Largest deceleration of a brake from a steady rate, in rates per duration."""
SHORT = 0.5
"""Fraction of the motion's duration up to which a brake comes first."""
CARRIED = 0.2
"""Rate away from the goal, as a fraction of the rate limit, that is carried along: by some 6 % of the distance."""
LEFT = 0.3
"""Part of the acceleration limit that the motion has at least beside its brake."""


@compiled
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


def astray(start: Array, goal: Array, least: float = 0.0) -> Array:
    """(2, k) rate and acceleration of start (3, k) if they lead away from goal (k,) at more than `least`; else zero."""
    away = float(start[1] @ (goal - start[0])) < 0.0 and float(np.linalg.norm(start[1])) > least
    return np.array(start[1:]) if away else np.zeros_like(start[1:])


class OnlineMotion(PiecewisePolynomial):
    """Motion to a goal, see the module docstring; time zero is the start of the motion.

    Args:
        start: (3, k) value, rate and acceleration at the start.
        goal: (k,) value at the end.
        rate, acceleration: upper limits of the norms of rate and acceleration.
        duration: requested duration [s], extended if the limits require it; None: the shortest duration.
        least: smallest duration [s].
        brake: smallest T [s]; 0: no brake.
        strays: (2, k) rate and acceleration to remove first; None: of `astray`.

    Attributes:
        asked_too_short: whether `duration` was extended.
        brake: T [s]; 0 without brake.
        quickest: duration [s] for which the limit of the acceleration, and `least`, would be enough.

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
        brake: float = 0.0,
        strays: Array | None = None,
    ) -> None:
        end: Array = np.array(goal, dtype=np.float64)
        if not (rate > 0.0 and acceleration > 0.0 and least > 0.0):
            raise TensegrityError(f"limits {rate} and {acceleration} and the least time {least} s must be above zero.")
        if not (np.isfinite(start).all() and np.isfinite(end).all()):
            raise TensegrityError("the start or the goal of a motion is not finite.")
        start = np.ascontiguousarray(start, dtype=np.float64)
        took = shortest_duration(start, end, float(rate), float(acceleration), float(least), QUINTIC)
        away = astray(start, end, CARRIED * rate) if strays is None else strays
        steepest = STEEPEST * float(np.linalg.norm(away[0]))  # deceleration times T
        least_brake = max(brake, steepest / acceleration)
        self.brake = least_brake if brake > 0.0 < steepest and least_brake <= SHORT * took else 0.0
        if brake := self.brake:
            start = np.ascontiguousarray(start - np.vstack((0.0 * end, away)))
            end = end - brake * (away[0] / 2.0 + brake * away[1] / 12.0)  # less what the brake covers
            least = max(least, brake / SHORT)
            left = max(LEFT * acceleration, acceleration - steepest / brake)
            took = shortest_duration(start, end, float(rate), float(left), float(least), QUINTIC)
        self.asked_too_short = duration is not None and duration > 0.0 and took > duration * GROWTH
        if duration is not None and duration > took:
            took = float(duration)
        bends = largest_rates(start, end, took, QUINTIC)[1] + (steepest / brake if brake else 0.0)
        self.quickest = max(least, took * math.sqrt(min(bends / acceleration, 1.0)))
        rows = np.stack((start[0], took * start[1], took * took * start[2], end, 0.0 * end, 0.0 * end))
        coefficients = (QUINTIC.T @ rows) / took ** np.arange(6)[:, None]
        whole = PPoly(coefficients[::-1, None, :], np.array([0.0, took]))
        super().__init__(_after_brake(whole, away, brake) if brake else whole)


def _after_brake(motion: PPoly, away: Array, brake: float) -> PPoly:
    """Sum of a motion of one piece and the brake of away (2, k) in its first `brake` s."""
    end = motion.x[-1]
    rate, bend = away[0], brake * away[1]
    slow = np.zeros((6, away.shape[1]))  # of t, from the fifth power to the constant
    slow[4], slow[3] = rate, bend / brake / 2.0
    slow[2], slow[1] = (-3.0 * rate - 2.0 * bend) / brake**2 / 3.0, (2.0 * rate + bend) / brake**3 / 4.0
    later = np.stack([motion(brake, order) / math.factorial(order) for order in range(5, -1, -1)])
    later[5] += brake * (rate / 2.0 + bend / 12.0)
    return PPoly(np.stack((motion.c[:, 0] + slow, later), axis=1), np.array([0.0, brake, end]))
