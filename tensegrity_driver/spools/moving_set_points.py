"""Set points that move on by themselves between commands, by the law of the simulator (`impedance`).

A position that comes with its rate, and the position of an impedance, move on with that rate for the sender's lead,
then brake and stand still. Where they are behind what is commanded, after a gap, all of them catch up along a straight
line, no faster than `CATCH_UP` of their rates, and the feed-forward of an impedance with them.
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
"""Parts of the rate limit: above the first a motion is quick, below the second it has ended. For all servos at once:
where some go evenly and others in steps, tendons between them slacken."""
UNEVEN, CYCLES = 1.8, 25
"""Times the usual cycle that a longer one takes among the last ones, while which every motion counts as quick that is
not slow: in steps of uneven length a servo stops, and makes up for it at several times its speed, which shakes the
robot in motions of a tenth of its rate, too."""
Moving = MovingPosition | ImpedanceSetPoint


@dataclass
class MovingSetPoint:
    """One of them.

    Attributes:
        command, speed: position [m] and rate [m/s] as commanded. age: s since then. lead: s for which it moves on.
        position: present one [m]. rate: of the last step [m/s].
        impedance: as commanded, or None. feed: force along the length given at present [N].
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
        """m that it goes by itself in the next `time` s."""
        return self.speed * (travelled(self.age + time, self.lead) - travelled(self.age, self.lead))


class MovingSetPoints:
    """Those of all spools.

    Args:
        spools: by actuator; may change.

    Attributes:
        quick: they are in a quick motion: since one of them moved with more than `QUICK` of its rate (`CALM` while
            cycles are uneven) until all are slower than `CALM`.
    """

    def __init__(self, spools: Mapping[str, Spool]) -> None:
        self._spools = spools
        self.quick = False
        self._cycles: deque[float] = deque(maxlen=CYCLES)  # s of the last ones
        self._points: dict[str, MovingSetPoint] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._points

    def drop(self, name: str) -> None:
        """Forget one."""
        self._points.pop(name, None)

    def take(self, name: str, value: Moving, start: float, feed: float, age: float, period: float) -> None:
        """A new command.

        Args:
            value: of the spool. start: where a set point begins that does not move yet [m]. feed: force along the
                length that its servo gives now [N]. age: s of the command. period: of its sender [s], 0: not known.
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
        """All of them after another `step` s."""
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
    """The impedance that holds at present, or None of a plain position."""
    if point.impedance is None:
        return None
    return replace(point.impedance, position=point.position, velocity=point.rate, effort=point.feed)
