"""`tensegrity urdf`: robot description for RViz and other ROS tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tensegrity_dynamics.saved_file import save_file

from ..output import progress
from .arguments import RobotArgument


def urdf(
    robot: RobotArgument,
    out: Annotated[Path | None, typer.Option("--out", help="file to write; default: print")] = None,
) -> None:
    """Write the URDF of a robot: one link per bar or body and per output frame; tendons and cables are not included."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.visualization.picture import make_picture
    from tensegrity_dynamics.visualization.urdf import make_urdf

    loaded = load_robot(robot)
    text = make_urdf(make_picture(loaded), loaded.actuators)
    if out is None:
        print(text, end="")
        return
    save_file(out, text)
    progress.print(f"{out} is written.", markup=False, highlight=False, soft_wrap=True)
