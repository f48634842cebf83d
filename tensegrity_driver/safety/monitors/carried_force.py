"""The force that a tendon really takes, out of what its servo gives and how its shaft moves.

The current of a servo that is being accelerated is not the tension. In the direction of winding in, with the inertia J
of rotor and gear at the shaft and the radius r,

    mean tension = mean pull - J / r² · change of speed / time

The mean is taken over whole cycles, as a change of speed over some of them is known much better than an acceleration
at an instant. The pull is read once a cycle, just before the next command. A servo with an impedance may then have
arrived where the last one sent it, and its damping no longer pushes it along: what the pull was on average over that
cycle, beyond the mean of both its ends, follows from how the servo's own set point moved,

    k_p (mean of it - mean of it at both ends) + k_d (mean of its rate - mean of its rate at both ends)

as far as the motor can give it: in the direction of motion at most stall torque · (1 - speed / no-load speed).
"""

from __future__ import annotations

import math
from collections import deque

from ...spools.own_set_point import OwnSetPoint
from ...spools.readings import DriveCommand, TendonReading
from ...spools.spool import Spool


def ripple(own: OwnSetPoint, sent: DriveCommand | None, period: float) -> float:
    """Mean pull over a cycle beyond the mean of its ends [N]; zero of servos that hold positions stiffly.

    Args:
        own: set point of the servo's own loop, moved on by the cycle. sent: command of the cycle. period: s.
    """
    soft = None if sent is None else sent.impedance
    if sent is None or soft is None or not (sent.rate > 0.0 and period > 0.0):
        own.restart(math.nan)
        return 0.0
    before = own.rate
    along = own.advance(sent, period)
    ahead = 0.5 * along * (1.0 - abs(along) / sent.rate / period)
    return soft.stiffness * ahead + soft.damping * (along / period - 0.5 * (before + own.rate))


class CarriedForce:
    """Mean of that force over some cycles.

    Args:
        spool: that winds the tendon. cycles: readings between which the mean is taken.
    """

    def __init__(self, spool: Spool, cycles: int) -> None:
        self.spool = spool
        self._mass = spool.inertia / spool.radius**2
        # (pull, its mean since the reading before, speed of winding in, period)
        self._past: deque[tuple[float, float, float, float]] = deque(maxlen=max(cycles, 2))
        self._length = math.nan
        self._own = OwnSetPoint()

    def update(self, tendon: TendonReading, sent: DriveCommand | None, period: float) -> None:
        """One cycle.

        Args:
            tendon: as read. sent: command of the cycle before. period: since then [s].
        """
        speed = self.spool.winding_speed(tendon.raw)
        if math.isnan(speed) and period > 0.0:
            speed = (self._length - tendon.length) / period
        pull, before = self.spool.pull(tendon.raw), self._past[-1][0] if self._past else math.nan
        mean = 0.5 * (before + pull) + ripple(self._own, sent, period)
        if sent is not None:
            self._own.correct(self.spool, sent, tendon, period)
        most = self.spool.strongest_pull(speed)
        mean = min(mean, most) if speed > 0.0 else max(mean, -most)
        self._past.append((pull, mean, speed, period))
        self._length = tendon.length

    @property
    def mean(self) -> float:
        """N, in the direction of winding in; nan where it is unknown."""
        if self._mass == 0.0:
            return sum(each[0] for each in self._past) / len(self._past) if self._past else math.nan
        elapsed = sum(period for *_, period in list(self._past)[1:])
        if not elapsed > 0.0:
            return math.nan
        impulse = sum(mean * period for _, mean, _, period in list(self._past)[1:])
        return (impulse - self._mass * (self._past[-1][2] - self._past[0][2])) / elapsed
