"""`tensegrity fk`: the shape that belongs to rest lengths."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tensegrity_dynamics.errors import TensegrityError

from ..formatting import millimetres, motion, pose_words
from ..output import console, plain, print_json, progress, table
from .arguments import JsonOption, RigidOption, RobotArgument, read_forces, read_lengths

LengthOption = Annotated[
    list[str], typer.Option("--length", "-l", help="rest length, NAME=LENGTH such as draw_1=8.3in; may be repeated")
]


def shape_figures(shape: Any) -> dict[str, Any]:
    """What `--json` prints of a shape."""
    structure = shape.structure
    figures = {
        "method": shape.method,
        "iterations": shape.iterations,
        "residual_N": shape.residual,
        "converged": shape.converged,
        "stable": shape.stable,
        "softest_N_per_m": shape.softest,
        "softest_motion": motion(shape),
        "position_error_m": shape.position_error,
        "slack": list(shape.slack),
        "energy_J": shape.energy,
        "nodes_m": dict(zip(structure.node_names, shape.nodes, strict=True)),
        "rest_lengths_m": dict(zip(structure.member_names, shape.rest_lengths, strict=True)),
        "lengths_m": dict(zip(structure.member_names, shape.lengths, strict=True)),
        "tensions_N": dict(zip(structure.member_names, shape.tensions, strict=True)),
    }
    if shape.output is not None:
        figures["pose"] = {"position_m": shape.pose[0], "quaternion_wxyz": shape.pose[1]}
    return plain(figures)  # type: ignore[no-any-return]


def shape_rows(shape: Any) -> list[tuple[str, str]]:
    """A shape for people, in a few lines."""
    rows = []
    if shape.output is not None:
        rows.append((f"{shape.output.name} at", pose_words(shape)))
    stands = f"yes, softest {shape.softest:.4g} N/m: {motion(shape)}"
    moves = f"no: it can move without force ({motion(shape)})"
    error = f", so its nodes are right within {shape.position_error:.1g} m" if shape.stable else ""
    return [
        *rows,
        ("stable", stands if shape.stable else moves),
        ("slack", ", ".join(shape.slack) or "none"),
        ("residual", f"{shape.residual:.1e} N after {shape.iterations} iterations ({shape.method}){error}"),
    ]


def print_shape(shape: Any, title: str) -> None:
    """A shape for people, with all members."""
    structure = shape.structure
    console.print(table(title, ("", ""), shape_rows(shape)))
    console.print()
    members = [
        (name, kind, f"{1e3 * rest:.2f}", f"{1e3 * length:.2f}", f"{tension + 0.0:.4g}")
        for name, kind, rest, length, tension in zip(
            structure.member_names, structure.kinds, shape.rest_lengths.tolist(), shape.lengths.tolist(),
            shape.tensions.tolist(), strict=True,
        )
    ]  # fmt: skip
    heads = ("member", "kind", "rest length mm", "length mm", "tension N")
    console.print(table("members (compression is negative)", heads, members, right=(2, 3, 4)))


def fk(
    robot: RobotArgument,
    length: LengthOption = [],  # noqa: B006
    force: Annotated[
        list[str], typer.Option("--force", "-f", help="on a node, NAME=X,Y,Z such as top_1=0,0,-5N; may be repeated")
    ] = [],  # noqa: B006
    method: Annotated[str, typer.Option(help="newton, relaxation or kinetic")] = "newton",
    rigid_bars: RigidOption = False,
    competing: Annotated[
        bool, typer.Option("--competing", help="look for other equilibria from random starts")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Shape from rest lengths, or of a mechanism from positions of its actuators; the others are those of the file."""
    from tensegrity_dynamics import forward_kinematics, load_robot
    from tensegrity_dynamics.structures.structure import Structure

    loaded = load_robot(robot)
    if not isinstance(loaded.model, Structure):
        if force or competing or rigid_bars or method != "newton":
            raise TensegrityError(f"{loaded.name} is a mechanism: of the options, --length and --json are for it.")
        from .mechanism_shape import fk_mechanism

        fk_mechanism(loaded, length, as_json)
        return
    lengths = read_lengths(length, loaded)
    forces = read_forces(force, loaded)
    if competing:
        if method != "newton":
            raise TensegrityError("--competing uses newton; leave --method out.")
        _competing(loaded, lengths, forces, rigid_bars, as_json)
        return
    with progress.status("finding the shape (the first time its kernels are compiled, about half a minute)"):
        shape = forward_kinematics(loaded, lengths, forces, method=method, rigid_bars=rigid_bars)
    if as_json:
        print_json(shape_figures(shape))
        return
    print_shape(shape, f"shape of {loaded.name}, {'rigid' if rigid_bars else 'elastic'} bars")
    if not rigid_bars and "bar" in loaded.structure.kinds:
        console.print("\nSimulation and ROS nodes take bars as rigid: --rigid-bars shows that shape.")


def _competing(loaded: Any, lengths: dict[str, float], forces: dict[str, Any], rigid_bars: bool, as_json: bool) -> None:
    from tensegrity_dynamics import find_equilibria as find

    with progress.status("trying random starts"):
        found = find(loaded, lengths or None, forces=forces or None, rigid_bars=rigid_bars)
    if as_json:
        print_json([{"label": f.label, "starts": f.count, **shape_figures(f.shape)} for f in found])
        return
    rows = [
        (
            f.label,
            f"{f.count}",
            f"{f.shape.energy:.5g}",
            f"{f.shape.softest:.4g}",
            millimetres(f.shape.pose[0], 1) if f.shape.output else "-",
            ", ".join(f.shape.slack) or "none",
        )
        for f in found
    ]
    heads = ("", "starts", "energy J", "softest N/m", "output at", "slack")
    console.print(table(f"stable equilibria of {loaded.name}", heads, rows, right=(1, 2, 3)))
    console.print("\nMembers may pass through each other in these shapes; that is not checked.")
