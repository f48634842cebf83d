"""`tensegrity push` and `payload`: a force, a moment or a mass on a body or node of the simulated robot."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.external_payloads import payload_words
from tensegrity_dynamics.robots.quantities import read_quantity, read_vector

from ..output import console
from .running_robot import NamespaceOption, watching


def push(
    body: Annotated[str, typer.Argument(help="name of a body (mechanism) or a node (structure)")],
    force: Annotated[
        str | None, typer.Option(help="force at the origin of the body, in world axes, such as 0,0,-5N")
    ] = None,
    moment: Annotated[str | None, typer.Option(help="moment in world axes [N m], such as 0,0,0.1; bodies only")] = None,
    duration: Annotated[str, typer.Option(help="duration in simulated time; plain numbers are s")] = "0.5 s",
    namespace: NamespaceOption = "",
) -> None:
    """Push the simulated robot for a while (topic external_wrench)."""
    forces, moments = read_vector(force, "--force", kind="force"), read_vector(moment, "--moment", kind="torque")
    lasts = read_quantity(duration, "time", "--duration")
    if forces is None and moments is None:
        raise TensegrityError("give --force X,Y,Z or --moment X,Y,Z.")
    if not lasts > 0.0:
        raise TensegrityError(f"--duration {duration!r}: it must be above zero.")
    zero = np.zeros(3)
    forces, moments = zero if forces is None else forces, zero if moments is None else moments
    with watching(namespace) as watcher:
        if _is_node(watcher, body) and moments.any():
            raise TensegrityError(f"{body} is a node, on which no moment can act; give --force alone.")
        send = watcher.wrench_sender()
        begin = now = watcher.time
        while now - begin < lasts:
            send(body, forces, moments)
            watcher.spin(0.02)
            watcher.check_there(True)
            before, now = now, watcher.time
            if now < before:
                raise TensegrityError("the simulation has started again; the push has ended.")
        send(body, zero, zero)
        watcher.spin(0.2)
    console.print(f"pushed {body} for {lasts:g} s")


TAKING = 5.0
"""Longest wall time until the simulator reports its payloads [s]; it reports them once per second."""


def payload(
    body: Annotated[str, typer.Argument(help="name of a body (mechanism) or a node (structure)")],
    mass: Annotated[
        str | None, typer.Option(help="mass, such as '200 g'; replaces an earlier payload on the same body")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="centre of mass in the frame of the body, such as '0,0,5 cm'; bodies only")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="remove the payload")] = False,
    namespace: NamespaceOption = "",
) -> None:
    """Add a payload to the simulated robot, move it, or remove it (topic payload)."""
    if (mass is None) != off or (off and at is not None):
        raise TensegrityError("give --mass, such as --mass '200 g', or --off.")
    kilograms = 0.0 if mass is None else read_quantity(mass, "mass", "--mass")
    if not (off or kilograms > 0.0):
        raise TensegrityError(f"--mass {mass!r}: it must be above zero; --off takes a payload off.")
    given = read_vector(at, "--at", kind="length")
    where = np.zeros(3) if given is None else given
    with watching(namespace) as watcher:
        if _is_node(watcher, body) and where.any():
            raise TensegrityError(f"{body} is a node, and a node has no frame; leave --at out.")
        send = watcher.payload_sender()
        watcher.diagnostics.pop("simulator", None)

        def is_there() -> bool:
            words = _simulator_says(watcher, "payloads").split("; ")
            if off:
                return words != [""] and not any(each.startswith(f"{body}: ") for each in words)
            return payload_words(body, kilograms, where) in words

        for _ in range(round(TAKING / 0.5)):  # repeated, since on a busy computer a message may arrive too late
            send(body, kilograms, where)
            if watcher.wait_until(is_there, 0.5):
                break
        else:
            simulator = watcher.diagnostics.get("simulator")
            said = "" if simulator is None else f"; it says: {simulator.message}"
            raise TensegrityError(f"the simulator has not taken the payload of {body} within {TAKING:g} s{said}")
        watcher.spin(0.2)
    console.print(f"{body} carries no payload" if off else f"put on {payload_words(body, kilograms, where)}")


def _simulator_says(watcher: Any, key: str) -> str:
    """Value in the diagnostics of the simulator; empty if it is not reported."""
    simulator = watcher.diagnostics.get("simulator")
    return "" if simulator is None else next((each.value for each in simulator.values if each.key == key), "")


def _is_node(watcher: Any, body: str) -> bool:
    """Whether a name is a node, not a body, of the simulated robot; TensegrityError: neither, or no simulated robot."""
    if not watcher.wait_for_robot(lambda: watcher.truth is not None and any(watcher.load_names)):
        raise TensegrityError("no simulator is running; start one with `tensegrity up sim ROBOT`.")
    bodies, nodes = watcher.load_names
    names = (*bodies, *nodes)
    if body not in names:
        raise TensegrityError(unknown_name("body or node", body, names))
    return body not in bodies
