"""Own set point of a servo: the set point inside its position loop, which moves to the commanded position at the speed
limit.

No servo reports it. It is integrated from the commands and corrected by measurements, since a servo may miss a command,
or may have had less time than assumed. A servo with an impedance pulls with

    pull = k_p (length - own) + k_d (speed of winding of its own set point - speed of winding)

so that length, speed and current bound the own set point, within the friction of the gear and the motion in one cycle.
If a servo pulls with its largest force, the own set point has no bound in that direction. A servo with a stiff position
loop is at its own set point, at most `STIFF_CYCLES` behind it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .readings import Drive, DriveCommand, TendonReading
from .spool import Spool

IDLE_FRICTION, LOAD_FRICTION = 0.03, 0.2
"""Largest friction of gear and spool: fraction of the effort of the actuator, plus fraction of the pull."""
STIFF_CYCLES = 5.0
"""Largest lag, in cycles, of a servo with a stiff position loop behind its own set point."""


@dataclass
class OwnSetPoint:
    """Own set point of one servo, including the feed-forward.

    Attributes:
        at: m; nan if unknown.
        rate: rate at the end of the last cycle [m/s of winding in]; zero after its arrival.
    """

    at: float = math.nan
    rate: float = 0.0

    def restart(self, length: float) -> None:
        """Start at rest at a length [m]."""
        self.at, self.rate = length, 0.0

    def advance(self, sent: DriveCommand, period: float) -> float:
        """Move on for a cycle of `period` s under the command of this cycle; returns m wound in."""
        begin = self.at if math.isfinite(self.at) else sent.value + sent.feed
        self.at = sent.carried_on(begin, period)
        along = begin - self.at
        taken = abs(along) / sent.rate if sent.rate > 0.0 else 0.0  # s until it has arrived
        self.rate = along / period if period > 0.0 and taken >= (1.0 - 1e-9) * period else 0.0
        return along

    def correct(self, spool: Spool, sent: DriveCommand, tendon: TendonReading, period: float) -> None:
        """Limit it to the bounds measured at the end of a cycle of `period` s under a command."""
        low, high = measured_bounds(spool, sent, tendon, period)
        self.at = min(max(self.at, low), high)


def measured_bounds(spool: Spool, sent: DriveCommand, tendon: TendonReading, period: float) -> tuple[float, float]:
    """Lowest and highest own set point [m] that agree with a reading at the end of a cycle of `period` s; see the
    module.

    Args:
        sent: command of the cycle.
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
    # the set point has moved on since the reading, and its rate at the reading is unknown
    moving = sent.rate * (period + soft.damping / soft.stiffness)
    if math.isnan(speed):
        speed, moving = 0.0, moving + sent.rate * soft.damping / soft.stiffness
    friction = IDLE_FRICTION * spool.actuator.effort + LOAD_FRICTION * abs(pull)
    slack = friction / soft.stiffness + moving
    most = min(sent.tension, spool.strongest_pull(speed)) - friction
    own = length - (pull + soft.damping * speed) / soft.stiffness
    return -math.inf if pull >= most else own - slack, math.inf if -pull >= most else own + slack
