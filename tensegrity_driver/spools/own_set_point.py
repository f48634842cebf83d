"""The set point of a servo's own loop: it moves to where the servo is sent at no more than the speed limit.

No servo reports it. It is counted from what was commanded, and corrected by what was measured, as a servo may miss a
command, or have had less time than the count. A servo with an impedance pulls with

    pull = k_p (length - own) + k_d (speed of winding of its own set point - speed of winding)

so that length, speed and current bound it, within the friction of the gear and what it moves in a cycle. A servo
that pulls as much as it can may be any further away in that direction. One that holds positions stiffly is where its
set point is, at most `STIFF_CYCLES` behind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .readings import Drive, DriveCommand, TendonReading
from .spool import Spool

IDLE_FRICTION, LOAD_FRICTION = 0.03, 0.2
"""Largest friction of gear and spool: a share of the actuator's effort, and of the pull on top."""
STIFF_CYCLES = 5.0
"""Cycles by which a servo that holds positions stiffly may be behind its own set point."""


@dataclass
class OwnSetPoint:
    """Own set point of one servo, the feed-forward included.

    Attributes:
        at: m; nan where it is unknown.
        rate: at the end of the last cycle [m/s of winding in]; zero where it has arrived.
    """

    at: float = math.nan
    rate: float = 0.0

    def restart(self, length: float) -> None:
        """Begin at rest at a length [m]."""
        self.at, self.rate = length, 0.0

    def advance(self, sent: DriveCommand, period: float) -> float:
        """Move on for a cycle of `period` s with the command that held in it; returns m wound in."""
        begin = self.at if math.isfinite(self.at) else sent.value + sent.feed
        self.at = sent.carried_on(begin, period)
        along = begin - self.at
        taken = abs(along) / sent.rate if sent.rate > 0.0 else 0.0  # s until it has arrived
        self.rate = along / period if period > 0.0 and taken >= (1.0 - 1e-9) * period else 0.0
        return along

    def correct(self, spool: Spool, sent: DriveCommand, tendon: TendonReading, period: float) -> None:
        """Bound it by what was measured at the end of a cycle of `period` s in which a command held."""
        low, high = measured_bounds(spool, sent, tendon, period)
        self.at = min(max(self.at, low), high)


def measured_bounds(spool: Spool, sent: DriveCommand, tendon: TendonReading, period: float) -> tuple[float, float]:
    """Lowest and highest own set point [m] that a reading allows at the end of a cycle of `period` s, see the module.

    Args:
        sent: command that held in the cycle.
    """
    length, soft = tendon.length, sent.impedance
    if sent.kind is not Drive.POSITION or spool.on_board or not math.isfinite(length):
        return -math.inf, math.inf
    if soft is None:
        behind = STIFF_CYCLES * sent.rate * period
        return length - behind, length + behind
    pull, speed = spool.pull(tendon.raw), spool.winding_speed(tendon.raw)
    if math.isnan(pull):
        return length - sent.compliance, length + sent.compliance
    # the set point has moved on since the servo was read, and its rate then is unknown
    moving = sent.rate * (period + soft.damping / soft.stiffness)
    if math.isnan(speed):
        speed, moving = 0.0, moving + sent.rate * soft.damping / soft.stiffness
    friction = IDLE_FRICTION * spool.actuator.effort + LOAD_FRICTION * abs(pull)
    slack = friction / soft.stiffness + moving
    most = min(sent.tension, spool.strongest_pull(speed)) - friction
    own = length - (pull + soft.damping * speed) / soft.stiffness
    return -math.inf if pull >= most else own - slack, math.inf if -pull >= most else own + slack
