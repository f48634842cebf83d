"""Comparison of every robot with its MuJoCo export: equilibrium and frequencies.

MuJoCo starts at a distance from the exported shape and finds its equilibrium with its own kinematics, masses and forces
(`mujoco_judge`); actuators are held, as in `tensegrity check`. A robot passes if all bodies are within 1e-6 m and the
first ten undamped frequencies within 0.1 %. If the lengths do not determine the shape, both sides could find different
shapes of a continuum; our search then starts from the equilibrium of MuJoCo. Frequencies are undefined for tendons at
the limit between slack and tight. Properties that MJCF cannot represent are listed below the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tensegrity_dynamics import Robot, load_robot
from tensegrity_dynamics.contact.ground_forces import depth, flatten, normal_law
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.statics.modes import vibration_model
from tensegrity_dynamics.robots.load_robot import shipped_robots
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.structures.energy import free_positions, tangent_stiffness
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import StructureEquilibriumSolver
from tensegrity_dynamics.structures.form_finding.stability import edge_members, no_force
from tensegrity_dynamics.structures.structure import Structure

from ..mujoco_judge import Array, Judge
from ..output import table
from ._progress import report

DESCRIPTION = "equilibrium and frequencies of exported robots, computed by MuJoCo, beside ours"

POSITION, FREQUENCY, COUNT = 1e-6, 1e-3, 10
"""Tolerance of positions [m], relative tolerance of frequencies [-], number of frequencies."""


def run(robot: str = "all", away: float = 1e-4) -> dict[str, Any]:
    """Differences by robot.

    Args:
        robot: name or file, or "all" for all shipped robots. away: distance of the start of MuJoCo [m or rad].
    """
    rows = []
    for name in shipped_robots() if robot == "all" else (robot,):
        report(name)
        rows.append(compare(load_robot(name), away))
    return {"robots": rows, "failures": [row["robot"] for row in rows if not row["passes"]]}


def compare(robot: Robot, away: float = 1e-4) -> dict[str, Any]:
    """Largest differences of a body position and of a frequency for one robot, and properties missing in MJCF."""
    row: dict[str, Any] = {"robot": robot.name, "passes": False, "not_said": []}
    try:
        made = type_of(robot).exports["mjcf"](robot)
        row["not_said"] = list(made.differences)
        held: tuple[str, ...] = ()
        if isinstance(robot.model, MechanismModel):
            held = robot.model.driven_joints(robot.actuators)
        judged = Judge(made.text, held).judge(away)
        if isinstance(robot.model, MechanismModel):
            rest: tuple[dict[str, Array], Array | None] = mechanism_at_rest(robot.model, held)
        else:
            rest = structure_at_rest(robot.structure, judged.positions)
    except TensegrityError as error:
        return row | {"refused": str(error)}
    positions, frequencies = rest
    apart = float(max(np.linalg.norm(judged.positions[each] - at) for each, at in positions.items()))
    row |= {"distance_m": apart, "loose_motions": judged.loose, "force_left_N": judged.left,
            "exported_force_N": judged.exported, "passes": apart <= POSITION}  # fmt: skip
    if frequencies is None:
        return row
    ours, theirs = frequencies[:COUNT], judged.frequencies[:COUNT]
    is_loose = np.arange(ours.size) < judged.loose
    same = ours.size == theirs.size and bool((ours[is_loose] <= 1e-4 * frequencies.max(initial=0.0)).all())
    off = float(np.max(np.abs(theirs - ours)[~is_loose] / ours[~is_loose], initial=0.0)) if same else float("inf")
    hertz = {"frequencies_Hz": theirs / (2.0 * np.pi), "ours_Hz": ours / (2.0 * np.pi)}
    return row | hertz | {"frequency_error": off, "passes": bool(row["passes"] and off <= FREQUENCY)}


def mechanism_at_rest(model: MechanismModel, held: tuple[str, ...]) -> tuple[dict[str, Array], Array]:
    """Origins of the bodies [m] and undamped frequencies [rad/s], at rest with held joints."""
    solver = MechanismEquilibriumSolver(model.mechanism, held)
    shape = solver.solve(model.start)
    matrix = vibration_model(solver, shape)[0].dense_matrix
    count = matrix.shape[0] // 2
    positions = {body: shape.positions[row] for body, row in model.mechanism.body_index.items() if row >= 0}
    return positions, _frequencies(-matrix[count:, :count])


def structure_at_rest(structure: Structure, theirs: dict[str, Array]) -> tuple[dict[str, Array], Array | None]:
    """Free nodes [m] and frequencies [rad/s]: elastic bars, masses at their ends, no friction.

    Args:
        theirs: free nodes at the equilibrium of MuJoCo, start of the search if the lengths do not determine the shape.

    Returns:
        Frequencies are None if tendons are at the limit between slack and tight.
    """
    solver = StructureEquilibriumSolver(structure)
    shape = solver.solve()
    if not shape.stable:
        start = np.array(shape.nodes)
        for name, at in theirs.items():
            start[structure.node_names.index(name)] = at
        shape = solver.solve(start=start)
    free = {
        name: at
        for name, at, fixed in zip(structure.node_names, shape.nodes, structure.fixed, strict=True)
        if not fixed
    }
    if edge_members(structure, shape.lengths, structure.rest_lengths).size:
        return free, None
    position, stiffness = free_positions(structure.supports), np.zeros((structure.free.size, structure.free.size))
    slack = structure.unilateral & (shape.tensions <= no_force(structure))
    tangent_stiffness(
        shape.nodes, structure.members, np.where(slack, 0.0, structure.stiffness), structure.laws, shape.lengths,
        np.where(slack, 0.0, shape.tensions), structure.rest_lengths, position, stiffness,
    )  # fmt: skip
    if structure.ground is not None:
        flat, away = flatten(replace(structure.ground, friction=0.0)), np.zeros(3)
        for at, rows in zip(shape.nodes, position, strict=True):
            moves = rows >= 0
            slope = normal_law(flat, depth(flat, at[0], at[1], at[2], away))[1]
            stiffness[np.ix_(rows[moves], rows[moves])] += slope * np.outer(away, away)[np.ix_(moves, moves)]
    masses = np.zeros(structure.free.size)
    masses[position[position >= 0]] = np.repeat(structure.lumped_masses()[:, None], 3, axis=1)[position >= 0]
    if not (masses > 0.0).all():
        raise TensegrityError("nodes without mass have no frequencies; give them a mass.")
    root = np.sqrt(masses)
    return free, _frequencies(stiffness / np.outer(root, root))


def _frequencies(squares: Array) -> Array:
    """Angular frequencies from the squares, in ascending order [rad/s]."""
    return np.sqrt(np.maximum(np.linalg.eigvalsh(0.5 * (squares + squares.T)), 0.0)) if squares.size else np.zeros(0)


def render(result: dict[str, Any], console: Any) -> None:
    """Print the table, then the properties of each robot that are missing in MJCF."""
    rows = []
    for row in result["robots"]:
        if "refused" in row:
            rows.append((row["robot"], "-", "-", "-", "-", f"refused: {row['refused']}"))
            continue
        first, off = "not determined", "-"
        if "frequencies_Hz" in row:
            first = ", ".join(f"{each:.4g}" for each in row["frequencies_Hz"][row["loose_motions"] :][:3]) or "none"
            off = f"{row['frequency_error']:.1e}"
        rows.append((
            row["robot"], f"{row['distance_m']:.1e} m", off, str(row["loose_motions"]), first,
            "yes" if row["passes"] else "no",
        ))  # fmt: skip
    heads = ("robot", "distance", "of frequencies", "loose", "first ones Hz", "agrees")
    console.print(table("exported, read back by MuJoCo, beside ours", heads, rows))
    console.print("loose: motions that nothing brings back, which have no frequency.")
    for row in result["robots"]:
        for each in row["not_said"]:
            console.print(f"{row['robot']}: {each}", style="yellow", markup=False, highlight=False)
