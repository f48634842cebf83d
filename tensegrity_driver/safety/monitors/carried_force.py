"""The force that a tendon really takes, out of what its servo gives and how its shaft moves.

The current of a servo that is being accelerated is not the tension. In the direction of winding in, with the inertia J
of rotor and gear at the shaft and the radius r,

    mean tension = mean pull - J / r² · change of speed / time

The mean is taken over whole cycles, as a change of speed over some of them is known much better than an acceleration
at an instant. The pull is read once a cycle, just before the next command. A servo with an impedance has then often
arrived at the goal of the last one, and its damping no longer pushes it along: what the pull was on average over that
cycle, beyond the mean of both its ends, follows from the command,

    k_p (mean of its goal - mean of the goals at both ends) + k_d (mean rate of its goal - mean rate at both ends)

as far as the motor can give it: in the direction of motion at most stall torque · (1 - speed / no-load speed).
"""

from __future__ import annotations

import math
from collections import deque

from ...spools.readings import DriveCommand, TendonReading
from ...spools.spool import Spool


def goal_of(command: DriveCommand | None) -> float:
    """Where the shaft is sent, as wound in [m]; nan where no impedance says."""
    if command is None or command.impedance is None:
        return math.nan
    return -(command.value + command.impedance.effort / command.impedance.stiffness)


def rate_at_end(before: DriveCommand | None, sent: DriveCommand | None, period: float) -> float:
    """Rate of the goal at the end of a cycle [m/s of winding in]: zero where it has arrived.

    Args:
        before, sent: command of the cycle before, and of this one. period: s.
    """
    change = goal_of(sent) - goal_of(before)
    if sent is None or not abs(change) > sent.rate * period:
        return 0.0
    return math.copysign(sent.rate, change)


def ripple(before: DriveCommand | None, sent: DriveCommand | None, period: float, rates: float) -> float:
    """Mean pull over a cycle beyond the mean of its ends [N]; zero of servos that hold positions stiffly.

    Args:
        before, sent, period: see `rate_at_end`. rates: mean of the rates of the goal at both ends [m/s].
    """
    change = goal_of(sent) - goal_of(before)
    if sent is None or sent.impedance is None or math.isnan(change) or not (sent.rate > 0.0 and period > 0.0):
        return 0.0
    along = min(max(change, -sent.rate * period), sent.rate * period)
    taken = abs(along) / sent.rate  # s until it has arrived
    ahead = 0.5 * along * (1.0 - taken / period)
    return sent.impedance.stiffness * ahead + sent.impedance.damping * (along / period - rates)


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
        self._sent: DriveCommand | None = None
        self._rate = 0.0

    def update(self, tendon: TendonReading, sent: DriveCommand | None, period: float) -> None:
        """One cycle.

        Args:
            tendon: as read. sent: command of the cycle before. period: since then [s].
        """
        speed = self.spool.winding_speed(tendon.raw)
        if math.isnan(speed) and period > 0.0:
            speed = (self._length - tendon.length) / period
        rate = rate_at_end(self._sent, sent, period)
        pull, before = self.spool.pull(tendon.raw), self._past[-1][0] if self._past else math.nan
        mean = 0.5 * (before + pull) + ripple(self._sent, sent, period, 0.5 * (self._rate + rate))
        most = self.spool.strongest_pull(speed)
        mean = min(mean, most) if speed > 0.0 else max(mean, -most)
        self._past.append((pull, mean, speed, period))
        self._length, self._sent, self._rate = tendon.length, sent, rate

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
