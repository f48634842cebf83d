"""`tensegrity servo scan`: which servos answer, how they are set, and whether they are those of a robot."""

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
from tensegrity_driver.hardware.serial_hardware import EMULATED
from tensegrity_driver.hardware.settings import servo_rows
from tensegrity_driver.servos.configuration import cost_notes
from tensegrity_driver.servos.servo import Servo
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError, TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from ...output import console, print_json, progress, table
from .session import choose_port, patience_for

DETAILS = ("firmware", "present_voltage", "present_temperature", "present_position", "return_delay")
FEW = 32
"""Ids that can be asked patiently."""
AGAIN = 2
"""How often missing servos of a robot are asked again."""
COLUMNS = ("id", "actuator", "model", "firmware", "V", "°C", "position", "delay", "")


@dataclass(frozen=True)
class ScannedServo:
    """A servo that answers.

    Attributes:
        found: how it is reached. actuator: what the robot's file calls it, or None.
        details: registers in SI units; those that could not be read are left out.
    """

    found: FoundServo
    actuator: str | None
    details: Mapping[str, float]


def run_scan(
    port: str,
    robot_name: str,
    baud_rates: list[int] | None,
    protocol: int | None,
    ids: str,
    everywhere: bool,
    as_json: bool,
) -> None:
    """The command; see `servo.scan_command`."""
    robot = load_robot(robot_name) if robot_name else None
    rows = servo_rows(robot) if robot is not None else ()
    names = {int(row["id"]): str(row["actuator"]) for row in rows}
    wanted = read_ids(ids)
    servos: list[ScannedServo] = []
    with open_port(port, robot, patient=len(wanted) <= FEW) as line:
        try:
            with _shown(as_json) as show:
                for baud_rate, number in _looks(robot, baud_rates, protocol):
                    progress_line = f"looking at {baud_rate} bit/s, protocol {number}; {len(servos)} found; Ctrl-C ends"
                    show(servos, progress_line)
                    for found in _found(line, robot, baud_rate, number, wanted):
                        servos.append(ScannedServo(found, names.get(found.id), _details(line, found)))
                        show(servos, progress_line)
                    if not everywhere and robot is not None and _complete(servos, robot, wanted):
                        break
        except KeyboardInterrupt:
            progress.print("ended early; this is what was found until then")
        notes = [note for key in _buses(servos) for note in _costs(line, servos, *key)]
        latency = line.adapter.latency_timer
        path, serial_number = line.path, line.adapter.serial_number
    doubled = sorted({each.found.id for each in servos if each.found.doubled})
    differences = compare(servos, robot, wanted) if robot is not None else {}
    if as_json:
        print_json(
            {
                "port": path,
                "adapter": serial_number,
                "latency_timer_s": latency,
                "servos": [_figures(each) for each in servos],
                "doubled_ids": doubled,
                "notes": notes,
                **({"robot": robot.name, **differences} if robot is not None else {}),
            }
        )
    else:
        _print(servos, path, latency, doubled, notes, differences, robot)
    if not servos or doubled or any(differences.values()):
        sys.exit(1)


def _found(
    line: SerialPort, robot: Robot | None, baud_rate: int, protocol: int, wanted: Sequence[int]
) -> Iterator[FoundServo]:
    """Servos at one speed; those that a robot should have there are asked again, as a single answer may be lost."""
    left: list[int] = []
    if robot is not None and (baud_rate, protocol) == _own(robot):
        left = [int(row["id"]) for row in servo_rows(robot) if int(row["id"]) in wanted]
    for ids in (wanted, *[left] * AGAIN):
        for found in scan(line, protocols=(protocol,), baud_rates=(baud_rate,), ids=tuple(ids)):
            if found.id in left:
                left.remove(found.id)
            yield found


def _own(robot: Robot) -> tuple[int, int]:
    """Speed and protocol of a robot's servos by its file."""
    return int(robot.servos["baud_rate"]), int(robot.servos["protocol"])


def _complete(servos: Sequence[ScannedServo], robot: Robot, wanted: Sequence[int]) -> bool:
    """Whether all servos of a robot have answered as its file says, one for each id."""
    return not any(lines for kind, lines in compare(servos, robot, wanted).items() if kind != "extra")


def read_ids(text: str) -> tuple[int, ...]:
    """Ids from a text such as "1-12" or "1,2,7"; raises TensegrityError."""
    if not text.strip():
        return tuple(IDS)
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            raise TensegrityError(f"--ids {text!r}: {part.strip()!r} is no id; write 1-12, or 1,2,7.") from None
        if not 0 <= low <= high <= max(IDS):
            raise TensegrityError(f"--ids {text!r}: ids go from 0 to {max(IDS)}, the lower one first.")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


