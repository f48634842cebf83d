"""`tensegrity new`: new robot file from a template, matrices or a MuJoCo model."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.saved_file import save_file

from ..output import console, progress
from .arguments import check_folder

if TYPE_CHECKING:
    from tensegrity_dynamics.robots.mjcf import Export
    from tensegrity_dynamics.structures.matrices import StructureMatrices


def new(
    name: Annotated[
        str,
        typer.Argument(
            help="name of the robot; the file is NAME.yaml, in the present folder or in a folder given with the name"
        ),
    ],
    kind: Annotated[str, typer.Option("--kind", help="kind of robot: structure or mechanism")] = "structure",
    matrices: Annotated[
        Path | None,
        typer.Option(
            "--from-matrices",
            help="matrices C, d, t, k, m of a structure (document 001): a folder of CSV files, or an .npz file",
        ),
    ] = None,
    mjcf: Annotated[
        Path | None,
        typer.Option("--from-mjcf", help="MuJoCo model of a mechanism (MJCF, or a URDF that MuJoCo reads)"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace an existing file")] = False,
) -> None:
    """Write a commented robot file that runs without changes and can be edited; tutorial: docs/your_own_robot.md."""
    path = Path(name if name.endswith((".yaml", ".yml")) else f"{name}.yaml")
    robot = _checked_name(path.stem)
    check_folder(path, "NAME")
    if mjcf is not None:
        made = _from_mjcf(robot, mjcf, matrices)
        text = made.text
    elif matrices is None:
        text = _template(kind).replace("NAME", robot)
    else:
        from tensegrity_dynamics.structures.matrices import read_matrices

        text = _matrices_text(robot, matrices, read_matrices(matrices))
    if path.exists() and not force:
        raise TensegrityError(f"{path} is there already; choose another name, or write over it with --force.")
    save_file(path, text)
    if mjcf is not None:
        made.write_files(path.parent)
    progress.print(f"{path} is written. Next:", style="green", markup=False, highlight=False)
    shown = path if path.parent != Path() else path.name
    console.print(f"tensegrity check {shown}", markup=False, highlight=False)
    if matrices is None and mjcf is None:
        console.print(f"tensegrity up sim {shown} --tour", markup=False, highlight=False)


def _checked_name(name: str) -> str:
    from tensegrity_dynamics.structures.matrices import NAME

    if not NAME.fullmatch(name):
        raise TensegrityError(
            f"{name[:80]!r} cannot be a robot's name: letters, digits, _ and -, starting with a letter, 64 at most."
        )
    return name


def _template(kind: str) -> str:
    folder = resources.files("tensegrity_tools") / "templates"
    available = sorted(item.name[:-5] for item in folder.iterdir() if item.name.endswith(".yaml"))
    if kind not in available:
        raise TensegrityError(unknown_name("template", kind, available))
    return (folder / f"{kind}.yaml").read_text(encoding="utf-8")


def _from_mjcf(name: str, source: Path, matrices: Path | None) -> Export:
    """Robot file of a MuJoCo mechanism; differences from the model are listed."""
    if matrices is not None:
        raise TensegrityError("give --from-mjcf or --from-matrices, not both.")
    from ..mjcf_import import robot_from_mjcf

    made = robot_from_mjcf(source, name)
    for each in made.differences:
        progress.print(f"not imported as in {source.name}: {each}", style="yellow", markup=False)
    return made


def fixed_text(held: list[bool]) -> str:
    """Text of the field `fixed` of a node that is fixed along some of x, y and z."""
    axes = [axis for axis, is_held in zip("xyz", held, strict=True) if is_held]
    return ", fixed: true" if len(axes) == 3 else f", fixed: [{', '.join(axes)}]" if axes else ""


def _matrices_text(name: str, source: Path, made: StructureMatrices) -> str:
    """Robot file of a structure defined by matrices."""
    stated, nodes = made.nodes is not None, made.start_nodes().tolist()
    has_weight = bool(made.held.any() and made.masses.any())
    gravity = [0.0, 0.0, -9.80665 if has_weight else 0.0] if made.gravity is None else made.gravity.tolist()
    unsaid = "# Not given by the matrices; " + (
        "earth's gravity is used." if has_weight else "zero, because it would fall without fixed nodes."
    )
    guess = "" if stated else " There was no N: they are guessed from the lengths; correct them if you know better."
    lines = [
        f"# {name}: a structure from the matrices in {source.name} (document 001, chapter 4). SI units: m, N, kg.",
        f"#     tensegrity check {name}.yaml     analyses it",
        "# All fields: docs/robot_file.md",
        "kind: structure",
        f"name: {name}",
        f"description: {len(nodes)} nodes and {len(made.members)} members, from matrices.",
        "",
        *([unsaid] if made.gravity is None else []),
        f"gravity: [{', '.join(repr(each) for each in gravity)}]",
        "",
        f"# Initial positions of the nodes; fixed nodes stay.{guess}",
        "nodes:",
    ]
    for node, position, held in zip(made.node_names, nodes, made.held.tolist(), strict=True):
        lines.append(f"  {node}: {{position: [{', '.join(repr(x) for x in position)}]{fixed_text(held)}}}")
    lines += ["", "# A bar carries push and pull, a tendon only pulls.", "members:"]
    rows = zip(made.member_names, made.members.tolist(), made.pushes.tolist(), strict=True)
    for k, (member, ends, pushes) in enumerate(rows):
        mass = float(made.masses[k])
        lines.append(
            f"  - {{name: {member}, kind: {'bar' if pushes else 'tendon'}, nodes: [{made.node_names[ends[0]]}, "
            f"{made.node_names[ends[1]]}], rest_length: {float(made.rest_lengths[k])!r}, "
            f"stiffness: {float(made.stiffness[k])!r}{f', mass: {mass!r}' if mass else ''}}}"
        )
    pulls = [k for k, pushes in enumerate(made.pushes) if not pushes]
    if pulls:
        k = pulls[-1]
        low, high = 0.8 * float(made.rest_lengths[k]), 1.2 * float(made.rest_lengths[k])
        lines += [
            "",
            "# What can be wound, and what is moved by it: take the # away and change it.",
            "# actuators:",
            f"#   - {{drives: {made.member_names[k]}, position: [{low:.4g}, {high:.4g}], rate: 0.05, effort: 100}}",
            "# outputs:",
            f"#   - {{name: tip, nodes: {{{made.node_names[-1]}: [0, 0, 0]}}, controlled: [x, y, z]}}",
        ]
    return "\n".join(lines) + "\n"
