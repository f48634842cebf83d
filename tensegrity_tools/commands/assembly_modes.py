"""`tensegrity assembly-modes`: working and assembly modes of a parallel mechanism, and its singularities."""

from __future__ import annotations

from typing import Annotated

import typer

from ..output import print_json, print_report, progress
from .arguments import JsonOption, RobotArgument


def assembly_modes(
    robot: RobotArgument,
    length: Annotated[
        list[str] | None,
        typer.Option(
            help="position of an actuator, NAME=VALUE such as hinge_1='90 deg'; default: its start position; repeatable"
        ),
    ] = None,
    starts: Annotated[
        int,
        typer.Option(help="largest number of random starts of the search; more find more modes", min=1, max=1_000_000),
    ] = 3000,
    seed: Annotated[int, typer.Option(help="seed of the random starts")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Find all positions with the same output (working modes) and with the same actuator positions (assembly modes)."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
    from tensegrity_dynamics.mechanisms.mode_report import mode_report
    from tensegrity_dynamics.mechanisms.report import read_positions

    loaded = load_robot(robot)
    loaded.model_as(MechanismModel)
    with progress.status("searching for modes (the first time kernels are compiled, about half a minute)"):
        report = mode_report(loaded, read_positions(length or [], loaded), starts=starts, seed=seed)
    if as_json:
        print_json(report.figures)
    else:
        print_report(report)
