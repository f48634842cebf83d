"""`tensegrity ik`: rest lengths, or actuator positions, for a pose of the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.robots.quantities import read_vector

from ..output import print_json, print_report, progress
from .arguments import JsonOption, RigidOption, RobotArgument


def ik(
    robot: RobotArgument,
    move: Annotated[
        str | None, typer.Option(help="translation from the pose at rest: '0,0,15mm'; plain numbers are m")
    ] = None,
    turn: Annotated[
        str | None,
        typer.Option(help="rotation vector relative to the pose at rest: '5,0,0 deg'; plain numbers are deg"),
    ] = None,
    position: Annotated[
        str | None, typer.Option(help="goal position in the world frame: '0,0,0.2'; plain numbers are m")
    ] = None,
    quaternion: Annotated[str | None, typer.Option(help="goal orientation in the world frame: w,x,y,z")] = None,
    method: Annotated[str, typer.Option(help="solver: newton or broyden")] = "newton",
    rigid_bars: RigidOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compute rest lengths, or actuator positions of a mechanism, for a goal pose; omitted components: as at rest."""
    from tensegrity_control import inverse_kinematics
    from tensegrity_control.inverse_kinematics.equilibrium_map import equilibrium_map
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.robots.robot_types import type_of

    loaded = load_robot(robot)
    if loaded.model.takes_no_goals:
        raise TensegrityError(f"{loaded.name} {loaded.model.takes_no_goals}.")
    controlled = loaded.output.controlled  # raises if there is no output
    check_controlled("--move", move, read_vector(move, "--move", kind="length"), ("x", "y", "z"), controlled)
    turned = read_vector(turn, "--turn", kind="angle", unit="deg")
    check_controlled("--turn", turn, turned, ("rx", "ry", "rz"), controlled)
    report = type_of(loaded).report(loaded)
    options = {"rigid_bars": True} if rigid_bars else {}
    with progress.status("computing the path to the goal (the first time kernels are compiled, about a minute)"):
        equilibria = equilibrium_map(loaded.model, loaded, **options)
        goal = goal_pose(equilibria.home.pose, move, turn, position, quaternion)
        try:
            result = inverse_kinematics(loaded, *goal, equilibria=equilibria, method=method)
        except UnreachableGoalError as error:
            if as_json:
                print_json(report.unreachable(error))
            raise
    found = report.inverse_kinematics(result)
    if as_json:
        print_json(found.figures)
    else:
        print_report(found)


def check_controlled(
    option: str, text: str | None, values: np.ndarray | None, axes: Sequence[str], controlled: Sequence[str]
) -> None:
    """Raise TensegrityError if a motion (3,) has components along axes that the output does not control."""
    moved = [] if values is None else [axis for axis, value in zip(axes, values, strict=True) if value]
    lost = [axis for axis in moved if axis not in controlled]
    if lost:
        what = f"{', '.join(lost)} {'is' if len(lost) == 1 else 'are'} not controlled by the output"
        raise TensegrityError(f"{option} {text!r}: {what}; it controls {', '.join(controlled)}.")


def goal_pose(
    rest: Any, move: str | None, turn: str | None, position: str | None, quaternion: str | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Absolute position (3,) [m] and quaternion (4,) from the options; None for an open one."""
    from tensegrity_dynamics.numerics.rotations import (
        matrix_from_quaternion,
        matrix_from_vector,
        quaternion_from_matrix,
    )

    for one, other, names in ((move, position, "--move or --position"), (turn, quaternion, "--turn or --quaternion")):
        if one is not None and other is not None:
            raise TensegrityError(f"give {names}, not both.")
    if move is position is turn is quaternion is None:
        raise TensegrityError("name a goal: --move '0,0,15mm', --turn '5,0,0 deg', --position or --quaternion.")
    target = read_vector(position, "--position", kind="length")
    orientation = read_vector(quaternion, "--quaternion", 4)
    if move is not None:
        target = rest[0] + read_vector(move, "--move", kind="length")
    if turn is not None:
        rotation = matrix_from_vector(read_vector(turn, "--turn", kind="angle", unit="deg"))
        orientation = quaternion_from_matrix(rotation @ matrix_from_quaternion(rest[1]))
    return target, orientation
