"""The velocity profile by which a servo of the X series takes its own set point to a goal: a trapezoid.

The set point goes at no more than the profile velocity, changes its rate by no more than the profile acceleration (0:
at once), and comes to rest at the goal. A goal ahead of where the set point is to be now therefore lets a servo go on
at the rate that it was told, and brake by itself, when the next command is late. The emulated servo runs it, and the
driver foresees with it what a servo does until its next command.
"""

from __future__ import annotations

import math

STEP_S = 0.001
"""Steps in which a cycle is foreseen [s]."""
MOST_STEPS = 60
"""Of them at most; longer cycles take longer steps."""


def profile_step(
    place: float, rate: float, goal: float, fastest: float, acceleration: float, step: float
) -> tuple[float, float]:
    """Place and rate of the set point after one step.

    Args:
        place, rate: before it. goal: where it is bound for. fastest: profile velocity. acceleration: 0 for no limit.
        step: s.
    """
    way = goal - place
    if not acceleration > 0.0:
        moved = min(max(way, -fastest * step), fastest * step)
        return place + moved, moved / step
    change = acceleration * step
    # of the rates from which it can still stop, in whole steps, the largest one
    allowed = min(fastest, change * (math.sqrt(0.25 + 2.0 * abs(way) / (change * step)) - 0.5))
    wanted = min(math.copysign(allowed, way), way / step, key=abs)
    rate += min(max(wanted - rate, -change), change)
    if abs(way - rate * step) < 1e-3 * change * step and abs(rate) <= change:
        return goal, 0.0
    return place + rate * step, rate


def foreseen(
    place: float, rate: float, goal: float, fastest: float, acceleration: float, time: float
) -> tuple[float, float, float]:
    """Place and rate of the set point after some time [s], and its mean place during it; see `profile_step`."""
    if not time > 0.0:
        return place, rate, place
    count = min(max(1, math.ceil(time / STEP_S)), MOST_STEPS)
    step, total = time / count, 0.0
    for _ in range(count):
        before = place
        place, rate = profile_step(place, rate, goal, fastest, acceleration, step)
        total += 0.5 * (before + place)
    return place, rate, total / count
