"""`tensegrity servo watch`: every servo live and what is wrong in plain words; reads, and never drives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from tensegrity_driver.calibration.calibrated_spools import make_spools
from tensegrity_driver.calibration.calibration_file import SensorCalibration
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.safety.faults import Fault, FaultKind
from tensegrity_driver.safety.monitors import Monitor, bus_monitors, tendon_monitors
from tensegrity_driver.spools.readings import Readings, Spool, TendonReading
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError

from ...output import console, print_json, table
from .session import Rig, open_rig

OF_THE_BUS = (FaultKind.BAD_PACKETS, FaultKind.DUPLICATE_ID, FaultKind.SUPPLY_OVERDRAWN)
OF_SERVOS = (
    FaultKind.SERVO_SILENT,
    FaultKind.SENSOR_MISSING,
    FaultKind.SENSOR_BROKEN,
    FaultKind.HARDWARE_ERROR,
    FaultKind.OVERLOAD,
    FaultKind.OVERHEATING,
    FaultKind.WARM,
    FaultKind.UNDERVOLTAGE,
    FaultKind.OVERVOLTAGE,
)
OF_LENGTHS = (FaultKind.SENSOR_JUMP, FaultKind.SENSORS_DISAGREE, FaultKind.SPOOL_LIMIT)
"""Only where lengths are known."""
JSON_CYCLES = 12
"""Cycles for one printed reading: more than any fault that this watches for needs."""
EVERY = 5
"""Cycles between two tables on a terminal."""
COLUMNS = ("actuator", "id", "length mm", "second mm", "tension", "load", "°C", "V", "torque", "age", "errors")


def run_watch(
    robot_name: str, port: str, board: str, calibration: Path | None, cycles: int | None, as_json: bool
) -> None:
    """The command; see `servo.watch_command`."""
    robot = load_robot(robot_name)
    with open_rig(robot, port, board, calibration, lenient=True) as rig:
        watcher = Watcher(rig)
        if as_json:
            watcher.run(cycles or JSON_CYCLES, lambda: None)
            print_json(watcher.figures())
            return
        if not console.is_terminal:
            watcher.run(cycles or JSON_CYCLES, lambda: None)
            console.print(watcher.view())
            return
        try:
            with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:

                def show() -> None:
                    if watcher.cycle % EVERY == 0 or watcher.cycle == cycles:
                        live.update(watcher.view(), refresh=True)

                watcher.run(cycles, show)
        except KeyboardInterrupt:
            console.print("ended; the servos are as they were")


class Watcher:
    """Reads cycle by cycle and keeps what the monitors of the driver say that judge no commands.

    Attributes:
        cycle: read so far. tendons: as last read. faults: those of the last cycle. remarks: about bus and calibration.
    """

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.remarks: list[str] = [rig.problems] if rig.problems else []
        self.remarks += rig.bus.notes()
        self.spools, self.measured = self._spools()
        settings = rig.settings.safety
        self.monitors: list[Monitor] = bus_monitors(settings, OF_THE_BUS)
        for name, spool in self.spools.items():
            kinds = (*OF_SERVOS, *OF_LENGTHS) if name in self.measured else OF_SERVOS
            self.monitors += tendon_monitors(spool, settings, kinds)
        self.cycle = 0
        self.tendons: Mapping[str, TendonReading] = {}
        self.faults: tuple[Fault, ...] = ()
        self.lost: str | None = None

    def _spools(self) -> tuple[dict[str, Spool], set[str]]:
        """Spools by actuator, and which of them have a calibration."""
        rough = self.rig.rough_spools()
        try:
            known = self.rig.calibration()
        except CalibrationError as problem:
            self.remarks.append(f"lengths are not known: {problem}")
            return rough, set()
        if known is None:
            self.remarks.append(
                f"lengths are not known: there is no calibration file {self.rig.path}; make it with `tensegrity servo "
                "calibrate`"
            )
            return rough, set()
        measured = {name for name, spool in rough.items() if spool.measured_by in known.sensors.get(name, {})}
        missing = [name for name in rough if name not in measured]
        if not missing:
            return make_spools(self.rig.robot, known), measured
        self.remarks.append(f"not calibrated yet: {', '.join(missing)}")
        lines = {name: known.sensors[name] for name in measured}
        return {name: _with_lines(spool, lines.get(name, {})) for name, spool in rough.items()}, measured

    def run(self, cycles: int | None, after: Callable[[], None]) -> None:
        """Read for some cycles, or until somebody interrupts."""
        while cycles is None or self.cycle < cycles:
            self.step()
            after()

    def step(self) -> None:
        """One cycle; a lost port is said, and tried again in the next one."""
        self.cycle += 1
        try:
            raw = self.rig.read()
            self.lost = None
        except BusError as problem:
            self.lost = str(problem)
            return
        self.tendons = {name: self.spools[name].observe(reading) for name, reading in raw.items()}
        readings = Readings(self.tendons, self.rig.health, self.rig.period)
        found = (monitor.update(self.cycle, readings, {}) for monitor in self.monitors)
        self.faults = tuple(fault for fault in found if fault is not None)

    # -- showing -----------------------------------------------------------------------------------------------------

    def _length(self, name: str, which: str) -> float:
        """m, nan where no calibration tells it."""
        spool, tendon = self.spools[name], self.tendons[name]
        if name not in self.measured or (which == "second_length" and spool.encoder_turn):
            return math.nan
        return float(getattr(tendon, which))

    def figures(self) -> dict[str, Any]:
        """The last reading as JSON holds it, in SI units."""
        servos = {}
        for name, tendon in self.tendons.items():
            raw = tendon.raw
            servos[name] = {
                "id": self.rig.bus.servos[name].id, "length_m": self._length(name, "length"),
                "second_length_m": self._length(name, "second_length"), "tension_n": tendon.tension,
                "sensor_counts": raw.sensor, "position_rad": raw.position, "load": raw.load, "current_a": raw.current,
                "temperature_c": raw.temperature, "voltage_v": raw.voltage, "torque_on": raw.torque_on,
                "errors": sorted(raw.errors), "age": raw.age, "sensor_age": raw.sensor_age,
            }  # fmt: skip
        faults = [
            {"fault": each.kind.value, "actuator": each.tendon, "happened": each.happened, "remedy": each.remedy}
            for each in self.faults
        ]
        return {
            "robot": self.rig.robot.name, "cycles": self.cycle, "servos": servos, "faults": faults,
            "remarks": self.remarks, "port_lost": self.lost, "bus": self.rig.bus.statistics(),
        }  # fmt: skip

    def view(self) -> Group:
        """The last reading for people."""
        rows = [self._row(name, tendon) for name, tendon in self.tendons.items()]
        lines = [f"! port_lost: {self.lost}"] if self.lost else []
        lines += [f"! {each.kind.value}: {each.line}" for each in self.faults]
        lines += [f"! {each}" for each in self.remarks]
        if not lines:
            lines = ["No faults."]
        title = f"{self.rig.robot.name}, cycle {self.cycle}"
        shown = table(title, COLUMNS, rows, right=(1, 2, 3, 4, 5, 6, 7, 9))
        return Group(shown, Text(_bus_line(self.rig.bus.statistics())), Text("\n".join(lines)))

    def _row(self, name: str, tendon: TendonReading) -> Sequence[str]:
        raw = tendon.raw
        if raw.current is not None:
            effort = f"{raw.current:+.2f} A"
        else:
            effort = "–" if raw.load is None else f"{100 * raw.load:+.0f} %"
        return (
            name,
            str(self.rig.bus.servos[name].id),
            _shown(self._length(name, "length"), "{:.1f}", 1e3),
            _shown(self._length(name, "second_length"), "{:.1f}", 1e3),
            _shown(tendon.tension, "{:.0f} N"),
            effort,
            _shown(raw.temperature, "{:.0f}"),
            _shown(raw.voltage, "{:.1f}"),
            {True: "on", False: "off", None: "–"}[raw.torque_on],
            str(raw.age),
            ", ".join(sorted(raw.errors)),
        )


def _with_lines(spool: Spool, sensors: Mapping[str, SensorCalibration]) -> Spool:
    """A spool with those of its lines that were calibrated."""
    if not sensors:
        return spool
    lines = {name: each.line for name, each in sensors.items()}
    return replace(spool, potentiometer=lines.get("potentiometer"), encoder=lines.get("encoder"))


def _shown(value: float | None, form: str, factor: float = 1.0) -> str:
    return "–" if value is None or not math.isfinite(value) else form.format(factor * value)


def _bus_line(counts: Mapping[str, Any]) -> str:
    packets = int(counts["packets"])
    bad = int(counts["missing"]) + int(counts["damaged"])
    share = 100.0 * bad / packets if packets else 0.0
    return (
        f"bus: {counts['rate']:.0f} cycles/s, {packets} packets, {counts['missing']} missing, {counts['damaged']} "
        f"damaged ({share:.1f} %), {counts['retries']} retries, {1e3 * counts['latency_mean']:.1f} ms per exchange"
    )
