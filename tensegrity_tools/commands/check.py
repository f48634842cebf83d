"""`tensegrity check`: what a robot is, and whether it stands."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..output import console, print_json, table
from .shape import JsonOption, RobotArgument, shape_figures


def check(robot: RobotArgument, as_json: JsonOption = False) -> None:
    """Validate a robot file and print what the robot is, its shape and its prestress."""
    from tensegrity_dynamics import forward_kinematics, load_robot
    from tensegrity_dynamics.structure import Structure

    loaded = load_robot(robot)
    if not isinstance(loaded.model, Structure):
        from .check_mechanism import check_mechanism

        check_mechanism(loaded, as_json)
        return
    from tensegrity_dynamics import analyze_prestress

    shape = forward_kinematics(loaded)
    prestress = analyze_prestress(loaded, shape)
    if as_json:
        print_json({"robot": _figures(loaded), "shape": shape_figures(shape), "prestress": prestress.figures()})
        return
    structure = loaded.structure
    console.print(f"[bold]{loaded.name}[/bold]: {loaded.description}")
    if loaded.source:
        console.print(f"source: {loaded.source}")
    kinds = {kind: structure.kinds.count(kind) for kind in ("bar", "tendon", "spring")}
    rows = [
        ("nodes", f"{len(structure.node_names)}, {int(structure.fixed.sum())} of them fixed"),
        ("members", ", ".join(f"{n} {kind}s" for kind, n in kinds.items() if n)),
        ("mass", f"{structure.lumped_masses().sum():.4g} kg"),
        ("gravity", " ".join(f"{x:g}" for x in structure.gravity) + " m/s^2"),
        ("output", ", ".join(f"{o.name} ({' '.join(o.controlled)})" for o in loaded.outputs) or "none"),
        ("file", str(loaded.path) if loaded.path else "-"),
    ]
    console.print(table("what it is", ("", ""), rows))
    if loaded.actuators:
        limits = [
            (a.name, a.drives, f"{1e3 * a.position[0]:.1f} to {1e3 * a.position[1]:.1f}", 1e3 * a.rate, a.minimum_tension, a.effort)
            for a in loaded.actuators
        ]
        heads = ("actuator", "tendon", "rest length mm", "rate mm/s", "at least N", "at most N")
        console.print(table("actuators", heads, limits))
    _print_shape(loaded, shape)
    console.print(table("prestress", ("", ""), prestress.rows()))
    notes = [(p.status, p.fields, p.note) for p in loaded.provenance if p.status != "printed"]
    if notes:
        console.print(table("values that the source does not print", ("", "fields", "note"), notes))


def _figures(loaded: Any) -> dict[str, Any]:
    structure = loaded.structure
    return {
        "name": loaded.name,
        "source": loaded.source,
        "nodes": len(structure.node_names),
        "fixed_nodes": int(structure.fixed.sum()),
        "members": {kind: structure.kinds.count(kind) for kind in ("bar", "tendon", "spring")},
        "mass_kg": float(structure.lumped_masses().sum()),
        "actuators": [a.name for a in loaded.actuators],
        "outputs": [o.name for o in loaded.outputs],
        "provenance": [{"fields": p.fields, "status": p.status, "note": p.note} for p in loaded.provenance],
    }


def _print_shape(loaded: Any, shape: Any) -> None:
    structure = loaded.structure
    pulls = shape.tensions[structure.unilateral & ~structure.fixed[structure.members].all(axis=1)]
    rows = []
    if shape.output is not None:
        rows.append((f"{shape.output.name} at", " ".join(f"{1e3 * x:.2f}" for x in shape.pose[0]) + " mm"))
    mover = structure.node_names[int(np.argmax(np.linalg.norm(shape.softest_direction, axis=1)))]
    rows += [
        ("stable", "yes" if shape.stable else "no"),
        ("tensions", f"{pulls.min():.4g} to {pulls.max():.4g} N" if pulls.size else "-"),
        ("largest compression", f"{-shape.tensions.min():.4g} N"),
        ("slack", ", ".join(shape.slack) or "none"),
        ("softest motion", f"{shape.softest:.4g} N/m, node {mover} moves most"),
        ("residual", f"{shape.residual:.2g} N after {shape.iterations} iterations"),
    ]
    console.print(table("shape at its own lengths", ("", ""), rows))
