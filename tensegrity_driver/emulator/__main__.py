"""An emulated robot as a process: `python -m tensegrity_driver.emulator ROBOT`.

It prints the paths of its ports and `ready`, reads fault commands from standard input (`help` lists them), and ends on
SIGINT or SIGTERM, when it removes its ports. The end of standard input does not end it. Ctrl-C reaches a driver beside
it at the same instant, which sends its last commands: it gets their answers, and meets no bus that is gone.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NoReturn

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.ending import Ending, end_within, leave_now
from tensegrity_dynamics.errors import TensegrityError

from ..bus.control_tables import MODELS
from .emulated_robot import EmulatedRobot, with_servos
from .fault_commands import COMMANDS, execute
from .wire_delay import WireSettings

SWITCH_INTERVAL_S = 0.0005
"""Switch interval of the threads [s], so that answers do not wait for the simulation; the default is 5 ms."""
SILENCE_S, LONGEST_END_S = 0.2, 0.8
"""How long nobody must have sent anything before the ports are removed, and for how long that is waited for [s]; below
the time after which an end is broken off."""
CLOSING_S = 30.0
"""Time [s] that the removal of the ports may take; then the process ends all the same."""
DEFAULT_MODELS = {1: "AX-12A", 2: "XM430-W350"}
"""Servo models where only a protocol is chosen."""


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Options of the command line; ends the process with a usage message for wrong ones."""
    parser = argparse.ArgumentParser(prog="python -m tensegrity_driver.emulator", description=(__doc__ or "").strip())
    parser.add_argument("robot", help="name of a shipped robot, or path of a robot file")
    parser.add_argument(
        "--protocol", type=int, choices=(1, 2), help="replace the servos by common ones of this protocol"
    )
    parser.add_argument("--model", choices=sorted(MODELS), help="replace the servos by this model")
    parser.add_argument(
        "--directory", help="directory of the ports servos and potentiometers; default: a temporary one"
    )
    parser.add_argument("--wire", action=argparse.BooleanOptionalAction, default=True, help="model delays of the bus")
    parser.add_argument(
        "--latency-timer", type=float, default=0.001, metavar="S", help="latency timer of the USB adapter"
    )
    parser.add_argument(
        "--factory", action="store_true", help="servos with the settings of the factory, except id and baud rate"
    )
    parser.add_argument("--torque-off", action="store_true", help="start without torque: the tendons go slack")
    parser.add_argument("--seed", type=int, default=0, help="seed of noise, damage and collisions")
    return parser.parse_args(arguments)


def start(options: argparse.Namespace) -> EmulatedRobot:
    """Start the emulated robot of the options. Raises TensegrityError."""
    robot = load_robot(options.robot)
    model = options.model
    if options.protocol is not None and model is None and options.protocol != robot.servos.get("protocol"):
        model = DEFAULT_MODELS[options.protocol]
    if model is not None:
        robot = with_servos(robot, model)
    wire = None
    if options.wire:
        rate = int(robot.servos.get("baud_rate") or 1_000_000)
        wire = WireSettings(
            baud_rate=rate, return_delay=True, latency_timer=options.latency_timer, check_baud_rate=True
        )
    return EmulatedRobot(
        robot,
        directory=options.directory,
        realtime=True,
        wire=wire,
        prepared=not options.factory,
        torque_on=not options.torque_off,
        seed=options.seed,
    )


def answer(robot: EmulatedRobot, line: str) -> str:
    """Execute a line of input; returns the text to print."""
    if not line.strip():
        return ""
    if line.split() == ["help"]:
        return "\n".join(each.usage for each in COMMANDS.values())
    try:
        execute(robot.faults, line)
    except TensegrityError as error:
        return f"refused: {error}"
    return f"done: {line.strip()}"


def serve(robot: EmulatedRobot, stop: int) -> None:
    """Execute lines of standard input until the descriptor `stop` is readable and nobody sends any more.

    Raises:
        TensegrityError: the emulated robot has failed.
    """
    source: int | None = sys.stdin.fileno()
    rest = b""
    while True:
        watched = [stop] if source is None else [stop, source]
        ready, _, _ = select.select(watched, [], [], 1.0)
        robot.check()
        if stop in ready:
            limit = time.monotonic() + LONGEST_END_S
            while robot.silence < SILENCE_S and time.monotonic() < limit:
                time.sleep(0.25 * SILENCE_S)
            return
        if source is None or source not in ready:
            continue
        data = os.read(source, 4096)
        *lines, rest = (rest + data).split(b"\n")
        if not data:
            source, lines = None, [rest]
        for line in lines:
            text = answer(robot, line.decode("utf-8", "replace"))
            if text:
                print(text, flush=True)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run until a signal arrives, and end the process."""
    options = parse_arguments(arguments)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    stop, wake = os.pipe()
    status = 0
    with ExitStack() as ports:  # removed after the ending, which would break that off on a busy computer
        with Ending() as ending:  # a start that takes long is broken off
            ending.when_asked(lambda: os.write(wake, b"."))
            try:
                robot = ports.enter_context(start(options))
                print(f"servos {robot.servo_port}")
                if robot.board_port is not None:
                    print(f"potentiometers {robot.board_port}")
                print("ready", flush=True)
                serve(robot, stop)
            except TensegrityError as error:
                print(f"error: {error}", file=sys.stderr)
                status = 1
        end_within(CLOSING_S, status)
    leave_now(status)


if __name__ == "__main__":
    main()
