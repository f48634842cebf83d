"""`tensegrity fk` and `tensegrity ik` of mechanisms: shapes at rest from the positions of their actuators, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError, unknown_name

from ..formatting import millimetres, turned
from ..output import console, print_json, progress, table
from .arguments import read_quantity

KINDS = {"revolute": "angle", "prismatic": "length"}
COMPILING = "finding the shape (the first time its kernels are compiled, about a minute)"


def fk_mechanism(robot: Any, positions: Sequence[str], as_json: bool) -> None:
    """Print the shape at rest for actuator positions NAME=VALUE; the others stay at their start."""
    from tensegrity_dynamics.estimation import make_estimator

    wanted = read_positions(positions, robot)
    with progress.status(COMPILING):
        found = make_estimator(robot).solve(wanted)
    given = _positions(robot, found.q)
    if as_json:
        print_json({**_figures(found.pose, found.shape, found.tensions), "positions": given})
        return
    _print(robot, f"shape of {robot.name}", found.pose, found.shape, found.tensions, given)


def ik_mechanism(robot: Any, goal_of: Any, as_json: bool) -> None:
    """Print the actuator positions for a goal; goal_of makes position and quaternion of the pose at rest."""
    from tensegrity_control.inverse_kinematics.mechanism_equilibria import PathEquilibriumSolver
    from tensegrity_control.inverse_kinematics.mechanism_ik import plan_path

    robot.output  # noqa: B018 - raises where there is none
    with progress.status(COMPILING):
        shapes = PathEquilibriumSolver(robot)
        place, orientation = goal_of(shapes.home.pose)
        try:
            path = plan_path(shapes, shapes.home, place, orientation)
        except UnreachableGoalError as error:
            if as_json:
                print_json({"reached": False, "reason": str(error), "binding": list(error.binding)})
            raise
    end = path[-1]
    names = [cable.name for cable in robot.mechanism.mechanism.cables]
    tensions = dict(zip(names, end.tensions.tolist(), strict=True))
    given = dict(zip((each.name for each in robot.actuators), end.positions.tolist(), strict=True))
    if as_json:
        figures = _figures(end.pose, end.shape, tensions)
        print_json({"reached": True, "positions": given, "steps": len(path) - 1, **figures})
        return
    _print(robot, f"{robot.name} at the goal, {len(path) - 1} steps from rest", end.pose, end.shape, tensions, given)


def read_positions(items: Sequence[str], robot: Any) -> dict[str, float]:
    """Positions [rad or m] by actuator from texts such as "B1=0.5" or "B1=30 deg".

    Raises:
        TensegrityError: not of that form, an unknown or repeated actuator, or a number of another kind.
    """
    result: dict[str, float] = {}
    known = {each.name: each for each in robot.actuators}
    for item in items:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise TensegrityError(f"--length {item!r}: write NAME=POSITION, for example {next(iter(known), 'a')}=0.5.")
        if name not in known:
            raise TensegrityError(f"--length {item!r}: " + unknown_name("actuator", name, known))
        if name in result:
            raise TensegrityError(f"--length {item!r}: {name} is given twice.")
        result[name] = read_quantity(value, KINDS[known[name].motion], f"--length {item!r}:")
    return result


def _positions(robot: Any, q: np.ndarray) -> dict[str, float]:
    model = robot.mechanism
    places = {each.name: model.mechanism.positions_of(model.joint_of(each.drives)) for each in robot.actuators}
    return {name: float(q[at][0]) for name, at in places.items()}


def _figures(pose: Any, shape: Any, tensions: Any) -> dict[str, Any]:
    position, quaternion = pose if pose is not None else (None, None)
    return {
        "position_m": position,
        "quaternion_wxyz": quaternion,
        "tensions_N": dict(tensions),
        "stable": shape.stable,
        "softest": shape.softest,
        "residual": shape.residual,
        "iterations": shape.iterations,
    }


def _print(robot: Any, title: str, pose: Any, shape: Any, tensions: Any, positions: dict[str, float]) -> None:
    slack = [name for name, tension in tensions.items() if tension <= 0.0]
    rows = [(f"{robot.outputs[0].name} at", f"{millimetres(pose[0])}, {turned(pose[1])}")] if pose is not None else []
    rows += [
        ("stable", "yes" if shape.stable else "no: a motion without resistance remains"),
        ("slack", ", ".join(slack) or "none"),
        ("force left", f"{shape.residual:.1e} N or N m after {shape.iterations} iterations"),
    ]
    console.print(table(title, ("", ""), rows))
    console.print()
    lines = []
    for each in robot.actuators:
        tension = tensions.get(each.drives, float("nan"))
        lines.append(
            (
                each.name,
                f"{positions[each.name] + 0.0:.4f} {each.units[0]}",
                f"{each.position[0]:.4g} to {each.position[1]:.4g}",
                f"{tension:.4g} N" if np.isfinite(tension) else "-",
            )
        )
    console.print(table("actuators", ("name", "position", "limits", "tension"), lines))
