"""Text commands for the faults of an emulated robot that runs as a process, one command per line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensegrity_dynamics.errors import BusError, unknown_name

from .fault_injection import FaultInjection


@dataclass(frozen=True)
class Command:
    """One command: its usage, the method of FaultInjection, converters of its arguments, number of required ones."""

    usage: str
    call: Callable[..., object]
    converters: tuple[Callable[[str], Any], ...] = ()
    required: int = 0


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError(f"{text!r} is neither on nor off")
    return text == "on"


COMMANDS: dict[str, Command] = {
    "silent": Command("silent NAME", FaultInjection.silence, (str,), 1),
    "mute": Command("mute NAME", FaultInjection.mute, (str,), 1),
    "lose_writes": Command("lose_writes NAME", FaultInjection.lose_writes, (str,), 1),
    "damage": Command("damage NAME [SHARE]", FaultInjection.damage, (str, float), 1),
    "duplicate": Command("duplicate NAME [OTHER]", FaultInjection.duplicate, (str, str), 1),
    "heat": Command("heat NAME CELSIUS", FaultInjection.heat, (str, float), 2),
    "sag": Command("sag VOLTS [NAME]", FaultInjection.sag, (float, str), 1),
    "reboot": Command("reboot [NAME]", FaultInjection.power_cycle, (str,)),
    "run_away": Command("run_away NAME SPEED", FaultInjection.run_away, (str, float), 2),
    "jam": Command("jam NAME", FaultInjection.jam, (str,), 1),
    "lose_torque": Command("lose_torque NAME", FaultInjection.lose_torque, (str,), 1),
    "fail": Command("fail NAME ERROR", FaultInjection.fail, (str, str), 2),
    "set_register": Command("set_register NAME REGISTER RAW", FaultInjection.set_register, (str, str, int), 3),
    "change_turns": Command("change_turns NAME TURNS", FaultInjection.change_turns, (str, int), 2),
    "pull": Command("pull NAME TORQUE", FaultInjection.pull_shaft, (str, float), 2),
    "wind_backwards": Command("wind_backwards NAME", FaultInjection.wind_backwards, (str,), 1),
    "slip": Command("slip NAME LENGTH", FaultInjection.slip, (str, float), 2),
    "snap": Command("snap NAME", FaultInjection.snap, (str,), 1),
    "push": Command(
        "push NODE X Y Z", lambda faults, node, x, y, z: faults.push(node, (x, y, z)), (str, float, float, float), 4
    ),
    "break_potentiometer": Command(
        "break_potentiometer NAME [COUNTS]", FaultInjection.break_potentiometer, (str, int), 1
    ),
    "freeze_potentiometer": Command("freeze_potentiometer NAME", FaultInjection.freeze_potentiometer, (str,), 1),
    "slip_potentiometer": Command(
        "slip_potentiometer NAME [SHARE]", FaultInjection.slip_potentiometer, (str, float), 1
    ),
    "disturb_potentiometer": Command(
        "disturb_potentiometer NAME [COUNTS]", FaultInjection.disturb_potentiometer, (str, float), 1
    ),
    "silent_board": Command("silent_board [on|off]", FaultInjection.silence_board, (_switch,)),
    "unplug": Command("unplug [PORT]", FaultInjection.unplug, (str,)),
    "plug": Command("plug [PORT]", FaultInjection.plug, (str,)),
    "spike": Command("spike SECONDS [EVERY]", FaultInjection.spike, (float, int), 1),
    "garbage": Command("garbage [HEX]", FaultInjection.garbage, (bytes.fromhex,)),
    "echo": Command("echo [on|off]", FaultInjection.echo, (_switch,)),
    "mend": Command("mend [NAME]", FaultInjection.mend, (str,)),
}


def execute(faults: FaultInjection, line: str) -> None:
    """Execute one line.

    Args:
        faults: of the emulated robot. line: a command with its arguments.

    Raises:
        BusError: an unknown command, wrong arguments, or an unknown name.
        TensegrityError: an unknown node.
    """
    name, *texts = line.split()
    if name not in COMMANDS:
        raise BusError(unknown_name("fault", name, COMMANDS))
    command = COMMANDS[name]
    if not command.required <= len(texts) <= len(command.converters):
        raise BusError(f"{line.strip()!r}: say {command.usage}.")
    try:
        arguments = [convert(text) for convert, text in zip(command.converters, texts, strict=False)]
    except ValueError as error:
        raise BusError(f"{line.strip()!r}: {error}; say {command.usage}.") from error
    command.call(faults, *arguments)
