"""From a wanted rest length to what a servo is asked, once per bus cycle, for every way in which servos are driven.

A servo in free-run (wheel) mode only knows speeds; its potentiometer closes the loop here (001, section 7.2):

    v = clip(k_p e + s, ±rate),   s ← clip(s + T k_i e, ±rate / 2),   e = goal − length

The sum s stays as it is where the last speed sent fell short of the one asked for and s would grow further that way, so
that it never winds up against a limit, whoever applied it: the rate here, or the safety layer later. T is the period
that really passed. Servos that count turns are sent positions, moved on at no more than the rate. Nothing here reads a
clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import TensegrityError

from .readings import Drive, DriveCommand, Spool

TENSION_TIME = 0.2
"""Time constant [s] with which a spool approaches a tension that is asked for; long against the delay of a bus."""
LONGEST_STEP = 5.0
"""Periods as planned after which a longer one counts as this long: a loop must not catch up on a pause."""


LARGEST_SUM = 0.5
"""Fraction of the rate that the integral part may ask for: enough for a loaded servo to hold."""


class Loop(Protocol):
    """How the safety layer drives one spool."""

    def take_over(self, length: float) -> None:
        """Start from a measured rest length [m] without a jump."""

    def update(self, goal: float, length: float, period: float, sent: DriveCommand | None) -> DriveCommand:
        """One cycle: goal and measured length in m, the period that passed in s, what was sent in the last cycle."""


def usable_period(period: float, planned: float) -> float:
    """A measured period [s] that a loop may count on: zero where it makes no sense, never much longer than planned."""
    return min(period, LONGEST_STEP * planned) if math.isfinite(period) and period > 0.0 else 0.0


class FreeRunLoop:
    """PI loop with anti-windup and velocity limit for a servo that follows speeds only.

    Args:
        spool: its limits hold here.
        period: s as planned.
        proportional: 1/s; None takes 0.1 per period, which leaves room for two cycles of delay.
        integral: 1/s²; None takes a quarter of proportional squared, the double pole of a spool that just follows.
        dead_band: m of error that count as none: half the resolution of the potentiometer.

    Raises:
        TensegrityError: gains that no delay of a bus cycle could stand.
    """

    def __init__(
        self,
        spool: Spool,
        period: float,
        *,
        proportional: float | None = None,
        integral: float | None = None,
        dead_band: float | None = None,
    ) -> None:
        self.spool, self.period = spool, period
        self.proportional = 0.1 / period if proportional is None else proportional
        self.integral = self.proportional**2 / 4.0 if integral is None else integral
        resolution = abs(spool.potentiometer.slope) if spool.potentiometer is not None else 0.0
        self.dead_band = 0.5 * resolution if dead_band is None else dead_band
        if not (0.0 < self.proportional * period <= 0.5 and 0.0 <= self.integral <= self.proportional**2):
            raise TensegrityError(
                f"position loop of {spool.name}: proportional {self.proportional:g} 1/s must be above zero and at most "
                f"{0.5 / period:g} 1/s at {period:g} s per cycle, integral {self.integral:g} 1/s² between 0 and its "
                "square."
            )
        if not (math.isfinite(self.dead_band) and self.dead_band >= 0.0):
            raise TensegrityError(f"position loop of {spool.name}: dead band {self.dead_band} m must not be negative.")
        self._sum = 0.0
        self._asked = 0.0

    @property
    def sum(self) -> float:
        """The integral part [m/s]: what the servo must be asked merely to stand still under load."""
        return self._sum

    def take_over(self, length: float) -> None:
        """Start at rest: the first command at a goal equal to the measured length is zero."""
        self._sum = self._asked = 0.0

    def update(self, goal: float, length: float, period: float, sent: DriveCommand | None) -> DriveCommand:
        """One cycle; without a length or a goal it asks for rest."""
        actuator = self.spool.actuator
        step = usable_period(period, self.period)
        error = goal - length
        if not math.isfinite(error) or step == 0.0:
            self._asked = 0.0
            return DriveCommand(Drive.VELOCITY, 0.0, actuator.rate, actuator.effort)
        if abs(error) <= self.dead_band:
            error = 0.0
        given = sent.value if sent is not None and sent.kind is Drive.VELOCITY else 0.0
        short = self._asked - given  # what a limit took away from the last speed
        if short * error <= 0.0:
            most = LARGEST_SUM * actuator.rate
            self._sum = min(max(self._sum + self.integral * error * step, -most), most)
        self._asked = self.proportional * error + self._sum
        speed = min(max(self._asked, -actuator.rate), actuator.rate)
        return DriveCommand(Drive.VELOCITY, speed, actuator.rate, actuator.effort, goal)


class PositionLoop:
    """Positions for a servo that counts turns, moved on at no more than the rate of its actuator.

    Args:
        spool: with a calibrated encoder.
        period: s as planned.
        tension: ceiling [N] of a servo in current-based position mode, at most the effort of the actuator; None takes
            the effort.
    """

    def __init__(self, spool: Spool, period: float, *, tension: float | None = None) -> None:
        if spool.encoder is None or spool.encoder_turn or spool.measured_by != "encoder":
            raise TensegrityError(
                f"{spool.name}: its servo counts no turns, or its encoder has no calibration or does not measure; use "
                "the free-run loop, or calibrate the encoder and measure by it."
            )
        ceiling = spool.actuator.effort if tension is None else tension
        if not 0.0 < ceiling <= spool.actuator.effort:
            raise TensegrityError(
                f"{spool.name}: a tension ceiling of {ceiling:g} N must be above zero and at most its effort of "
                f"{spool.actuator.effort:g} N."
            )
        self.spool, self.period, self.tension = spool, period, ceiling
        self._reference = math.nan

    @property
    def reference(self) -> float:
        """Where the servo is sent at present [m]."""
        return self._reference

    def take_over(self, length: float) -> None:
        """Start at the measured rest length: the first command sends the servo to where it is."""
        self._reference = length

    def update(self, goal: float, length: float, period: float, sent: DriveCommand | None) -> DriveCommand:
        """One cycle; without a goal the servo stays where it was last sent."""
        actuator = self.spool.actuator
        if sent is not None and sent.kind is Drive.POSITION:
            self._reference = sent.value  # what the safety layer made of it
        if not math.isfinite(self._reference):
            self._reference = length
        step = actuator.rate * usable_period(period, self.period)
        if math.isfinite(goal):
            self._reference = min(max(goal, self._reference - step), self._reference + step)
        return DriveCommand(Drive.POSITION, self._reference, actuator.rate, self.tension, goal)


class SetPoint:
    """The goal of one tendon, moved on as its last command says: to a length, at a velocity, or for a tension.

    The goal never leaves the position limits, nor runs away from the measured length by more than `lead` s at the
    rate of the actuator, so that a spool that is held up does not rush once it is free.
    """

    def __init__(self, spool: Spool, lead: float) -> None:
        self.spool, self.lead = spool, lead
        self.goal = math.nan

    def hold(self, length: float) -> None:
        """Stay at a length [m]."""
        self.goal = length

    def update(self, command: tuple[Mode, float], length: float, tension: float, period: float) -> float:
        """The goal [m] of this cycle.

        Raises:
            TensegrityError: a tension is asked for where none is measured or the stiffness is not known.
        """
        mode, value = command
        actuator = self.spool.actuator
        low, high = actuator.position
        if mode is Mode.POSITION:
            self.goal = min(max(value, low), high)
            return self.goal
        if not math.isfinite(self.goal):
            self.goal = length
        if mode is Mode.VELOCITY:
            speed = value
        else:
            if self.spool.stiffness is None or not math.isfinite(tension):
                raise TensegrityError(
                    f"{self.spool.name} cannot be driven by tension: its servo tells none or the stiffness of its "
                    "tendon is not known. Command a position or a velocity."
                )
            speed = (tension - value) / (self.spool.stiffness * TENSION_TIME)
        speed = min(max(speed, -actuator.rate), actuator.rate)
        reach = actuator.rate * self.lead
        moved = min(max(self.goal + speed * period, length - reach), length + reach)
        self.goal = min(max(moved, low), high)
        return self.goal


@dataclass
class CycleCounter:
    """How regularly the loop runs, counted from the periods that it is told.

    Attributes:
        planned: s. tolerance: factor on it above which a cycle is an overrun.
        cycles, overruns: so far. longest: s. elapsed: s in all.
    """

    planned: float
    tolerance: float = 1.5
    cycles: int = 0
    overruns: int = 0
    longest: float = 0.0
    elapsed: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.planned) and self.planned > 0.0 and self.tolerance >= 1.0):
            raise TensegrityError(
                f"planned period {self.planned} s must be above zero and tolerance {self.tolerance} at least 1."
            )

    def count(self, period: float) -> bool:
        """Count one cycle of `period` s; returns whether it was an overrun. A period that makes no sense is one."""
        sane = math.isfinite(period) and period >= 0.0
        late = not sane or period > self.tolerance * self.planned
        self.cycles += 1
        self.overruns += late
        if sane:
            self.longest = max(self.longest, period)
            self.elapsed += period
        return late

    @property
    def rate(self) -> float:
        """Cycles per second so far."""
        return self.cycles / self.elapsed if self.elapsed > 0.0 else 0.0
