"""Discretised linear models of a structure compared with its simulation, as announced in section 3.5.1 of 003.

A robot is simulated with a small step, in flight and during a fall on the ground. At states of these motions its exact
linear model is computed and discretised by the Euler rule (3.38), the trapezoidal rule (3.39) and the matrix
exponential, and the state after one step is predicted. The exponential is exact for the linear model, so that its error
is that of the linearisation; the additional error of the other rules is due to the discretisation.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.linear_models.discretization import METHODS, discretise
from tensegrity_dynamics.structures.structure import Structure

from ..output import panels, save_picture, table

NAME = "linear"
DESCRIPTION = "error over step of discretised linear models, in flight and in contact (003, 3.5.1)"
STEPS_MS = (10.0, 5.0, 2.5, 1.25)
QUANTITIES = {
    "drop": "length",
    "spin": "speed",
    "duration": "time",
    "stiffness": "stiffness",
    "damping": "damping",
    "friction_speed": "speed",
}
"""Physical quantities of the options, so that they may have units."""


def run(
    robot: str = "six_bar",
    drop: float = 0.05,
    spin: float = 1.0,
    duration: float = 0.25,
    states: int = 60,
    stiffness: float = 1e4,
    damping: float = 100.0,
    friction_speed: float = 1e-3,
) -> dict[str, Any]:
    """Errors of one step at states of a motion in flight and of a fall on the ground.

    Args:
        robot: structure with ground. drop: height of the fall [m]. spin: size of random node velocities [m/s].
        duration: duration of each motion [s]. states: number of states per motion.
        stiffness, damping, friction_speed: parameters of the ground [N/m, N s/m, m/s].

    Raises:
        TensegrityError: the robot is not a structure with ground.
    """
    loaded = load_robot(robot)
    structure = loaded.model
    if not isinstance(structure, Structure) or structure.ground is None:
        raise TensegrityError(
            f"{loaded.name} is not a structure with ground; this experiment lets one fall on its own."
        )
    ground = replace(structure.ground, stiffness=stiffness, damping=damping, friction_speed=friction_speed)
    smooth = replace(ground, friction=0.0, viscous=10.0)
    cases = {
        "in flight": (replace(structure, ground=None), 0.0),
        "fall, viscous ground": (replace(structure, ground=smooth), drop),
        "fall, Coulomb friction": (replace(structure, ground=ground), drop),
    }
    rows = []
    for name, (changed, height) in cases.items():
        rows += _case(name, changed, height, spin, duration, states)
    return {
        "experiment": NAME, "robot": loaded.name, "drop_m": drop, "spin_m_per_s": spin, "duration_s": duration,
        "states": states, "ground_stiffness_N_per_m": stiffness, "ground_damping_Ns_per_m": damping,
        "friction": ground.friction, "friction_speed_m_per_s": friction_speed, "rows": rows,
    }  # fmt: skip


def _case(
    name: str, structure: Structure, height: float, spin: float, duration: float, states: int
) -> list[dict[str, Any]]:
    finest = min(STEPS_MS) * 1e-3
    fine = finest / 40
    simulation = Simulation(structure, fine, "rk4", start=structure.nodes)
    rng = np.random.default_rng(3)
    start = simulation.state.nodes + np.array([0.0, 0.0, height])
    simulation.set_state(start, spin * rng.normal(size=start.shape))
    count = round(duration / finest)
    ahead = round(max(STEPS_MS) * 1e-3 / finest)
    every = max(1, count // states)
    path, feet, slack, models = [], [], [], {}
    for k in range(count + ahead + 1):
        state, seen = simulation.state, simulation.observe()
        path.append(np.concatenate((state.nodes.ravel(), state.velocities.ravel())))
        feet.append(frozenset(seen.contacts))
        slack.append(frozenset(name for name, tension in seen.tensions.items() if tension == 0.0))
        if k < count and k % every == 0:
            models[k] = simulation.linearise("lengths")
        simulation.advance(40)
    free = np.concatenate((structure.free, structure.nodes.size + structure.free))
    half = structure.free.size
    rows = []
    for step_ms in STEPS_MS:
        steps = round(step_ms * 1e-3 / finest)
        groups: dict[str, list[list[float]]] = {}
        for k, model in models.items():
            truth = (path[k + steps] - path[k])[free]
            window = range(k, k + steps + 1)
            if len({feet[each] for each in window}) > 1:
                edge = "a foot comes or goes"
            elif len({slack[each] for each in window}) > 1:
                edge = "a cable goes slack or tight"
            else:
                edge = "stands on the same feet" if feet[k] else "none"
            errors = [
                float(
                    np.abs(discretise(model, step_ms * 1e-3, method).advance(np.zeros(free.size)) - truth)[half:].max()
                )
                for method in METHODS
            ]
            groups.setdefault(edge, []).append(errors)
        for edge in sorted(groups):
            found = np.array(groups[edge])
            row: dict[str, Any] = {"case": name, "step_ms": step_ms, "edge": edge, "states": len(found)}
            for column, method in enumerate(METHODS):
                row[f"{method}_median_m_per_s"] = float(np.median(found[:, column]))
                row[f"{method}_worst_m_per_s"] = float(np.max(found[:, column]))
            row["trapezoidal_worse_than_euler"] = int(np.count_nonzero(found[:, 1] > found[:, 0]))
            rows.append(row)
    return sorted(rows, key=lambda row: (row["edge"], -row["step_ms"]))


def render(result: dict[str, Any], console: Console) -> None:
    """Print the table of 3.5.1."""
    title = (
        f"{result['robot']}: error of the nodes' velocities after one step in m/s, median (worst) of the states; "
        f"ground {result['ground_stiffness_N_per_m']:g} N/m, {result['ground_damping_Ns_per_m']:g} N s/m"
    )
    rows = [
        (f"{row['case']}: {row['edge']}", f"{row['step_ms']:g}",
         *(f"{row[f'{m}_median_m_per_s']:.1e} ({row[f'{m}_worst_m_per_s']:.0e})" for m in METHODS),
         f"{row['trapezoidal_worse_than_euler']} of {row['states']}")
        for row in result["rows"]
    ]  # fmt: skip
    heads = ("motion, edge crossed", "step ms", "Euler", "trapezoidal", "exponential", "trap. worse")
    console.print(table(title, heads, rows, right=range(1, 6)))
    console.print(
        "The exponential's error is the linear model's own: without an edge it is the curvature of the motion; where a "
        "foot or a cable crosses its edge within the step, all three fail alike and no rule helps.",
        highlight=False,
    )


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot the median errors over the step, one panel for each motion and edge."""
    names = list(dict.fromkeys((row["case"], row["edge"]) for row in result["rows"]))
    width = min(3, len(names))
    height = -(-len(names) // width)
    figure, grid = panels(height, width, figsize=(4.2 * width, 3.4 * height), sharey=True, squeeze=False)
    drawn = grid.ravel()
    for axes, name in zip(drawn, names, strict=False):
        rows = [row for row in result["rows"] if (row["case"], row["edge"]) == name]
        for method in METHODS:
            values = [row[f"{method}_median_m_per_s"] for row in rows]
            axes.loglog([row["step_ms"] for row in rows], values, "o-", label=method)
        axes.set_title(f"{name[0]}: {name[1]}".replace(": none", ": crosses no edge"), fontsize="small")
        steps = [row["step_ms"] for row in rows]
        axes.set_xticks(steps, [f"{each:g}" for each in steps])
        axes.minorticks_off()
        axes.set_xlabel("step [ms]")
        axes.grid(True, which="both", alpha=0.3)
    for axes in drawn[len(names) :]:
        axes.axis("off")
    for row in grid:
        row[0].set_ylabel("median error of velocities [m/s]", fontsize="small")
    drawn[0].legend()
    save_picture(figure, path)
