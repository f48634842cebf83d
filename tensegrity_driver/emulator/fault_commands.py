"""Faults as lines of text, one command a line, for an emulated robot that runs as a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensegrity_dynamics.errors import BusError, unknown_name

from .fault_injection import Faults


@dataclass(frozen=True)
class Command:
    """What a word does: usage for people, how its arguments are read, how many must be there."""

    usage: str
    call: Callable[..., object]
    kinds: tuple[Callable[[str], Any], ...] = ()
    needed: int = 0


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError(f"{text!r} is neither on nor off")
    return text == "on"


COMMANDS: dict[str, Command] = {
    "silent": Command("silent NAME", Faults.silence, (str,), 1),
    "mute": Command("mute NAME", Faults.mute, (str,), 1),
    "damage": Command("damage NAME [SHARE]", Faults.damage, (str, float), 1),
    "duplicate": Command("duplicate NAME [OTHER]", Faults.duplicate, (str, str), 1),
    "heat": Command("heat NAME CELSIUS", Faults.heat, (str, float), 2),
    "sag": Command("sag VOLTS [NAME]", Faults.sag, (float, str), 1),
    "reboot": Command("reboot [NAME]", Faults.power_cycle, (str,)),
    "run_away": Command("run_away NAME SPEED", Faults.run_away, (str, float), 2),
    "jam": Command("jam NAME", Faults.jam, (str,), 1),
    "lose_torque": Command("lose_torque NAME", Faults.lose_torque, (str,), 1),
    "fail": Command("fail NAME ERROR", Faults.fail, (str, str), 2),
    "pull": Command("pull NAME TORQUE", Faults.pull_shaft, (str, float), 2),
    "snap": Command("snap NAME", Faults.snap, (str,), 1),
    "push": Command(
        "push NODE X Y Z", lambda robot, node, x, y, z: robot.push(node, (x, y, z)), (str, float, float, float), 4
    ),
    "break_potentiometer": Command("break_potentiometer NAME [COUNTS]", Faults.break_potentiometer, (str, int), 1),
    "freeze_potentiometer": Command("freeze_potentiometer NAME", Faults.freeze_potentiometer, (str,), 1),
    "slip_potentiometer": Command("slip_potentiometer NAME [SHARE]", Faults.slip_potentiometer, (str, float), 1),
    "disturb_potentiometer": Command(
        "disturb_potentiometer NAME [COUNTS]", Faults.disturb_potentiometer, (str, float), 1
    ),
    "silent_board": Command("silent_board [on|off]", Faults.silence_board, (_switch,)),
    "unplug": Command("unplug [PORT]", Faults.unplug, (str,)),
    "plug": Command("plug [PORT]", Faults.plug, (str,)),
    "spike": Command("spike SECONDS [EVERY]", Faults.spike, (float, int), 1),
    "garbage": Command("garbage [HEX]", Faults.garbage, (bytes.fromhex,)),
    "echo": Command("echo [on|off]", Faults.echo, (_switch,)),
    "mend": Command("mend [NAME]", Faults.mend, (str,)),
}


def obey(robot: Faults, line: str) -> None:
    """Do what a line says.

    Raises:
        BusError: an unknown word, arguments that do not fit, or an unknown name.
        TensegrityError: an unknown node.
    """
    word, *given = line.split()
    if word not in COMMANDS:
        raise BusError(unknown_name("fault", word, COMMANDS))
    command = COMMANDS[word]
    if not command.needed <= len(given) <= len(command.kinds):
        raise BusError(f"{line.strip()!r}: say {command.usage}.")
    try:
        arguments = [kind(text) for kind, text in zip(command.kinds, given, strict=False)]
    except ValueError as problem:
        raise BusError(f"{line.strip()!r}: {problem}; say {command.usage}.") from problem
    command.call(robot, *arguments)
