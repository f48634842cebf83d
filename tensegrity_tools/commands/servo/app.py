"""`tensegrity servo`: what a builder needs to bring servos to life, from the first scan to a calibrated robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..arguments import JsonOption, RobotArgument

servo = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    no_args_is_help=True,
    help="Servos: scan the bus, set ids, calibrate and home spools, watch.",
)

PortOption = Annotated[
    str, typer.Option(help="serial port of the servos, such as /dev/ttyUSB0, or 'emulated'; by default the only one")
]
BoardOption = Annotated[str, typer.Option(help="serial port of the potentiometer board, where there is one")]
FileOption = Annotated[Path | None, typer.Option("--calibration", help="calibration file, by default the robot's own")]
SaveOption = Annotated[bool, typer.Option("--save", help="save without asking")]
TensionOption = Annotated[str, typer.Option(help="most tension while jogging, by default a fifth of the effort")]
BaudOption = Annotated[list[int] | None, typer.Option("--baud-rate", help="look at this speed only (bit/s)")]
ProtocolOption = Annotated[int | None, typer.Option(min=1, max=2, help="look for this protocol only")]


@servo.command("scan")
def scan_command(
    port: PortOption = "",
    robot: Annotated[str, typer.Option(help="compare with the servos of this robot")] = "",
    baud_rate: BaudOption = None,
    protocol: ProtocolOption = None,
    ids: Annotated[str, typer.Option(help="look for these ids only, such as 1-12 or 1,2,7")] = "",
    everywhere: Annotated[bool, typer.Option("--all", help="with a robot: look on when its servos are found")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find the servos on a bus: every speed, both protocols, every id; nothing is written.

    With a robot it begins where its servos should be, and is done when all of them answer there.
    The exit status is 1 where ids are doubled, or where a robot's servos are not the ones found.
    """
    from .scan import run_scan

    run_scan(port, robot, baud_rate, protocol, ids, everywhere, as_json)


@servo.command("set-id")
def set_id_command(
    old: Annotated[int, typer.Argument(min=0, max=252, help="id that it has", show_default=False)],
    new: Annotated[int, typer.Argument(min=0, max=252, help="id that it gets", show_default=False)],
    port: PortOption = "",
    robot: Annotated[str, typer.Option(help="with --port emulated: which robot")] = "",
    baud_rate: BaudOption = None,
    protocol: ProtocolOption = None,
    new_baud_rate: Annotated[int | None, typer.Option(help="speed that it gets (bit/s)")] = None,
    as_json: JsonOption = False,
) -> None:
    """Give a servo its id, and a speed; connect it alone. Its return delay becomes zero, its torque goes off."""
    from .set_id import run_set_id

    run_set_id(port, robot, old, new, baud_rate, protocol, new_baud_rate, as_json)


@servo.command("calibrate")
def calibrate_command(
    robot: RobotArgument,
    actuators: Annotated[list[str] | None, typer.Argument(help="which; all by default", show_default=False)] = None,
    port: PortOption = "",
    board: BoardOption = "",
    points: Annotated[Path | None, typer.Option(help="table of actuator, reading, length (.csv or .yaml)")] = None,
    calibration: FileOption = None,
    save: SaveOption = False,
    anew: Annotated[bool, typer.Option("--anew", help="put a new file in place of one for another bus")] = False,
    tension: TensionOption = "",
    rule: Annotated[str, typer.Option(help="how fine lengths are measured")] = "0.2 mm",
    as_json: JsonOption = False,
) -> None:
    """Calibrate spools: measure the length of each string at several places, and fit the line to its sensor.

    At every place type the length that you measure; +5 and -5 pay out and wind in by 5 mm, `off` lets go of the
    servo so that you can turn its spool by hand.
    """
    from .calibrate import run_calibrate

    run_calibrate(robot, actuators or [], port, board, points, calibration, save, anew, tension, rule, as_json)


@servo.command("spring")
def spring_command(
    points: Annotated[Path, typer.Option(help="table of mass, length (.csv or .yaml)", show_default=False)],
    rule: Annotated[str, typer.Option(help="how fine lengths are measured")] = "0.2 mm",
    as_json: JsonOption = False,
) -> None:
    """Rate and zero-force length of a spring, from its lengths under several weights."""
    from .spring import run_spring

    run_spring(points, rule, as_json)


@servo.command("watch")
def watch_command(
    robot: RobotArgument,
    port: PortOption = "",
    board: BoardOption = "",
    calibration: FileOption = None,
    cycles: Annotated[int | None, typer.Option(min=1, help="end after so many bus cycles")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show every servo live, and what is wrong in plain words; nothing is driven. Ctrl-C ends it.

    With --json it reads for some cycles, so that faults can show, and prints the last one.
    """
    from .watch import run_watch

    run_watch(robot, port, board, calibration, cycles, as_json)


@servo.command("home")
def home_command(
    robot: RobotArgument,
    actuators: Annotated[list[str], typer.Argument(help="which tendons, one after the other", show_default=False)],
    port: PortOption = "",
    board: BoardOption = "",
    calibration: FileOption = None,
    length: Annotated[str, typer.Option(help="rest length when it is just tight; corrects the calibration")] = "",
    save: SaveOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find where a loose tendon becomes tight: pay out a little, then wind in slowly until load or current rises."""
    from .home import run_home

    run_home(robot, actuators, port, board, calibration, length, save, as_json)