@contextlib.contextmanager
def open_port(port: str, robot: Robot | None, *, patient: bool = True) -> Iterator[SerialPort]:
    """A port, open; of an emulated robot where that is asked for.

    Args:
        port: path, EMULATED, or "" for the only one. robot: to be emulated.
        patient: wait longer than an adapter needs where another program answers.

    Raises:
        BusError: the port cannot be opened. TensegrityError: it is not clear which one, or what to emulate.
    """
    port = choose_port(port)
    with contextlib.ExitStack() as stack:
        if port == EMULATED:
            if robot is None:
                raise TensegrityError("emulated servos need a robot: add --robot, such as --robot tensebot.")
            from tensegrity_driver.emulator.emulated_robot import EmulatedRobot
            from tensegrity_driver.emulator.wire_delay import WireSettings

            with progress.status("starting the emulated robot (the first time its kernels are compiled)"):
                emulated = stack.enter_context(EmulatedRobot(robot, wire=WireSettings(check_baud_rate=True)))
            port = emulated.servo_port
        line = SerialPort(port, patience=patience_for(port) if patient else None)
        line.open()
        stack.callback(line.close)
        yield line


def _looks(robot: Robot | None, baud_rates: list[int] | None, protocol: int | None) -> Iterator[tuple[int, int]]:
    """Where to look, the likely places first."""
    speeds, protocols = list(baud_rates or BAUD_RATES), [protocol] if protocol else [1, 2]
    if robot is not None:
        own = _own(robot)
        speeds.sort(key=lambda each: each != own[0])
        protocols.sort(key=lambda each: each != own[1])
    for speed in speeds:
        for number in protocols:
            yield speed, number


@contextlib.contextmanager
def _shown(quiet: bool) -> Iterator[Any]:
    """A function that shows what has been found so far: a table that grows, on a terminal."""
    if quiet or not console.is_terminal:
        yield lambda servos, line: None
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def show(servos: list[ScannedServo], line: str) -> None:
            live.update(Group(*_tables(servos), Text(line)), refresh=True)

        yield show


def _details(line: SerialPort, found: FoundServo) -> dict[str, float]:
    """What its registers say; those that do not come whole are left out."""
    if found.model is None:
        return {}
    before, model = line.baudrate, MODELS[found.model]
    line.set_baud_rate(found.baud_rate)
    try:
        bus, known = Bus(line, found.protocol), {}
        for name in DETAILS:
            try:
                known[name] = bus.read(found.id, model.field(name))
            except BusError:
                if not line.is_open:
                    raise
                break  # a doubled or silenced servo: the table shows that nothing is known
        return known
    finally:
        if line.is_open:
            line.set_baud_rate(before)


def _buses(servos: list[ScannedServo]) -> list[tuple[int, int]]:
    """Speed and protocol of the groups that can be driven together."""
    return list(dict.fromkeys((each.found.baud_rate, each.found.protocol) for each in servos))


def _costs(line: SerialPort, servos: list[ScannedServo], baud_rate: int, protocol: int) -> list[str]:
    """What settings cost per cycle, in words."""
    records = [
        Servo(each.actuator or str(each.found.model), each.found.id, MODELS[each.found.model])
        for each in servos
        if (each.found.baud_rate, each.found.protocol) == (baud_rate, protocol)
        and each.found.model is not None
        and "return_delay" in each.details
    ]
    line.set_baud_rate(baud_rate)
    try:
        return cost_notes(Bus(line, protocol), records)
    except BusError as problem:
        return [f"the cost of the settings could not be told: {problem}"]


def compare(servos: Sequence[ScannedServo], robot: Robot, wanted: Sequence[int] = IDS) -> dict[str, list[str]]:
    """How the servos found differ from those of a robot's file, in words by kind of difference; of the ids wanted."""
    baud_rate, protocol = _own(robot)
    found: dict[int, list[FoundServo]] = {}
    for each in servos:
        found.setdefault(each.found.id, []).append(each.found)
    differences: dict[str, list[str]] = {"missing": [], "extra": [], "other_model": [], "other_speed": []}
    for row in servo_rows(robot):
        number, label = int(row["id"]), f"servo {row['id']} ({row['actuator']})"
        if number not in wanted:
            continue
        there = found.pop(number, [])
        if not there:
            differences["missing"].append(f"{label} does not answer; check its plug and supply, or set its id")
            continue
        if any(each.model != row["model"] for each in there):
            which = ", ".join(sorted({each.model or f"unknown model {each.number}" for each in there}))
            differences["other_model"].append(f"{label} is {which}, the robot's file says {row['model']}")
        if all((each.protocol, each.baud_rate) != (protocol, baud_rate) for each in there):
            first = there[0]
            differences["other_speed"].append(
                f"{label} answers protocol {first.protocol} at {first.baud_rate} bit/s, the robot's file says protocol "
                f"{protocol} at {baud_rate}; tensegrity servo set-id {number} {number} --new-baud-rate {baud_rate}"
            )
    for number in sorted(found):
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
    """One table for every speed and protocol."""
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
    notes: list[str],
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
    known = "not told by the system" if latency is None else f"{1e3 * latency:.0f} ms"
    console.print(f"{len(servos)} servos at {path}, latency timer of the adapter: {known}", highlight=False)
    for each in _tables(servos):
        console.print(each)
    for number in doubled:
        console.print(
            f"! more than one servo answers under id {number}: connect them one by one, and give each its own with "
            f"`tensegrity servo set-id {number} NEW`",
            highlight=False,
        )
    for note in notes:
        console.print(f"! {note}", highlight=False)
    for line in (line for lines in differences.values() for line in lines):
        console.print(f"! {line}", highlight=False)
    if robot is not None and not any(differences.values()):
        console.print(f"These are the servos of {robot.name}, as its file says.")
