"""Set points that continue to move between commands, by the law of the simulator (`impedance`).

A position commanded with its rate, and the position of an impedance, continue with this rate for the lead time of the
sender, then brake and stop. If they lag the commanded positions after a gap between commands, all set points return to
them along a straight line, at no more than `CATCH_UP` of their rate limits, together with the feed-forward of an
impedance.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tensegrity_dynamics.impedance import (
    CATCH_UP,
    ImpedanceSetPoint,
    MovingPosition,
    bound_for,
    lead_of,
    moved_on,
    travelled,
)

from .spool import Spool

QUICK, CALM = 0.2, 0.02
"""Fractions of the rate limit: a motion is quick above the first, until all rates are below the second. This holds for
all servos together: if some move evenly and others in steps, tendons between them become slack."""
UNEVEN, CYCLES = 1.8, 25
"""Ratio of the longest to the median cycle above which cycles are uneven, and number of last cycles evaluated. With
uneven cycles a motion is quick above `CALM`: between steps of uneven length a servo stops and then catches up at
several times its speed, which shakes the robot even in motions at a tenth of its rate."""
Moving = MovingPosition | ImpedanceSetPoint


@dataclass
class MovingSetPoint:
    """Set point of one spool.

    Attributes:
        command, speed: commanded position [m] and rate [m/s].
        age: time since the command [s]. lead: time for which it continues to move [s].
        position: present position [m]. rate: rate in the last step [m/s].
        impedance: commanded impedance, or None. feed: present feed-forward force along the length [N].
    """

    command: float
    speed: float
    age: float
    lead: float
    position: float
    rate: float = 0.0
    impedance: ImpedanceSetPoint | None = None
    feed: float = 0.0

    def ahead(self, time: float) -> float:
        """Displacement [m] by the commanded rate in the next `time` s."""
        return self.speed * (travelled(self.age + time, self.lead) - travelled(self.age, self.lead))


class MovingSetPoints:
    """Moving set points of all spools.

    Args:
        spools: spools by actuator; the mapping may change.

    Attributes:
        quick: whether a quick motion is in progress. It starts when one set point moves faster than `QUICK` of its rate
            limit (`CALM` while cycles are uneven) and ends when all are slower than `CALM`.
    """

    def __init__(self, spools: Mapping[str, Spool]) -> None:
        self._spools = spools
        self.quick = False
        self._cycles: deque[float] = deque(maxlen=CYCLES)  # last durations [s]
        self._points: dict[str, MovingSetPoint] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._points

    def drop(self, name: str) -> None:
        """Remove the set point of one actuator."""
        self._points.pop(name, None)

    def take(self, name: str, value: Moving, start: float, feed: float, age: float, period: float) -> None:
        """Accept a new command for one actuator.

        Args:
            value: set point of the spool.
            start: initial position of a set point that is not moving yet [m].
            feed: present feed-forward force of the servo along the length [N].
            age: age of the command [s]. period: period of its sender [s]; 0 if unknown.
        """
        lead = lead_of(period, age)
        if isinstance(value, ImpedanceSetPoint):
            command, speed, impedance = value.position, value.velocity, value
        else:
            command, speed, impedance = float(value), value.rate, None
        old = self._points.get(name)
        begin = old.position if old is not None else start if math.isfinite(start) else command
        given = old.feed if old is not None and old.impedance is not None else feed
        self._points[name] = MovingSetPoint(command, speed, age, lead, begin, impedance=impedance, feed=given)

    def advance(self, step: float) -> Mapping[str, MovingSetPoint]:
        """Advance all set points by `step` s and return them by actuator."""
        self._cycles.append(step)
        if step <= 0.0 or not self._points:
            return self._points
        slowest, motions = step, {}
        for name, point in self._points.items():
            actuator = self._spools[name].actuator
            reach = actuator.rate * step
            before, ahead = travelled(point.age, point.lead), travelled(point.age + step, point.lead)
            target, own = bound_for(point.command, point.speed, before, ahead, *actuator.position, reach)
            motions[name] = target, own, reach
            slowest = max(slowest, abs(target - point.position - own) / (CATCH_UP * actuator.rate))
            point.age += step
        pace = max(abs(own) / max(reach, 1e-12) for _, own, reach in motions.values())
        uneven = max(self._cycles) > UNEVEN * sorted(self._cycles)[len(self._cycles) // 2]
        self.quick = pace > (CALM if self.quick or uneven else QUICK)
        share = step / slowest
        for name, (target, own, reach) in motions.items():
            point = self._points[name]
            after = moved_on(point.position, target, own, share, *self._spools[name].actuator.position, reach)
            if point.impedance is not None:
                point.feed += share * (point.impedance.effort - point.feed)
            point.rate, point.position = (after - point.position) / step, after
        return self._points


def impedance_now(point: MovingSetPoint) -> ImpedanceSetPoint | None:
    """Present impedance of a set point, or None for a plain position."""
    if point.impedance is None:
        return None
    return replace(point.impedance, position=point.position, velocity=point.rate, effort=point.feed)
