"""A safety layer over a bench of spools, without bytes, and the causes of every fault in it.

What must hold in every cycle of every test is asserted here, in `Cell.run`. What a fault does to the robot and how it
ends is tested on the emulated bus (`bus_fault_cases`); here it is only found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from spool_bench import PERIOD, Axis, Bench, spool

from tensegrity_driver.safety.faults import Fault, FaultKind
from tensegrity_driver.safety.safety_layer import SafetyLayer, SafetyStep
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.spools.position_loop import FreeRunLoop, PositionLoop

NAMES = ("draw_1", "draw_2", "saddle_1")


class Cell:
    """A bench under a safety layer; on it no tendon passes its ceiling and no spool its limits, in any cycle."""

    def __init__(
        self,
        *,
        encoder: bool = False,
        safety: SafetySettings | None = None,
        axis: dict | None = None,
        **changes: object,
    ) -> None:
        self.settings = safety or SafetySettings(period=PERIOD)
        self.spools = [spool(name, encoder=encoder, **changes) for name in NAMES]
        kind = PositionLoop if encoder else FreeRunLoop
        self.loops = {each.name: kind(each, PERIOD) for each in self.spools}
        self.layer = SafetyLayer(self.spools, self.loops, self.settings)
        self.bench = Bench({each.name: Axis(each, **(axis or {})) for each in self.spools})
        self.axis: Axis = self.bench.axes["draw_1"]
        self.pulled = 0.0  # N that something outside pulls with
        self.displaced = 0.0  # m beyond its limits to which somebody has turned the first spool
        self.each_cycle: Callable[[], object] | None = None
        self.cycle = 0
        self.layer.take_over(self.bench.read())

    def run(self, cycles: int, set_points=None) -> SafetyStep:
        for k in range(cycles):
            if self.each_cycle is not None:
                self.each_cycle()
            step = self.layer.step(self.cycle, self.bench.read(), (set_points or {}) if k == 0 else {})
            self.bench.move(dict(step.commands))
            self.cycle += 1
            for axis in self.bench.axes.values():
                low, high = axis.spool.actuator.position
                beyond = self.displaced if axis is self.axis else 0.0
                assert low - 1e-3 <= axis.length <= high + 1e-3 + beyond
                assert axis.tension <= max(axis.spool.actuator.effort, self.pulled) + 1e-9
        return step

    def until(self, kind: FaultKind, tendon: str | None, within: int, set_points=None, first=()) -> Fault:
        """The fault of this kind, which must come within the cycles and before all but those named as first."""
        for k in range(1, within + 1):
            for fault in self.run(1, set_points if k == 1 else None).new:
                if (fault.kind, fault.tendon) == (kind, tendon):
                    return fault
                assert fault.kind in first, fault.line
        raise AssertionError(f"{kind} was not found within {within} cycles; {self.layer.latch.faults}")


# -- the cause of every fault ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One injected fault.

    Attributes:
        inject: into the cell. tendon: that the fault is about (None: the bus).
        move: goal commanded as it is injected. shows_after: cycles until the cause shows in what is read.
        first: faults that may be found before this one, because the cause shows in several ways.
        encoder: on servos that count turns. settings: that differ.
    """

    kind: FaultKind
    inject: Callable[[Cell], object]
    tendon: str | None = "draw_1"
    move: float | None = None
    shows_after: int = 0
    first: tuple[FaultKind, ...] = ()
    encoder: bool = False
    settings: dict = field(default_factory=dict)


def override(**values: object) -> Callable[[Cell], object]:
    return lambda cell: cell.axis.override.update(values)


def put(**values: object) -> Callable[[Cell], object]:
    return lambda cell: [setattr(cell.axis, name, value) for name, value in values.items()]


def bus(**values: object) -> Callable[[Cell], object]:
    return lambda cell: setattr(cell.bench, "bus", replace(cell.bench.bus, **values))


def command(**values: object) -> Callable[[Cell], object]:
    return lambda cell: setattr(cell.bench, "command", replace(cell.bench.command, **values))


def bench(**values: object) -> Callable[[Cell], object]:
    return lambda cell: [setattr(cell.bench, name, value) for name, value in values.items()]


def slip(cell: Cell) -> None:
    """The coupling slips slowly: 2 mm/s."""
    cell.each_cycle = lambda: setattr(cell.axis, "slipped", max(cell.axis.slipped - 4e-5, -6e-3))


def pull(cell: Cell) -> None:
    """Somebody pushes the robot so that the tendon has to span 9 mm more."""
    cell.axis.reach += 0.009
    cell.pulled = cell.axis.tension


def freeze(cell: Cell) -> None:
    cell.axis.frozen = cell.axis.read().sensor


def lose_turns(turns: int) -> Callable[[Cell], object]:
    def lose(cell: Cell) -> None:
        position = cell.axis.read().position
        assert position is not None
        cell.axis.override["position"] = position + 2.0 * math.pi * turns

    return lose


