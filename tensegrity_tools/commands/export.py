"""`tensegrity export`: export of a robot to the format of another simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tensegrity_dynamics.errors import TensegrityError, unknown_name

from ..output import progress
from .arguments import RobotArgument


def export(
    robot: RobotArgument,
    to: Annotated[
        str, typer.Option("--to", help="format: mjcf (MuJoCo), or matrices (structures: C, d, t, k, m)")
    ] = "mjcf",
    out: Annotated[
        Path | None, typer.Option("--out", help="file to write; for matrices a folder or an .npz file; default: print")
    ] = None,
) -> None:
    """Export the robot at rest for another simulator, or as matrices; properties missing in the format are listed."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.robots.robot_types import robot_type, robot_types, type_of

    loaded = load_robot(robot)
    exports = type_of(loaded).exports
    if to not in exports:
        others = [kind for kind in robot_types() if to in robot_type(kind).exports]
        if others:
            raise TensegrityError(
                f"{loaded.name} is a {loaded.kind}, and {to!r} is a format of a {' or a '.join(others)}. For it there "
                f"are: {', '.join(exports) or 'none'}."
            )
        raise TensegrityError(unknown_name("format", to, exports))
    with progress.status("finding the shape (the first time its kernels are compiled, about a minute)"):
        made = exports[to](loaded)
    for each in made.differences:
        progress.print(f"not exported as in the file: {each}", style="yellow", markup=False)
    if out is None:
        print(made.text, end="")
        return
    made.write(out)
    progress.print(f"{out} is written.", markup=False, highlight=False, soft_wrap=True)
