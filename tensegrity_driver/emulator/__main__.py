"""An emulated robot as a process: `python -m tensegrity_driver.emulator ROBOT`.

It prints the paths of its ports and `ready`, takes faults as lines on standard input (`help` lists them), and ends on
SIGINT or SIGTERM, with its ports gone. The end of standard input does not end it.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
from collections.abc import Sequence

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError

from ..bus.control_tables import MODELS
from .emulated_robot import EmulatedRobot, with_servos
from .fault_commands import COMMANDS, obey
from .wire_delay import WireSettings

SWITCH = 0.0005
"""s after which the thread that moves the world lets the one that answers run; the interpreter itself takes 5 ms."""
USUAL_MODELS = {1: "AX-12A", 2: "XM430-W350"}
"""Servos that a robot gets when only a protocol is asked for."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says; ends the process with a usage message where it makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m tensegrity_driver.emulator", description=(__doc__ or "").strip())
    parser.add_argument("robot", help="name of a robot, or path of its file")
    parser.add_argument("--protocol", type=int, choices=(1, 2), help="exchange the servos for usual ones of it")
    parser.add_argument("--model", choices=sorted(MODELS), help="exchange the servos for this model")
    parser.add_argument("--directory", help="where servos and potentiometers appear; default: a temporary one")
    parser.add_argument("--wire", action=argparse.BooleanOptionalAction, default=True, help="model delays of the bus")
    parser.add_argument("--latency-timer", type=float, default=0.001, metavar="S", help="of the USB adapter")
    parser.add_argument("--factory", action="store_true", help="servos as delivered, but for id and baud rate")
    parser.add_argument("--torque-off", action="store_true", help="start without torque: the tendons go slack")
    parser.add_argument("--seed", type=int, default=0, help="of all that is left to chance")
    return parser.parse_args(given)


def emulated(options: argparse.Namespace) -> EmulatedRobot:
    """The robot that the options describe, running. Raises TensegrityError."""
    robot = load_robot(options.robot)
    model = options.model
    if options.protocol is not None and model is None and options.protocol != robot.servos.get("protocol"):
        model = USUAL_MODELS[options.protocol]
    if model is not None:
        robot = with_servos(robot, model)
    wire = None
    if options.wire:
        rate = int(robot.servos.get("baud_rate") or 1_000_000)
        wire = WireSettings(baud_rate=rate, return_delay=True, latency_timer=options.latency_timer)
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
    """What is printed after a line of input."""
    if not line.strip():
        return ""
    if line.split() == ["help"]:
        return "\n".join(each.usage for each in COMMANDS.values())
    try:
        obey(robot, line)
    except TensegrityError as problem:
        return f"refused: {problem}"
    return f"done: {line.strip()}"


def serve(robot: EmulatedRobot, stop: int) -> None:
    """Obey lines of standard input until something comes on the descriptor `stop`. Raises what ended the robot."""
    source: int | None = sys.stdin.fileno()
    rest = b""
    while True:
        watched = [stop] if source is None else [stop, source]
        ready, _, _ = select.select(watched, [], [], 1.0)
        robot.check()
        if stop in ready:
            return
        if source is None or source not in ready:
            continue
        data = os.read(source, 4096)
        *lines, rest = (rest + data).split(b"\n")
        if not data:
            source, lines = None, [rest]
        for line in lines:
            said = answer(robot, line.decode("utf-8", "replace"))
            if said:
                print(said, flush=True)


def main(given: Sequence[str] | None = None) -> int:
    """Run until a signal comes; returns the exit status."""
    options = arguments(given)
    sys.setswitchinterval(SWITCH)
    stop, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: None)  # the wake-up descriptor tells it
    try:
        with emulated(options) as robot:
            print(f"servos {robot.servo_port}")
            if robot.board_port is not None:
                print(f"potentiometers {robot.board_port}")
            print("ready", flush=True)
            serve(robot, stop)
    except TensegrityError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
