"""`tensegrity wrenches`: forces and moments that a cable robot can balance, within floor and ceiling of its
tensions."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError

from ..output import console, print_json, print_table, progress, table
from .arguments import JsonOption, RobotArgument, quantity


def wrenches(
    robot: RobotArgument,
    move: Annotated[
        str | None, typer.Option(help="translation from the pose at rest: '0.3,0,0 m'; plain numbers are m")
    ] = None,
    turn: Annotated[
        str | None,
        typer.Option(help="rotation vector relative to the pose at rest: '5,0,0 deg'; plain numbers are deg"),
    ] = None,
    force: Annotated[
        str | None,
        typer.Option(
            help="external wrench on the output whose feasibility is tested: 'X,Y,Z' [N], or 'X,Y,Z,MX,MY,MZ' [N, N m]"
        ),
    ] = None,
    floor: Annotated[
        float | None,
        quantity("force", "--floor", "smallest tension of every cable [N]; default: that of the robot file"),
    ] = None,
    ceiling: Annotated[
        float | None,
        quantity("force", "--ceiling", "largest tension of every cable [N]; default: what its actuators can pull"),
    ] = None,
    desired: Annotated[
        float | None,
        quantity("force", "--desired", "desired tension of every cable [N]; default: the floor"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check whether a pose and a wrench are feasible; print tensions and the largest additional forces and moments."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
    from tensegrity_dynamics.mechanisms.statics.wrench_feasibility import (
        cable_statics,
        tension_distribution,
        wrench_margins,
    )
    from tensegrity_dynamics.robots.quantities import read_vector

    loaded = load_robot(robot)
    model = loaded.model_as(MechanismModel)
    wrench = np.zeros(6)
    if force is not None:
        parts = force.split(",")
        if len(parts) not in (3, 6):
            raise TensegrityError(f"--force {force!r}: write X,Y,Z, or X,Y,Z,MX,MY,MZ.")
        wrench[:3] = read_vector(",".join(parts[:3]), "--force", kind="force")
        if len(parts) == 6:
            wrench[3:] = read_vector(",".join(parts[3:]), "--force", kind="torque")
    with progress.status("finding the pose (the first time kernels are compiled, about half a minute)"):
        pose, q = _posed(loaded, model, move, turn)
        statics = cable_statics(loaded, q, floor=floor, ceiling=ceiling)
        tensions = tension_distribution(statics, wrench, desired)
        margins = wrench_margins(statics, wrench) if tensions is not None else None
    figures: dict[str, Any] = {
        "robot": loaded.name, "position_m": pose[0], "quaternion_wxyz": pose[1], "wrench_N": wrench,
        "feasible": tensions is not None, "self_stresses": statics.self_stress_count,
        "tensions_N": None if tensions is None else dict(zip(statics.cables, tensions.tolist(), strict=True)),
        "margins": margins,
    }  # fmt: skip
    if as_json:
        print_json(figures)
        return
    rows = [
        ("pose of the output", ", ".join(f"{1e3 * x:.1f}" for x in pose[0]) + " mm"),
        (
            "wrench on it",
            ", ".join(f"{x:g}" for x in wrench[:3]) + " N, " + ", ".join(f"{x:g}" for x in wrench[3:]) + " N m",
        ),
        ("held", "yes" if tensions is not None else "no: no tensions between floor and ceiling balance it"),
        ("self-stresses", f"{statics.self_stress_count} independent"),
    ]
    print_table(table(f"statics of {loaded.name}", ("", ""), rows))
    if tensions is None or margins is None:
        return
    console.print()
    lines = [
        (name, f"{low:.4g}", f"{tension:.4g}", f"{high:.4g}")
        for name, low, tension, high in zip(
            statics.cables, statics.tension_low, tensions, statics.tension_high, strict=True
        )
    ]
    print_table(
        table(
            "tensions nearest to the desired ones",
            ("cable", "floor N", "tension N", "ceiling N"),
            lines,
            right=(1, 2, 3),
        )
    )
    console.print()
    units = {axis: "N m" if axis.startswith("r") else "N" for axis in margins}
    ends = [(axis, f"{low:.4g} {units[axis]}", f"{high:.4g} {units[axis]}") for axis, (low, high) in margins.items()]
    print_table(
        table("largest additional force or moment along one axis", ("axis", "negative", "positive"), ends, right=(1, 2))
    )


def _posed(loaded: Any, model: Any, move: str | None, turn: str | None) -> tuple[Any, Any]:
    """Pose of the output and q (nq,); in closed form, without tensions, if the output is suspended only by cables."""
    from tensegrity_control import inverse_kinematics
    from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
    from tensegrity_dynamics.mechanisms.statics.hanging_body import hanging_position, hangs_on_cables

    from .inverse_kinematics import goal_pose

    equilibria = MechanismEquilibriumMap(loaded)
    home = equilibria.home
    if move is None and turn is None:
        return home.pose, home.q
    position, quaternion = goal_pose(home.pose, move, turn, None, None)
    position = home.pose[0] if position is None else position
    quaternion = home.pose[1] if quaternion is None else quaternion
    if hangs_on_cables(model, loaded.output):
        return (position, quaternion), hanging_position(model, loaded.output, position, quaternion)
    end = inverse_kinematics(loaded, position, quaternion, equilibria=equilibria).path[-1]
    return end.pose, end.q
