"""`tensegrity servo scan`: servos that answer, their settings, and comparison with the servos of a robot."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.bus.dynamixel_bus import Bus
from tensegrity_driver.bus.scan import BAUD_RATES, IDS, FoundServo, scan
from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_driver.calibration.calibrated_spools import servo_rows
from tensegrity_driver.hardware.open_hardware import EMULATED
from tensegrity_driver.servos.configuration import latency_warnings
from tensegrity_driver.servos.servo import Servo
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError, TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from ...output import console, print_json, progress, table
from .session import COMPILING, choose_port, patience_for

DETAILS = ("firmware", "present_voltage", "present_temperature", "present_position", "return_delay")
MAX_PATIENT_IDS = 32
"""Largest number of ids for which a longer timeout per id is acceptable."""
REPEATS = 2
"""Number of repeated scans for missing servos of a robot."""
COLUMNS = ("id", "actuator", "model", "firmware", "V", "°C", "position", "delay", "")


@dataclass(frozen=True)
class PortOptions:
    """Options of the commands that search a port for servos.

    Attributes:
        port: port, see `choose_port`. robot: name or file of a robot; empty: none.
        baud_rates, protocol: range of the search; None: all.
    """

    port: str = ""
    robot: str = ""
    baud_rates: Sequence[int] | None = None
    protocol: int | None = None

    @property
    def speeds(self) -> list[int]:
        """Speeds of the search [bit/s]."""
        return list(self.baud_rates or BAUD_RATES)

    @property
    def protocols(self) -> list[int]:
        """Protocols of the search."""
        return [self.protocol] if self.protocol else [1, 2]


@dataclass(frozen=True)
class ScannedServo:
    """A servo that answers.

    Attributes:
        found: id, protocol and speed. actuator: its name in the robot file, or None.
        details: registers in SI units; those that could not be read are absent.
    """

    found: FoundServo
    actuator: str | None
    details: Mapping[str, float]


def run_scan(options: PortOptions, ids_text: str, *, everywhere: bool, as_json: bool) -> None:
    """Scan a port and print the servos.

    Args:
        options: range of the scan. ids_text: ids to scan, see `read_ids`.
        everywhere: continue after all servos of the robot have answered. as_json: print only results as JSON.
    """
    robot = load_robot(options.robot) if options.robot else None
    rows = servo_rows(robot) if robot is not None else ()
    names = {int(row["id"]): str(row["actuator"]) for row in rows}
    ids = read_ids(ids_text)
    servos: list[ScannedServo] = []
    with open_port(options.port, robot, patient=len(ids) <= MAX_PATIENT_IDS) as line:
        try:
            with _live_table(as_json) as show:
                for baud_rate, number in _search_order(robot, options):
                    progress_line = f"looking at {baud_rate} bit/s, protocol {number}; {len(servos)} found; Ctrl-C ends"
                    show(servos, progress_line)
                    for found in _scan_repeatedly(line, robot, baud_rate, number, ids):
                        servos.append(ScannedServo(found, names.get(found.id), _details(line, found)))
                        show(servos, progress_line)
                    if not everywhere and robot is not None and _complete(servos, robot, ids):
                        break
        except KeyboardInterrupt:
            progress.print("ended early; this is what was found until then")
        warnings = [text for key in _buses(servos) for text in _latency_warnings(line, servos, *key)]
        latency = line.adapter.latency_timer
        path, serial_number = line.path, line.adapter.serial_number
    doubled = sorted({each.found.id for each in servos if each.found.doubled})
    differences = compare(servos, robot, ids) if robot is not None else {}
    if as_json:
        print_json(
            {
                "port": path,
                "adapter": serial_number,
                "latency_timer_s": latency,
                "servos": [_figures(each) for each in servos],
                "doubled_ids": doubled,
                "notes": warnings,
                **({"robot": robot.name, **differences} if robot is not None else {}),
            }
        )
    else:
        _print(servos, path, latency, doubled, warnings, differences, robot)
    if not servos or doubled or any(differences.values()):
        sys.exit(1)


def _scan_repeatedly(
    line: SerialPort, robot: Robot | None, baud_rate: int, protocol: int, ids: Sequence[int]
) -> Iterator[FoundServo]:
    """Servos at one speed and protocol; missing servos of the robot are scanned again, as an answer may be lost."""
    missing: list[int] = []
    if robot is not None and (baud_rate, protocol) == _robot_bus(robot):
        missing = [int(row["id"]) for row in servo_rows(robot) if int(row["id"]) in ids]
    for part in (ids, *[missing] * REPEATS):
        for found in scan(line, protocols=(protocol,), baud_rates=(baud_rate,), ids=tuple(part)):
            if found.id in missing:
                missing.remove(found.id)
            yield found


def _robot_bus(robot: Robot) -> tuple[int, int]:
    """Speed and protocol of the servos in a robot file."""
    return int(robot.servos["baud_rate"]), int(robot.servos["protocol"])


def _complete(servos: Sequence[ScannedServo], robot: Robot, ids: Sequence[int]) -> bool:
    """Whether all servos of a robot have answered, with models and speeds as in its file, and without duplicate ids."""
    return not any(lines for kind, lines in compare(servos, robot, ids).items() if kind != "extra")


def read_ids(text: str) -> tuple[int, ...]:
    """Ids from a text such as "1-12" or "1,2,7"; all ids for an empty text; raises TensegrityError for another text."""
    if not text.strip():
        return tuple(IDS)
    ids: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            raise TensegrityError(f"--ids {text!r}: {part.strip()!r} is no id; write 1-12, or 1,2,7.") from None
        if not 0 <= low <= high <= max(IDS):
            raise TensegrityError(f"--ids {text!r}: ids go from 0 to {max(IDS)}, the lower one first.")
        ids.update(range(low, high + 1))
    return tuple(sorted(ids))


@contextlib.contextmanager
def open_port(port: str, robot: Robot | None, *, patient: bool = True) -> Iterator[SerialPort]:
    """Open a port, or that of an emulated robot.

    Args:
        port: path, EMULATED, or empty for the only adapter. robot: robot to emulate.
        patient: whether the timeout is longer if another program answers.

    Raises:
        BusError: the port cannot be opened. TensegrityError: several adapters, or no robot to emulate.
    """
    port = choose_port(port)
    with contextlib.ExitStack() as stack:
        if port == EMULATED:
            if robot is None:
                raise TensegrityError("emulated servos need a robot: add --robot, such as --robot tensebot.")
            from tensegrity_driver.emulator.emulated_robot import EmulatedRobot
            from tensegrity_driver.emulator.wire_delay import WireSettings

            with progress.status(COMPILING):
                emulated = stack.enter_context(EmulatedRobot(robot, wire=WireSettings(check_baud_rate=True)))
            port = emulated.servo_port
        line = SerialPort(port, patience=patience_for(port) if patient else None)
        line.open()
        stack.callback(line.close)
        yield line


def _search_order(robot: Robot | None, options: PortOptions) -> Iterator[tuple[int, int]]:
    """Speeds and protocols of the search; those of the robot come first."""
    speeds, protocols = options.speeds, options.protocols
    if robot is not None:
        robot_speed, robot_protocol = _robot_bus(robot)
        speeds.sort(key=lambda each: each != robot_speed)
        protocols.sort(key=lambda each: each != robot_protocol)
    for speed in speeds:
        for number in protocols:
            yield speed, number


@contextlib.contextmanager
def _live_table(quiet: bool) -> Iterator[Any]:
    """Context with a function that shows the servos found so far, as a growing table on a terminal."""
    if quiet or not console.is_terminal:
        yield lambda servos, line: None
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def show(servos: list[ScannedServo], line: str) -> None:
            live.update(Group(*_tables(servos), Text(line)), refresh=True)

        yield show


def _details(line: SerialPort, found: FoundServo) -> dict[str, float]:
    """Register values of a servo in SI units; registers that cannot be read are absent."""
    if found.model is None:
        return {}
    before, model = line.baudrate, MODELS[found.model]
    line.set_baud_rate(found.baud_rate)
    try:
        bus, values = Bus(line, found.protocol), {}
        for name in DETAILS:
            try:
                values[name] = bus.read(found.id, model.register(name))
            except BusError:
                if not line.is_open:
                    raise
                break  # a duplicate or silent servo: its columns stay empty
        return values
    finally:
        if line.is_open:
            line.set_baud_rate(before)


def _buses(servos: list[ScannedServo]) -> list[tuple[int, int]]:
    """Speeds and protocols of the servos; servos with the same pair can be driven together."""
    return list(dict.fromkeys((each.found.baud_rate, each.found.protocol) for each in servos))


def _latency_warnings(line: SerialPort, servos: list[ScannedServo], baud_rate: int, protocol: int) -> list[str]:
    """Warnings about settings that lengthen the bus cycle."""
    records = [
        Servo(each.actuator or str(each.found.model), each.found.id, MODELS[each.found.model])
        for each in servos
        if (each.found.baud_rate, each.found.protocol) == (baud_rate, protocol)
        and each.found.model is not None
        and "return_delay" in each.details
    ]
    line.set_baud_rate(baud_rate)
    try:
        return latency_warnings(Bus(line, protocol), records)
    except BusError as error:
        return [f"the cost of the settings could not be read: {error}"]


def compare(servos: Sequence[ScannedServo], robot: Robot, ids: Sequence[int] = IDS) -> dict[str, list[str]]:
    """Differences between scanned servos and those of a robot file within the scanned ids, as texts by kind."""
    baud_rate, protocol = _robot_bus(robot)
    by_id: dict[int, list[FoundServo]] = {}
    for each in servos:
        by_id.setdefault(each.found.id, []).append(each.found)
    differences: dict[str, list[str]] = {"missing": [], "extra": [], "other_model": [], "other_speed": []}
    for row in servo_rows(robot):
        number, label = int(row["id"]), f"servo {row['id']} ({row['actuator']})"
        if number not in ids:
            continue
        answering = by_id.pop(number, [])
        if not answering:
            differences["missing"].append(f"{label} does not answer; check its plug and supply, or set its id")
            continue
        if any(each.model != row["model"] for each in answering):
            which = ", ".join(sorted({each.model or f"unknown model {each.number}" for each in answering}))
            differences["other_model"].append(f"{label} is {which}, the robot's file says {row['model']}")
        if all((each.protocol, each.baud_rate) != (protocol, baud_rate) for each in answering):
            first = answering[0]
            differences["other_speed"].append(
                f"{label} answers protocol {first.protocol} at {first.baud_rate} bit/s, the robot's file says protocol "
                f"{protocol} at {baud_rate}; tensegrity servo set-id {number} {number} --new-baud-rate {baud_rate}"
            )
    for number in sorted(by_id):
        differences["extra"].append(f"servo {number} is not in the robot's file")
    return differences


def _figures(servo: ScannedServo) -> dict[str, Any]:
    found = servo.found
    return {
        "id": found.id, "actuator": servo.actuator, "model": found.model, "model_number": found.number,
        "protocol": found.protocol, "baud_rate": found.baud_rate, "doubled": found.doubled,
        "firmware": servo.details.get("firmware"), "voltage_v": servo.details.get("present_voltage"),
        "temperature_c": servo.details.get("present_temperature"),
        "position_rad": servo.details.get("present_position"), "return_delay_s": servo.details.get("return_delay"),
    }  # fmt: skip


def _row(servo: ScannedServo) -> tuple[str, ...]:
    found, details = servo.found, servo.details

    def shown(name: str, form: str, factor: float = 1.0) -> str:
        return form.format(details[name] * factor) if name in details else "–"

    return (
        str(found.id), servo.actuator or "–", found.model or f"unknown ({found.number})",
        shown("firmware", "{:.0f}"), shown("present_voltage", "{:.1f}"), shown("present_temperature", "{:.0f}"),
        shown("present_position", "{:.1f}°", 180.0 / math.pi), shown("return_delay", "{:.0f} us", 1e6),
        "doubled id" if found.doubled else "",
    )  # fmt: skip


def _tables(servos: list[ScannedServo]) -> list[Any]:
    """Tables of the servos, one per speed and protocol."""
    return [
        table(
            f"{baud_rate} bit/s, protocol {protocol}",
            COLUMNS,
            [_row(each) for each in servos if (each.found.baud_rate, each.found.protocol) == (baud_rate, protocol)],
            right=(0, 3, 4, 5, 6, 7),
        )
        for baud_rate, protocol in _buses(servos)
    ]


def _print(
    servos: list[ScannedServo],
    path: str,
    latency: float | None,
    doubled: list[int],
    warnings: list[str],
    differences: Mapping[str, list[str]],
    robot: Robot | None,
) -> None:
    if not servos:
        console.print(
            f"No servo answered at {path}. Is the servo supply on (servos blink once when it comes on), is the cable "
            "in the right plug, and is this the port of the servos and not that of the potentiometer board?",
            highlight=False,
        )
        return
    timer = "" if latency is None else f", latency timer of the adapter: {1e3 * latency:.0f} ms"  # emulated ones: none
    console.print(f"{len(servos)} servos at {path}{timer}", highlight=False, soft_wrap=True)
    for each in _tables(servos):
        console.print(each)
    for number in doubled:
        console.print(
            f"! more than one servo answers under id {number}: connect them one by one, and give each its own with "
            f"`tensegrity servo set-id {number} NEW`",
            highlight=False,
        )
    for warning in warnings:
        console.print(f"! {warning}", highlight=False)
    for line in (line for lines in differences.values() for line in lines):
        console.print(f"! {line}", highlight=False)
    if robot is not None and not any(differences.values()):
        console.print(f"These are the servos of {robot.name}, as its file says.")
