"""One bus cycle from end to end: read, look, react, limit, convert, write; with no clock, port or thread of its own.

The driver node calls `command` whenever a command comes and `run` once per period, and publishes what they return. The
same object runs on the real bus, on the emulated one, and on a bench in tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensegrity_dynamics.command_gate import CommandGate, Mode, Verdict
from tensegrity_dynamics.errors import BusError, TensegrityError

from .safety.faults import Fault
from .safety.safety_layer import SafetyLayer, SafetyStep, at_rest, torque_off
from .safety.settings import SafetySettings
from .spools.position_loop import CycleCounter, Loop
from .spools.readings import (
    BusReading,
    CommandState,
    DriveCommand,
    Readings,
    ServoCommand,
    ServoLink,
    ServoReading,
    Spool,
)


class DriverCycle:
    """Drives the spools of one bus through the command gate, the position loops and the safety layer.

    Args:
        link: the bus. spools: by actuator. loops: by actuator. settings: of the safety layer.
        gate: None takes one with the limits of the spools' actuators, fresh for as long as `settings.stale` cycles.
    """

    def __init__(
        self,
        link: ServoLink,
        spools: Mapping[str, Spool],
        loops: Mapping[str, Loop],
        settings: SafetySettings | None = None,
        gate: CommandGate | None = None,
    ) -> None:
        self.link = link
        self.settings = settings or SafetySettings()
        self.layer = SafetyLayer(tuple(spools.values()), loops, self.settings)
        self.gate = gate or CommandGate(
            [spool.actuator for spool in spools.values()], freshness=self.settings.stale * self.settings.period
        )
        self.counter = CycleCounter(self.settings.period, self.settings.overrun)
        self.cycle = 0
        self.readings = Readings({})
        self._points: dict[str, tuple[Mode, float]] = {}
        self._age: int | None = None
        self._rival: str | None = None
        self._refusals: tuple[tuple[str | None, str], ...] = ()
        self._clock = math.nan
        self._raw: Mapping[str, ServoReading] = {}
        self._trouble: tuple[str, ...] = ()

    # -- commands --------------------------------------------------------------------------------------------------

    def command(
        self, names: Sequence[str], values: Sequence[float], mode: Mode, *, source: str, stamp: float, now: float
    ) -> Verdict:
        """Give one command to the gate; what it lets pass is followed from the next cycle on."""
        before = self.gate.source
        positions = {name: tendon.length for name, tendon in self.readings.tendons.items()}
        verdict = self.gate.check(names, values, mode, source=source, stamp=stamp, now=now, positions=positions)
        if verdict.set_points or (verdict.accepted and not verdict.refusals):
            self._points.update(verdict.set_points)
            self._age = 0
        self._refusals += tuple((each.actuator, each.reason) for each in verdict.refusals)
        if not verdict.accepted and before not in (None, source):
            self._rival = source
        return verdict

    # -- cycles ----------------------------------------------------------------------------------------------------

    def begin(self, clock: float) -> None:
        """Take over from the measured lengths; raises CommandRefused where one is not known. Nothing is sent."""
        self._clock = clock
        self._look(0.0, clock)
        self.layer.take_over(self.readings)
        self._forget()

    def run(self, period: float, clock: float) -> SafetyStep:
        """One cycle.

        Args:
            period: s since the last one, by a clock that never jumps. clock: s, the one that stamps commands.
        """
        self.counter.count(period)
        self._look(period, clock)
        trouble, self._trouble = self._trouble, ()
        points, self._points = self._points, {}
        step = self.layer.step(self.cycle, self.readings, points)
        notes = (*trouble, *self._send(step.commands))
        self.cycle += 1
        self._age = None if self._age is None else self._age + 1
        self._rival, self._refusals = None, ()
        return replace(step, notes=(*step.notes, *notes)) if notes else step

    def clear(self) -> tuple[Fault, ...]:
        """Clear the faults whose causes have gone, and go on from the measured lengths; see `SafetyLayer.clear`."""
        held = self.layer.clear(self.readings)
        self._forget()
        return held

    def end(self, *, release_torque: bool = False) -> None:
        """Send what is sent last: every velocity zero, or torque off; nothing follows old commands afterwards."""
        spools = tuple(self.layer.spools.values())
        self._send(torque_off(spools) if release_torque else at_rest(self.layer.sent))
        self._forget()

    # -- parts -----------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._points, self._age, self._rival, self._refusals = {}, None, None, ()
        self.gate.forget()

    def _look(self, period: float, clock: float) -> None:
        try:
            raw, bus = self.link.read()
        except BusError as problem:  # unplugged, say: everybody is silent, and everything gets older
            self._trouble = (str(problem),)
            raw = {name: replace(each, age=each.age + 1) for name, each in self._raw.items()}
            bus = BusReading(alive=False)
        self._raw = raw
        spools = self.layer.spools
        tendons = {name: spools[name].observe(reading) for name, reading in raw.items() if name in spools}
        command = CommandState(self.gate.source, self._age, self._rival, self._refusals, self.gate.stopped)
        self.readings = Readings(tendons, bus, period, clock - self._clock, command)
        self._clock = clock

    def _send(self, commands: Mapping[str, DriveCommand]) -> tuple[str, ...]:
        """Convert and write; a command that the servo cannot take is left out and said."""
        out: dict[str, ServoCommand] = {}
        notes: list[str] = []
        for name, command in commands.items():
            try:
                out[name] = self.layer.spools[name].command(command)
            except TensegrityError as problem:
                notes.append(str(problem))
        try:
            self.link.write(out)
        except BusError as problem:
            notes.append(str(problem))
        return tuple(notes)
