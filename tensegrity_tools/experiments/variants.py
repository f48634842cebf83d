"""Comparison of the compliant variants of the involute joint: section 5.2 of 000 with figures 5.5 and 5.6.

Single strut with E = 50 MPa, without damping, with constant pulley torques of 0.1001, 0.1 and 0.1 N m for one second in
10^4 steps of Runge-Kutta. The text states neither the initial strain nor whether gravity acts: here every cable starts
with the strain that balances 0.1 N m, tau / (R E A), and both cases of gravity are run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.cable_substitution import with_cables
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel

from ..output import panels, save_picture, table

NAME = "variants"
DESCRIPTION = "the compliant variants of the involute joint against each other, figures 5.5 and 5.6 of 000"

QUANTITIES = {"step": "time", "duration": "time"}
VARIANTS = ("epsilon", "u", "length")
YOUNG, TORQUES, DURATION, STEP = 50e6, (0.1001, 0.1, 0.1), 1.0, 1e-4
SAMPLES = 200
GRAVITIES = {"with gravity": (0.0, 0.0, -9.80665), "without gravity": (0.0, 0.0, 0.0)}


def run(step: float = STEP, duration: float = DURATION) -> dict[str, Any]:
    """Angles and strains of every variant over time, and their differences from the epsilon variant."""
    if duration < step:
        raise TensegrityError(f"duration is {duration:g} s; give one step of {step:g} s or more.")
    cases = []
    for label, gravity in GRAVITIES.items():
        motions = {variant: _motion(variant, gravity, step, duration) for variant in VARIANTS}
        reference = motions["epsilon"]
        cases.append(
            {
                "case": label,
                "gravity_m_per_s2": gravity,
                "time_s": reference["time"],
                "phi_rad": reference["angles"][:, 0],
                "psi_rad": reference["angles"][:, 1],
                "strains": reference["strains"],
                "largest_phi_rad": {name: float(np.max(np.abs(m["angles"][:, 0]))) for name, m in motions.items()},
                "psi_at_the_end_rad": float(reference["angles"][-1, 1]),
                "deviations": {
                    name: {
                        "phi_rad": m["angles"][:, 0] - reference["angles"][:, 0],
                        "psi_rad": m["angles"][:, 1] - reference["angles"][:, 1],
                        "strains": m["strains"] - reference["strains"],
                        "largest": float(
                            max(
                                np.max(np.abs(m["angles"] - reference["angles"])),
                                np.max(np.abs(m["strains"] - reference["strains"])),
                            )
                        ),
                        "largest_loop_error_m": m["loop_error"],
                    }
                    for name, m in motions.items()
                },
            }
        )
    return {
        "experiment": NAME,
        "young_Pa": YOUNG,
        "torques_N_m": TORQUES,
        "step_s": step,
        "duration_s": duration,
        "strain_at_the_start": _start_strain(),
        "azimuth_of_the_branches_deg": (0.0, 120.0, 240.0),
        "blocks": "with the mass of their density",
        "cases": cases,
    }


def _start_strain() -> float:
    entry = load_robot("single_strut").model_as(MechanismModel).entries[0]
    return float(TORQUES[1] / (entry.radius * YOUNG * np.pi * entry.cable_radius**2))


def _motion(variant: str, gravity: tuple[float, ...], step: float, duration: float) -> dict[str, Any]:
    robot = load_robot("single_strut")
    model = with_cables(
        robot.model_as(MechanismModel), variant=variant, young=YOUNG, damping=0.0, strain=_start_strain()
    )
    simulation = Simulation(replace(robot, model=model), step, start="file", gravity=gravity)
    mechanism, body_poses = model.mechanism, BodyPoses(model)
    angles = [mechanism.positions_of(name).start for name in ("x-revoluteJt", "y-revoluteJt")]
    torques = {each.name: torque for each, torque in zip(robot.actuators, TORQUES, strict=True)}
    rows = {"time": [], "angles": [], "strains": []}  # type: dict[str, list[Any]]
    steps, error = round(duration / step), 0.0
    for part in [0, *(len(each) for each in np.array_split(np.arange(steps), min(steps, SAMPLES)))]:
        simulation.advance(part, effort=torques)
        state = simulation.state
        rows["time"].append(state.time)
        rows["angles"].append(state.q[angles])
        rows["strains"].append(body_poses.update(state.q).strains())
        error = max(error, simulation.observe().constraint_error)
    return {**{key: np.array(value) for key, value in rows.items()}, "loop_error": error}


def render(result: dict[str, Any], console: Console) -> None:
    """Print the results as tables."""
    console.print(
        f"single strut, E = {1e-6 * result['young_Pa']:g} MPa, no damping, torques "
        f"{', '.join(f'{x:g}' for x in result['torques_N_m'])} N m, {result['duration_s']:g} s in steps of "
        f"{1e3 * result['step_s']:g} ms; strain at the start {result['strain_at_the_start']:.6g} (assumed: balances "
        f"0.1 N m), branches at 0, 120, 240 deg, blocks {result['blocks']}.\n",
        highlight=False,
    )
    rows = []
    for case in result["cases"]:
        for name in VARIANTS:
            own = case["deviations"][name]
            figures = [float(np.max(np.abs(own[key]))) for key in ("phi_rad", "psi_rad", "strains")]
            rows.append(
                (case["case"], name, *(["reference", "", ""] if name == "epsilon" else [f"{x:.1e}" for x in figures]),
                 f"{case['largest_phi_rad'][name]:.1e}", f"{own['largest_loop_error_m']:.1e}")
            )  # fmt: skip
    heads = ("case", "variant", "phi [rad]", "psi [rad]", "strain", "largest |phi|", "loop error [m]")
    console.print(table("largest deviation from the epsilon variant", heads, rows, right=range(2, 7)))
    for case in result["cases"]:
        strains = np.asarray(case["strains"])
        console.print(
            f"{case['case']}: psi goes to {case['psi_at_the_end_rad']:.6g} rad, strains from {strains.min():.5g} to "
            f"{strains.max():.5g}.",
            highlight=False,
        )
    console.print(
        "The document finds the variants equal but for inaccuracies that accumulate over 10^4 steps; its figures state "
        "no numbers.",
        highlight=False,
    )


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot figures 5.5 (motion of the epsilon variant) and 5.6 (deviations of the others), one row per gravity case."""
    figure, axes = panels(len(result["cases"]), 3, figsize=(13, 6.5), sharex=True)
    for row, case in zip(axes, result["cases"], strict=True):
        times = case["time_s"]
        row[0].plot(times, case["phi_rad"], label="phi")
        row[0].plot(times, case["psi_rad"], label="psi")
        row[0].set_ylabel("angles [rad]")
        row[0].set_title(f"epsilon variant, {case['case']} (figure 5.5)", fontsize=10)
        strains = np.asarray(case["strains"])
        for k in range(strains.shape[1]):
            style = "--" if k == 2 else "-"  # the last two curves coincide
            row[1].plot(times, 1e3 * (strains[:, k] - strains[0, k]), style, label=f"cable {k + 1}")
        row[1].set_ylabel("strain since the start [1e-3]")
        row[1].set_title("strains of the cables", fontsize=10)
        for name in VARIANTS[1:]:
            own = case["deviations"][name]
            row[2].plot(times, 1e15 * np.asarray(own["psi_rad"]), linewidth=0.9, label=f"psi, {name}")
            row[2].plot(times, 1e15 * np.asarray(own["strains"])[:, 0], linewidth=0.9, label=f"strain 1, {name}")
        row[2].set_ylabel("deviation [1e-15 rad, 1e-15]")
        row[2].set_title("from the epsilon variant (figure 5.6)", fontsize=10)
        for each in row:
            each.legend(loc="best", fontsize=8)
            each.grid(alpha=0.3)
    for each in axes[-1]:
        each.set_xlabel("time [s]")
    save_picture(figure, path, dpi=120)
