"""Position loops of the spools, updated once per bus cycle, and their set points.

A servo in free-run (wheel) mode is driven by velocities. Its loop is closed here by the potentiometer (001, section
7.2), with a PI law:

    v = clip(k_p e + s, ±rate),   s ← clip(s + T k_i e, ±rate / 2),   e = goal − length

Anti-windup: if the last velocity was limited, here or by the safety layer, and s would grow in that direction, s keeps
its value. T is the measured period. Multi-turn servos receive positions that change at the rate limit at most, and so
do servos whose loop the potentiometer board closes (`firmware/`).

In a fast motion a set point x that moves between commands also moves between the bus cycles. Its servo is sent to the
position of x after the lead of the safety layer, at a speed that removes the difference to the servo's own set point y
in two cycles,

    goal = x + (motion of x in the lead),   |speed| = |(x - y) / 2 + (motion of x in a cycle)| / cycle

so that y moves smoothly even with irregular cycles: with cycles c times as long as planned, one cycle reduces x - y by
the factor |1 - c / 2|, which is below one up to c = 4. A servo that is sent to x only, slightly faster than x, starts
and brakes in every cycle. In a fast motion this shakes the robot; in a slow one it prevents the friction of the gear
from accumulating an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.impedance import ImpedanceSetPoint

from .own_set_point import OwnSetPoint
from .readings import Drive, DriveCommand, TendonReading
from .spool import Spool

TENSION_TIME_S = 0.2
"""Time constant with which a spool approaches a commanded tension [s]; long compared with the delay of the bus."""
CORRECTING_CYCLES = 2.0
"""Number of cycles in which the servo's own set point removes its error."""
PROFILE_MARGIN = 1.25
"""Ratio of the speed limit of a servo to the speed of its slow set point; the margin removes an error."""
SLOWEST_PROFILE = 0.05
"""Smallest speed limit of such a servo, as a fraction of the rate limit."""
BOARD_PERIOD_S = 0.01
"""Period of the position loops of the potentiometer board [s]."""
MAX_STEP_PERIODS = 5.0
"""Longest step of a loop in planned periods, so that it makes no large step after a pause."""
MAX_INTEGRAL_SHARE = 0.5
"""Largest integral part as a fraction of the rate limit: enough for a loaded servo to hold."""


class Loop(Protocol):
    """Position loop of one spool."""

    def take_over(self, length: float) -> None:
        """Restart at a measured rest length [m] without a jump."""

    def update(
        self, goal: float, length: float, period: float, sent: DriveCommand | None, rate: float | None = None,
        ahead: tuple[float, float] | None = None, impedance: ImpedanceSetPoint | None = None,
        tendon: TendonReading | None = None,
    ) -> DriveCommand:  # fmt: skip
        """Command of one cycle.

        Args:
            goal: rest length to reach [m]; nan for none.
            length: measured rest length [m].
            period: time since the last cycle [s].
            sent: command of the last cycle after all limits, or None.
            rate: rate at which the goal moves between commands [m/s]; None if it does not move.
            ahead: displacements [m] of the goal in the next planned cycle and in the lead, in a fast motion; else None.
            impedance: impedance of the servo's own loop, or None.
            tendon: complete reading of the spool, or None.
        """


def usable_period(period: float, planned: float) -> float:
    """Measured period [s] limited to `MAX_STEP_PERIODS` planned ones; zero if it is negative or not finite."""
    return min(period, MAX_STEP_PERIODS * planned) if math.isfinite(period) and period > 0.0 else 0.0


