"""Monitors of one tendon each: objects that look at a cycle and say whether sensors or motion are wrong.

`update(cycle, readings, commands)` takes what was read in this cycle and what had been sent in the one before, and
returns a fault or None. `detects_within` is the largest number of bus cycles from the first cycle that shows the cause
to the one that returns the fault. For motion that is

    runaway, wrong sign: lag + ceil(tolerance / (speed · period)), at most lag + window where the speed is at least
                         tolerance / (window · period)
    stuck:               lag + ceil(distance / (commanded speed · period))
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from ...spools.readings import Drive, DriveCommand, Readings, Spool, TendonReading, finite
from ..faults import Fault, FaultKind, SafetySettings

Commands = Mapping[str, DriveCommand]
MOVED = 0.1
"""Fraction of the commanded motion below which a spool counts as standing still."""
HARDWARE_ERRORS = frozenset({"electrical_shock", "encoder", "hardware", "angle_limit"})
"""Error bits that no other monitor explains."""


class Monitor(Protocol):
    """What the safety layer needs of a monitor."""

    @property
    def detects_within(self) -> int:
        """Bus cycles from cause to fault."""

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        """Look at one cycle."""


class TendonMonitor:
    """A finding about one tendon that counts once it has been there for some cycles in a row."""

    kind: FaultKind
    remedy = "see docs/faults.md"

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        self.spool, self.settings = spool, settings
        self.name = spool.name
        self.count = 0

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return self.settings.persist

    @property
    def detects_within(self) -> int:
        """Bus cycles from cause to fault."""
        return self.cycles

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        raise NotImplementedError

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        """Look at one cycle."""
        tendon = readings.tendons.get(self.name)
        happened = None if tendon is None else self.finding(tendon, readings, commands.get(self.name))
        self.count = 0 if happened is None else self.count + 1
        if happened is None or self.count < self.cycles:
            return None
        return Fault(self.kind, self.name, cycle, happened, self.remedy)


class ServoSilent(TendonMonitor):
    """A servo that has not answered for some cycles, or that the bus does not list at all."""

    kind = FaultKind.SERVO_SILENT
    remedy = "check its plug, its supply and its id, then clear the fault"

    @property
    def detects_within(self) -> int:
        """Bus cycles from cause to fault."""
        return self.settings.silent

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        """Look at one cycle; the age that the bus counts may be ahead of ours."""
        tendon = readings.tendons.get(self.name)
        self.count = self.count + 1 if tendon is None or tendon.raw.age > 0 else 0
        silent = self.count if tendon is None else max(self.count, tendon.raw.age)
        if silent < self.settings.silent:
            return None
        return Fault(self.kind, self.name, cycle, f"its servo has not answered for {silent} cycles", self.remedy)


class SensorMissing(TendonMonitor):
    """The sensor that the position loop uses says nothing, or nothing new."""

    kind = FaultKind.SENSOR_MISSING
    remedy = "check the plug of the sensor and the potentiometer board"

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return self.settings.missing

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        old = self.spool.measured_by == "potentiometer" and tendon.raw.sensor_age > 0
        return f"its {self.spool.measured_by} gives no reading" if old or not finite(tendon.length) else None


class SensorBroken(TendonMonitor):
    """A potentiometer at the end of its range: wire off, short, or wound past its end stop."""

    kind = FaultKind.SENSOR_BROKEN
    remedy = "check its wires for a break or a short and its shaft for the end stop"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        low, high = self.spool.sensor_range
        counts = tendon.raw.sensor
        if self.spool.potentiometer is None or counts is None or low <= counts <= high:
            return None
        return f"its potentiometer says {counts:g}, outside {low:g} to {high:g} of a healthy one"


class SensorJump(TendonMonitor):
    """A length that changes faster than the spool can turn; whole turns are those of an encoder that lost count."""

    kind = FaultKind.SENSOR_JUMP
    remedy = "check sensor, wiring and coupling, then home this tendon again"

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        super().__init__(spool, settings)
        self._last = math.nan
        self._elapsed = 0
        self._lost: Fault | None = None

    @property
    def detects_within(self) -> int:
        """Bus cycles from cause to fault."""
        return 1

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        """Look at one cycle."""
        tendon = readings.tendons.get(self.name)
        self._elapsed += 1
        if tendon is None or not finite(tendon.length):
            return self._lost
        last, self._last, elapsed, self._elapsed = self._last, tendon.length, self._elapsed, 0
        change = tendon.length - last
        settings, turn = self.settings, 2.0 * math.pi * self.spool.radius
        allowed = possible_step(self.spool, settings, readings, elapsed)
        if not abs(change) > allowed:  # nan at the first reading
            return self._lost
        turns = round(change / turn)
        if self.spool.measured_by == "encoder" and turns != 0 and abs(change - turns * turn) <= allowed:
            self._lost = Fault(
                FaultKind.TURNS_LOST,
                self.name,
                cycle,
                f"its encoder jumped by {abs(turns)} whole turns ({change * 1e3:.1f} mm); its servo lost power",
                "check the supply and home this tendon again",
            )
            return self._lost
        return self._lost or Fault(
            self.kind,
            self.name,
            cycle,
            f"its length jumped by {change * 1e3:.1f} mm where {allowed * 1e3:.1f} mm are possible",
            self.remedy,
        )


class SensorsDisagree(TendonMonitor):
    """Two sensors of one spool say different lengths: a coupling slips, or one of them is wrong."""

    kind = FaultKind.SENSORS_DISAGREE
    remedy = "tighten the coupling of the potentiometer and calibrate this tendon again"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        apart = _apart(self.spool, tendon.length, tendon.second_length)
        if not apart > self.settings.disagreement:
            return None
        return f"its two sensors are {apart * 1e3:.1f} mm apart"


class SensorFrozen(TendonMonitor):
    """The other sensor moves, this one does not."""

    kind = FaultKind.SENSOR_FROZEN
    remedy = "check that the sensor turns with the spool"

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        super().__init__(spool, settings)
        self._first = self._second = math.nan
        self._travel = 0.0

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return 1

    @property
    def detects_within(self) -> int:
        """Bus cycles from the command that should move it to the fault, at the speed limit of the actuator."""
        cycles = self.settings.stuck_distance / (self.spool.actuator.rate * self.settings.period)
        return self.settings.lag + math.ceil(cycles + 1e-9) + 1

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        if not (finite(tendon.length) and finite(tendon.second_length)):
            return None
        if tendon.raw.age > 0 or tendon.raw.sensor_age > 0:
            self._second = math.nan  # what a silent sensor has missed says nothing once it speaks again
            return None
        step = _wrapped(tendon.second_length - self._second, self.spool.wrap) if finite(self._second) else 0.0
        self._second = tendon.second_length
        self._travel += step
        moved = abs(tendon.length - self._first)
        if not moved <= MOVED * self.settings.stuck_distance:  # nan at the first reading
            self._first, self._travel = tendon.length, 0.0
            return None
        if abs(self._travel) <= self.settings.stuck_distance:
            return None
        return f"its {self.spool.measured_by} stands still while the spool turned by {abs(self._travel) * 1e3:.1f} mm"


class Motion(TendonMonitor):
    """Motion that no command of the last cycles explains: without command (runaway), or against it (wrong sign)."""

    kind = FaultKind.RUNAWAY

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        super().__init__(spool, settings)
        # (length, rise, fall) of each cycle; rise and fall are what all commands up to then asked for, summed up
        self._past: deque[tuple[float, float, float]] = deque(maxlen=settings.window + settings.lag + 2)

    def detects_within_at(self, speed: float) -> int:
        """Bus cycles until uncommanded motion at a speed [m/s] is found; it must be at least `slowest`."""
        settings = self.settings
        return settings.lag + math.ceil(settings.motion_tolerance / (speed * settings.period) + 1e-9) + 1

    @property
    def slowest(self) -> float:
        """Speed [m/s] below which uncommanded motion is left to the limits of length and tension."""
        return self.settings.motion_tolerance / ((self.settings.window - 1) * self.settings.period)

    @property
    def detects_within(self) -> int:
        """Bus cycles from cause to fault, at any speed that it detects."""
        return self.settings.lag + self.settings.window + 1

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        """Look at one cycle."""
        tendon, command = readings.tendons.get(self.name), commands.get(self.name)
        if command is not None and command.kind is Drive.TORQUE_OFF:
            self._past.clear()  # a spool without torque goes where its tendon pulls it
            return None
        length = math.nan if tendon is None else tendon.length
        before = self._past[-1][0] if self._past else math.nan
        period = passed(readings, self.settings)
        step = commanded_speed(command, before, self.spool, period) * period
        if abs(length - before) > possible_step(self.spool, self.settings, readings, 1):
            self._past.clear()  # no spool turns like that: the sensor jumped, and SensorJump says so
        rise, fall = self._past[-1][1:] if self._past else (0.0, 0.0)
        self._past.append((length, rise + max(step, 0.0), fall + min(step, 0.0)))
        return None if math.isnan(length) else self._judge(cycle, length)

    def _judge(self, cycle: int, length: float) -> Fault | None:
        """Compare the motion since each cycle of the window with what was commanded since then, and lag before."""
        settings, past = self.settings, list(self._past)
        newest = len(past) - 1
        for start in range(newest - 1, max(newest - settings.window, 0) - 1, -1):
            moved = length - past[start][0]
            if not abs(moved) > settings.motion_tolerance:  # nan where nothing was read
                continue
            before = past[max(start - settings.lag, 0)]
            rise = settings.speed_gain * (past[newest][1] - before[1])
            fall = settings.speed_gain * (past[newest][2] - before[2])
            if fall - settings.motion_tolerance <= moved <= rise + settings.motion_tolerance:
                continue
            way = "paid out" if moved > 0.0 else "wound in"
            against = -fall if moved > 0.0 else rise
            along = rise if moved > 0.0 else -fall
            if against > settings.motion_tolerance and along < 0.1 * against:
                return Fault(
                    FaultKind.WRONG_SIGN,
                    self.name,
                    cycle,
                    f"it {way} {abs(moved) * 1e3:.1f} mm while the opposite was commanded",
                    "check the direction of servo and sensor in the robot file, and whether it is overpowered",
                )
            return Fault(
                FaultKind.RUNAWAY,
                self.name,
                cycle,
                f"it {way} {abs(moved) * 1e3:.1f} mm in {newest - start} cycles without a command for it",
                "cut the supply if it still moves; check the sensor, the bus and the servo",
            )
        return None


class Stuck(TendonMonitor):
    """Commanded to move but standing still, while no other sensor moves either."""

    kind = FaultKind.STUCK
    remedy = "look for a caught tendon, a jammed spool or a torque limit that is too low"

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        super().__init__(spool, settings)
        self._first = self._second = math.nan
        self._asked = 0.0

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return 1

    @property
    def detects_within(self) -> int:
        """Bus cycles from cause to fault, when commanded at the speed limit of the actuator."""
        return self.detects_within_at(self.spool.actuator.rate)

    def detects_within_at(self, speed: float) -> int:
        """Bus cycles until a spool that is commanded at a speed [m/s] is found to stand still."""
        distance = self.settings.stuck_distance / (speed * self.settings.period)
        return self.settings.lag + math.ceil(distance + 1e-9) + 1

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        length, settings = tendon.length, self.settings
        if not finite(length) or command is None or command.kind is Drive.TORQUE_OFF:
            self._first, self._asked = length, 0.0
            return None
        period = passed(readings, settings)
        step = commanded_speed(command, length, self.spool, period) * period
        goal = command.goal if command.goal is not None or command.kind is Drive.VELOCITY else command.value
        if goal is not None and abs(goal - length) <= settings.stuck_distance:
            step = 0.0  # near its goal a loaded spool may well stand
        moved = abs(length - self._first)
        other = _apart(self.spool, tendon.second_length, self._second)
        if step == 0.0 or step * self._asked < 0.0 or not moved <= MOVED * settings.stuck_distance:
            self._first, self._second, self._asked = length, tendon.second_length, step
            return None
        self._asked += step
        lag = settings.lag * abs(step)
        if abs(self._asked) <= settings.stuck_distance + lag or other > MOVED * settings.stuck_distance:
            return None
        return f"it stands still although {abs(self._asked) * 1e3:.1f} mm were commanded"


def passed(readings: Readings, settings: SafetySettings) -> float:
    """The s that this cycle took, or the period as planned where the measured one makes no sense."""
    return readings.period if math.isfinite(readings.period) and readings.period > 0.0 else settings.period


def possible_step(spool: Spool, settings: SafetySettings, readings: Readings, cycles: int) -> float:
    """How far [m] a spool can turn in some cycles, with what its sensor may add."""
    period = max(settings.period, passed(readings, settings))
    return spool.actuator.rate * settings.speed_gain * period * cycles + settings.jump


def commanded_speed(command: DriveCommand | None, length: float, spool: Spool, period: float) -> float:
    """Speed [m/s] that a command asks for at a length [m]; zero without one."""
    if command is None or command.kind is Drive.TORQUE_OFF:
        return 0.0
    if command.kind is Drive.VELOCITY:
        return command.value
    rate = min(command.rate or spool.actuator.rate, spool.actuator.rate)
    return min(max((command.value - length) / period, -rate), rate) if finite(length) else 0.0


def _wrapped(difference: float, wrap: float | None) -> float:
    """A difference of lengths [m], nearest to zero where the sensor repeats after `wrap`."""
    return difference if wrap is None else (difference + 0.5 * wrap) % wrap - 0.5 * wrap


def _apart(spool: Spool, first: float, second: float) -> float:
    """Distance [m] between two lengths; nan where one is unknown."""
    return abs(_wrapped(first - second, spool.wrap))


def worst_bound(monitors: Sequence[Monitor]) -> int:
    """Bus cycles within which every one of the monitors finds its fault."""
    return max(monitor.detects_within for monitor in monitors)
