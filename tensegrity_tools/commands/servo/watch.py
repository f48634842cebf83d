"""`tensegrity servo watch`: present state of every servo and its faults, without motion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from tensegrity_driver.calibration.calibrated_spools import make_spools
from tensegrity_driver.calibration.calibration_file import SensorCalibration
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.safety.faults import SHOWN_BY_LENGTHS, SHOWN_BY_READINGS, Fault
from tensegrity_driver.safety.monitors import Monitor, bus_monitors, tendon_monitors
from tensegrity_driver.spools.readings import Readings, TendonReading
from tensegrity_driver.spools.spool import Spool
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError

from ...output import console, print_json, table
from .session import BusOptions, ServoSession, open_session

JSON_CYCLES = 12
"""Number of cycles for one printed reading, larger than the persistence of all these faults."""
TABLE_CYCLES = 5
"""Number of cycles between two tables on a terminal."""
COLUMNS = ("actuator", "id", "length mm", "second mm", "tension", "load", "°C", "V", "torque", "age", "errors")


def run_watch(robot_name: str, options: BusOptions, cycles: int | None, *, as_json: bool) -> None:
    """Read all servos and print them.

    Args:
        options: ports and calibration file. cycles: number of bus cycles; None: until Ctrl-C on a terminal, else
            `JSON_CYCLES`. as_json: print only results of the last cycle as JSON.
    """
    robot = load_robot(robot_name)
    with open_session(robot, options, allow_problems=True) as session:
        watcher = Watcher(session)
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
                    if watcher.cycle % TABLE_CYCLES == 0 or watcher.cycle == cycles:
                        live.update(watcher.view(), refresh=True)

                watcher.run(cycles, show)
        except KeyboardInterrupt:
            console.print("ended; the servos are unchanged")


class Watcher:
    """Cyclic reading of all servos, with the monitors of the driver that need no commands.

    Args:
        session: session of the bus.

    Attributes:
        cycle: number of cycles. tendons: last readings. faults: faults of the last cycle.
        remarks: remarks on the bus and the calibration. lost: error of a lost port, or None.
    """

    def __init__(self, session: ServoSession) -> None:
        self.session = session
        self.remarks: list[str] = [session.problems] if session.problems else []
        self.remarks += session.bus.warnings()
        self.spools, self.calibrated = self._spools()
        settings = session.settings.safety
        self.monitors: list[Monitor] = bus_monitors(settings, SHOWN_BY_READINGS)
        for name, spool in self.spools.items():
            kinds = SHOWN_BY_READINGS | SHOWN_BY_LENGTHS if name in self.calibrated else SHOWN_BY_READINGS
            self.monitors += tendon_monitors(spool, settings, kinds)
        self.cycle = 0
        self.tendons: Mapping[str, TendonReading] = {}
        self.faults: tuple[Fault, ...] = ()
        self.lost: str | None = None

    def _spools(self) -> tuple[dict[str, Spool], set[str]]:
        """Spools by actuator, and the names of the calibrated ones."""
        store, spools = self.session.store, self.session.uncalibrated_spools()
        if not store.exists:
            self.remarks.append(
                f"lengths are unknown: there is no calibration file {store.path}; make it with `tensegrity servo "
                "calibrate`"
            )
            return spools, set()
        try:
            calibration = store.load()
        except CalibrationError as error:
            self.remarks.append(f"lengths are unknown: {error}")
            return spools, set()
        sensors = calibration.sensors
        calibrated = {name for name, spool in spools.items() if spool.measured_by in sensors.get(name, {})}
        missing = [name for name in spools if name not in calibrated]
        if not missing:
            return make_spools(self.session.robot, calibration), calibrated
        self.remarks.append(f"not calibrated yet: {', '.join(missing)}")
        lines = {name: sensors[name] for name in calibrated}
        return {name: _with_lines(spool, lines.get(name, {})) for name, spool in spools.items()}, calibrated

    def run(self, cycles: int | None, after: Callable[[], None]) -> None:
        """Read for a number of cycles, or until an interrupt; `after` is called after each cycle."""
        while cycles is None or self.cycle < cycles:
            self.step()
            after()

    def step(self) -> None:
        """Read one cycle; a lost port is reported and opened again in the next cycle."""
        self.cycle += 1
        try:
            raw = self.session.read()
            self.lost = None
        except BusError as error:
            self.lost = str(error)
            return
        self.tendons = {name: self.spools[name].observe(reading) for name, reading in raw.items()}
        readings = Readings(self.tendons, self.session.health, self.session.period)
        updates = (monitor.update(self.cycle, readings, {}) for monitor in self.monitors)
        self.faults = tuple(fault for fault in updates if fault is not None)

    # -- output ------------------------------------------------------------------------------------------------------

    def _length(self, name: str, which: str) -> float:
        """Length by a calibrated sensor [m]; nan if it is not calibrated."""
        spool, tendon = self.spools[name], self.tendons[name]
        if name not in self.calibrated or (which == "second_length" and spool.encoder_turn):
            return math.nan
        return float(getattr(tendon, which))

    def figures(self) -> dict[str, Any]:
        """Results of the last reading for JSON, in SI units."""
        servos = {}
        for name, tendon in self.tendons.items():
            raw = tendon.raw
            servos[name] = {
                "id": self.session.bus.servos[name].id, "length_m": self._length(name, "length"),
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
            "robot": self.session.robot.name, "cycles": self.cycle, "servos": servos, "faults": faults,
            "remarks": self.remarks, "port_lost": self.lost, "bus": self.session.bus.statistics(),
        }  # fmt: skip

    def view(self) -> Group:
        """Table of the last reading, with faults and remarks."""
        rows = [self._row(name, tendon) for name, tendon in self.tendons.items()]
        lines = [f"! port_lost: {self.lost}"] if self.lost else []
        lines += [f"! {each.kind.value}: {each.cause}" for each in self.faults]
        lines += [f"! {each}" for each in self.remarks]
        if not lines:
            lines = ["No faults."]
        title = f"{self.session.robot.name}, cycle {self.cycle}"
        shown = table(title, COLUMNS, rows, right=(1, 2, 3, 4, 5, 6, 7, 9))
        return Group(shown, Text(_bus_line(self.session.bus.statistics())), Text("\n".join(lines)))

    def _row(self, name: str, tendon: TendonReading) -> Sequence[str]:
        raw = tendon.raw
        if raw.current is not None:
            effort = f"{raw.current:+.2f} A"
        else:
            effort = "–" if raw.load is None else f"{100 * raw.load:+.0f} %"
        return (
            name,
            str(self.session.bus.servos[name].id),
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
    """Spool with the lines of its calibrated sensors only."""
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
