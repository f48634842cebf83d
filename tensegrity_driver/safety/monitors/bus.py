"""Monitors of what concerns all servos at once: the port, the packets, the supply, the commands and the clocks."""

from __future__ import annotations

import math
from collections import deque

from ...spools.readings import Readings, finite
from ..faults import Fault, FaultKind, SafetySettings
from .sensors import Commands


class BusMonitor:
    """A finding about the bus or the commands that counts once it has been there for some cycles in a row."""

    kind: FaultKind
    remedy = "see docs/faults.md"

    def __init__(self, settings: SafetySettings) -> None:
        self.settings = settings
        self.count = 0

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return 1

    @property
    def detects_within(self) -> int:
        """Bus cycles from cause to fault."""
        return self.cycles

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        raise NotImplementedError

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        """Look at one cycle."""
        happened = self.finding(readings)
        self.count = 0 if happened is None else self.count + 1
        if happened is None or self.count < self.cycles:
            return None
        return Fault(self.kind, None, cycle, happened, self.remedy)


class PortLost(BusMonitor):
    """The serial port is gone."""

    kind = FaultKind.PORT_LOST
    remedy = "plug the adapter in again; the port is opened by itself, then clear the fault"

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        return None if readings.bus.alive else "the serial port is gone"


class BadPackets(BusMonitor):
    """Too many status packets of the last cycles are missing or damaged."""

    kind = FaultKind.BAD_PACKETS
    remedy = "check cables, termination, baud rate and whether two servos share an id"

    def __init__(self, settings: SafetySettings) -> None:
        super().__init__(settings)
        self._past: deque[tuple[int, int]] = deque(maxlen=settings.packet_window)

    @property
    def detects_within(self) -> int:
        """Bus cycles from cause to fault, for at least twice the allowed rate of bad packets."""
        return math.ceil(0.5 * self.settings.packet_window) + 1

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None; the fraction is of a full window, so that one early packet is not."""
        self._past.append((readings.bus.bad_packets, readings.bus.packets))
        bad, packets = sum(each[0] for each in self._past), sum(each[1] for each in self._past)
        full = packets * self.settings.packet_window / len(self._past)
        if not bad > self.settings.bad_packets * full:
            return None
        return f"{bad} of {packets} packets of the last {len(self._past)} cycles were bad"


class DuplicateId(BusMonitor):
    """Two servos answer under one id."""

    kind = FaultKind.DUPLICATE_ID
    remedy = "connect them one by one and give each its own id"

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        ids = ", ".join(map(str, readings.bus.duplicate_ids))
        return f"more than one servo answers under id {ids}" if ids else None


class SupplyOverdrawn(BusMonitor):
    """The servos together draw more current than the supply gives."""

    kind = FaultKind.SUPPLY_OVERDRAWN
    remedy = "lower the pretension, move fewer tendons at once, or take a stronger supply"

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return self.settings.persist

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        limit = self.settings.supply_current
        if limit is None:
            return None
        drawn = math.fsum(
            abs(each.raw.current) for each in readings.tendons.values() if each.raw.current and finite(each.raw.current)
        )
        return f"the servos draw {drawn:.1f} A from a supply of {limit:.1f} A" if drawn > limit else None


class StaleCommand(BusMonitor):
    """No command for too long after the first one."""

    kind = FaultKind.STALE_COMMAND
    remedy = "start the controller again; its next command is followed"

    @property
    def detects_within(self) -> int:
        """Bus cycles from the last command to the fault."""
        return self.settings.stale + 1

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        age = readings.command.age
        if age is None or age <= self.settings.stale:
            return None
        return f"no command from {readings.command.source!r} for {age} cycles"


class TwoSources(BusMonitor):
    """A second source commands."""

    kind = FaultKind.TWO_SOURCES
    remedy = "stop one of the two"

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        command = readings.command
        return None if command.rival is None else f"{command.rival!r} commands while {command.source!r} does"


class RefusedCommands(BusMonitor):
    """A source that goes on sending what the gate refuses."""

    kind = FaultKind.REFUSED_COMMANDS
    remedy = "read the reason and mend the controller or the limits"

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return self.settings.refused

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        if not readings.command.refusals:
            return None
        tendon, reason = readings.command.refusals[0]
        return f"commands are refused in every cycle ({tendon + ': ' if tendon else ''}{reason})"


class EmergencyStop(BusMonitor):
    """Somebody pressed the emergency stop."""

    kind = FaultKind.EMERGENCY_STOP
    remedy = "release it when it is safe"

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        stopped = readings.command.stopped
        return None if stopped is None else f"emergency stop ({stopped})"


class ClockJump(BusMonitor):
    """The clock that stamps commands went further or less far than the time that passed."""

    kind = FaultKind.CLOCK_JUMP
    remedy = "stop whatever sets the clock, then clear the fault"

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        if readings.clock_step is None or abs(readings.clock_step - readings.period) <= self.settings.clock_jump:
            return None
        return f"the clock went by {readings.clock_step:.3f} s while {readings.period:.3f} s passed"


class Overrun(BusMonitor):
    """Cycles that take longer than planned."""

    kind = FaultKind.OVERRUN
    remedy = "raise the period, give the driver a processor of its own, or set the return delay of the servos to 0"

    def __init__(self, settings: SafetySettings) -> None:
        super().__init__(settings)
        self._past: deque[bool] = deque(maxlen=settings.overrun_window)

    @property
    def detects_within(self) -> int:
        """Bus cycles from the first of `overruns` long cycles in a row to the fault."""
        return self.settings.overruns

    def finding(self, readings: Readings) -> str | None:
        """What is wrong in this cycle, or None."""
        settings = self.settings
        self._past.append(not readings.period <= settings.overrun * settings.period)
        late = sum(self._past)
        if late < settings.overruns or not self._past[-1]:
            return None
        return (
            f"{late} of the last {len(self._past)} cycles took too long, the last {readings.period * 1e3:.1f} "
            f"ms instead of {settings.period * 1e3:.1f} ms"
        )


BUS_MONITORS: tuple[type[BusMonitor], ...] = (
    PortLost,
    BadPackets,
    DuplicateId,
    SupplyOverdrawn,
    StaleCommand,
    TwoSources,
    RefusedCommands,
    EmergencyStop,
    ClockJump,
    Overrun,
)
