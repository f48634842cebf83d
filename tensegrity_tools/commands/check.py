"""`tensegrity check`: what a robot is, and whether it stands; its modes and the stiffness of its output."""

from __future__ import annotations

from typing import Annotated

import typer

from ..output import print_json, print_report, progress
from .arguments import JsonOption, RobotArgument


def check(
    robot: RobotArgument,
    as_json: JsonOption = False,
    modes: Annotated[
        bool, typer.Option("--modes", help="frequencies, damping and what moves, at rest, actuators held")
    ] = False,
    stiffness: Annotated[
        bool, typer.Option("--stiffness", help="stiffness of the output at rest, and what its actuators can do")
    ] = False,
) -> None:
    """Validate a robot file and print what the robot is, its shape and its prestress."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.robots.robot_types import type_of

    loaded = load_robot(robot)
    with progress.status("finding the shape (the first time its kernels are compiled, about a minute)"):
        report = type_of(loaded).report(loaded)
        asked = [report.modes()] if modes else []
        asked += [report.stiffness()] if stiffness else []
        reports = asked or [report.check()]
    if as_json:
        merged = {key: value for each in reports for key, value in each.figures.items()}
        print_json(merged)
        return
    for each in reports:
        print_report(each)
