"""`tensegrity ik`: rest lengths, or actuator positions, for a pose of the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.robots.model import Pose
from tensegrity_dynamics.robots.quantities import read_vector
from tensegrity_dynamics.robots.report import Report

from ..output import console, print_json, print_report, print_table, progress, table
from .arguments import JsonOption, RigidOption, RobotArgument

GoalOf = Callable[[Pose], tuple[np.ndarray | None, np.ndarray | None]]
"""Function from the pose at rest to position (3,) [m] and quaternion (4,) of the goal; None for an open one."""


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
    from tensegrity_dynamics import load_robot

    loaded = load_robot(robot)
    if loaded.kind not in COMMANDS:
        able = " and ".join(f"{kind}s" for kind in COMMANDS)
        raise TensegrityError(f"{loaded.name} is a {loaded.kind}; inverse kinematics is for {able}.")
    controlled = loaded.output.controlled  # raises if there is no output
    check_controlled("--move", move, read_vector(move, "--move", kind="length"), ("x", "y", "z"), controlled)
    turned = read_vector(turn, "--turn", kind="angle", unit="deg")
    check_controlled("--turn", turn, turned, ("rx", "ry", "rz"), controlled)
    COMMANDS[loaded.kind](
        loaded, lambda rest: _goal(rest, move, turn, position, quaternion), method, rigid_bars, as_json
    )


def _structure_ik(loaded: Any, goal_of: GoalOf, method: str, rigid_bars: bool, as_json: bool) -> None:
    """Print the rest lengths for a goal."""
    from tensegrity_control import inverse_kinematics
    from tensegrity_dynamics import forward_kinematics
    from tensegrity_dynamics.structures.report import pose_words, shape_figures, shape_rows

    with progress.status("finding the lengths (the first time kernels are compiled, about half a minute)"):
        home = forward_kinematics(loaded, rigid_bars=rigid_bars)
        position, orientation = goal_of(home.pose)
        try:
            plan = inverse_kinematics(loaded, position, orientation, start=home, rigid_bars=rigid_bars, method=method)
        except UnreachableGoalError as error:
            if as_json:
                print_json(_unreachable(error))
            raise
    if as_json:
        print_json(
            {
                "reached": True,
                "rest_lengths_m": plan.rest_lengths,
                "steps": len(plan.path) - 1,
                "forward_kinematics_solved": plan.solves,
                "pose_error": plan.pose_error,
                "lowest_margin_N": plan.lowest_margin[1],
                "lowest_margin_of": plan.lowest_margin[0],
                "shape": shape_figures(plan.equilibrium),
            }
        )
        return
    tensions = dict(zip(loaded.structure.member_names, plan.equilibrium.tensions.tolist(), strict=True))
    rows = [
        (
            a.name,
            f"{1e3 * float(home.rest_lengths[loaded.structure.member(a.drives)]):.2f}",
            f"{1e3 * plan.rest_lengths[a.name]:.2f}",
            f"{1e3 * a.position[0]:.1f} to {1e3 * a.position[1]:.1f}",
            f"{tensions[a.drives]:.4g}",
            f"{a.minimum_tension:.3g} to {a.effort:.4g}",
        )
        for a in loaded.actuators
    ]
    heads = ("actuator", "at rest mm", "at goal mm", "limits mm", "tension N", "limits N")
    print_table(table(f"rest lengths of {loaded.name}", heads, rows, right=(1, 2, 3, 4, 5)))
    console.print()
    tendon, margin = plan.lowest_margin
    path = f"{len(plan.path) - 1} steps; closest to slack: {tendon}, {margin:.4g} N above its floor"
    print_table(table("at the goal", ("", ""), [*shape_rows(plan.equilibrium), ("on the path", path)]))
    if words := _free_axes(loaded, "the lengths"):
        console.print(f"\n{words} At rest: {pose_words(home)}")


def _mechanism_ik(robot: Any, goal_of: GoalOf, method: str, rigid_bars: bool, as_json: bool) -> None:
    """Print the positions of the actuators for a goal."""
    from tensegrity_control import inverse_kinematics
    from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
    from tensegrity_dynamics.mechanisms.report import equilibrium_figures, equilibrium_parts

    if rigid_bars or method != "newton":
        raise TensegrityError(f"{robot.name} is a mechanism: --rigid-bars and --method are for structures.")
    with progress.status("finding the positions (the first time its kernels are compiled, about a minute)"):
        equilibria = MechanismEquilibriumMap(robot)
        position, orientation = goal_of(equilibria.home.pose)
        try:
            path = inverse_kinematics(robot, position, orientation, equilibria=equilibria).path
        except UnreachableGoalError as error:
            if as_json:
                print_json({"reached": False, "reason": str(error), "binding": list(error.binding)})
            raise
    end = path[-1]
    names = [cable.name for cable in robot.mechanism.cables]
    tensions = dict(zip(names, end.tensions.tolist(), strict=True))
    given = dict(zip((each.name for each in robot.actuators), end.positions.tolist(), strict=True))
    if as_json:
        figures = equilibrium_figures(end.pose, end.statics, tensions)
        print_json({"reached": True, "positions": given, "steps": len(path) - 1, **figures})
        return
    title = f"{robot.name} at the goal, {len(path) - 1} steps from rest"
    parts = equilibrium_parts(robot, title, end.pose, end.statics, tensions, given)
    words = _free_axes(robot, "the actuators")
    print_report(Report({}, [*parts, words] if words else parts))


def _free_axes(robot: Any, source: str) -> str:
    """Text about the axes of a goal without effect; empty if the output controls all axes."""
    free = [axis for axis in ("x", "y", "z", "rx", "ry", "rz") if axis not in robot.output.controlled]
    if not free:
        return ""
    return f"{robot.output.name} controls {', '.join(robot.output.controlled)}; {', '.join(free)} follow from {source}."


def check_controlled(
    option: str, text: str | None, values: np.ndarray | None, axes: Sequence[str], controlled: Sequence[str]
) -> None:
    """Raise TensegrityError if a motion (3,) has components along axes that the output does not control."""
    moved = [] if values is None else [axis for axis, value in zip(axes, values, strict=True) if value]
    lost = [axis for axis in moved if axis not in controlled]
    if lost:
        what = f"{', '.join(lost)} {'is' if len(lost) == 1 else 'are'} not controlled by the output"
        raise TensegrityError(f"{option} {text!r}: {what}; it controls {', '.join(controlled)}.")


COMMANDS: dict[str, Callable[..., None]] = {"structure": _structure_ik, "mechanism": _mechanism_ik}
"""Functions that compute and print the lengths or positions, by kind of robot."""


def _goal(
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
        raise TensegrityError("say where to: --move '0,0,15mm', --turn '5,0,0 deg', --position or --quaternion.")
    target = read_vector(position, "--position", kind="length")
    orientation = read_vector(quaternion, "--quaternion", 4)
    if move is not None:
        target = rest[0] + read_vector(move, "--move", kind="length")
    if turn is not None:
        rotation = matrix_from_vector(read_vector(turn, "--turn", kind="angle", unit="deg"))
        orientation = quaternion_from_matrix(rotation @ matrix_from_quaternion(rest[1]))
    return target, orientation


def _unreachable(error: UnreachableGoalError) -> dict[str, Any]:
    from tensegrity_dynamics.structures.report import shape_figures

    figures: dict[str, Any] = {"reached": False, "reason": str(error), "binding": list(error.binding)}
    if error.nearest is not None:
        figures["nearest"] = {"rest_lengths_m": error.rest_lengths, "shape": shape_figures(error.nearest)}
    return figures
