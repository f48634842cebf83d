"""Finding the position at which a tendon becomes tight, by load or current, without overdriving it.

    look:   the sensor must be there, be healthy and stand still while nothing is commanded
    nudge:  pay out until the tendon is surely loose; the sensor must follow, and in the right direction
    wind:   wind in slowly until the tension reaches a threshold, then crawl on and see whether it stays
    back:   pay out again by a set distance

Winding and crawling are so slow that what they add before the servo stops takes less than the room below the ceiling:

    speed · period · (lag + 1) · stiffness,  crawl · period · (confirm + lag) · stiffness  <=  (ceiling − threshold) / 2

A servo in wheel mode pushes only while it is asked to move, so that its load at rest says nothing: hence the crawling,
at a speed that makes it push; there it is the torque limit that every command carries that keeps the ceiling. Every
doubt ends the homing at rest with a reason.
The place found gives the intercept: length when tight = intercept + slope · reading (001, section 7.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from tensegrity_dynamics.errors import CommandRefused, TensegrityError

from ..spools.readings import (
    HARDWARE_ERRORS,
    PUSHING,
    Drive,
    DriveCommand,
    Line,
    ServoReading,
    Spool,
    TendonReading,
    finite,
)
from .homing_settings import HomingSettings
from .line_fit import CalibrationError

STOPPING_ERRORS = HARDWARE_ERRORS | {"overload", "overheating", "voltage"}


class Phase(Enum):
    """Where a homing stands."""

    LOOK = "look"
    NUDGE = "nudge"
    WIND = "wind"
    CONFIRM = "confirm"
    BACK = "back"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class TightPosition:
    """What homing found.

    Attributes:
        tendon: name. reading: of the sensor when tight (counts or rad). tension: N above friction at that place.
        friction: N that the idling spool seemed to need. cycles: that it took.
    """

    tendon: str
    reading: float
    tension: float
    friction: float
    cycles: int

    def line(self, line: Line, length: float) -> Line:
        """A calibration through this place: the rest length [m] that the tendon has when tight, and the old slope."""
        return Line(line.slope, length - line.slope * self.reading)


class Homing:
    """Homes one tendon; one `update` per bus cycle until `phase` is DONE or FAILED.

    Args:
        spool: its calibration may be rough (slope from the radius): only changes of length are used.
        settings: how.
        period: s of a bus cycle as planned.
        drive: velocities for servos in wheel mode, positions for those that count turns.

    Raises:
        TensegrityError: the threshold leaves no room below the effort of the actuator, or positions without encoder.
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
                f"{spool.name} cannot be homed: its threshold of {settings.threshold:g} N leaves no room below the "
                f"ceiling of {self.ceiling:g} N; lower homing.threshold."
            )
        self.speed = min(settings.speed, spool.actuator.rate)
        self.crawl = 0.25 * self.speed
        if spool.stiffness is not None:
            room = 0.5 * (self.ceiling - settings.threshold) / (spool.stiffness * period)
            self.speed = min(self.speed, room / (settings.lag + 1))
            self.crawl = min(self.crawl, room / (settings.confirm + settings.lag))
        if not spool.load_at_rest:
            self.crawl = min(max(self.crawl, 1.2 * PUSHING * spool.actuator.rate), self.speed)
        self.phase = Phase.LOOK
        self.reason: str | None = None
        self.result: TightPosition | None = None
        self.cycles = 0
        self._in_phase = 0
        self._start = math.nan  # length at the start of the phase
        self._commanded = 0.0  # m since the start of the phase
        self._goal = math.nan
        self._pulls: list[float] = []
        self._reads: list[float] = []
        self._past: list[tuple[float, float]] = []  # (length, commanded) while winding
        self._tight_until = 0.0  # m paid out when the nudged tendon last was tight
        self._friction: float | None = None

    @property
    def longest(self) -> int:
        """Bus cycles after which a homing has ended in any case."""
        settings = self.settings
        distance = 3.0 * settings.nudge + 2.0 * settings.travel + settings.back_off
        moving = math.ceil(distance / (self.speed * self.period)) + 3 * settings.lag
        return settings.look + settings.confirm * 10 + moving + 10

    def update(self, tendon: TendonReading | None, period: float) -> DriveCommand:
        """One cycle: what was read, and the s that passed; returns what to send."""
        if self.phase in (Phase.DONE, Phase.FAILED):
            return self._move(0.0, tendon, period)
        self.cycles += 1
        self._in_phase += 1
        trouble = self._trouble(tendon)
        if trouble is not None:
            return self._fail(trouble, tendon, period)
        assert tendon is not None
        if tendon.raw.age > 0:
            return self._move(0.0, tendon, period)  # nothing new: wait at rest
        step = {
            Phase.LOOK: self._look,
            Phase.NUDGE: self._nudge,
            Phase.WIND: self._wind,
            Phase.CONFIRM: self._confirm,
            Phase.BACK: self._back,
        }[self.phase]
        return step(tendon, period)

    # -- phases ----------------------------------------------------------------------------------------------------

    def _trouble(self, tendon: TendonReading | None) -> str | None:
        """What ends a homing in any phase."""
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
            return "its servo tells neither load nor current, so that nobody sees when it is tight; home it by hand"
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
            self._pulls.append(pull)  # of the idling spool, before the nudge is taken in again
            if len(self._pulls) == settings.look:
                self._friction = max(0.0, sorted(self._pulls)[settings.look // 2])
        if pull >= self._limit:
            self._enter(Phase.CONFIRM, tendon)
            self._reads, self._pulls = [], []
            return self._move(-self.crawl, tendon, period)
        self._past.append((tendon.length, self._commanded))
        trouble = self._follows()
        if trouble is None and -self._commanded > settings.nudge + settings.travel:
            trouble = (
                f"{-self._commanded * 1e3:.0f} mm were wound in and it never became tight; check that the tendon is "
                "whole and tied, or raise homing.travel"
            )
        if trouble is not None:
            return self._fail(trouble, tendon, period)
        return self._move(-self.speed, tendon, period)

    @property
    def _limit(self) -> float:
        """Pull [N] that counts as tight: friction is believed up to what leaves the room below the ceiling."""
        room = 0.5 * (self.ceiling - self.settings.threshold)
        return self.settings.threshold + min(self._friction or 0.0, room)

    def _follows(self) -> str | None:
        """Whether the sensor follows the winding; None while it does."""
        settings = self.settings
        length, commanded = self._past[-1]
        before = next((each for each in reversed(self._past) if each[1] - commanded >= settings.nudge), None)
        if before is None:
            return None
        moved, asked = length - before[0], commanded - before[1]
        if moved > settings.still:
            return f"its sensor runs backwards ({moved * 1e3:+.1f} mm while winding in); check coupling and wires"
        if moved > 0.3 * asked:
            return (
                f"its sensor stands still ({moved * 1e3:+.2f} mm for {asked * 1e3:.1f} mm wound in) and there is no "
                "tension; check its coupling"
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
            else:  # a knot or a rough place, not the end
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
        """The command for a speed [m/s]; at most two periods' worth of motion in one cycle."""
        step = speed * (min(period, 2.0 * self.period) if math.isfinite(period) and period > 0.0 else 0.0)
        self._commanded += step
        if self.drive is Drive.VELOCITY:
            return DriveCommand(Drive.VELOCITY, speed, self.speed, self.ceiling)
        length = math.nan if tendon is None else tendon.length
        if not math.isfinite(self._goal) or (speed == 0.0 and self._in_phase <= 1):
            self._goal = length if math.isfinite(length) else self._goal
        if not math.isfinite(self._goal):
            return DriveCommand(Drive.TORQUE_OFF)  # a servo that was never read cannot be sent anywhere
        self._goal += step
        return DriveCommand(Drive.POSITION, self._goal, self.speed, self.ceiling)


@dataclass(frozen=True)
class SpoolMemory:
    """What a driver keeps of one spool when it ends: encoder [rad] and rest length [m]."""

    position: float
    length: float


def recover_turns(spool: Spool, memory: SpoolMemory | None, reading: ServoReading, *, held: bool = False) -> Line:
    """The encoder's calibration after a power cycle, in which a servo forgets all but the last part of a turn.

    Args:
        spool: with a calibrated encoder that counts turns.
        memory: from before, or None.
        reading: from now.
        held: the spools are known to have stayed (a brake, or slack tendons); without it only a potentiometer tells.

    Raises:
        CalibrationError: no encoder; CommandRefused: the turn cannot be told; home the tendon again.
    """
    if spool.encoder is None or spool.encoder_turn:
        raise CalibrationError(f"{spool.name} has no encoder that counts turns; there is nothing to recover.")
    if reading.position is None or not math.isfinite(reading.position):
        raise CommandRefused(f"{spool.name} does not tell its position; check its plug, then home it.")
    turn = abs(spool.encoder.slope) * 2.0 * math.pi
    now = spool.encoder(reading.position)
    if spool.potentiometer is not None and finite(spool.potentiometer(reading.sensor)):
        truth, source = spool.potentiometer(reading.sensor), "its potentiometer"
    elif memory is not None and held:
        truth, source = memory.length, "where it stood"
    elif memory is not None and abs(now - memory.length) <= 0.02 * turn:
        return spool.encoder  # nothing was lost and nothing has moved
    else:
        raise CommandRefused(
            f"{spool.name} lost power and may have lost turns: {now * 1e3:.1f} mm now"
            + (f", {memory.length * 1e3:.1f} mm before" if memory is not None else "")
            + "; home it again."
        )
    turns = round((truth - now) / turn)
    left = truth - now - turns * turn
    if abs(left) > 0.25 * turn:
        raise CommandRefused(
            f"{spool.name} stands {abs(left) * 1e3:.1f} mm from {source} even after whole turns; home it again."
        )
    return Line(spool.encoder.slope, spool.encoder.intercept + turns * turn)