def put_outside(cell: Cell) -> None:
    """Beyond the upper limit by 5 mm, as found at a start."""
    cell.displaced = 0.005
    cell.axis.length = cell.axis.reach = 0.275
    cell.layer.take_over(cell.bench.read())


def jam_and_identify(cell: Cell) -> None:
    """A spool that does not answer when the driver begins."""
    cell.axis.jammed = True
    cell.layer.identify()


def loosen(cell: Cell) -> None:
    """The robot yields by 1 mm/s until the tendon carries nothing."""
    cell.each_cycle = lambda: setattr(cell.axis, "reach", max(cell.axis.reach - 2e-5, 0.2))


S = SafetySettings(period=PERIOD)
K = FaultKind
SPEED = 0.010
ENDS = (K.SENSOR_JUMP, K.SPOOL_LIMIT)
CASES = [
    Case(K.SERVO_SILENT, put(silent=True)),
    Case(K.SENSOR_MISSING, override(sensor=None)),
    Case(K.SENSOR_MISSING, override(sensor=math.nan)),
    Case(K.SENSOR_MISSING, override(sensor_age=1)),
    Case(K.SENSOR_MISSING, override(position=None), encoder=True),
    Case(K.SENSOR_BROKEN, override(sensor=4095.0), first=ENDS),
    Case(K.SENSOR_BROKEN, override(sensor=0.0), first=ENDS),
    Case(K.SENSOR_JUMP, put(slipped=0.01)),
    Case(K.SENSOR_FROZEN, freeze, move=0.2, shows_after=3),
    Case(K.SENSORS_DISAGREE, slip, move=0.24, shows_after=53, first=(K.SLACK,)),
    Case(K.TURNS_LOST, lose_turns(-3), encoder=True),
    Case(K.TURNS_LOST, lose_turns(1), encoder=True),
    Case(K.TURNS_LOST, lose_turns(7), encoder=True),
    Case(K.RUNAWAY, put(drift=-SPEED)),
    Case(K.WRONG_SIGN, put(gain=0.0, drift=SPEED), encoder=True),
    Case(K.WRONG_SIGN, put(gain=-1.0), move=0.2),
    Case(K.DISOBEYS_HOLD, put(drift=-SPEED), first=(K.RUNAWAY,)),
    Case(K.DISOBEYS_HOLD, put(gain=0.0, drift=-SPEED), first=(K.RUNAWAY, K.WRONG_SIGN), encoder=True),
    Case(
        K.TORQUE_STAYS_ON,
        lambda cell: [put(drift=-SPEED)(cell), override(torque_on=True)(cell)],
        shows_after=31,
        first=(K.RUNAWAY, K.WRONG_SIGN, K.DISOBEYS_HOLD, K.SENSOR_JUMP),
    ),
    Case(K.WOUND_BACKWARDS, override(load=-0.5)),
    Case(K.WOUND_BACKWARDS, override(load=-0.5), encoder=True),
    Case(K.WRONG_SPOOL, jam_and_identify, shows_after=9),
    Case(K.STUCK, put(jammed=True), move=0.2, shows_after=7),
    Case(K.STUCK, put(jammed=True), move=0.2, shows_after=7, encoder=True),
    Case(K.SPOOL_LIMIT, put_outside),
    Case(K.TENSION_CEILING, pull),
    Case(K.SLACK, loosen, shows_after=120),
    Case(K.SNAPPED, put(snapped=True)),
    Case(K.OVERLOAD, override(errors=frozenset({"overload"}))),
    Case(K.OVERHEATING, override(temperature=71.0)),
    Case(K.OVERHEATING, override(errors=frozenset({"overheating"}))),
    Case(K.WARM, override(temperature=65.0)),
    Case(K.UNDERVOLTAGE, override(voltage=8.5)),
    Case(K.OVERVOLTAGE, override(voltage=13.0)),
    Case(K.HARDWARE_ERROR, override(errors=frozenset({"encoder"}))),
    Case(K.SERVO_RESTARTED, override(torque_on=False)),
    Case(K.WATCHDOG_UNARMED, override(watchdog=False)),
    Case(K.PORT_LOST, bus(alive=False), None),
    Case(K.BAD_PACKETS, bus(bad_packets=3), None),
    Case(K.DUPLICATE_ID, bus(duplicate_ids=(7,)), None),
    Case(K.SUPPLY_OVERDRAWN, override(current=6.5), None, settings={"supply_current": 6.0}),
    Case(K.STALE_COMMAND, command(age=0.53), None),
    Case(K.TWO_SOURCES, command(contest="somebody commands, too"), None),
    Case(K.REFUSED_COMMANDS, command(refusals=(("draw_1", "nan is not a finite number"),)), None),
    Case(K.EMERGENCY_STOP, command(stopped="pressed"), None),
    Case(K.CLOCK_JUMP, bench(clock_step=3.0), None),
    Case(K.CLOCK_JUMP, bench(clock_step=-3.0), None),
    Case(K.OVERRUN, bench(period=0.05), None),
]
