"""Common arguments of commands: robot, JSON output, numbers with units, file of a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tensegrity_dynamics.errors import TensegrityError

RobotArgument = Annotated[
    str, typer.Argument(help="name of a shipped robot, or path of a .yaml file", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON instead of tables")]
RigidOption = Annotated[
    bool, typer.Option("--rigid-bars", help="rigid bars, as in simulation and in the ROS nodes; default: elastic bars")
]


def quantity(kind: str, option: str, text: str) -> Any:
    """Option `option` of a kind of quantity such as "time", in SI units where it has none, with its help text."""

    def read(given: Any) -> Any:
        from tensegrity_dynamics.robots.quantities import read_quantity

        return read_quantity(given, kind, option) if isinstance(given, str) else given  # else the default

    return typer.Option(option, parser=read, metavar=kind.upper(), help=text)


def check_folder(path: Path, option: str) -> None:
    """Raise an error, before the computation, if a file could not be written after it."""
    if not path.resolve().parent.is_dir():
        raise TensegrityError(f"{option} {path}: there is no folder {path.resolve().parent}.")


def check_picture(path: Path) -> None:
    """Like `check_folder`, for an image file."""
    check_folder(path, "--plot-to")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise TensegrityError(f"--plot-to {path}: the name must end in .png, .svg or .pdf.")
