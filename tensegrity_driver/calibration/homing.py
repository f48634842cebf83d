"""Homing of a tendon: detection of the position at which it becomes tight, by load or current.

    look:   check that the sensor is healthy and at rest without a command
    nudge:  pay out until the tendon is slack; the sensor must follow in the right direction
    wind:   wind in slowly until the tension reaches a threshold, then crawl (wind very slowly) and confirm it
    back:   pay out by a given distance

The speeds of winding and crawling are limited so that the tension added before the servo stops is less than half of the
margin between threshold and ceiling:

    speed · period · (lag + 1) · stiffness,  crawl · period · (confirm + lag) · stiffness  <=  (ceiling − threshold) / 2

A servo in wheel mode reports a load only while its velocity command is not zero. The confirmation therefore winds at a
velocity at which the load is reported, and the torque limit of every command keeps the tension below the ceiling. Any
implausible reading stops the servo and ends the homing with a reason. The reading at the tight position determines the
intercept: length when tight = intercept + slope · reading (001, section 7.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from tensegrity_dynamics.errors import TensegrityError

from ..spools.readings import HARDWARE_ERRORS, Drive, DriveCommand, TendonReading, finite
from ..spools.spool import MIN_LOADED_RATE, Line, Spool
from .homing_settings import HomingSettings

STOPPING_ERRORS = HARDWARE_ERRORS | {"overload", "overheating", "voltage"}


class Phase(Enum):
    """Phase of a homing, see the module docstring."""

    LOOK = "look"
    NUDGE = "nudge"
    WIND = "wind"
    CONFIRM = "confirm"
    BACK = "back"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class TightPosition:
    """Result of a homing.

    Attributes:
        tendon: name of the tendon. reading: sensor reading when the tendon becomes tight [counts or rad].
        tension: tension above friction at that reading [N]. friction: friction of the idling spool [N].
        cycles: duration of the homing [bus cycles].
    """

    tendon: str
    reading: float
    tension: float
    friction: float
    cycles: int

    def line(self, line: Line, length: float) -> Line:
        """Line with the same slope, shifted such that this reading gives a rest length [m]."""
        return Line(line.slope, length - line.slope * self.reading)


class Homing:
    """Homing of one tendon: one `update` per bus cycle until `phase` is DONE or FAILED.

    Args:
        spool: spool to home; may be uncalibrated (slope by the radius), as only changes of length are used.
        period: planned period of the bus cycle [s].
        settings: thresholds and speeds; None: the defaults.
        drive: VELOCITY for servos in wheel mode, POSITION for multi-turn servos.

    Attributes:
        phase: present phase. reason: reason of a failure, or None. result: result of a completed homing, or None.

    Raises:
        TensegrityError: the threshold is above the ceiling.
    """

    def __init__(
        self,
        spool: Spool,
        period: float,
        settings: HomingSettings | None = None,
        *,
        drive: Drive = Drive.VELOCITY,
    ) -> None:
        self.spool, self.settings, self.period, self.drive = spool, settings or HomingSettings(), period, drive
        settings = self.settings
        ceiling = 0.5 * spool.actuator.effort if settings.ceiling is None else settings.ceiling
        self.ceiling = min(ceiling, spool.actuator.effort)
        if settings.threshold >= self.ceiling:
            raise TensegrityError(
                f"{spool.name} cannot be homed: its threshold of {settings.threshold:g} N leaves no margin below the "
                f"ceiling of {self.ceiling:g} N; lower homing.threshold."
            )
        self.speed = min(settings.speed, spool.actuator.rate)
        self.crawl = 0.25 * self.speed
        if spool.stiffness is not None:
            margin_speed = 0.5 * (self.ceiling - settings.threshold) / (spool.stiffness * period)
            self.speed = min(self.speed, margin_speed / (settings.lag + 1))
            self.crawl = min(self.crawl, margin_speed / (settings.confirm + settings.lag))
        if not spool.load_at_rest:
            self.crawl = min(max(self.crawl, 1.2 * MIN_LOADED_RATE * spool.actuator.rate), self.speed)
        self.phase = Phase.LOOK
        self.reason: str | None = None
        self.result: TightPosition | None = None
        self.cycles = 0
        self._in_phase = 0
        self._start = math.nan  # length at the start of the phase
        self._commanded = 0.0  # commanded displacement since the start of the phase [m]
        self._goal = math.nan
        self._pulls: list[float] = []
        self._reads: list[float] = []
        self._past: list[tuple[float, float]] = []  # (length, commanded) while winding
        self._tight_until = 0.0  # length paid out when the tendon was last tight [m]
        self._friction: float | None = None

    @property
    def longest(self) -> int:
        """Upper bound on the duration of a homing [bus cycles]."""
        settings = self.settings
        distance = 3.0 * settings.nudge + 2.0 * settings.travel + settings.back_off
        moving = math.ceil(distance / (self.speed * self.period)) + 3 * settings.lag
        return settings.look + settings.confirm * 10 + moving + 10

    def update(self, tendon: TendonReading | None, period: float) -> DriveCommand:
        """Command of one cycle.

        Args:
            tendon: reading of this cycle, or None. period: time since the last cycle [s].
        """
        if self.phase in (Phase.DONE, Phase.FAILED):
            return self._move(0.0, tendon, period)
        self.cycles += 1
        self._in_phase += 1
        reason = self._check(tendon)
        if reason is not None:
            return self._fail(reason, tendon, period)
        assert tendon is not None
        if tendon.raw.age > 0:
            return self._move(0.0, tendon, period)  # no new reading: wait at rest
        step = {
            Phase.LOOK: self._look,
            Phase.NUDGE: self._nudge,
            Phase.WIND: self._wind,
            Phase.CONFIRM: self._confirm,
            Phase.BACK: self._back,
        }[self.phase]
        return step(tendon, period)

    # -- phases ----------------------------------------------------------------------------------------------------

    def _check(self, tendon: TendonReading | None) -> str | None:
        """Reason that ends a homing in any phase, or None."""
        if tendon is None or tendon.raw.age >= self.settings.silent:
            return "its servo does not answer; check its plug and its id"
        if self.cycles > self.longest:
            return "it took too long; check that spool and sensor turn freely"
        errors = tendon.raw.errors & STOPPING_ERRORS
        if errors:
            return f"its servo reports {', '.join(sorted(errors))}; clear that first"
        if tendon.raw.age > 0:
            return None
        potentiometer = self.spool.measured_by == "potentiometer"
        if not finite(tendon.length) or (potentiometer and tendon.raw.sensor_age >= self.settings.silent):
            return f"its {self.spool.measured_by} gives no reading; check its plug"
        low, high = self.spool.sensor_range
        if potentiometer and not low <= (tendon.raw.sensor or 0.0) <= high:
            return (
                f"its potentiometer says {tendon.raw.sensor:g}, outside {low:g} to {high:g}; check its wires, or turn "
                "its shaft to the middle"
            )
        pull = self.spool.pull(tendon.raw)
        if not finite(pull):
            return "its servo measures neither load nor current, so that nobody sees when it is tight; home it by hand"
        if self.phase in (Phase.WIND, Phase.CONFIRM) and abs(pull) > 1.05 * self.ceiling:
            return f"it pulled with {abs(pull):.0f} N, above the {self.ceiling:.0f} N of homing; pay it out by hand"
        return None

    def _look(self, tendon: TendonReading, period: float) -> DriveCommand:
        if self._in_phase == 1:
            self._start = tendon.length
        moved = tendon.length - self._start
        if abs(moved) > self.settings.still:
            text = f"its sensor moved by {moved * 1e3:+.1f} mm while nothing was commanded; stop what turns the spool"
            return self._fail(text, tendon, period)
        self._pulls.append(abs(self.spool.pull(tendon.raw)))
        if self._in_phase >= self.settings.look:
            self._enter(Phase.NUDGE, tendon)
        return self._move(0.0, tendon, period)

    def _nudge(self, tendon: TendonReading, period: float) -> DriveCommand:
        settings = self.settings
        moved = tendon.length - self._start
        if moved < -settings.still:
            text = (
                f"its {self.spool.measured_by} runs backwards: it went {moved * 1e3:.1f} mm while paying out; exchange "
                "its outer wires or set direction in the robot file"
            )
            return self._fail(text, tendon, period)
        if abs(self.spool.pull(tendon.raw)) > max(self._pulls) + settings.threshold:
            text = "it became tighter while paying out; set the direction of its servo in the robot file"
            return self._fail(text, tendon, period)
        follow = (settings.lag + 1) * self.speed * self.period
        if self._commanded >= settings.nudge + follow and moved < 0.5 * (self._commanded - follow):
            text = (
                f"its {self.spool.measured_by} stands still ({moved * 1e3:+.2f} mm) while {self._commanded * 1e3:.1f} "
                "mm were paid out; check that it turns with this spool"
            )
            return self._fail(text, tendon, period)
        if self.spool.pull(tendon.raw) > 0.5 * settings.threshold:
            self._tight_until = self._commanded
            if self._commanded > settings.travel:
                text = f"it stays tight after {self._commanded * 1e3:.0f} mm paid out; loosen its neighbours first"
                return self._fail(text, tendon, period)
        if self._commanded - self._tight_until >= settings.nudge + follow:
            self._pulls = []
            self._enter(Phase.WIND, tendon)
            return self._move(0.0, tendon, period)
        return self._move(self.speed, tendon, period)

    def _wind(self, tendon: TendonReading, period: float) -> DriveCommand:
        settings = self.settings
        pull = self.spool.pull(tendon.raw)
        running = self._in_phase > settings.lag + 1
        if running and self._friction is None:
            self._pulls.append(pull)  # pull of the idling spool, before the nudge is wound in
            if len(self._pulls) == settings.look:
                self._friction = max(0.0, sorted(self._pulls)[settings.look // 2])
        if pull >= self._limit:
            self._enter(Phase.CONFIRM, tendon)
            self._reads, self._pulls = [], []
            return self._move(-self.crawl, tendon, period)
        self._past.append((tendon.length, self._commanded))
        reason = self._check_motion()
        if reason is None and -self._commanded > settings.nudge + settings.travel:
            reason = (
                f"{-self._commanded * 1e3:.0f} mm were wound in and it never became tight; check that the tendon is "
                "whole and tied, or raise homing.travel"
            )
        if reason is not None:
            return self._fail(reason, tendon, period)
        return self._move(-self.speed, tendon, period)

    @property
    def _limit(self) -> float:
        """Pull of a tight tendon [N]: threshold plus friction, at most the mean of threshold and ceiling."""
        margin = 0.5 * (self.ceiling - self.settings.threshold)
        return self.settings.threshold + min(self._friction or 0.0, margin)

    def _check_motion(self) -> str | None:
        """Reason why the sensor does not follow the winding, or None while it does."""
        settings = self.settings
        length, commanded = self._past[-1]
        before = next((each for each in reversed(self._past) if each[1] - commanded >= settings.nudge), None)
        if before is None:
            return None
        moved, requested = length - before[0], commanded - before[1]
        if moved > settings.still:
            return f"its sensor runs backwards ({moved * 1e3:+.1f} mm while winding in); check coupling and wires"
        if moved > 0.3 * requested:
            return (
                f"its sensor stands still ({moved * 1e3:+.2f} mm for {requested * 1e3:.1f} mm wound in) and there is "
                "no tension; check its coupling"
            )
        return None

    def _confirm(self, tendon: TendonReading, period: float) -> DriveCommand:
        settings = self.settings
        raw = tendon.raw
        self._reads.append(float((raw.sensor if self.spool.measured_by == "potentiometer" else raw.position) or 0.0))
        self._pulls.append(self.spool.pull(raw))
        if self._in_phase >= settings.confirm:
            friction = self._friction or 0.0
            late = settings.lag if settings.confirm > settings.lag else 0
            pulls, reads = self._pulls[late:], self._reads[late:]
            tension = math.fsum(pulls) / len(pulls) - friction
            if tension >= 0.6 * settings.threshold:
                reading = math.fsum(reads) / len(reads)
                self.result = TightPosition(self.spool.name, reading, tension, friction, self.cycles)
                self._enter(Phase.BACK, tendon)
            else:  # friction at one position, such as a knot: not tight yet
                self._enter(Phase.WIND, tendon)
                self._past = []
            return self._move(0.0, tendon, period)
        return self._move(-self.crawl, tendon, period)

    def _back(self, tendon: TendonReading, period: float) -> DriveCommand:
        if self._commanded >= self.settings.back_off:
            self.phase = Phase.DONE
            return self._move(0.0, tendon, period)
        return self._move(self.speed, tendon, period)

    # -- parts -----------------------------------------------------------------------------------------------------

    def _enter(self, phase: Phase, tendon: TendonReading) -> None:
        wound = self._commanded if phase in (Phase.CONFIRM, Phase.WIND) and self.phase is not Phase.NUDGE else 0.0
        self.phase, self._in_phase, self._start, self._commanded = phase, 0, tendon.length, wound

    def _fail(self, reason: str, tendon: TendonReading | None, period: float) -> DriveCommand:
        self.phase, self.result = Phase.FAILED, None
        self.reason = f"{self.spool.name} was not homed: {reason}."
        return self._move(0.0, tendon, period)

    def _move(self, speed: float, tendon: TendonReading | None, period: float) -> DriveCommand:
        """Command for a speed [m/s]; the motion in one cycle is at most that of two planned periods."""
        step = speed * (min(period, 2.0 * self.period) if math.isfinite(period) and period > 0.0 else 0.0)
        self._commanded += step
        if self.drive is Drive.VELOCITY:
            return DriveCommand(Drive.VELOCITY, speed, self.speed, self.ceiling)
        length = math.nan if tendon is None else tendon.length
        if not math.isfinite(self._goal) or (speed == 0.0 and self._in_phase <= 1):
            self._goal = length if math.isfinite(length) else self._goal
        if not math.isfinite(self._goal):
            return DriveCommand(Drive.TORQUE_OFF)  # without any reading there is no position to hold
        self._goal += step
        return DriveCommand(Drive.POSITION, self._goal, self.speed, self.ceiling)
