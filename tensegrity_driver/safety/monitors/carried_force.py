"""Force that a tendon carries, from the pull of its servo and the motion of the servo's shaft.

While a servo is accelerated, its current is not proportional to the tension. In the direction of winding in, with the
inertia J of rotor and gear at the shaft and the radius r,

    mean tension = mean pull - J / r² · change of speed / time

The mean is taken over whole cycles, since a change of speed over several cycles is more accurate than an instantaneous
acceleration. The pull is read once per cycle, just before the next command. A servo with an impedance may by then have
reached its last set point, so that its damping no longer drives it. The mean pull of a cycle therefore exceeds the mean
of its two end values by a term that follows from the motion of the servo's own set point,

    k_p (mean position - mean of its end values) + k_d (mean rate - mean of its end values)

limited to what the motor can give: in the direction of motion at most stall torque · (1 - speed / no-load speed).
"""

from __future__ import annotations

import math
from collections import deque

from ...spools.own_set_point import OwnSetPoint
from ...spools.readings import DriveCommand, TendonReading
from ...spools.spool import Spool


def ripple(own: OwnSetPoint, sent: DriveCommand | None, period: float) -> float:
    """Mean pull over a cycle minus the mean of its end values [N]; zero for servos that hold positions stiffly.

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
    """Mean carried force over several cycles.

    Args:
        spool: of the tendon. cycles: readings between which the mean is taken.
    """

    def __init__(self, spool: Spool, cycles: int) -> None:
        self.spool = spool
        self._mass = spool.inertia / spool.radius**2
        # (pull, mean pull since the previous reading, winding speed, period)
        self._past: deque[tuple[float, float, float, float]] = deque(maxlen=max(cycles, 2))
        self._length = math.nan
        self._own = OwnSetPoint()

    def update(self, tendon: TendonReading, sent: DriveCommand | None, period: float) -> None:
        """Add one cycle.

        Args:
            tendon: its reading. sent: command of the previous cycle. period: time since the previous reading [s].
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
        """Mean force [N], positive for winding in; nan where unknown."""
        if self._mass == 0.0:
            return sum(each[0] for each in self._past) / len(self._past) if self._past else math.nan
        elapsed = sum(period for *_, period in list(self._past)[1:])
        if not elapsed > 0.0:
            return math.nan
        impulse = sum(mean * period for _, mean, _, period in list(self._past)[1:])
        return (impulse - self._mass * (self._past[-1][2] - self._past[0][2])) / elapsed
