"""A safety layer over a bench of spools, and every fault that tests put into it.

What must hold in every cycle of every test is asserted here, in `Cell.run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from spool_bench import PERIOD, Axis, Bench, spool

from tensegrity_driver.safety.faults import Fault, FaultKind, Reaction, SafetySettings
from tensegrity_driver.safety.safety_layer import SafetyLayer, SafetyStep
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
                assert low - 1e-3 <= axis.length <= high + 1e-3
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


# -- every fault: when it is found, what happens, how it ends ----------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One injected fault.

    Attributes:
        inject, mend: what is done to the cell. tendon: that the fault is about (None: the bus).
        within: bus cycles. reaction: of the tendon. move: goal commanded as it is injected.
        first: faults that may be found before this one, because the cause shows in several ways.
        encoder: on servos that count turns. settings: that differ.
    """

    kind: FaultKind
    inject: Callable[[Cell], object]
    mend: Callable[[Cell], object]
    within: int
    reaction: Reaction | None = Reaction.HOLD
    tendon: str | None = "draw_1"
    move: float | None = None
    first: tuple[FaultKind, ...] = ()
    encoder: bool = False
    settings: dict = field(default_factory=dict)
    spool: dict = field(default_factory=dict)


def override(**values: object) -> Callable[[Cell], object]:
    return lambda cell: cell.axis.override.update(values)


def restore(*names: str) -> Callable[[Cell], object]:
    return lambda cell: [cell.axis.override.pop(name) for name in names]


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


S = SafetySettings(period=PERIOD)
K = FaultKind
SPEED = 0.010
CASES = [
    Case(K.SERVO_SILENT, put(silent=True), put(silent=False), S.silent),
    Case(K.SENSOR_MISSING, override(sensor=None), restore("sensor"), S.missing),
    Case(K.SENSOR_MISSING, override(sensor=math.nan), restore("sensor"), S.missing),
    Case(K.SENSOR_MISSING, override(sensor_age=1), restore("sensor_age"), S.missing),
    Case(K.SENSOR_MISSING, override(position=None), restore("position"), S.missing, encoder=True),
    Case(K.SENSOR_BROKEN, override(sensor=4095.0), restore("sensor"), S.persist, first=(K.SENSOR_JUMP, K.SPOOL_LIMIT)),
    Case(K.SENSOR_BROKEN, override(sensor=0.0), restore("sensor"), S.persist, first=(K.SENSOR_JUMP, K.SPOOL_LIMIT)),
    Case(K.SENSOR_JUMP, put(slipped=0.01), put(slipped=0.0), 1),
    Case(K.SENSOR_FROZEN, freeze, put(frozen=None), 16, move=0.2),
    Case(K.SENSORS_DISAGREE, slip, put(slipped=0.0), 50 + S.persist + 3, move=0.24, first=(K.SLACK,)),
    Case(K.RUNAWAY, put(drift=-SPEED), put(drift=0.0), 12, Reaction.TORQUE_OFF),
    Case(K.WRONG_SIGN, put(gain=0.0, drift=SPEED), put(gain=1.0, drift=0.0), 12, Reaction.TORQUE_OFF, encoder=True),
    Case(K.WRONG_SIGN, put(gain=-1.0), put(gain=1.0), 20, Reaction.TORQUE_OFF, move=0.2),
    Case(K.STUCK, put(jammed=True), put(jammed=False), 20, move=0.2),
    Case(K.STUCK, put(jammed=True), put(jammed=False), 20, move=0.2, encoder=True),
    Case(K.TENSION_CEILING, pull, put(reach=0.2125), S.persist, Reaction.RELEASE),
    Case(K.SNAPPED, put(snapped=True), put(snapped=False), S.snap_cycles),
    Case(K.OVERLOAD, override(errors=frozenset({"overload"})), restore("errors"), S.persist, Reaction.RELEASE),
    Case(K.OVERHEATING, override(temperature=71.0), restore("temperature"), S.persist, Reaction.TORQUE_OFF),
    Case(
        K.OVERHEATING,
        override(errors=frozenset({"overheating"})),
        restore("errors"),
        S.persist,
        Reaction.TORQUE_OFF,
    ),
    Case(K.WARM, override(temperature=65.0), restore("temperature"), S.persist, None),
    Case(K.UNDERVOLTAGE, override(voltage=8.5), restore("voltage"), S.persist),
    Case(K.OVERVOLTAGE, override(voltage=13.0), restore("voltage"), S.persist),
    Case(K.HARDWARE_ERROR, override(errors=frozenset({"encoder"})), restore("errors"), 2, Reaction.TORQUE_OFF),
    Case(K.SERVO_RESTARTED, override(torque_on=False), restore("torque_on"), 2),
    Case(K.WATCHDOG_UNARMED, override(watchdog=False), restore("watchdog"), 2),
    Case(K.PORT_LOST, bus(alive=False), bus(alive=True), 1, tendon=None),
    Case(K.BAD_PACKETS, bus(bad_packets=3), bus(bad_packets=0), 14, tendon=None),
    Case(K.DUPLICATE_ID, bus(duplicate_ids=(7,)), bus(duplicate_ids=()), 1, tendon=None),
    Case(
        K.SUPPLY_OVERDRAWN,
        override(current=6.5),
        restore("current"),
        S.persist,
        tendon=None,
        settings={"supply_current": 6.0},
    ),
    Case(K.STALE_COMMAND, command(age=26), command(age=0), 1, tendon=None),
    Case(K.TWO_SOURCES, command(rival="somebody"), command(rival=None), 1, tendon=None),
    Case(
        K.REFUSED_COMMANDS,
        command(refusals=(("draw_1", "nan is not a finite number"),)),
        command(refusals=()),
        S.refused,
        tendon=None,
    ),
    Case(K.EMERGENCY_STOP, command(stopped="pressed"), command(stopped=None), 1, tendon=None),
    Case(K.CLOCK_JUMP, bench(clock_step=3.0), bench(clock_step=PERIOD), 1, tendon=None),
    Case(K.CLOCK_JUMP, bench(clock_step=-3.0), bench(clock_step=PERIOD), 1, tendon=None),
    Case(K.OVERRUN, bench(period=0.05), bench(period=PERIOD), S.overruns, tendon=None),
]
