"""What several commands take: a robot, JSON or tables, a file for a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tensegrity_dynamics.errors import TensegrityError

RobotArgument = Annotated[
    str, typer.Argument(help="name of a shipped robot, or path of a .yaml file", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON instead of tables")]
RigidOption = Annotated[
    bool, typer.Option("--rigid-bars", help="rigid bars, as in simulation and in the ROS nodes; default: elastic bars")
]


def check_folder(path: Path, option: str) -> None:
    """Refuse before the work what could not be written after it."""
    if not path.resolve().parent.is_dir():
        raise TensegrityError(f"{option} {path}: there is no folder {path.resolve().parent}.")


def check_picture(path: Path) -> None:
    """As `check_folder`, for a picture."""
    check_folder(path, "--plot-to")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise TensegrityError(f"--plot-to {path}: the name must end in .png, .svg or .pdf.")
