"""What several commands take: a robot, lengths by name, vectors; numbers may carry units."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.units import BaseUnits

if TYPE_CHECKING:
    from tensegrity_dynamics.robots.robot import Robot

RobotArgument = Annotated[str, typer.Argument(help="a shipped robot or a .yaml file", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON instead of tables")]
RigidOption = Annotated[
    bool, typer.Option("--rigid-bars", help="bars keep exactly their length, as in simulation and in the ROS nodes")
]


def read_quantity(text: str, kind: str, what: str, units: BaseUnits | None = None) -> float:
    """A number in SI; plain ones are in the given units. Raises TensegrityError that names `what`."""
    try:
        return (units or BaseUnits()).to_si(text.strip(), kind)
    except ValueError as error:
        raise TensegrityError(f"{what} {text!r}: {error}.") from None


def read_lengths(items: Sequence[str], robot: Robot | None = None, option: str = "--length") -> dict[str, float]:
    """Lengths [m] by member name from texts such as "draw_1=8.3 in"; with a robot, its actuators' names count too.

    Raises:
        TensegrityError: not of that form, a name that the robot does not have, a length not above zero.
    """
    drives = {actuator.name: actuator.drives for actuator in robot.actuators} if robot else {}
    result: dict[str, float] = {}
    for item in items:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise TensegrityError(f"{option} {item!r}: write NAME=LENGTH, for example draw_1=0.21 or draw_1=8.3in.")
        member = drives.get(name, name)
        if robot and member not in robot.structure.member_names:
            raise TensegrityError(f"{option} {item!r}: " + unknown_name("member", name, robot.structure.member_names))
        if member in result:
            raise TensegrityError(f"{option} {item!r}: {name} is given twice.")
        result[member] = read_quantity(value, "length", f"{option} {item!r}:")
        if result[member] <= 0.0:
            raise TensegrityError(f"{option} {item!r}: a length must be above zero.")
    return result


def read_forces(items: Sequence[str], robot: Robot, option: str = "--force") -> dict[str, Any]:
    """Forces (3,) N by node name from texts such as "top_1=0,0,-5N"; several on one node add up.

    Raises:
        TensegrityError: not of that form, or a node that the robot does not have.
    """
    result: dict[str, Any] = {}
    for item in items:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise TensegrityError(f"{option} {item!r}: write NODE=X,Y,Z, for example {name}=0,0,-5N.")
        if name not in robot.structure.node_names:
            raise TensegrityError(f"{option} {item!r}: " + unknown_name("node", name, robot.structure.node_names))
        result[name] = result.get(name, np.zeros(3)) + read_vector(value, option, kind="force")
    return result


def read_vector(text: str | None, what: str, count: int = 3, kind: str = "number", unit: str = "") -> Any:
    """(count,) numbers in SI, separated by commas or blanks; None for None.

    A unit at the end counts for all numbers that carry none: "10, 5, 15 mm". Plain numbers are in `unit`.

    Raises:
        TensegrityError: another count, or not numbers of that kind.
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")] if "," in text else text.split()
    if "," not in text and len(parts) == count + 1:
        parts[-2:] = [" ".join(parts[-2:])]
    example = f"write {count} numbers, for example {_example(count, kind)}"
    if len(parts) != count or not all(parts):
        raise TensegrityError(f"{what} {text!r}: {example}.")
    last = "" if _is_number(parts[-1]) else parts[-1].lstrip("+-0123456789.eE ")
    values = []
    for part in parts:
        common = last or unit
        worded = f"{part} {common}" if _is_number(part) and common else part
        values.append(read_quantity(worded, kind, f"{what} {text!r}: {example};"))
    return np.array(values)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _example(count: int, kind: str) -> str:
    if count != 3:
        return "'" + ",".join(["1"] + ["0"] * (count - 1)) + "'"
    return {"length": "'0,0,15mm' or '0,0,0.015'", "angle": "'5,0,0deg'", "force": "'0,0,-5N'"}.get(kind, "'0,0,1'")


def check_picture(path: Path) -> None:
    """Refuse before the work what could not be written after it."""
    if not path.resolve().parent.is_dir():
        raise TensegrityError(f"--plot-to {path}: there is no folder {path.resolve().parent}.")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise TensegrityError(f"--plot-to {path}: the name must end in .png, .svg or .pdf.")
