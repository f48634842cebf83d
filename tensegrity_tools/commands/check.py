"""`tensegrity check`: description and stability of a robot; its modes and the stiffness of its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tensegrity_dynamics.errors import TensegrityError

from ..output import print_json, print_report, progress
from .arguments import JsonOption, RobotArgument

if TYPE_CHECKING:
    from tensegrity_dynamics.robots.report import Report, RobotReport
    from tensegrity_dynamics.robots.robot import Robot

VIEW_PORT, VIEW_ADDRESS = 8080, "127.0.0.1"


def check(
    robot: RobotArgument,
    as_json: JsonOption = False,
    modes: Annotated[
        bool, typer.Option("--modes", help="modes at rest with held actuators: frequencies, damping, moving parts")
    ] = False,
    along: Annotated[
        str,
        typer.Option(
            "--along",
            help="with --modes: poses of the output, AXIS=LOW:HIGH:COUNT relative to the pose at rest (z=-1cm:1cm:5)",
        ),
    ] = "",
    animate: Annotated[
        int, typer.Option("--animate", help="number of the mode to animate in the browser view (1, 2, ...); 0: none")
    ] = 0,
    view_port: Annotated[int, typer.Option(help="with --animate: port of the browser view")] = VIEW_PORT,
    view_address: Annotated[
        str, typer.Option(help="with --animate: address on which the view listens; 0.0.0.0 admits other machines")
    ] = VIEW_ADDRESS,
    stiffness: Annotated[
        bool,
        typer.Option("--stiffness", help="stiffness of the output at rest, and the manipulability by its actuators"),
    ] = False,
    controllers: Annotated[
        bool,
        typer.Option("--controllers", help="controllers that support the robot, and the reasons why others refuse it"),
    ] = False,
) -> None:
    """Validate a robot file and print a description of the robot, its shape and its prestress."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.robots.robot_types import type_of

    loaded = load_robot(robot)
    if along and not modes:
        raise TensegrityError("--along says where --modes are computed; give both.")
    if not animate and (view_port, view_address) != (VIEW_PORT, VIEW_ADDRESS):
        raise TensegrityError(
            "--view-port and --view-address are of the view that --animate opens; give its number, too."
        )
    if animate:
        _animate(loaded, animate, view_port, view_address)
        return
    with progress.status("finding the shape (the first time its kernels are compiled, about a minute)"):
        report = type_of(loaded).report(loaded)
        asked = [_modes(loaded, report, along)] if modes else []
        asked += [report.stiffness()] if stiffness else []
        asked += [_controllers(loaded)] if controllers else []
        reports = asked or [report.check()]
    if as_json:
        merged = {key: value for each in reports for key, value in each.figures.items()}
        print_json(merged)
        return
    for each in reports:
        print_report(each)


def _modes(robot: Robot, report: RobotReport, along: str) -> Report:
    if not along:
        return report.modes()
    from ..sweeps.axes import read_axis
    from ..sweeps.modes_along import modes_along

    return modes_along(robot, read_axis(along, "--along"))


def _controllers(robot: Robot) -> Report:
    from tensegrity_control.registry import refusals, taken_words
    from tensegrity_dynamics.robots.report import Report, Section

    from ..runtime.node_graph import slower_than_real_time

    refused = refusals(robot)
    rows = []
    for name, why in refused.items():
        slow = "" if why else slower_than_real_time(robot, name)
        rows.append((name, why or (f"takes it, but not in real time: {slow}" if slow else "takes it")))
    table = Section(f"Controllers for {robot.name}, at rest", ("controller", "what it says"), rows)
    return Report({"controllers": refused}, [table, taken_words(robot, refused)])


def _animate(robot: Robot, number: int, port: int, address: str) -> None:
    """Animate a mode until the user ends it."""
    from tensegrity_dynamics.ending import Ending, leave

    from ..view.mode_player import play_modes

    def say(text: str) -> None:
        progress.print(text, markup=False, soft_wrap=True)

    with Ending() as ending:
        play_modes(robot, number, port, address, say, lambda: bool(ending.asked))
    leave(ending, 0)
