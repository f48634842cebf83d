"""Rolling of the six bars: what every cable does on every face, and a tour in truth and in the estimator's eyes.

The faces and the cables that tip them are found by the model. The tour goes a metre ahead, to the left and aslant, and
back each time; the estimator knows rest lengths alone, and its error per metre rolled is the drift of dead reckoning,
with the model that is simulated and with one that differs from it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control.controllers.rolling_mpc import RollingMPCController
from tensegrity_control.rolling.roll_map import RollMap, Stand
from tensegrity_dynamics import Robot, load_robot
from tensegrity_dynamics.errors import TensegrityError

from ..output import panels, table
from ..runtime.rolling_run import RollingLoop, roll_through_nodes

NAME = "rolling"
DESCRIPTION = "003: six bars roll, what every cable does on all 20 faces, and a tour in truth and estimated"
GOALS = ((1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (0.0, 0.0), (-0.7071, -0.7071), (0.0, 0.0))
ESTIMATED = GOALS[:2]
"""Of the tours in the estimator's eyes, which solves for an equilibrium in every period."""
ROBOT = "six_bar"
CONTROLLERS = ("rolling", "rolling_mpc")
SECONDS = 30.0
"""Of the robot's time through the nodes: two rolls."""


def run(
    nodes: bool = False, goals: Any = GOALS, faces: bool = True, mpc: bool = True, solver: str = "piqp"
) -> dict[str, Any]:
    """All faces, the tours, with `mpc` one of them tipped by model predictive control beside the gait of one cable.

    With `nodes` two runs through the nodes.
    """
    robot = load_robot(ROBOT)
    rolls = RollMap(robot)
    result: dict[str, Any] = {"experiment": NAME, "robot": ROBOT, "tours": []}
    result["faces"] = [face_row(rolls, face) for face in rolls.faces()] if faces else []
    lighter = replace(robot, model=heavier(robot, 0.9))
    for sees, plant, what in (("truth", None, "truth"), ("rest", None, "estimated"),
                              ("rest", lighter, "estimated, bars 10 % lighter, friction 0.4")):  # fmt: skip
        loop = RollingLoop(robot, plant=plant, sees=sees, rolls=rolls)
        result["tours"].append({"state": what, "goals": tour_rows(loop, goals if sees == "truth" else ESTIMATED)})
    result["control"] = [control_row(robot, rolls, name, solver) for name in CONTROLLERS] if mpc else []
    if nodes:
        two = [roll_through_nodes(ROBOT, np.array(GOALS[0]), duration=SECONDS) for _ in range(2)]
        result["nodes"] = {
            "periods": len(two[0].stamps),
            "answer": two[0].accepted,
            "two_runs_have_the_same_bits": bool(
                np.array_equal(two[0].nodes, two[1].nodes) and np.array_equal(two[0].commands, two[1].commands)
            ),
        }
    return result


def heavier(robot: Robot, factor: float) -> Any:
    """The structure with other masses and less friction, that the controller does not know of."""
    structure = robot.structure
    ground = replace(structure.ground, friction=0.8 * structure.ground.friction)
    return replace(structure, masses=factor * structure.masses, ground=ground)


def control_row(robot: Robot, rolls: RollMap, name: str, solver: str) -> dict[str, Any]:
    """The first position by one controller: what it takes of time, energy and tension; J, N, s and ms."""
    options: dict[str, Any] = {"solver": solver} if name == "rolling_mpc" else {}
    loop = RollingLoop(robot, rolls=rolls, controller=name, **options)
    found = loop.go(loop.position + np.array(GOALS[0]))
    row: dict[str, Any] = {
        "controller": name, "rolls": found.rolls, "error_m": found.error, "time_s": found.duration,
        "work_J": found.work, "peak_tension_N": found.peak, "gave_up": found.gave_up,
    }  # fmt: skip
    if isinstance(loop.controller, RollingMPCController):
        spent = [1e3 * each.seconds for each in loop.controller.horizons]
        row |= {
            "solver": solver, "horizons": len(spent), "horizon_ms_median": float(np.median(spent)),
            "horizon_ms_longest": max(spent), "iterations": max(each.iterations for each in loop.controller.horizons),
            "gait_took_over": loop.controller.took_over,
        }  # fmt: skip
    return row


def face_row(rolls: RollMap, face: tuple[int, ...]) -> dict[str, Any]:
    """What happens on one face: m, deg, s and N."""
    body = rolls.body
    stand = Stand(face, 0.0, np.zeros(2))
    nodes = rolls.standing(stand)
    row: dict[str, Any] = {"face": body.face_words(face), "stands": nodes is not None, "rolls": []}
    if nodes is None:
        return row
    own = nodes[list(face)].mean(axis=0)
    row["height_of_the_centre_m"] = float(body.reader.centre(nodes)[2] - own[2])
    row["margin_m"] = body.reader.margin(nodes, face)
    for k in range(len(body.names)):
        found = rolls.outcome(stand, k)
        if found is None or found.feet == face:
            continue
        row["rolls"].append(
            {
                "cable": body.names[k], "onto": body.face_words(found.feet), "rests": found.rests,
                "length_m": float(np.linalg.norm(found.shift)), "turn_deg": float(np.degrees(found.turn)),
                "tips_at_m": found.shortest, "time_s": found.duration, "peak_tension_N": found.peak,
                "least_tension_N": found.least,
            }
        )  # fmt: skip
    return row


