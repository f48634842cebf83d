"""`tensegrity servo`: commands for the setup of servos, from the first scan to a calibrated robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..arguments import JsonOption, RobotArgument

servo = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="Servos: scan the bus, set ids, calibrate and home spools, watch, reboot.",
)

PortOption = Annotated[
    str,
    typer.Option(help="serial port of the servos, such as /dev/ttyUSB0, or 'emulated'; default: the only USB adapter"),
]
BoardOption = Annotated[str, typer.Option(help="serial port of the potentiometer board, if there is one")]
FileOption = Annotated[Path | None, typer.Option("--calibration", help="calibration file; default: that of the robot")]
SaveOption = Annotated[bool, typer.Option("--save", help="save without asking")]
TensionOption = Annotated[str, typer.Option(help="tension limit while jogging; default: a fifth of the effort")]
BaudOption = Annotated[list[int] | None, typer.Option("--baud-rate", help="scan at this speed only (bit/s)")]
ProtocolOption = Annotated[int | None, typer.Option(min=1, max=2, help="scan with this protocol only")]


@servo.command("scan")
def scan_command(
    port: PortOption = "",
    robot: Annotated[str, typer.Option(help="compare with the servos of this robot")] = "",
    baud_rate: BaudOption = None,
    protocol: ProtocolOption = None,
    ids: Annotated[str, typer.Option(help="scan these ids only, such as 1-12 or 1,2,7")] = "",
    everywhere: Annotated[
        bool, typer.Option("--all", help="with a robot: do not stop when all its servos answer")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Find the servos on a bus at every speed, protocol and id; nothing is written.

    With a robot, the scan starts at the speed and protocol of its servos, and ends when all of them have answered.
    The exit status is 1 for duplicate ids, or if the servos differ from those of the robot.
    """
    from .scan import PortOptions, run_scan

    run_scan(PortOptions(port, robot, baud_rate, protocol), ids, everywhere=everywhere, as_json=as_json)


@servo.command("set-id")
def set_id_command(
    old: Annotated[int, typer.Argument(min=0, max=252, help="present id", show_default=False)],
    new: Annotated[int, typer.Argument(min=0, max=252, help="new id", show_default=False)],
    port: PortOption = "",
    robot: Annotated[str, typer.Option(help="with --port emulated: name or file of the robot")] = "",
    baud_rate: BaudOption = None,
    protocol: ProtocolOption = None,
    new_baud_rate: Annotated[int | None, typer.Option(help="new speed (bit/s)")] = None,
    as_json: JsonOption = False,
) -> None:
    """Change the id, and the speed, of a servo that is connected alone. Return delay becomes zero, torque is switched
    off."""
    from .scan import PortOptions
    from .set_id import run_set_id

    run_set_id(old, new, PortOptions(port, robot, baud_rate, protocol), new_baud_rate, as_json=as_json)


@servo.command("calibrate")
def calibrate_command(
    robot: RobotArgument,
    actuators: Annotated[
        list[str] | None, typer.Argument(help="actuators to calibrate; default: all", show_default=False)
    ] = None,
    port: PortOption = "",
    board: BoardOption = "",
    points: Annotated[Path | None, typer.Option(help="table of actuator, reading, length (.csv or .yaml)")] = None,
    calibration: FileOption = None,
    save: SaveOption = False,
    anew: Annotated[bool, typer.Option("--anew", help="replace the calibration file of another bus")] = False,
    tension: TensionOption = "",
    rule: Annotated[str, typer.Option(help="resolution of the measured lengths")] = "0.2 mm",
    as_json: JsonOption = False,
) -> None:
    """Calibrate spools: the length of each string is measured at several positions, and a line is fitted to its sensor.

    At every position, enter the measured length. +5 and -5 pay out and wind in by 5 mm; `off` switches the torque off,
    so that the spool can be turned by hand.
    """
    from .calibrate import CalibrateOptions, run_calibrate
    from .session import BusOptions

    options = CalibrateOptions(BusOptions(port, board, calibration), points, save, anew, tension, rule, as_json)
    run_calibrate(robot, actuators or [], options)


@servo.command("spring")
def spring_command(
    points: Annotated[Path, typer.Option(help="table of mass, length (.csv or .yaml)", show_default=False)],
    rule: Annotated[str, typer.Option(help="resolution of the measured lengths")] = "0.2 mm",
    as_json: JsonOption = False,
) -> None:
    """Determine rate and zero-force length of a spring from its lengths under several weights."""
    from .spring import run_spring

    run_spring(points, rule, as_json)


@servo.command("watch")
def watch_command(
    robot: RobotArgument,
    port: PortOption = "",
    board: BoardOption = "",
    calibration: FileOption = None,
    cycles: Annotated[int | None, typer.Option(min=1, help="number of bus cycles")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the state of every servo and its faults, without motion. Ctrl-C ends it.

    With --json, the command reads enough cycles to detect every fault, and prints the last one.
    """
    from .session import BusOptions
    from .watch import run_watch

    run_watch(robot, BusOptions(port, board, calibration), cycles, as_json=as_json)


@servo.command("home")
def home_command(
    robot: RobotArgument,
    actuators: Annotated[
        list[str], typer.Argument(help="actuators whose tendons are homed, one after the other", show_default=False)
    ],
    port: PortOption = "",
    board: BoardOption = "",
    calibration: FileOption = None,
    length: Annotated[str, typer.Option(help="rest length when it is just tight; corrects the calibration")] = "",
    save: SaveOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the position at which a tendon becomes tight: pay out slightly, then wind in slowly until the load rises."""
    from .home import HomeOptions, run_home
    from .session import BusOptions

    run_home(robot, actuators, HomeOptions(BusOptions(port, board, calibration), length, save, as_json))


@servo.command("reboot")
def reboot_command(
    robot: RobotArgument,
    actuators: Annotated[
        list[str], typer.Argument(help="actuators whose servos are rebooted, one after the other", show_default=False)
    ],
    port: PortOption = "",
    board: BoardOption = "",
    as_json: JsonOption = False,
) -> None:
    """Reboot servos of protocol 2 after a hardware error. They lose torque and turn counts; home their tendons next."""
    from .reboot import run_reboot
    from .session import BusOptions

    run_reboot(robot, actuators, BusOptions(port, board), as_json=as_json)
