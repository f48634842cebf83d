"""Base classes of monitors, and their registration by the kind of fault that they detect.

A monitor evaluates a finding in every bus cycle and counts: a finding in as many consecutive cycles as the table of
faults requires makes a fault. A finding that needs the present cycle alone is a function,

    @tendon_monitor(FaultKind.WARM)
    def warm(tendon, spool, settings): ...          text of what is observed, or None

and a finding that needs a memory is a subclass of `TendonFindingMonitor` or `BusMonitor`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ...spools.readings import DriveCommand, Readings, TendonReading
from ...spools.spool import Spool
from ..faults import Fault, FaultKind
from ..settings import SafetySettings

Commands = Mapping[str, DriveCommand]
TendonFunction = Callable[[TendonReading, Spool, SafetySettings], "str | None"]
BusFunction = Callable[[Readings, SafetySettings], "str | None"]
Finding = TypeVar("Finding", bound=Callable[..., Any])


class Monitor(ABC):
    """Detects faults from the readings of a bus cycle and the commands of the previous cycle.

    Args:
        kind: row of the table of faults.
        settings: thresholds.

    Attributes:
        name: actuator of the tendon that is watched; None: the bus.
    """

    name: str | None = None

    def __init__(self, kind: FaultKind, settings: SafetySettings) -> None:
        self.kind, self.settings = kind, settings
        self.persistence = settings.persistence(kind)
        self._count = 0

    @abstractmethod
    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        """Fault that one cycle shows, or None."""

    def restart(self) -> None:  # noqa: B027
        """Forget the motion up to now, if it remembers one: it was not the servo's."""

    def _persistent(self, cycle: int, happened: str | None) -> Fault | None:
        self._count = 0 if happened is None else self._count + 1
        if happened is None or self._count < self.persistence:
            return None
        return self._fault(cycle, happened)

    def _fault(self, cycle: int, happened: str, kind: FaultKind | None = None) -> Fault:
        return Fault(kind or self.kind, self.name, cycle, happened)


class TendonMonitor(Monitor):
    """Monitor of one tendon.

    Args:
        spool: that winds it.
    """

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings)
        self.spool, self.name = spool, spool.name


class TendonFindingMonitor(TendonMonitor):
    """Monitor of one tendon whose finding must persist."""

    @abstractmethod
    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """Description of what is wrong in one cycle, or None."""

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        tendon, command = readings.tendons.get(self.spool.name), commands.get(self.spool.name)
        return self._persistent(cycle, None if tendon is None else self.finding(tendon, readings, command))


class BusMonitor(Monitor):
    """Monitor for all servos together, whose finding must persist."""

    @abstractmethod
    def finding(self, readings: Readings) -> str | None:
        """Description of what is wrong in one cycle, or None."""

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        return self._persistent(cycle, self.finding(readings))


class TendonFunctionMonitor(TendonFindingMonitor):
    """Monitor of one tendon whose finding is a function of the present cycle alone."""

    def __init__(self, function: TendonFunction, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self._function = function

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        return self._function(tendon, self.spool, self.settings)


class BusFunctionMonitor(BusMonitor):
    """Monitor of the bus whose finding is a function of the present cycle alone."""

    def __init__(self, function: BusFunction, kind: FaultKind, settings: SafetySettings) -> None:
        super().__init__(kind, settings)
        self._function = function

    def finding(self, readings: Readings) -> str | None:
        return self._function(readings, self.settings)


def elapsed(readings: Readings, settings: SafetySettings) -> float:
    """Measured duration [s] of this cycle; the planned period where the measured one is not plausible."""
    return readings.period if math.isfinite(readings.period) and readings.period > 0.0 else settings.period


# -- registration ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Registration:
    """Kinds of faults that a monitor detects, and its constructor from settings (and the spool of a tendon)."""

    kinds: tuple[FaultKind, ...]
    make: Callable[..., Monitor]


TENDON_MONITORS: list[Registration] = []
BUS_MONITORS: list[Registration] = []


def tendon_monitor(*kinds: FaultKind) -> Callable[[Finding], Finding]:
    """Register a subclass of `TendonMonitor`, or a function of (reading, spool, settings), by kinds of faults."""
    return _registers(TENDON_MONITORS, kinds, TendonFunctionMonitor)


def bus_monitor(*kinds: FaultKind) -> Callable[[Finding], Finding]:
    """Register a subclass of `BusMonitor`, or a function of (readings, settings), by kinds of faults."""
    return _registers(BUS_MONITORS, kinds, BusFunctionMonitor)


def _registers(
    table: list[Registration], kinds: tuple[FaultKind, ...], of_function: Callable[..., Monitor]
) -> Callable[[Finding], Finding]:
    def register(finding: Finding) -> Finding:
        make: Callable[..., Monitor] = finding if isinstance(finding, type) else partial(of_function, finding)
        table.append(Registration(kinds, partial(make, kinds[0])))
        return finding

    return register