def tour_rows(loop: RollingLoop, goals: Any) -> list[dict[str, Any]]:
    """One row a position, relative to where it begins."""
    rows: list[dict[str, Any]] = []
    home = loop.position
    for position in goals:
        try:
            found = loop.go(home + np.array(position))
        except TensegrityError as error:
            rows.append({"goal_m": list(position), "refused": str(error)})
            continue
        rows.append(
            {
                "goal_m": list(position), "rolls": found.rolls, "error_m": found.error, "time_s": found.duration,
                "rolled_m": found.path_length, "estimate_off_m": float(np.linalg.norm(found.seen - found.position)),
                "gave_up": found.gave_up,
            }
        )  # fmt: skip
    return rows


def render(result: dict[str, Any], console: Console) -> None:
    """Faces, then tours."""
    rows = []
    for face, alike in _merged(result["faces"]):
        for roll in face["rolls"] or [{}]:
            height = f"{face['height_of_the_centre_m']:.4f}" if face["stands"] else "does not stand"
            rows.append(
                (face["face"], str(alike), height, roll.get("cable", "none"), roll.get("onto", ""),
                 *(f"{roll[key]:.3g}" if key in roll else "" for key in
                   ("length_m", "turn_deg", "tips_at_m", "time_s", "peak_tension_N", "least_tension_N")))
            )  # fmt: skip
    heads = (
        "face",
        "alike",
        "centre m",
        "cable",
        "onto",
        "roll m",
        "turn deg",
        "tips at m",
        "time s",
        "peak N",
        "least N",
    )
    if rows:
        console.print(table("what each cable does on each face", heads, rows))
    for tour in result["tours"]:
        lines = [
            (str(row["goal_m"]), row["refused"], *[""] * 4)
            if "refused" in row
            else (str(row["goal_m"]), str(row["rolls"]), f"{row['error_m']:.3f}", f"{row['time_s']:.1f}",
                  f"{row['rolled_m']:.2f}", f"{row['estimate_off_m']:.3f}", row["gave_up"])
            for row in tour["goals"]
        ]  # fmt: skip
        console.print(
            table(f"tour, state: {tour['state']}",
                  ("goal m", "rolls", "off m", "time s", "rolled m", "estimate off m", ""), lines)
        )  # fmt: skip
        rolled = sum(row.get("rolled_m", 0.0) for row in tour["goals"])
        off = tour["goals"][-1].get("estimate_off_m", np.nan)
        if rolled > 0.0 and tour["state"] != "truth":
            console.print(f"drift at the end: {1e3 * off / rolled:.3g} mm per metre rolled")
    if result["control"]:
        compared = [
            (row["controller"], str(row["rolls"]), f"{row['error_m']:.3f}", f"{row['time_s']:.1f}",
             f"{row['work_J']:.3g}", f"{row['peak_tension_N']:.3g}",
             f"{row['horizons']} of {row['horizon_ms_median']:.3g} ms (longest {row['horizon_ms_longest']:.3g}, "
             f"{row['iterations']} iterations), {row['solver']}" if "horizons" in row else "",
             "; ".join([*row.get("gait_took_over", []), row["gave_up"]]).strip("; "))
            for row in result["control"]
        ]  # fmt: skip
        columns = ("a metre by", "rolls", "off m", "time s", "work J", "peak N", "horizons", "gait took over")
        console.print(table("all cables by model predictive control, and one cable by the gait", columns, compared))
    if "nodes" in result:
        same = result["nodes"]["two_runs_have_the_same_bits"]
        console.print(
            f"through the nodes in lock-step, {result['nodes']['periods']} periods twice: "
            f"{'the same bits' if same else 'NOT the same bits'} ({result['nodes']['answer']})"
        )


def _merged(faces: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """The first of all faces whose rolls are the same, but for their names and directions, and how many there are."""
    found: dict[object, list[dict[str, Any]]] = {}
    for face in faces:
        rolls = sorted((f"{each['length_m']:.2f}", f"{each['peak_tension_N']:.2g}") for each in face["rolls"])
        found.setdefault((face["stands"], tuple(rolls)), []).append(face)
    return [(alike[0], len(alike)) for alike in found.values()]


def draw(result: dict[str, Any], path: Path) -> None:
    """Where each roll leads from each face, as arrows over the turn of the face."""
    figure, axes = panels(figsize=(7, 4))
    for k, face in enumerate(result["faces"]):
        for roll in face["rolls"]:
            axes.plot(k, roll["length_m"], "o", color="C0" if roll["rests"] else "C3")
    axes.set_xticks(range(len(result["faces"])), [face["face"] for face in result["faces"]], rotation=90, fontsize=6)
    axes.set_ylabel("length of a roll [m]")
    figure.savefig(path, dpi=150)
