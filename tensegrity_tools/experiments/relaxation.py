"""Iteration counts of relaxation, plain and tuned, compared with table 7 of 001.

The table states neither threshold, norm nor stiffness for its counts; section 5.4.1 stops at max(R) < 1e-5, and tables
2 and 4 give k = 1000. These values are used here, in the units of each table (delta is a length per force). The initial
shape of the prism is printed, that of TenseBot is not; both are those of the robot files. Since the count alone is
hardly comparable, each row also gives the distance from the equilibrium at which the run stopped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_dynamics import Robot, load_robot
from tensegrity_dynamics.errors import NoEquilibriumError
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium
from tensegrity_dynamics.structures.form_finding.forward_kinematics import forward_kinematics
from tensegrity_dynamics.structures.form_finding.relaxation_tuning import tune_relaxation
from tensegrity_dynamics.structures.form_finding.viscous_relaxation import largest_stiffness, stable_delta

from ..output import table

NAME = "relaxation"
DESCRIPTION = "iteration counts of plain and tuned relaxation beside table 7 of 001"

INCH, POUND_FORCE = 0.0254, 4.4482216152605
PLAIN = (0.01, 0.05)
# robot, unit of length [m], unit of force [N], printed plain count, printed tuned pair, printed tuned count
TABLE_7 = (
    ("three_prism", 1.0, 1.0, 644, (0.0234, 0.3193), 91),
    ("tensebot", INCH, POUND_FORCE, 3241, (0.0114, 0.0428), 925),
)
THRESHOLD = 1e-5  # in the units of each robot
STIFFNESS = 1000.0  # likewise
MAXIMUM_ITERATIONS = 200_000


def run(threshold: float = THRESHOLD, evaluations: int = 150) -> dict[str, Any]:
    """Counts for every row of table 7 and for pairs (delta, epsilon) that are tuned here.

    Args:
        threshold: threshold for the largest force component, in the unit of force of the table of the robot.
        evaluations: number of relaxations per start of the tuner.
    """
    robots = []
    for name, length, force, plain_count, printed_pair, printed_count in TABLE_7:
        robot, unit = load_robot(name), length / force
        exact = forward_kinematics(robot)
        stiffest = largest_stiffness(exact.structure, exact.nodes) * unit
        tuning = tune_relaxation(
            robot, threshold=threshold * force, pairs=(_in_si(PLAIN, unit),), maximum_evaluations=evaluations
        )
        cases = (
            ("plain", PLAIN, plain_count),
            ("tuned, as printed", printed_pair, printed_count),
            ("tuned here", (tuning.delta / unit, tuning.epsilon), None),
        )
        rows = [
            _row(label, robot, exact, pair, unit, stiffest, threshold * force, count) for label, pair, count in cases
        ]
        # delta epsilon lambda_max < 4 - 2 epsilon, solved for k
        highest = stable_delta(printed_pair[1], 1.0) / printed_pair[0] / stiffest * STIFFNESS
        if highest < STIFFNESS:
            # reduced by a power of ten until the printed pair is stable: both printed counts then need this k
            part = 10.0 ** np.floor(np.log10(highest / STIFFNESS))
            soft = replace(robot, model=replace(robot.structure, stiffness=part * robot.structure.stiffness))
            exact_soft = forward_kinematics(soft)
            rows += [
                _row(
                    f"{label}, k = {part * STIFFNESS:g}",
                    soft,
                    exact_soft,
                    pair,
                    unit,
                    part * stiffest,
                    threshold * force,
                    count,
                )
                for label, pair, count in cases[:2]
            ]
        robots.append(
            {
                "robot": name,
                "threshold_N": threshold * force,
                "threshold": threshold,
                "norm": "largest component",
                "start": "the nodes of the robot file",
                "weight_N": float(np.linalg.norm(robot.structure.weights().sum(axis=0))),
                "stiffness": STIFFNESS,
                "unit": "N, m" if unit == 1.0 else "lbf, in",
                "lambda_max_over_k": stiffest / STIFFNESS,
                "softest_over_k": exact.softest * unit / STIFFNESS,
                "printed_pair_stable_below_k": highest,
                "evaluations_of_the_tuner": tuning.evaluations,
                "rows": rows,
            }
        )
    return {"experiment": NAME, "robots": robots}


def _in_si(pair: tuple[float, float], unit: float) -> tuple[float, float]:
    return pair[0] * unit, pair[1]


def _row(
    label: str,
    robot: Robot,
    exact: StructureEquilibrium,
    pair: tuple[float, float],
    unit: float,
    stiffest: float,
    tolerance: float,
    printed: int | None,
) -> dict[str, Any]:
    delta, epsilon = pair
    row: dict[str, Any] = {
        "pair": label,
        "delta": delta,
        "epsilon": epsilon,
        "printed_iterations": printed,
        "iterations": None,
        # below 1 the pair is stable at the equilibrium
        "margin": delta / stable_delta(epsilon, stiffest),
        "distance_mm": None,
        "estimate_mm": None,
        "failure": None,
    }
    try:
        shape = forward_kinematics(
            robot, method="relaxation", tolerance=tolerance, delta=delta * unit, epsilon=epsilon,
            maximum_iterations=MAXIMUM_ITERATIONS,
        )  # fmt: skip
    except NoEquilibriumError as error:
        row["failure"] = str(error)
        return row
    distance = float(np.linalg.norm(shape.nodes - exact.nodes))
    row.update(iterations=shape.iterations, distance_mm=1e3 * distance, estimate_mm=1e3 * shape.position_error)
    return row


def render(result: dict[str, Any], console: Console) -> None:
    """Print the counts as a table, with an interpretation."""
    for item in result["robots"]:
        title = (
            f"{item['robot']}: largest force component below {item['threshold']:g}, k = {item['stiffness']:g} "
            f"(units {item['unit']})"
        )
        heads = ("pair", "delta", "epsilon", "printed", "ours", "of stable delta", "off by mm", "own estimate mm")
        lines = [
            (row["pair"], f"{row['delta']:.4g}", f"{row['epsilon']:.4g}", _text(row["printed_iterations"], "d"),
             "fails" if row["failure"] else _text(row["iterations"], "d"), f"{row['margin']:.2f}",
             _text(row["distance_mm"], ".3g"), _text(row["estimate_mm"], ".3g"))
            for row in item["rows"]
        ]  # fmt: skip
        console.print(table(title, heads, lines, right=range(1, 8)))
        for row in item["rows"]:
            if row["failure"] and row["margin"] >= 1.0:
                console.print(
                    f"{row['pair']}: unstable at k = {item['stiffness']:g}; stable only for k below "
                    f"{item['printed_pair_stable_below_k']:.0f} (delta epsilon lambda_max < 4 - 2 epsilon, "
                    f"lambda_max = {item['lambda_max_over_k']:.3f} k)."
                )
            elif row["failure"]:
                console.print(f"{row['pair']}: {row['failure']}")
        console.print(f"start: {item['start']}; weight {item['weight_N']:.3g} N")
        console.print(
            f"softest stiffness {item['softest_over_k']:.2g} k; 'off by' is the distance of all nodes from the "
            "equilibrium, 'own estimate' the out-of-balance force over the softest stiffness.\n"
        )
    rows = [row for item in result["robots"] for row in item["rows"] if row["printed_iterations"]]
    if not any(row["printed_iterations"] == row["iterations"] for row in rows):
        console.print("None of the printed counts comes out at the printed stiffness and threshold.")


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
