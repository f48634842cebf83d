"""Monitors for all servos together: the port, the packets, the supply, the commands and the clocks."""

from __future__ import annotations

import math
from collections import deque

from tensegrity_dynamics.command_streams import REMEDY

from ...spools.readings import Readings, finite
from ..faults import FaultKind
from ..settings import SafetySettings
from .monitor import BusMonitor, bus_monitor


@bus_monitor(FaultKind.PORT_LOST)
def port_lost(readings: Readings, settings: SafetySettings) -> str | None:
    return None if readings.bus.alive else "the serial port is gone"


@bus_monitor(FaultKind.BAD_PACKETS)
class BadPacketsMonitor(BusMonitor):
    """Fraction of missing and damaged status packets over the last cycles."""

    def __init__(self, kind: FaultKind, settings: SafetySettings) -> None:
        super().__init__(kind, settings)
        self._past: deque[tuple[int, int]] = deque(maxlen=settings.packet_window)

    def finding(self, readings: Readings) -> str | None:
        """Description of what is wrong; it needs a full window, so that one bad packet at the start is no fault."""
        self._past.append((readings.bus.bad_packets, readings.bus.packets))
        bad, packets = sum(each[0] for each in self._past), sum(each[1] for each in self._past)
        full = packets * self.settings.packet_window / len(self._past)
        if not bad > self.settings.bad_packets * full:
            return None
        return f"{bad} of {packets} packets of the last {len(self._past)} cycles were bad"


@bus_monitor(FaultKind.DUPLICATE_ID)
def duplicate_id(readings: Readings, settings: SafetySettings) -> str | None:
    ids = ", ".join(map(str, readings.bus.duplicate_ids))
    return f"more than one servo answers under id {ids}" if ids else None


@bus_monitor(FaultKind.SUPPLY_OVERDRAWN)
def supply_overdrawn(readings: Readings, settings: SafetySettings) -> str | None:
    limit = settings.supply_current
    if limit is None:
        return None
    currents = [each.raw.current for each in readings.tendons.values()]
    drawn = math.fsum(abs(current) for current in currents if current is not None and finite(current))
    return f"the servos draw {drawn:.1f} A from a supply of {limit:.1f} A" if drawn > limit else None


@bus_monitor(FaultKind.STALE_COMMAND)
class StaleCommandMonitor(BusMonitor):
    """Age of the last accepted command, or commands without effect.

    Before the first command, and while an emergency stop accepts none, nothing is stale.
    """

    def finding(self, readings: Readings) -> str | None:
        age, waits = readings.command.age, readings.command.waits
        if waits is not None:
            return waits.rstrip(".").removesuffix(f"; {REMEDY}")  # the fault already contains the remedy
        if readings.command.stopped is not None:
            return None  # no command is accepted until the release; to send one is no remedy
        if age is None or age <= self.settings.stale_time * (1.0 + 1e-9):
            return None
        return f"no command from {readings.command.source!r} for {age:.2f} s"


@bus_monitor(FaultKind.TWO_SOURCES)
def two_sources(readings: Readings, settings: SafetySettings) -> str | None:
    return readings.command.contest


@bus_monitor(FaultKind.REFUSED_COMMANDS)
def refused_commands(readings: Readings, settings: SafetySettings) -> str | None:
    if not readings.command.refusals:
        return None
    tendon, reason = readings.command.refusals[0]
    return f"commands are refused in every cycle ({tendon + ': ' if tendon else ''}{reason})"


@bus_monitor(FaultKind.EMERGENCY_STOP)
def emergency_stop(readings: Readings, settings: SafetySettings) -> str | None:
    stopped = readings.command.stopped
    return None if stopped is None else f"emergency stop ({stopped})"


@bus_monitor(FaultKind.CLOCK_JUMP)
def clock_jump(readings: Readings, settings: SafetySettings) -> str | None:
    """The clock that stamps commands advanced more or less than the elapsed time."""
    if readings.clock_step is None or abs(readings.clock_step - readings.period) <= settings.clock_jump:
        return None
    return f"the clock went by {readings.clock_step:.3f} s while {readings.period:.3f} s passed"


@bus_monitor(FaultKind.OVERRUN)
class OverrunMonitor(BusMonitor):
    """Number of recent cycles that took longer than planned, or a single cycle in which the driver stood still."""

    def __init__(self, kind: FaultKind, settings: SafetySettings) -> None:
        super().__init__(kind, settings)
        self._past: deque[bool] = deque(maxlen=settings.overrun_window)

    def finding(self, readings: Readings) -> str | None:
        settings = self.settings
        self._past.append(not readings.period <= settings.overrun * settings.period)
        if not readings.period <= settings.stale_time:
            return f"the driver stood still for {readings.period:.2f} s, and the servos went on with their last command"
        late = sum(self._past)
        if late < settings.overruns or not self._past[-1]:
            return None
        return (
            f"{late} of the last {len(self._past)} cycles took too long, the last {readings.period * 1e3:.1f} "
            f"ms instead of {settings.period * 1e3:.1f} ms"
        )