class FreeRunLoop:
    """PI loop with anti-windup and velocity limit for a servo in wheel mode.

    Args:
        spool: spool; its rate limits the velocity.
        period: planned period of the bus cycle [s].
        proportional: gain k_p [1/s]; higher is faster, with less phase margin. None: 0.1 per period, which tolerates
            two cycles of delay.
        integral: gain k_i [1/s²]; higher removes the error under load faster. None: a quarter of the squared
            proportional gain, which gives a double pole without servo dynamics.
        dead_band: error that counts as zero [m]; None: half the resolution of the potentiometer.

    Raises:
        TensegrityError: the gains are unstable with the delay of a bus cycle, or the dead band is negative.
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
                f"position loop of {spool.name}: the proportional gain is {self.proportional:g} 1/s, must be above "
                f"zero and at most {0.5 / period:g} 1/s with a cycle of {period:g} s; the integral gain is "
                f"{self.integral:g} 1/s², must be between 0 and the square of the proportional gain."
            )
        if not (math.isfinite(self.dead_band) and self.dead_band >= 0.0):
            raise TensegrityError(
                f"position loop of {spool.name}: the dead band is {self.dead_band} m; give zero or more."
            )
        self._sum = 0.0
        self._requested = 0.0

    @property
    def sum(self) -> float:
        """Integral part [m/s]: velocity command that holds the spool under load."""
        return self._sum

    def take_over(self, length: float) -> None:
        """Restart at rest: the first command is zero if the goal equals the measured length."""
        self._sum = self._requested = 0.0

    def update(
        self, goal: float, length: float, period: float, sent: DriveCommand | None, rate: float | None = None,
        ahead: tuple[float, float] | None = None, impedance: ImpedanceSetPoint | None = None,
        tendon: TendonReading | None = None,
    ) -> DriveCommand:  # fmt: skip
        """Command of one cycle; zero velocity without a length or a goal. See `Loop`."""
        actuator = self.spool.actuator
        step = usable_period(period, self.period)
        error = goal - length
        if not math.isfinite(error) or step == 0.0:
            self._requested = 0.0
            return DriveCommand(Drive.VELOCITY, 0.0, actuator.rate, actuator.effort)
        if abs(error) <= self.dead_band:
            error = 0.0
        sent_speed = sent.value if sent is not None and sent.kind is Drive.VELOCITY else 0.0
        short = self._requested - sent_speed  # part of the last speed removed by a limit
        if short * error <= 0.0:
            most = MAX_INTEGRAL_SHARE * actuator.rate
            self._sum = min(max(self._sum + self.integral * error * step, -most), most)
        self._requested = self.proportional * error + self._sum + (rate or 0.0)
        speed = min(max(self._requested, -actuator.rate), actuator.rate)
        return DriveCommand(Drive.VELOCITY, speed, actuator.rate, actuator.effort, goal)


class BoardLoopModel:
    """Model of the position loop on the potentiometer board (`firmware/`): speeds of a servo for the positions sent to
    it.

    A spool with this loop lags its set point by some tenths of a second, and the integral part moves it further after
    the set point has reversed. So the commanded motion of the spool consists of these speeds, not of the distance to
    the set point.

    Args:
        spool: spool on the board.
        period: planned period of the bus cycle [s].
    """

    def __init__(self, spool: Spool, period: float) -> None:
        gain = 0.1 / BOARD_PERIOD_S
        gain = min(gain, 0.5 / period)  # limit for slow bus cycles, so that the model remains stable
        self._loop = FreeRunLoop(spool, period, proportional=gain)
        self._last: DriveCommand | None = None

    def speed(self, command: DriveCommand | None, length: float, period: float) -> float:
        """Speed [m/s] for a command at a measured length [m]; zero without a command. Call it once per cycle of
        `period` s."""
        if command is None or command.kind is not Drive.POSITION or not math.isfinite(length):
            self._loop.take_over(length)
            self._last = None
            return 0.0
        self._last = self._loop.update(command.value, length, period, self._last)
        return self._last.value


class PositionLoop:
    """Rate-limited positions for a multi-turn servo, or for the potentiometer board if it closes the loop.

    Args:
        spool: spool with a calibrated encoder, or on the board.
        period: planned period of the bus cycle [s].
        tension: tension limit of a servo in current-based position mode [N], at most the effort of the actuator; None:
            the effort.

    Raises:
        TensegrityError: no calibrated multi-turn encoder, or a tension limit out of range.
    """

    def __init__(self, spool: Spool, period: float, *, tension: float | None = None) -> None:
        if not spool.on_board and (spool.encoder is None or spool.encoder_turn or spool.measured_by != "encoder"):
            raise TensegrityError(
                f"{spool.name}: its servo does not count turns, or its encoder is not calibrated or not the sensor in "
                "use; use the free-run loop, or calibrate the encoder and measure by it."
            )
        ceiling = spool.actuator.effort if tension is None else tension
        if not 0.0 < ceiling <= spool.actuator.effort:
            raise TensegrityError(
                f"{spool.name}: the tension ceiling is {ceiling:g} N; it must be above zero and at most the effort "
                f"limit of {spool.actuator.effort:g} N."
            )
        self.spool, self.period, self.tension = spool, period, ceiling
        self._reference = math.nan
        self._own = OwnSetPoint()
        self._begins = False

    @property
    def reference(self) -> float:
        """Present reference of the servo [m]."""
        return self._reference

    def take_over(self, length: float) -> None:
        """Restart at the measured rest length [m], which becomes the reference, independently of earlier commands.

        A compliant servo may be millimetres away from its reference; with the old reference it would be pulled there
        with full torque.
        """
        self._reference = length
        self._own.restart(length)
        self._begins = math.isfinite(length)

    def update(
        self, goal: float, length: float, period: float, sent: DriveCommand | None, rate: float | None = None,
        ahead: tuple[float, float] | None = None, impedance: ImpedanceSetPoint | None = None,
        tendon: TendonReading | None = None,
    ) -> DriveCommand:  # fmt: skip
        """Command of one cycle; without a goal the reference is kept. See `Loop`."""
        actuator = self.spool.actuator
        begins, self._begins = self._begins, False
        if sent is not None and sent.kind is Drive.POSITION and not begins:
            self._reference = sent.value  # after the limits of the safety layer
            cycle = max(period, 0.0) if math.isfinite(period) else 0.0
            self._own.advance(sent, cycle)
            if tendon is not None:
                self._own.correct(self.spool, sent, tendon, cycle)
        if not math.isfinite(self._reference):
            self._reference = length
        if not math.isfinite(self._own.at):
            self._own.at = self._reference
        if rate is not None and math.isfinite(goal) and not self.spool.on_board:
            return self._moving(goal, ahead, impedance)
        step = actuator.rate * usable_period(period, self.period)
        if math.isfinite(goal):
            self._reference = min(max(goal, self._reference - step), self._reference + step)
        return DriveCommand(Drive.POSITION, self._reference, actuator.rate, self.tension, goal, impedance)

    def _moving(
        self, goal: float, ahead: tuple[float, float] | None, impedance: ImpedanceSetPoint | None
    ) -> DriveCommand:
        """Command for a set point that moves between commands; see the module docstring."""
        actuator = self.spool.actuator
        command = DriveCommand(Drive.POSITION, goal, actuator.rate, self.tension, goal, impedance)
        behind = goal + command.feed - self._own.at
        if ahead is None:
            value = goal
            speed = max(PROFILE_MARGIN * abs(behind) / self.period, SLOWEST_PROFILE * actuator.rate)
        else:
            next_cycle, lead = ahead
            step = behind / CORRECTING_CYCLES + next_cycle
            value, speed = goal + (lead if lead * step > 0.0 else 0.0), abs(step) / self.period  # no lead backwards
        profile = self.spool.profile(min(speed, actuator.rate))
        low, high = actuator.position
        self._reference = min(max(value, low), high)
        return replace(command, value=self._reference, rate=profile)


class SetPoint:
    """Goal of one tendon under its last command: a length, a velocity or a tension.

    The goal stays within the position limits, and within `lead` times the rate limit of the measured length, so that a
    blocked spool does not move fast when it is released.

    Args:
        spool: spool with its limits.
        lead: largest lead of the goal over the measured length [s].
    """

    def __init__(self, spool: Spool, lead: float) -> None:
        self.spool, self.lead = spool, lead
        self.goal = math.nan

    def hold(self, length: float) -> None:
        """Set the goal to a length [m]; nan: none."""
        self.goal = length

    def update(self, command: tuple[Mode, float], length: float, tension: float, period: float) -> float:
        """Goal of this cycle [m].

        Args:
            command: mode and value [m, m/s or N].
            length, tension: measured values [m, N].
            period: time since the last cycle [s].

        Raises:
            TensegrityError: a tension was commanded, but no tension is measured or the tendon has no stiffness.
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
                    f"{self.spool.name} cannot be commanded by tension: its servo does not measure tension, or the "
                    "stiffness of its tendon is unknown. Command a position or a velocity."
                )
            speed = (tension - value) / (self.spool.stiffness * TENSION_TIME_S)
        speed = min(max(speed, -actuator.rate), actuator.rate)
        reach = actuator.rate * self.lead
        moved = min(max(self.goal + speed * period, length - reach), length + reach)
        self.goal = min(max(moved, low), high)
        return self.goal


@dataclass
class CycleCounter:
    """Counts of cycles and overruns.

    Attributes:
        planned: planned period [s].
        tolerance: longest cycle in planned periods that does not count as an overrun.
        cycles, overruns: counts so far.
        longest: longest period [s].
        elapsed: sum of the periods [s].

    Raises:
        TensegrityError: the period is not above zero, or the tolerance is below 1.
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
                f"the planned period is {self.planned} s, must be above zero; the tolerance is {self.tolerance}, must "
                "be 1 or more."
            )

    def count(self, period: float) -> bool:
        """Count one cycle of a period [s]; returns whether it was an overrun. Negative and infinite periods are
        overruns."""
        valid = math.isfinite(period) and period >= 0.0
        late = not valid or period > self.tolerance * self.planned
        self.cycles += 1
        self.overruns += late
        if valid:
            self.longest = max(self.longest, period)
            self.elapsed += period
        return late

    @property
    def rate(self) -> float:
        """Cycles per second so far."""
        return self.cycles / self.elapsed if self.elapsed > 0.0 else 0.0
