"""`tensegrity push`: a force or a moment on a body or node of the robot that is simulated."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.quantities import read_quantity, read_vector

from ..output import console
from .running_robot import NamespaceOption, watching


def push(
    body: Annotated[str, typer.Argument(help="a body of a mechanism, or a node of a structure")],
    force: Annotated[str | None, typer.Option(help="N in world axes at its origin, such as 0,0,-5N")] = None,
    moment: Annotated[str | None, typer.Option(help="N m in world axes, such as 0,0,0.1; bodies only")] = None,
    duration: Annotated[str, typer.Option(help="of simulated time")] = "0.5 s",
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
        if not watcher.wait_for_robot(lambda: watcher.truth is not None and any(watcher.load_names)):
            raise TensegrityError("no simulator is running; start one with `tensegrity up sim ROBOT`.")
        bodies, nodes = watcher.load_names
        names = (*bodies, *nodes)
        if body not in names:
            raise TensegrityError(unknown_name("body or node", body, names))
        if body not in bodies and moments.any():
            raise TensegrityError(f"{body} is a node, and a node takes no moment; give --force alone.")
        send = watcher.wrench_sender()
        begin = watcher.time
        while watcher.time - begin < lasts:
            send(body, forces, moments)
            watcher.spin(0.02)
        send(body, zero, zero)
        watcher.spin(0.2)
    console.print(f"pushed {body} for {lasts:g} s")
