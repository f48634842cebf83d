"""`tensegrity check`: what a robot is, and whether it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..formatting import listing, pose_words, span
from ..output import console, print_json, progress, table
from .arguments import JsonOption, RobotArgument
from .forward_kinematics import shape_figures, shape_rows


def check(robot: RobotArgument, as_json: JsonOption = False) -> None:
    """Validate a robot file and print what the robot is, its shape and its prestress."""
    from tensegrity_dynamics import forward_kinematics, load_robot
    from tensegrity_dynamics.structures.structure import Structure

    loaded = load_robot(robot)
    if not isinstance(loaded.model, Structure):
        from .check_mechanism import check_mechanism

        check_mechanism(loaded, as_json)
        return
    from tensegrity_dynamics import analyze_prestress

    with progress.status("finding the shape (the first time its kernels are compiled, about half a minute)"):
        shape = forward_kinematics(loaded)
        rigid = forward_kinematics(loaded, rigid_bars=True) if "bar" in loaded.structure.kinds else shape
        prestress = analyze_prestress(loaded, shape)
        shape, rigid = _without_rounding(shape), _without_rounding(rigid)
    warnings = _warnings(loaded, shape)
    if as_json:
        print_json(
            {
                "robot": _figures(loaded),
                "shape": shape_figures(shape),
                "shape_with_rigid_bars": shape_figures(rigid),
                "prestress": prestress.figures(),
                "warnings": warnings,
            }
        )
        return
    console.print(f"[bold]{loaded.name}[/bold]  {loaded.description}\n", highlight=False)
    console.print(table("what it is", ("", ""), _what_it_is(loaded)))
    if loaded.actuators:
        console.print()
        heads = ("actuator", "rest length mm", "limits mm", "tension N", "limits N", "rate mm/s")
        console.print(table("actuators", heads, _actuator_rows(loaded, shape), right=(1, 2, 3, 4, 5)))
    rows = shape_rows(shape)
    if "bar" in loaded.structure.kinds and rigid.output is not None:
        rows.insert(1, ("  with rigid bars", f"{pose_words(rigid)} (simulation and ROS nodes)"))
    console.print()
    console.print(table("shape at the lengths of its file", ("", ""), [*rows, *_tension_rows(shape)]))
    console.print()
    console.print(table("prestress", ("", ""), prestress.rows()))
    notes = [(p.status, p.fields, p.note) for p in loaded.provenance if p.status != "printed"]
    if notes:
        console.print()
        console.print(table("values that the source does not print", ("", "fields", "why"), notes))
    console.print()
    for warning in warnings:
        console.print(f"[yellow]note:[/yellow] {warning}", highlight=False)
    if not warnings:
        why = "its own prestress" if prestress.prestressed else "its loads alone, without a prestress of its own"
        console.print(
            f"[green]It stands by {why}; every tendon is tight and within its limits.[/green]", highlight=False
        )


def _without_rounding(shape: Any) -> Any:
    """The shape with tensions that are rounding errors as zeros."""
    from tensegrity_dynamics.structures.analysis.stability import no_force

    return replace(shape, tensions=np.where(np.abs(shape.tensions) > no_force(shape.structure), shape.tensions, 0.0))


def _what_it_is(loaded: Any) -> list[tuple[str, str]]:
    structure = loaded.structure
    fixed = [name for name, held in zip(structure.node_names, structure.fixed, strict=True) if held]
    kinds = {kind: structure.kinds.count(kind) for kind in ("bar", "tendon", "spring")}
    free = structure.lumped_masses()[~structure.fixed].sum()
    rows = [
        ("nodes", f"{len(structure.node_names)}, fixed: {listing(fixed) or 'none'}"),
        ("members", ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in kinds.items() if n)),
        ("mass", f"{structure.masses.sum() + structure.node_masses.sum():.4g} kg, of it {free:.4g} kg moves"),
        ("gravity", ", ".join(f"{x:g}" for x in structure.gravity) + " m/s^2" if structure.gravity.any() else "none"),
    ]
    for output in loaded.outputs:
        carriers = [structure.node_names[k] for k in output.nodes]
        rows.append(
            ("output", f"{output.name}, carried by {listing(carriers)}, controls {', '.join(output.controlled)}")
        )
    if loaded.tour:
        rows.append(("tour", ", ".join(stop.name for stop in loaded.tour)))
    if loaded.servos:
        servos = loaded.servos["servos"]
        models = sorted({servo["model"] for servo in servos})
        rows.append(("servos", f"{len(servos)} {', '.join(models)}, ids {listing([str(s['id']) for s in servos], 16)}"))
    rows += [("source", loaded.source or "not stated"), ("file", str(loaded.path) if loaded.path else "none")]
    return rows


def _actuator_rows(loaded: Any, shape: Any) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for a in loaded.actuators:
        k = shape.structure.member(a.drives)
        rows.append(
            (
                a.name if a.name == a.drives else f"{a.name} ({a.drives})",
                f"{1e3 * shape.rest_lengths[k]:.1f}",
                f"{1e3 * a.position[0]:.1f} to {1e3 * a.position[1]:.1f}",
                f"{shape.tensions[k]:.4g}",
                f"{a.minimum_tension:.3g} to {a.effort:.4g}",
                f"{1e3 * a.rate:.4g}",
            )
        )
    return rows


def _tension_rows(shape: Any) -> list[tuple[str, str]]:
    """Range of the tensions of every kind of member; those between fixed nodes do not count."""
    structure = shape.structure
    loaded = ~structure.fixed[structure.members].all(axis=1)
    kinds = np.array(structure.kinds)
    rows = []
    for kind in ("tendon", "spring", "bar"):
        tensions = shape.tensions[loaded & (kinds == kind)]
        if kind != "bar" and tensions.size:
            rows.append((f"tension of {kind}s", span(tensions, "N")))
        elif tensions.size:
            pushed, pulled = tensions[tensions < 0.0], tensions[tensions > 0.0]
            parts = [span(-pushed, "N compression")] if pushed.size else []
            parts += [span(pulled, "N tension")] if pulled.size else []
            rows.append(("bars", " and ".join(parts) or "not loaded"))
    return rows


def _warnings(loaded: Any, shape: Any) -> list[str]:
    """What a user should know before driving the robot."""
    notes = []
    if not shape.stable:
        notes.append(
            "the lengths do not determine the shape: a motion without stiffness remains, so it cannot be driven; see "
            "the verdict under 'prestress'."
        )
    if shape.slack:
        notes.append(f"slack at the lengths of the file: {listing(shape.slack)}.")
    for a in loaded.actuators:
        tension = float(shape.tensions[shape.structure.member(a.drives)])
        if a.drives in shape.slack:
            continue
        if tension < a.minimum_tension:
            notes.append(f"{a.name} carries {tension:.3g} N, below its floor of {a.minimum_tension:.3g} N.")
        if tension > a.effort:
            notes.append(f"{a.name} carries {tension:.4g} N, above its ceiling of {a.effort:.4g} N.")
    if not loaded.actuators:
        notes.append("it has no actuators, so it cannot be driven.")
    if loaded.actuators and not loaded.outputs:
        notes.append("it has no output, so it takes no goal poses.")
    return notes


def _figures(loaded: Any) -> dict[str, Any]:
    structure = loaded.structure
    return {
        "name": loaded.name,
        "kind": "structure",
        "source": loaded.source,
        "file": str(loaded.path) if loaded.path else None,
        "nodes": len(structure.node_names),
        "fixed_nodes": int(structure.fixed.sum()),
        "members": {kind: structure.kinds.count(kind) for kind in ("bar", "tendon", "spring")},
        "mass_kg": float(structure.masses.sum() + structure.node_masses.sum()),
        "gravity_m_per_s2": structure.gravity,
        "actuators": [
            {
                "name": a.name,
                "drives": a.drives,
                "position_m": a.position,
                "rate_m_per_s": a.rate,
                "effort_N": a.effort,
                "minimum_tension_N": a.minimum_tension,
            }
            for a in loaded.actuators
        ],
        "outputs": [{"name": o.name, "controlled": o.controlled} for o in loaded.outputs],
        "tour": [stop.name for stop in loaded.tour],
        "servos": loaded.servos,
        "provenance": [{"fields": p.fields, "status": p.status, "note": p.note} for p in loaded.provenance],
    }
