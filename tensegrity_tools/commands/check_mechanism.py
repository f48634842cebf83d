"""What `tensegrity check` says of a mechanism: tree and loops, degrees of freedom, the shape at rest, its cables."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensegrity_dynamics.errors import NoEquilibriumError

from ..formatting import listing, millimetres, span, turned
from ..output import console, print_json, progress, table


def check_mechanism(robot: Any, as_json: bool) -> None:
    """Print what a mechanism is and how it stands, for people or as JSON."""
    from tensegrity_dynamics.estimation import make_estimator
    from tensegrity_dynamics.mechanisms import equations

    model = robot.mechanism
    mechanism = model.mechanism
    with progress.status("finding the shape (the first time its kernels are compiled, about a minute)"):
        rows = equations(mechanism, model.start, np.zeros(mechanism.velocity_count))
        freedom = mechanism.velocity_count - int(np.linalg.matrix_rank(rows.loop)) if rows.loop.size else None
        freedom = mechanism.velocity_count if freedom is None else freedom
        try:
            rest = make_estimator(robot).solve({})
            failure = ""
        except NoEquilibriumError as error:
            rest, failure = None, str(error)
    notes = _warnings(robot, rest, failure)
    gap = float(np.max(np.abs(rows.loop_error), initial=0.0))
    if as_json:
        print_json(_figures(robot, rest, freedom, gap, notes))
        return
    mass = sum(body.mass for body in mechanism.bodies)
    facts = [
        ("bodies", f"{len(mechanism.bodies)}, {mass:.4g} kg, without mass: "
         f"{listing([body.name for body in mechanism.bodies if body.mass == 0.0]) or 'none'}"),
        ("coordinates", f"{mechanism.velocity_count}, held by {mechanism.constraint_count} loop rows"),
        ("degrees of freedom", str(freedom)),
        ("widest gap at the start", f"{gap:.2g} (m, or sine of an angle)"),
        ("gravity", ", ".join(f"{x:g}" for x in mechanism.gravity) + " m/s^2" if mechanism.gravity.any() else "none"),
    ]  # fmt: skip
    facts += [("output", f"{o.name} on {o.body}, controls {', '.join(o.controlled)}") for o in robot.outputs]
    if robot.tour:
        facts.append(("tour", ", ".join(stop.name for stop in robot.tour)))
    facts += [("source", robot.source or "not stated"), ("file", str(robot.path) if robot.path else "none")]
    console.print(table(robot.name, ("", ""), facts))
    console.print()
    console.print(mechanism.topology(), highlight=False, markup=False)
    if rest is not None:
        console.print()
        console.print(table("shape at rest, actuators at their start", ("", ""), _shape_rows(rest)))
    if robot.actuators:
        console.print()
        heads = ("actuator", "motion", "limits", "effort at rest", "effort limit", "largest rate")
        console.print(table("actuators", heads, _actuator_rows(robot, rest)))
    assumed = [(p.status, p.fields, p.note) for p in robot.provenance if p.status != "printed"]
    if assumed:
        console.print()
        console.print(table("values that the source does not print", ("", "fields", "why"), assumed))
    console.print()
    for note in notes:
        console.print(f"[yellow]note:[/yellow] {note}", highlight=False)
    if not notes:
        console.print("[green]It stands, every cable is tight and within its limits.[/green]", highlight=False)


def _shape_rows(rest: Any) -> list[tuple[str, str]]:
    rows = []
    if rest.pose is not None:
        rows.append(("output", f"{millimetres(rest.pose[0])}, {turned(rest.pose[1])}"))
    pulls = [tension for tension in rest.tensions.values() if np.isfinite(tension)]
    if pulls:
        rows.append(("tension of cables", span(pulls, "N")))
        rows.append(("strain of cables", span(100.0 * rest.shape.strain, "%")))
    if np.isfinite(rest.softest):
        rows.append(("stable", "yes" if rest.shape.stable else "no"))
        rows.append(("softest motion", f"{rest.softest:.4g} (N/m or N m/rad, of coordinates of size one)"))
    rows.append(("force left", f"{rest.residual:.2g} N or N m after {rest.shape.iterations} steps"))
    return rows


def _efforts(robot: Any, rest: Any) -> list[float]:
    mechanism = robot.mechanism.mechanism
    if rest is None:
        return [float("nan")] * len(robot.actuators)
    joints = [robot.mechanism.joint_of(each.drives) for each in robot.actuators]
    return [float(rest.shape.effort[mechanism.velocities_of(name)][0]) + 0.0 for name in joints]


def _actuator_rows(robot: Any, rest: Any) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for each, effort in zip(robot.actuators, _efforts(robot, rest), strict=True):
        place, rate, push = each.units
        rows.append(
            (
                each.name if each.name == each.drives else f"{each.name} ({each.drives})",
                each.motion,
                f"{each.position[0]:.4g} to {each.position[1]:.4g} {place}",
                f"{effort:.3g} {push}" if abs(effort) > 1e-9 else f"0 {push}",
                f"{each.effort:.4g} {push}",
                f"{each.rate:.4g} {rate}",
            )
        )
    return rows


def _warnings(robot: Any, rest: Any, failure: str) -> list[str]:
    """What a user should know before driving the robot."""
    notes = []
    if rest is None:
        notes.append(f"no shape at rest was found: {failure}")
    else:
        if not rest.shape.stable:
            notes.append("it does not stay in this shape: a motion without resistance remains.")
        if rest.slack:
            notes.append(f"slack at rest: {listing(list(rest.slack))}.")
        for each, effort in zip(robot.actuators, _efforts(robot, rest), strict=True):
            tension = rest.tensions.get(each.drives, float("nan"))
            if abs(effort) > each.effort:
                push = each.units[2]
                notes.append(
                    f"{each.name} needs {effort:.3g} {push} at rest, above its limit of {each.effort:.3g} {push}."
                )
            if 0.0 < tension < each.minimum_tension:
                notes.append(f"{each.name} carries {tension:.3g} N, below its floor of {each.minimum_tension:.3g} N.")
    if not robot.actuators:
        notes.append("it has no actuators, so it cannot be driven.")
    if robot.actuators and not robot.outputs:
        notes.append("it has no output, so it takes no goal poses.")
    return notes


def _figures(robot: Any, rest: Any, freedom: int, gap: float, notes: list[str]) -> dict[str, Any]:
    mechanism = robot.mechanism.mechanism
    at_rest = None
    if rest is not None:
        position, quaternion = rest.pose if rest.pose is not None else (None, None)
        at_rest = {
            "position_m": position,
            "quaternion_wxyz": quaternion,
            "tensions_N": dict(rest.tensions),
            "stable": rest.shape.stable,
            "softest": rest.softest,
            "residual": rest.residual,
            "iterations": rest.shape.iterations,
        }
    return {
        "name": robot.name,
        "kind": "mechanism",
        "source": robot.source,
        "file": str(robot.path) if robot.path else None,
        "bodies": len(mechanism.bodies),
        "mass_kg": float(sum(body.mass for body in mechanism.bodies)),
        "coordinates": mechanism.velocity_count,
        "loop_rows": mechanism.constraint_count,
        "degrees_of_freedom": freedom,
        "widest_gap": gap,
        "topology": mechanism.topology().splitlines(),
        "gravity_m_per_s2": mechanism.gravity,
        "at_rest": at_rest,
        "actuators": [
            {
                "name": each.name,
                "drives": each.drives,
                "motion": each.motion,
                "position": each.position,
                "rate": each.rate,
                "effort": each.effort,
                "minimum_tension_N": each.minimum_tension,
                "effort_at_rest": effort,
            }
            for each, effort in zip(robot.actuators, _efforts(robot, rest), strict=True)
        ],
        "outputs": [{"name": o.name, "controlled": o.controlled} for o in robot.outputs],
        "tour": [stop.name for stop in robot.tour],
        "provenance": [{"fields": p.fields, "status": p.status, "note": p.note} for p in robot.provenance],
        "notes": notes,
    }
