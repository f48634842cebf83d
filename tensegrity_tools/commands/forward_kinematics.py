"""`tensegrity fk`: equilibrium for given rest lengths, or positions of actuators."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tensegrity_dynamics.bounded_file import read_bounded
from tensegrity_dynamics.errors import TensegrityError, unknown_name

from ..output import print_json, print_report, progress
from .arguments import JsonOption, RigidOption, RobotArgument, check_picture, quantity

if TYPE_CHECKING:  # `--help` must not import the library
    import numpy as np
    from numpy.typing import NDArray

    from tensegrity_dynamics.robots.robot import Robot

LengthOption = Annotated[
    list[str], typer.Option("--length", "-l", help="rest length, NAME=LENGTH such as draw_1=8.3in; repeatable")
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
        list[str],
        typer.Option("--payload", help="payload on a node or body, NAME=MASS such as top_1=0.2kg; repeatable"),
    ] = [],  # noqa: B006
    method: Annotated[str, typer.Option(help="form-finding method: newton, relaxation or kinetic")] = "newton",
    rigid_bars: RigidOption = False,
    competing: Annotated[
        bool, typer.Option("--competing", help="also search other equilibria from random starts")
    ] = False,
    starts: Annotated[
        int, typer.Option(help="with --competing: number of random starts; more find more equilibria", min=1)
    ] = 200,
    seed: Annotated[int, typer.Option(help="with --competing: seed of the random starts", min=0)] = 0,
    tolerance: Annotated[
        float | None,
        quantity("force", "--tolerance", "largest residual force [N]; smaller is more accurate"),
    ] = None,
    delta: Annotated[
        float | None,
        quantity(
            "number", "--delta", "with --method relaxation: step of the nodes [m/N]; larger is faster and less stable"
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        quantity(
            "number", "--epsilon", "with --method relaxation: weight of the new forces, 0 to 1; larger damps more"
        ),
    ] = None,
    gravity: Annotated[str | None, typer.Option(help="gravity X,Y,Z [m/s^2]; default: that of the robot file")] = None,
    start: Annotated[
        Path | None,
        typer.Option(help="CSV file of initial nodes: name,x,y,z in m; default: as in the robot file"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot-to", "--plot", help="image file for a plot of the shape: shape.png")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the shape for rest lengths, or for actuator positions of a mechanism; omitted ones: as in the robot
    file."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.robots.report import KinematicsOptions
    from tensegrity_dynamics.robots.robot_types import type_of

    loaded = load_robot(robot)
    if plot is not None:
        check_picture(plot)
        if competing:
            raise TensegrityError("--plot-to draws one shape; leave --competing out.")
    options = KinematicsOptions(
        length, force, payload, method, rigid_bars, competing, tolerance, delta, epsilon,
        None if gravity is None else _vector("--gravity", gravity), None if start is None else _start(loaded, start),
        starts, seed,
    )  # fmt: skip
    with progress.status("finding the shape (the first time its kernels are compiled, about a minute)"):
        report = type_of(loaded).report(loaded).forward_kinematics(options)
    if plot is not None and report.shape is not None:
        from ..shape_plot import draw_shape

        draw_shape(loaded, *report.shape, plot)
    if as_json:
        print_json(report.figures)
    else:
        print_report(report)


def _vector(option: str, text: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not all(math.isfinite(each) for each in numbers):
        raise TensegrityError(f"{option} {text}: give three numbers, X,Y,Z.")
    return numbers


def _start(robot: Robot, path: Path) -> NDArray[np.float64]:
    """(n, 3) nodes of the robot file, with the positions of a table for the nodes that it names [m]."""
    if robot.kind != "structure":
        raise TensegrityError(f"--start is for structures; {robot.name} is a {robot.kind}.")
    nodes, names = robot.structure.nodes.copy(), list(robot.structure.node_names)
    try:
        rows = list(csv.reader(read_bounded(path).decode().splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TensegrityError(f"--start {path}: cannot be read ({error}).") from error
    for number, row in enumerate(rows, start=1):
        if not row or row[0].strip() == "name":
            continue
        if row[0].strip() not in names:
            raise TensegrityError(f"--start {path}, line {number}: " + unknown_name("node", row[0].strip(), names))
        nodes[names.index(row[0].strip())] = _vector(f"--start {path}, line {number}:", ",".join(row[1:]))
    return nodes
