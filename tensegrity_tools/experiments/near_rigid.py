"""Near-rigid control of the single strut: section 5.3 of 000 with table 5.7 and figures 5.8 to 5.11.

Printed law: the inputs of (3.2.5) to (3.2.8) at every stage of the integrator, without feedback. Our control: strains
planned along the whole path and a regulator, with inputs held over the control period. The text states neither the
damping of the cables, nor gravity, nor the position of the first branch. Here: damping 10 MPa s as in section 5.4, no
gravity, first branch at -x. The errors are then 0.5 to 1.3 times the printed ones, and decrease as 1/E. A first branch
at -x is equivalent to the mirrored path with the robot of the file, whose first branch is at +x.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control.laws.near_rigid_law import NearRigidLaw
from tensegrity_control.motion_planning.near_rigid_model import NearRigidModel
from tensegrity_control.trajectories.splines import HermiteSpline
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.units import STANDARD_GRAVITY

from ..output import panels, save_picture, table
from ..runtime.closed_loop import TrajectoryRun, Waypoint, planned_control
from ._every_stage import every_stage
from ._progress import figures, report
from ._runs import (
    Variants,
    gravity_vector,
    listed,
    quantities,
    run_trajectory,
    same_bits,
    spread,
    through_nodes_in_words,
)

NAME = "near_rigid"
DESCRIPTION = "control of the single strut with stiff cables, table 5.7 and figures 5.8 to 5.11 of 000"

STRESS, DAMPING = 20e6, 10e6
TRACKED = ("x-revoluteJt", "y-revoluteJt")
MIRROR = -1.0  # factor on both angles
TABLE_5_7 = {2e8: (8.403e-3, 8.293e-3), 2e9: (1.080e-3, 8.105e-4), 2e10: (2.162e-4, 1.330e-4)}
MODULI, PERIODS = "200 MPa, 2 GPa, 20 GPa", "1 ms, 5 ms"
QUANTITIES = {"stress": "stress", "damping": "viscosity"}
PLANTS: dict[str, dict[str, Any]] = {
    "as planned": {},
    "observed": {"observer": True},
    "E - 10 %": {"young_factor": 0.9},
    "E + 10 %": {"young_factor": 1.1},
    "pulleys - 10 %": {"inertia_factor": 0.9},
    "pulleys + 10 %": {"inertia_factor": 1.1},
    "masses - 10 %": {"mass_factor": 0.9},
    "masses + 10 %": {"mass_factor": 1.1},
    "radius - 10 %": {"radius_factor": 0.9},
    "radius + 10 %": {"radius_factor": 1.1},
    "2 ms late": {"delay": 2e-3},
}
STEP = 1e-4
STAGE = 0.2
"""Integrator step of the printed law, relative to the shortest time constant 1 / |eigenvalue| at the start."""
SAMPLE = 0.02  # sampling interval of the series [s]


def path() -> HermiteSpline:
    """phi and psi of table 5.6, mirrored (see the module)."""
    quarter = 0.25 * np.pi
    values = MIRROR * np.array([[0.0, 0.0], [0.0, 0.0], [0.0, quarter], [quarter, 0.0], [0.0, 0.0]])
    return HermiteSpline([0.0, 1.0, 3.0, 7.0, 9.0], values, np.zeros((5, 2)))


def strut_file(
    variants: Variants, young: float, *, stress: float = STRESS, damping: float = DAMPING, gravity: bool = False,
    young_factor: float = 1.0, inertia_factor: float = 1.0, mass_factor: float = 1.0, radius_factor: float = 1.0,
) -> Path:  # fmt: skip
    """File of the single strut with other cables; the factors change it to a plant that differs from the model."""

    def change(blocks: dict[str, Any]) -> None:
        blocks["gravity"] = gravity_vector(STANDARD_GRAVITY if gravity else 0.0)
        density = blocks["density"] = blocks["density"] * mass_factor
        template = blocks["repeat"]
        for cable in template["cables"]:
            cable.update(young=young * young_factor, damping=damping, strain=stress / young)
            cable["pulley_radius"] = f"{radius_factor} * ({cable['pulley_radius']})"
            cable["pulley"][0]["density"] = density * inertia_factor
        for actuator in template["actuators"]:
            actuator["effort"] = 1e4

    return variants.file("single_strut", change)


def waypoints(model: NearRigidModel) -> list[Waypoint]:
    """Knots of the path as positions of the tip."""
    spline, body_poses, q = (
        path(),
        BodyPoses(model.robot.model_as(MechanismModel)),
        model.robot.model.initial_configuration,
    )
    found: list[Waypoint] = []
    for time in spline.knots[1:]:
        q = model.closed_configuration(
            q, np.concatenate((spline.value(float(time)), model.robot.model.initial_configuration[model.q_strains]))
        )
        found.append((float(time), body_poses.update(q).output(model.robot.output)[0][0], None))  # type: ignore[arg-type]
    return found


def run(
    moduli: str | tuple[float, ...] = MODULI,
    periods: str | tuple[float, ...] = PERIODS,
    plants: str | tuple[str, ...] = ", ".join(PLANTS),
    stress: float = STRESS,
    damping: float = DAMPING,
    gravity: bool = False,
    plans: bool = True,
    laws: bool = True,
    nodes: bool = False,
) -> dict[str, Any]:
    """Largest errors of the printed law and of our control, for several moduli E and control periods.

    Args:
        moduli, periods: values [Pa] and [s], or texts with units, separated by commas. plants: names of `PLANTS`.
        stress: initial stress and floor [Pa]. damping: damping of the cables [Pa s]. gravity: whether gravity acts.
        plans, laws: whether our control and the printed law are run.
        nodes: whether our control is also run with the real nodes in lock-step.
    """
    variants = Variants()
    steady: dict[str, Any] = {"stress": stress, "damping": damping, "gravity": gravity}
    each_young, each_period = quantities(moduli, "moduli", "stress"), quantities(periods, "periods", "time")
    chosen = list(PLANTS) if plants == ", ".join(PLANTS) else listed(plants, "plants", tuple(PLANTS))
    ours, printed = [], []
    for young in each_young if laws else ():
        report(f"the printed law with {young / 1e6:g} MPa")
        printed.append(figures("the printed law", _printed(variants, young, steady)))
    for young in each_young if plans else ():
        for period in each_period:
            report(f"planning with {young / 1e6:g} MPa and a period of {1e3 * period:g} ms")
            file = strut_file(variants, young, **steady)
            robot = load_robot(str(file))
            points = waypoints(NearRigidModel(robot, TRACKED))
            control = planned_control(robot, "near_rigid", points, None, period, "cubic", {"actuation": "effort"})
            for label in chosen:
                part = f"{young / 1e6:g} MPa, {1e3 * period:g} ms, plant {label!r}"
                late = PLANTS[label].get("delay", period) / period
                if not np.isclose(late, max(1, round(late))):
                    figures(part, {"left out": "no whole number of periods"})
                    continue
                report(part)
                row = _ours(variants, young, period, label, nodes, file, control, steady)
                ours.append(figures("planned", row))
    if not (ours or printed):
        raise TensegrityError("these options leave nothing to run; leave out plans=no, laws=no, periods or plants.")
    return {
        "experiment": NAME,
        "stress_at_the_start_Pa": stress,
        "damping_Pa_s": damping,
        "gravity_m_per_s2": gravity_vector(STANDARD_GRAVITY if gravity else 0.0),
        "azimuth_of_the_branches_deg": (180.0, 300.0, 60.0),
        "blocks": "with the mass of their density",
        "printed_law": printed,
        "error_ratios": [
            [float(a / b) for a, b in zip(one["largest_error_rad"], next_one["largest_error_rad"], strict=True)]
            for one, next_one in pairwise(printed)
        ],
        "planned": ours,
    }  # fmt: skip


def _printed(variants: Variants, young: float, steady: dict[str, Any]) -> dict[str, Any]:
    """Result of the document's law, evaluated at every stage of Runge-Kutta."""
    robot, spline = load_robot(str(strut_file(variants, young, **steady))), path()
    floor = steady["stress"] / young
    law = NearRigidLaw(robot, TRACKED, floor)
    q, still = robot.model.initial_configuration, np.zeros(law.model.index.size)
    matrix, _, _ = law.model.linearised(q, still, np.zeros(len(law.names)))
    every = int(np.ceil(SAMPLE * float(np.max(np.abs(np.linalg.eigvals(matrix)))) / STAGE))
    step = SAMPLE / every
    times, angles, strains, error = [0.0], [law.model.tracked_at(q)], [q[law.model.q_strains]], np.zeros(2)
    least = np.inf

    def efforts(time: float, q: Array, speed: Array) -> Array:
        return law.effort(q, speed, spline.value(time, 2))

    motion = every_stage(robot, q, law.model.drives, efforts, step, spline.end)
    for k, (time, q) in enumerate(motion, start=1):
        error = np.maximum(error, np.abs(law.model.tracked_at(q) - spline.value(time)))
        least = min(least, float(np.min(q[law.model.q_strains])))
        if k % every == 0:
            times.append(time)
            angles.append(law.model.tracked_at(q))
            strains.append(q[law.model.q_strains])
    return {
        "young_Pa": young,
        "step_s": step,
        "largest_error_rad": error,
        "printed_error_rad": TABLE_5_7.get(young),
        "least_strain_over_floor": least / floor,
        "time_s": np.array(times),
        "deviation_rad": np.array(angles) - spline.value(np.array(times)),
        "strains": np.array(strains),
    }


