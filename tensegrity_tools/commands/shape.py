"""`tensegrity fk` and `tensegrity ik`: shape from lengths, and lengths from a pose."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.units import BaseUnits

from ..output import console, number, plain, print_json, table

RobotArgument = Annotated[str, typer.Argument(help="a shipped robot or a .yaml file")]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON instead of tables")]


def read_lengths(items: list[str]) -> dict[str, float]:
    """Lengths [m] by name from texts such as "draw_1=8.3 in". Raises TensegrityError for anything else."""
    result = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise TensegrityError(f"--length {item!r}: write NAME=LENGTH, for example draw_1=0.21 or 'draw_1=8.3 in'.")
        try:
            result[name.strip()] = BaseUnits().to_si(value.strip(), "length")
        except ValueError as error:
            raise TensegrityError(f"--length {item!r}: {error}.") from None
    return result


def read_vector(text: str | None, what: str, count: int = 3) -> np.ndarray | None:
    """Numbers separated by commas or blanks; None for None."""
    if text is None:
        return None
    try:
        values = np.array([float(part) for part in text.replace(",", " ").split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise TensegrityError(f"{what} {text!r}: write {count} finite numbers, for example '0,0,0.01'.")
    return values


def shape_figures(shape: Any) -> dict[str, Any]:
    """What `fk --json` prints of a shape."""
    structure = shape.structure
    figures = {
        "method": shape.method,
        "iterations": shape.iterations,
        "residual_N": shape.residual,
        "converged": shape.converged,
        "stable": shape.stable,
        "softest_N_per_m": shape.softest,
        "position_error_m": shape.position_error,
        "slack": list(shape.slack),
        "nodes_m": dict(zip(structure.node_names, shape.nodes, strict=True)),
        "tensions_N": dict(zip(structure.member_names, shape.tensions, strict=True)),
    }
    if shape.output is not None:
        figures["pose"] = {"position_m": shape.pose[0], "quaternion_wxyz": shape.pose[1]}
    return plain(figures)


def print_shape(shape: Any, title: str) -> None:
    """A shape for people."""
    structure = shape.structure
    rows = [("method", f"{shape.method}, {shape.iterations} iterations")]
    if shape.output is not None:
        position, quaternion = shape.pose
        rows.append(("pose of " + shape.output.name, " ".join(f"{1e3 * x:.3f}" for x in position) + " mm"))
        rows.append(("  quaternion w x y z", " ".join(f"{x:.5f}" for x in quaternion)))
    rows += [
        ("residual", f"{shape.residual:.2g} N"),
        ("stable", "yes" if shape.stable else "no: a motion without stiffness remains"),
        ("softest stiffness", f"{shape.softest:.4g} N/m"),
        ("position error", f"below about {shape.position_error:.2g} m" if shape.stable else "not determined"),
        ("slack", ", ".join(shape.slack) or "none"),
    ]
    console.print(table(title, ("", ""), rows))
    members = [
        (name, kind, 1e3 * length, 1e3 * rest, tension)
        for name, kind, length, rest, tension in zip(
            structure.member_names, structure.kinds, shape.lengths.tolist(), shape.rest_lengths.tolist(),
            shape.tensions.tolist(), strict=True,
        )
    ]  # fmt: skip
    console.print(table("members", ("name", "kind", "length mm", "rest length mm", "tension N"), members))


def fk(
    robot: RobotArgument,
    length: Annotated[list[str], typer.Option(help="rest length, NAME=LENGTH; may be repeated")] = [],  # noqa: B006
    method: Annotated[str, typer.Option(help="newton, relaxation or kinetic")] = "newton",
    rigid_bars: Annotated[bool, typer.Option(help="bars keep exactly their length")] = False,
    competing: Annotated[bool, typer.Option(help="look for other equilibria from random starts")] = False,
    as_json: JsonOption = False,
) -> None:
    """Shape from rest lengths."""
    from tensegrity_dynamics import forward_kinematics, load_robot

    loaded = load_robot(robot)
    lengths = read_lengths(length)
    if competing:
        _competing(loaded, lengths, as_json)
        return
    shape = forward_kinematics(loaded, lengths, method=method, rigid_bars=rigid_bars)
    if as_json:
        print_json(shape_figures(shape))
    else:
        print_shape(shape, f"shape of {loaded.name}")


def _competing(loaded: Any, lengths: dict[str, float], as_json: bool) -> None:
    from tensegrity_dynamics import competing as find

    found = find(loaded, lengths or None)
    if as_json:
        print_json([{"label": f.label, "starts": f.count, **shape_figures(f.shape)} for f in found])
        return
    rows = [
        (f.label, f.count, f.shape.energy, f.shape.softest, ", ".join(f.shape.slack) or "none",
         " ".join(f"{1e3 * x:.2f}" for x in f.shape.pose[0]) if f.shape.output else "-")
        for f in found
    ]  # fmt: skip
    console.print(table("stable equilibria", ("", "starts", "energy J", "softest N/m", "slack", "position mm"), rows))
    console.print("Members may pass through each other in these shapes; that is not checked.")


def ik(
    robot: RobotArgument,
    move: Annotated[str | None, typer.Option(help="from the pose at rest, m: '0,0,0.01'")] = None,
    turn: Annotated[str | None, typer.Option(help="from the pose at rest, rotation vector in deg: '5,0,0'")] = None,
    position: Annotated[str | None, typer.Option(help="absolute, m: '0,0,0.2'")] = None,
    method: Annotated[str, typer.Option(help="newton or broyden")] = "newton",
    rigid_bars: Annotated[bool, typer.Option(help="bars keep exactly their length")] = False,
    as_json: JsonOption = False,
) -> None:
    """Rest lengths for a goal pose."""
    from tensegrity_control import inverse_kinematics
    from tensegrity_dynamics import forward_kinematics, load_robot
    from tensegrity_dynamics.rotations import matrix_from_quaternion, matrix_from_vector, quaternion_from_matrix

    loaded = load_robot(robot)
    home = forward_kinematics(loaded, rigid_bars=rigid_bars)
    goal, quaternion = read_vector(position, "--position"), None
    if move is not None:
        if goal is not None:
            raise TensegrityError("give --move or --position, not both.")
        goal = home.pose[0] + read_vector(move, "--move")
    if turn is not None:
        rotation = matrix_from_vector(np.radians(read_vector(turn, "--turn")))
        quaternion = quaternion_from_matrix(rotation @ matrix_from_quaternion(home.pose[1]))
    plan = inverse_kinematics(loaded, goal, quaternion, start=home, rigid_bars=rigid_bars, method=method)
    if as_json:
        print_json({"rest_lengths_m": plan.rest_lengths, "shape": shape_figures(plan.shape), "steps": len(plan.path) - 1})
        return
    tensions = dict(zip(loaded.structure.member_names, plan.shape.tensions.tolist(), strict=True))
    rows = [
        (a.name, 1e3 * plan.rest_lengths[a.name], f"{1e3 * a.position[0]:.1f} to {1e3 * a.position[1]:.1f}", tensions[a.drives])
        for a in loaded.actuators
    ]
    console.print(table("rest lengths", ("actuator", "rest length mm", "limits mm", "tension N"), rows))
    where = " ".join(f"{1e3 * x:.3f}" for x in plan.shape.pose[0])
    console.print(f"pose {where} mm after {len(plan.path) - 1} steps; softest {number(plan.shape.softest)} N/m")
