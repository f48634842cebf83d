"""One bus cycle: read the servos, detect faults, limit the set points, convert them and write them.

The cycle has no clock, port or thread: call `command` whenever a command arrives, and `run` once per period. It runs on
real buses, emulated ones and simulated spools alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tensegrity_dynamics.command_gate import CommandGate, Mode, Refusal, Verdict
from tensegrity_dynamics.errors import BusError, TensegrityError

from .bus.statistics import BusReading
from .safety.faults import Fault
from .safety.safety_layer import SafetyLayer, SafetyStep, at_rest, torque_off
from .safety.settings import SafetySettings
from .spools.position_loop import CycleCounter, Loop
from .spools.readings import CommandState, DriveCommand, Readings, ServoCommand, ServoLink, ServoReading
from .spools.spool import Spool

MAX_REFUSALS = 100
"""Number of refusals stored per cycle, so that a flood of commands needs no memory."""


class DriverCycle:
    """Bus cycle of a set of spools, with command gate, position loops and safety layer.

    Args:
        link: bus.
        spools: spools by actuator.
        loops: position loops by actuator.
        settings: settings of the safety layer.
        gate: command gate of a driver that stores who commanded before; None: a new one.

    Attributes:
        gate: checks commands by the limits of the actuators; a command stays fresh for `settings.stale_time`.
        counter: number, periods and overruns of the cycles so far.
        readings: readings of the last cycle.
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
            [spool.driven for spool in spools.values()],
            freshness=self.settings.stale_time,
            without_impedance={name: spool.no_impedance for name, spool in spools.items() if spool.no_impedance},
        )
        self.counter = CycleCounter(self.settings.period, self.settings.overrun)
        self.cycle = 0
        self.readings = Readings({})
        self._set_points: dict[str, tuple[Mode, Any]] = {}
        self._command_age: float | None = None
        self._waits: str | None = None
        self.refusals: tuple[tuple[str | None, str], ...] = ()
        self._set_at, self._sender_period = math.nan, 0.0
        self._clock = math.nan
        self._servo_readings: Mapping[str, ServoReading] = {}
        self._read_errors: tuple[str, ...] = ()

    # -- state -----------------------------------------------------------------------------------------------------

    @property
    def spools(self) -> Mapping[str, Spool]:
        """Spools by actuator, with the present calibration."""
        return self.layer.spools

    @property
    def sent(self) -> Mapping[str, DriveCommand]:
        """Last command written to each tendon."""
        return self.layer.sent

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Present faults, including latched ones."""
        return self.layer.latch.faults

    @property
    def latched(self) -> tuple[Fault, ...]:
        """Faults that remain until they are cleared."""
        return self.layer.latch.latched

    # -- commands --------------------------------------------------------------------------------------------------

    def command(
        self,
        names: Sequence[str],
        values: Sequence[Any],
        mode: Mode,
        *,
        source: str,
        stamp: float,
        now: float,
        session: int = 0,
        period: float = 0.0,
    ) -> Verdict:
        """Check one command, see `Driver.command`; accepted set points are followed from the next cycle on."""
        spools = self.layer.spools
        positions = {name: spools[name].position(each.length) for name, each in self.readings.tendons.items()}
        verdict = self.gate.check(
            names, values, mode, source=source, session=session, stamp=stamp, now=now, positions=positions,
            period=period,
        )  # fmt: skip
        if mode is Mode.IMPEDANCE:
            verdict = self._what_servos_can(verdict)
        nobody = self.gate.stopped is not None or self.gate.streams.contest(now) is not None
        self._waits = None if nobody else verdict.holds
        if verdict.set_points or (verdict.accepted and not verdict.refusals):
            self._set_points.update({name: spools[name].set_point(*each) for name, each in verdict.set_points.items()})
            self._command_age = 0.0
            self._set_at, self._sender_period = stamp, period
        if verdict.holds is None:
            left = MAX_REFUSALS - len(self.refusals)
            self.refusals += tuple((each.actuator, each.reason) for each in verdict.refusals[: max(left, 0)])
        return verdict

    def _what_servos_can(self, verdict: Verdict) -> Verdict:
        """The verdict without impedances that the gains of a servo cannot represent."""
        kept, refusals = dict(verdict.set_points), list(verdict.refusals)
        for name, (mode, value) in verdict.set_points.items():
            spool = self.layer.spools[name]
            problem = spool.impedance_problem(spool.set_point(mode, value)[1])
            if problem is not None:
                del kept[name]
                refusals.append(Refusal(name, f"{problem}; refused."))
        return replace(verdict, set_points=kept, refusals=tuple(refusals))

    # -- cycles ----------------------------------------------------------------------------------------------------

    def begin(self, clock: float, *, identify: bool = False) -> None:
        """Start from the measured lengths, at which all tendons hold; nothing is written.

        Args:
            clock: time of the clock that stamps commands [s].
            identify: whether the first cycles identify every spool by a small motion.

        Raises:
            CommandRefused: a length could not be read or is impossible, or a fault is latched.
        """
        self._clock = clock
        self._read(0.0, clock)
        self.layer.take_over(self.readings)
        if identify:
            self.layer.identify()
        self._drop_commands()
        self.gate.begin_again(clock)

    def run(self, period: float, clock: float, since_begin: Callable[[], float] | None = None) -> SafetyStep:
        """Run one cycle.

        Args:
            period: time since the last cycle by a monotonic clock [s].
            clock: time of the clock that stamps commands [s].
            since_begin: time since the begin of this cycle by the clock of `period` [s]; None: reading takes no time.
        """
        self.counter.count(period)
        self._read(period, clock, since_begin)
        errors, self._read_errors = self._read_errors, ()
        set_points, self._set_points = self._set_points, {}
        age = max(0.0, clock - self._set_at) if math.isfinite(clock - self._set_at) else 0.0
        step = self.layer.step(self.cycle, self.readings, set_points, age, self._sender_period)
        errors = (*errors, *self._write(step.commands))
        self.cycle += 1
        if self._command_age is not None and period > 0.0:
            self._command_age += period
        self.refusals = ()
        return replace(step, notes=(*step.notes, *errors)) if errors else step

    def clear(self) -> tuple[Fault, ...]:
        """Clear the faults without present causes and continue from the measured lengths; returns the cleared ones.

        Raises:
            CommandRefused: a cause is still present, or a length could not be read; the faults remain latched.
        """
        cleared = self.layer.clear(self.readings)
        self._drop_commands()
        self.gate.begin_again(self._clock)
        return cleared

    def end(self, *, release_torque: bool = False) -> None:
        """Write the last commands, zero velocity or torque off, and drop commands that have not been followed."""
        spools = tuple(self.layer.spools.values())
        self._write(torque_off(spools) if release_torque else at_rest(self.layer.sent))
        self._drop_commands()

    # -- parts -----------------------------------------------------------------------------------------------------

    def _drop_commands(self) -> None:
        self._set_points, self._command_age, self._waits, self.refusals = {}, None, None, ()

    def _read(self, period: float, clock: float, since_begin: Callable[[], float] | None = None) -> None:
        try:
            raw, bus = self.link.read()
        except BusError as error:  # such as an unplugged adapter: no servo answers, and all readings age
            self._read_errors = (str(error),)
            raw = {name: replace(each, age=each.age + 1) for name, each in self._servo_readings.items()}
            bus = BusReading(alive=False)
        self._servo_readings = raw
        spools = self.layer.spools
        tendons = {name: spools[name].observe(reading) for name, reading in raw.items() if name in spools}
        contest, _ = self.gate.streams.contenders(clock) or (None, "")
        command = CommandState(
            self.gate.source, self._command_age, contest, self.refusals, self.gate.stopped, self._waits
        )
        read_time = 0.0 if since_begin is None else since_begin()
        self.readings = Readings(tendons, bus, period, clock - self._clock, command, read_time)
        self._clock = clock

    def _write(self, commands: Mapping[str, DriveCommand]) -> tuple[str, ...]:
        """Convert and write commands; commands that a servo cannot follow are left out. Returns the error texts."""
        out: dict[str, ServoCommand] = {}
        errors: list[str] = []
        for name, command in commands.items():
            try:
                out[name] = self.layer.spools[name].command(command)
            except TensegrityError as error:
                errors.append(str(error))
        try:
            self.link.write(out)
        except BusError as error:
            errors.append(str(error))
        return tuple(errors)