def _ours(
    variants: Variants, young: float, period: float, label: str, nodes: bool, file: Path, control: Any,
    steady: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Result with a plant that differs from the model, with the libraries and with the nodes."""
    factors, stress = PLANTS[label], steady["stress"]
    other = {k: v for k, v in factors.items() if k.endswith("_factor")}
    plant = strut_file(variants, young, **steady, **other)
    model = NearRigidModel(load_robot(str(file)), TRACKED)
    options: dict[str, Any] = {
        "plant": plant, "period": period, "time_step": STEP, "observer": factors.get("observer", False),
        "delay": round(factors.get("delay", 0.0) / period),
    }  # fmt: skip
    result: dict[str, Any] = {"young_Pa": young, "period_s": period, "plant": label}
    first = run_trajectory(file, "near_rigid", waypoints(model), nodes=False, control=control, **options)
    result.update(_figures(first, model, stress / young, round(SAMPLE / period)))
    if nodes:
        runs = [run_trajectory(file, "near_rigid", waypoints(model), nodes=True, **options) for _ in range(2)]
        error = _figures(runs[0], model, stress / young, 1)["largest_error_rad"]
        result["through_nodes"] = {
            "largest_error_rad": error,
            "apart": max(spread(a, b) for a, b in zip(error, result["largest_error_rad"], strict=True)),
            "two_runs_have_the_same_bits": same_bits(*runs),
            "simulated_seconds_per_second": float(runs[0].times[-1]) / runs[0].wall,
        }
    return result


def _figures(run: TrajectoryRun, model: NearRigidModel, floor: float, every: int) -> dict[str, Any]:
    off = np.array([model.tracked_at(q) for q in run.q]) - path().value(run.times)
    strains = run.q[:, model.q_strains]
    return {
        "largest_error_rad": np.max(np.abs(off), axis=0),
        "least_strain_over_floor": float(np.min(strains)) / floor,
        "largest_torque_N_m": float(np.max(np.abs(run.commands))),
        "largest_error_of_the_observer": float(np.max(np.abs(run.seen_q - run.q))),
        "time_s": run.times[:: max(1, every)],
        "deviation_rad": off[:: max(1, every)],
        "strains": strains[:: max(1, every)],
    }


def render(result: dict[str, Any], console: Console) -> None:
    """Print the errors as tables."""
    gravity = "gravity" if any(result["gravity_m_per_s2"]) else "no gravity"
    console.print(
        f"single strut, stress of {1e-6 * result['stress_at_the_start_Pa']:g} MPa at the start and as floor, damping "
        f"{1e-6 * result['damping_Pa_s']:g} MPa s, {gravity}, first branch at -x, blocks "
        f"{result['blocks']}.\n",
        highlight=False,
    )
    rows: list[tuple[str, ...]] = []
    for row in result["printed_law"]:
        phi, psi = row["largest_error_rad"]
        # only of the moduli of the table
        printed = [f"{error:.2e}" for error in row["printed_error_rad"] or ()] or ["", ""]
        figures = (printed[0], f"{phi:.2e}", printed[1], f"{psi:.2e}")
        rows.append((f"{1e-6 * row['young_Pa']:g}", *figures, f"{row['least_strain_over_floor']:.4f}"))
    heads: tuple[str, ...] = ("E [MPa]", "printed phi", "ours", "printed psi", "ours", "least strain / floor")
    if rows:
        title = "the document's law at every stage, without feedback (table 5.7)"
        console.print(table(title, heads, rows, right=range(6)))
    for ratio, one, other in zip(
        result["error_ratios"], result["printed_law"], result["printed_law"][1:], strict=False
    ):  # fmt: skip
        console.print(
            f"errors shrink by {ratio[0]:.3g} (phi) and {ratio[1]:.3g} (psi) from {1e-6 * one['young_Pa']:g} to "
            f"{1e-6 * other['young_Pa']:g} MPa.",
            highlight=False,
        )
    if not result["planned"]:
        return
    heads = ("E [MPa]", "period [ms]", "plant", "phi [rad]", "psi [rad]", "least strain / floor", "torque [N m]")
    rows = [
        (f"{1e-6 * row['young_Pa']:g}", f"{1e3 * row['period_s']:g}", row["plant"],
         *(f"{error:.1e}" for error in row["largest_error_rad"]),
         f"{row['least_strain_over_floor']:.4f}", f"{row['largest_torque_N_m']:.2f}")
        for row in result["planned"]
    ]  # fmt: skip
    title = "planned strains and regulator, inputs held over the period"
    console.print(table(title, heads, rows, right=(0, 1, 3, 4, 5, 6)))
    console.print("observed: the state from pulley angles and torques; all others: the simulator's.", highlight=False)
    through = [row["through_nodes"] for row in result["planned"] if "through_nodes" in row]
    if through:
        console.print(through_nodes_in_words(through), highlight=False)


def draw(result: dict[str, Any], picture: Path) -> None:
    """Plot the path (5.8), and deviations and strains of both controls for every modulus (5.9 to 5.11)."""
    printed = {row["young_Pa"]: row for row in result["printed_law"]}
    planned: dict[float, dict[str, Any]] = {}
    for row in result["planned"]:
        planned.setdefault(row["young_Pa"], row)
    rows = list(dict.fromkeys((*printed, *planned)))  # the moduli
    figure, axes = panels(len(rows) + 1, 3, figsize=(13, 3.2 * (len(rows) + 1)))
    times = np.linspace(0.0, path().end, 400)
    for name, values in zip(("phi", "psi"), (MIRROR * path().value(times)).T, strict=True):
        axes[0, 0].plot(times, values, label=name)
    axes[0, 0].set_title("the path (figure 5.8)", fontsize=10)
    axes[0, 0].set_ylabel("angle [rad]")
    axes[0, 0].legend(fontsize=8)
    for blank in axes[0, 1:]:
        blank.set_axis_off()
    for line, young in zip(axes[1:], rows, strict=True):
        modulus = f"E = {1e-6 * young:g} MPa"
        drawn = (
            (printed.get(young), "the document's law", 1e3, "mrad", ":"),
            (planned.get(young), "planned, held", 1e6, "urad", "-"),
        )
        for axis, (row, kind, scale, unit, style) in zip(line, drawn, strict=False):
            if row is None:
                axis.set_axis_off()
                continue
            for name, values in zip(("phi", "psi"), np.asarray(row["deviation_rad"]).T, strict=True):
                axis.plot(row["time_s"], scale * MIRROR * values, label=name)
            axis.set_ylabel(f"deviation [{unit}]")
            axis.set_title(f"{modulus}, {kind}", fontsize=10)
            axis.legend(fontsize=8)
            for k, strain in enumerate(1e3 * np.asarray(row["strains"]).T):
                line[2].plot(row["time_s"], strain, f"C{k}{style}", label=f"cable {k + 1}, {kind}")
        line[2].axhline(1e3 * result["stress_at_the_start_Pa"] / young, color="k", linewidth=0.8, linestyle="--")
        line[2].set_ylabel("strain [1e-3]")
        line[2].set_title("strains (dashed: the floor)", fontsize=10)
        line[2].legend(fontsize=8)
    for axis in axes.ravel():
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    save_picture(figure, picture, dpi=110)
