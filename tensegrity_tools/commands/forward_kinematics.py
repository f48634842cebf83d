"""`tensegrity fk`: the equilibrium that belongs to rest lengths, or to positions of actuators."""

from __future__ import annotations

from typing import Annotated

import typer

from ..output import print_json, print_report, progress
from .arguments import JsonOption, RigidOption, RobotArgument

LengthOption = Annotated[
    list[str], typer.Option("--length", "-l", help="rest length, NAME=LENGTH such as draw_1=8.3in; may be repeated")
]


def fk(
    robot: RobotArgument,
    length: LengthOption = [],  # noqa: B006
    force: Annotated[
        list[str],
        typer.Option(
            "--force",
            "-f",
            help="on a node, or on a body at its origin, NAME=X,Y,Z such as top_1=0,0,-5N; a body may have a moment, "
            "too: NAME=X,Y,Z,MX,MY,MZ; may be repeated",
        ),
    ] = [],  # noqa: B006
    payload: Annotated[
        list[str], typer.Option("--payload", help="on a node or body, NAME=MASS such as top_1=0.2kg; may be repeated")
    ] = [],  # noqa: B006
    method: Annotated[str, typer.Option(help="newton, relaxation or kinetic")] = "newton",
    rigid_bars: RigidOption = False,
    competing: Annotated[
        bool, typer.Option("--competing", help="look for other equilibria from random starts")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Shape from rest lengths, or of a mechanism from positions of its actuators; the others are those of the file."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.robots.report import KinematicsOptions
    from tensegrity_dynamics.robots.robot_types import type_of

    loaded = load_robot(robot)
    options = KinematicsOptions(length, force, payload, method, rigid_bars, competing)
    with progress.status("finding the shape (the first time its kernels are compiled, about a minute)"):
        report = type_of(loaded).report(loaded).forward_kinematics(options)
    if as_json:
        print_json(report.figures)
    else:
        print_report(report)
