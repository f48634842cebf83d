"""`tensegrity check`: what a robot is, and whether it stands."""

from __future__ import annotations

from ..output import print_json, print_report, progress
from .arguments import JsonOption, RobotArgument


def check(robot: RobotArgument, as_json: JsonOption = False) -> None:
    """Validate a robot file and print what the robot is, its shape and its prestress."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.robots.robot_types import type_of

    loaded = load_robot(robot)
    with progress.status("finding the shape (the first time its kernels are compiled, about a minute)"):
        report = type_of(loaded).report(loaded).check()
    if as_json:
        print_json(report.figures)
    else:
        print_report(report)
