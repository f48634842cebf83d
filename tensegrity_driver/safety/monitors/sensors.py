"""Monitors of the reports of a servo and of the sensors of its spool."""

from __future__ import annotations

import math

from ...spools.readings import HARDWARE_ERRORS, Drive, DriveCommand, Readings, TendonReading, finite
from ...spools.spool import Spool
from ..faults import Fault, FaultKind
from ..settings import SafetySettings
from .monitor import Commands, TendonFindingMonitor, TendonMonitor, tendon_monitor
from .motion import STANDING_STILL, possible_step, sensor_distance, wrapped

# -- the servo ---------------------------------------------------------------------------------------------------------


@tendon_monitor(FaultKind.SERVO_SILENT)
class ServoSilentMonitor(TendonMonitor):
    """A servo that does not answer, or that is missing in the list of the bus."""

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        """Count the cycles without an answer; the age that the bus counts may be ahead."""
        tendon = readings.tendons.get(self.spool.name)
        self._count = self._count + 1 if tendon is None or tendon.raw.age > 0 else 0
        silent = self._count if tendon is None else max(self._count, tendon.raw.age)
        if silent < self.persistence:
            return None
        return self._fault(cycle, f"its servo has not answered for {silent} cycles")


@tendon_monitor(FaultKind.HARDWARE_ERROR)
def hardware_error(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    bits = sorted(tendon.raw.errors & HARDWARE_ERRORS)
    return f"its servo reports {', '.join(bits).replace('_', ' ')}" if bits else None


class LostStateMonitor(TendonFindingMonitor):
    """A state that a servo with torque must keep once it had it; before the first torque it is not required."""

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self._was_true = False

    def lost(self, state: bool | None, command: DriveCommand | None) -> bool:
        """Whether a state that was true is false although torque is commanded."""
        if command is None or command.kind is Drive.TORQUE_OFF:
            self._was_true = False
            return False
        self._was_true = self._was_true or bool(state)
        return self._was_true and state is False


@tendon_monitor(FaultKind.SERVO_RESTARTED)
class ServoRestartedMonitor(LostStateMonitor):
    """Torque that went off without a command."""

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        lost = self.lost(tendon.raw.torque_on, command)
        return "its servo switched torque off by itself; it restarted or shut down" if lost else None


@tendon_monitor(FaultKind.TORQUE_STAYS_ON)
class TorqueStaysOnMonitor(TendonFindingMonitor):
    """Torque that should be off without the servo's confirmation."""

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        if command is None or command.kind is not Drive.TORQUE_OFF or tendon.raw.torque_on is False:
            return None
        return f"its servo was commanded {self.persistence} times to switch torque off and has not said that it did"


@tendon_monitor(FaultKind.WATCHDOG_UNARMED)
class WatchdogUnarmedMonitor(LostStateMonitor):
    """A bus watchdog that is off: the servo would continue after the driver has died."""

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        lost = self.lost(tendon.raw.watchdog, command)
        if lost and self.spool.on_board:
            return "its potentiometer board has stopped all servos"
        return "the bus watchdog of its servo is off, so that a killed driver would not stop it" if lost else None


# -- the sensors -------------------------------------------------------------------------------------------------------


@tendon_monitor(FaultKind.SENSOR_MISSING)
def sensor_missing(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    """The sensor of the position loop gives no reading, or repeats an old one."""
    old = spool.measured_by == "potentiometer" and tendon.raw.sensor_age > 0
    return f"its {spool.measured_by} gives no reading" if old or not finite(tendon.length) else None


@tendon_monitor(FaultKind.SENSOR_BROKEN)
def sensor_broken(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    """A potentiometer at the end of its range: wire off, short, or wound past its end stop."""
    low, high = spool.sensor_range
    counts = tendon.raw.sensor
    if spool.potentiometer is None or counts is None or low <= counts <= high:
        return None
    return f"its potentiometer says {counts:g}, outside {low:g} to {high:g} of a healthy one"


@tendon_monitor(FaultKind.SENSOR_JUMP, FaultKind.TURNS_LOST)
class SensorJumpMonitor(TendonMonitor):
    """A length that changes faster than the spool can turn; whole turns mean that an encoder has lost count."""

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self._last = math.nan
        self._elapsed = 0
        self._lost: Fault | None = None

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        tendon = readings.tendons.get(self.spool.name)
        self._elapsed += 1
        if tendon is None or not finite(tendon.length):
            return self._lost
        last, self._last, cycles, self._elapsed = self._last, tendon.length, self._elapsed, 0
        change = tendon.length - last
        turn = 2.0 * math.pi * self.spool.radius
        allowed = possible_step(self.spool, self.settings, readings, cycles)
        if not abs(change) > allowed:  # nan at the first reading
            return self._lost
        turns = round(change / turn)
        if self.spool.measured_by == "encoder" and turns != 0 and abs(change - turns * turn) <= allowed:
            self._lost = self._fault(
                cycle,
                f"its encoder jumped by {abs(turns)} whole turns ({change * 1e3:.1f} mm); its servo lost power",
                FaultKind.TURNS_LOST,
            )
        return self._lost or self._fault(
            cycle, f"its length jumped by {change * 1e3:.1f} mm where {allowed * 1e3:.1f} mm are possible"
        )


@tendon_monitor(FaultKind.SENSOR_FROZEN)
class SensorFrozenMonitor(TendonFindingMonitor):
    """A sensor that does not move while the other one does."""

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self._first = self._second = math.nan
        self._travel = 0.0

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        if not (finite(tendon.length) and finite(tendon.second_length)):
            return None
        if tendon.raw.age > 0 or tendon.raw.sensor_age > 0:
            self._second = math.nan  # motion during a silence of the sensor does not count once it reports again
            return None
        step = wrapped(tendon.second_length - self._second, self.spool.wrap) if finite(self._second) else 0.0
        self._second = tendon.second_length
        self._travel += step
        moved = abs(tendon.length - self._first)
        if not moved <= STANDING_STILL * self.settings.stuck_distance:  # nan at the first reading
            self._first, self._travel = tendon.length, 0.0
            return None
        if abs(self._travel) <= self.settings.stuck_distance:
            return None
        return f"its {self.spool.measured_by} stands still while the spool turned by {abs(self._travel) * 1e3:.1f} mm"


@tendon_monitor(FaultKind.SENSORS_DISAGREE)
def sensors_disagree(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    """Two sensors of one spool give different lengths: a coupling slips, or one of them is wrong."""
    distance = sensor_distance(spool, tendon.length, tendon.second_length)
    return f"its two sensors are {distance * 1e3:.1f} mm apart" if distance > settings.disagreement else None
