"""Near-rigid control of the single strut, section 5.3 of 000 with its table 5.7 and figures 5.8 to 5.11.

Printed: the inputs of (3.2.5) to (3.2.8) at every stage of the integrator, without feedback. Ours: strains planned
along the whole path and a regulator, with inputs held over the control period. The text states neither the damping of
the cables, nor gravity, nor where the first branch stands. Here: damping 10 MPa s as in section 5.4, no gravity, first
branch at -x; with these the printed errors come out. A first branch at -x is the mirrored path with the file's robot,
whose first branch is at +x.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tensegrity_control.near_rigid import NearRigidControl, NearRigidLaw
from tensegrity_control.trajectories import HermiteSpline
from tensegrity_dynamics import Robot, Simulation, load_robot
from tensegrity_dynamics.multibody.model import with_cables

from ._every_stage import every_stage

NAME = "near_rigid"
DESCRIPTION = "control of the single strut with stiff cables, table 5.7 and figures 5.8 to 5.11 of 000"

STRESS, DAMPING = 20e6, 10e6
TRACKED = ("x-revoluteJt", "y-revoluteJt")
MIRROR = -1.0
TABLE_5_7 = {2e8: (8.403e-3, 8.293e-3), 2e9: (1.080e-3, 8.105e-4), 2e10: (2.162e-4, 1.330e-4)}
PERIODS = (1e-3, 5e-3)
PLANTS: dict[str, dict[str, float]] = {
    "as planned": {},
    "E - 10 %": {"young": 0.9},
    "E + 10 %": {"young": 1.1},
    "pulleys - 10 %": {"inertia": 0.9},
    "pulleys + 10 %": {"inertia": 1.1},
    "masses - 10 %": {"mass": 0.9},
    "masses + 10 %": {"mass": 1.1},
    "2 ms late": {"delay": 2e-3},
}
SAMPLE = 0.02

Array = NDArray[np.float64]


def path() -> HermiteSpline:
    """phi and psi of table 5.6, mirrored (see the module)."""
    quarter = 0.25 * np.pi
    values = MIRROR * np.array([[0.0, 0.0], [0.0, 0.0], [0.0, quarter], [quarter, 0.0], [0.0, 0.0]])
    return HermiteSpline([0.0, 1.0, 3.0, 7.0, 9.0], values, np.zeros((5, 2)))


def strut(young: float, *, young_factor: float = 1.0, inertia_factor: float = 1.0, mass_factor: float = 1.0) -> Robot:
    """The single strut with other cables and without gravity; the factors make it another plant."""
    robot = load_robot("single_strut")
    model = with_cables(robot.mechanism, young=young * young_factor, damping=DAMPING, strain=STRESS / young)
    bodies = tuple(
        replace(
            body,
            mass=mass_factor * body.mass,
            inertia=mass_factor * (inertia_factor if body.name.endswith("-pulley") else 1.0) * body.inertia,
        )
        for body in model.mechanism.bodies
    )
    mechanism = replace(model.mechanism, gravity=np.zeros(3), bodies=bodies)
    unbounded = tuple(replace(each, effort=1e4) for each in robot.actuators)
    return replace(robot, model=replace(model, mechanism=mechanism), actuators=unbounded)


def run(moduli: tuple[float, ...] = (2e8, 2e9), periods: tuple[float, ...] = PERIODS) -> dict[str, Any]:
    """Largest errors of the printed law and of ours, for several moduli E [Pa] and control periods [s]."""
    printed = [_printed(young) for young in moduli]
    ours = []
    for young in moduli:
        floor = STRESS * float(load_robot("single_strut").mechanism.mechanism.cables[0].area)
        for period in periods:
            control = NearRigidControl(strut(young), TRACKED, path(), period=period, floor=floor)
            for label, factors in PLANTS.items():
                if round(factors.get("delay", period) / period) > 0:  # a delay below the period cannot be told from it
                    ours.append(_ours(control, young, period, label, factors))
    return {
        "experiment": NAME,
        "stress_at_the_start_Pa": STRESS,
        "damping_Pa_s": DAMPING,
        "gravity_m_per_s2": (0.0, 0.0, 0.0),
        "azimuth_of_the_branches_deg": (180.0, 300.0, 60.0),
        "blocks": "with the mass of their density",
        "printed_law": printed,
        "error_ratio_between_the_first_two": [
            a / b for a, b in zip(printed[0]["largest_error_rad"], printed[1]["largest_error_rad"], strict=True)
        ] if len(printed) > 1 else None,
        "planned": ours,
    }  # fmt: skip


def _printed(young: float) -> dict[str, Any]:
    """The document's law, evaluated at every stage of Runge-Kutta."""
    robot, spline = strut(young), path()
    law = NearRigidLaw(robot, TRACKED, STRESS / young)
    step = 1e-3 if young < 1e9 else 2.5e-4
    every, q = round(SAMPLE / step), robot.mechanism.start
    times, angles, strains, error = [0.0], [q[law.model.q_y]], [q[law.model.q_strains]], np.zeros(2)

    def efforts(time: float, place: Array, speed: Array) -> Array:
        return law.effort(place, speed, spline.value(time, 2))

    motion = every_stage(robot, q, law.model.drives, efforts, step, spline.end)
    for k, (time, q) in enumerate(motion, start=1):
        error = np.maximum(error, np.abs(q[law.model.q_y] - spline.value(time)))
        if k % every == 0:
            times.append(time)
            angles.append(q[law.model.q_y])
            strains.append(q[law.model.q_strains])
    return {
        "young_Pa": young,
        "step_s": step,
        "largest_error_rad": error,
        "printed_error_rad": TABLE_5_7.get(young),
        "time_s": np.array(times),
        "deviation_rad": np.array(angles) - spline.value(np.array(times)),
        "strains": np.array(strains),
    }


def _ours(
    control: NearRigidControl, young: float, period: float, label: str, factors: dict[str, float]
) -> dict[str, Any]:
    plant = strut(
        young, young_factor=factors.get("young", 1.0), inertia_factor=factors.get("inertia", 1.0),
        mass_factor=factors.get("mass", 1.0),
    )  # fmt: skip
    late = round(factors.get("delay", 0.0) / period)
    given: list[Array] = []
    simulation = Simulation(plant, 1e-4, start="file")
    spline, model, steps = path(), control.model, round(period / 1e-4)
    error, least, largest = np.zeros(2), np.inf, 0.0
    times, deviations, strains = [], [], []
    for k in range(round(spline.end / period)):
        state = simulation.state
        effort = control.effort(state.time, state.q, state.v)
        largest = max(largest, float(np.max(np.abs(effort))))
        given.append(effort)
        state = simulation.advance(steps, effort=control.as_dict(given[max(0, k - late)]))
        off = state.q[model.q_y] - spline.value(state.time)
        error = np.maximum(error, np.abs(off))
        least = min(least, float(np.min(state.q[model.q_strains])))
        if k % max(1, round(SAMPLE / period)) == 0:
            times.append(state.time)
            deviations.append(off)
            strains.append(state.q[model.q_strains])
    return {
        "young_Pa": young,
        "period_s": period,
        "plant": label,
        "largest_error_rad": error,
        "least_strain_over_floor": least * young / STRESS,
        "largest_torque_N_m": largest,
        "time_s": np.array(times),
        "deviation_rad": np.array(deviations),
        "strains": np.array(strains),
    }


def render(result: dict[str, Any], console: Console) -> None:
    """The errors as tables."""
    console.print(
        f"single strut, stress of {1e-6 * result['stress_at_the_start_Pa']:g} MPa at the start and as floor, damping "
        f"{1e-6 * result['damping_Pa_s']:g} MPa s, no gravity, first branch at -x, blocks {result['blocks']}.\n",
        highlight=False,
    )
    table = Table(title="the document's law at every stage, without feedback (table 5.7)", title_justify="left",
                  box=None, pad_edge=False)  # fmt: skip
    for head in ("E [MPa]", "printed phi", "ours", "printed psi", "ours"):
        table.add_column(head, justify="right")
    for row in result["printed_law"]:
        phi, psi = row["largest_error_rad"]
        known = row["printed_error_rad"] or (float("nan"),) * 2
        table.add_row(f"{1e-6 * row['young_Pa']:g}", f"{known[0]:.2e}", f"{phi:.2e}", f"{known[1]:.2e}", f"{psi:.2e}")
    console.print(table)
    ratio = result["error_ratio_between_the_first_two"]
    if ratio is not None:
        console.print(
            f"errors shrink by {ratio[0]:.1f} (phi) and {ratio[1]:.1f} (psi) with ten times E.\n", highlight=False
        )
    table = Table(title="planned strains and regulator, inputs held over the period", title_justify="left", box=None,
                  pad_edge=False)  # fmt: skip
    for head in ("E [MPa]", "period [ms]", "plant", "phi [rad]", "psi [rad]", "least strain / floor", "torque [N m]"):
        table.add_column(head, justify="left" if head == "plant" else "right")
    for row in result["planned"]:
        phi, psi = row["largest_error_rad"]
        table.add_row(
            f"{1e-6 * row['young_Pa']:g}", f"{1e3 * row['period_s']:g}", row["plant"], f"{phi:.1e}", f"{psi:.1e}",
            f"{row['least_strain_over_floor']:.4f}", f"{row['largest_torque_N_m']:.2f}",
        )  # fmt: skip
    console.print(table)


def draw(result: dict[str, Any], picture: Path) -> None:
    """The path (5.8), and deviations and strains of both controls for every modulus (5.9 to 5.11)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = result["printed_law"]
    figure, axes = plt.subplots(len(rows) + 1, 3, figsize=(13, 3.2 * (len(rows) + 1)), layout="constrained")
    times = np.linspace(0.0, path().end, 400)
    for name, values in zip(("phi", "psi"), (MIRROR * path().value(times)).T, strict=True):
        axes[0, 0].plot(times, values, label=name)
    axes[0, 0].set_title("the path (figure 5.8)", fontsize=10)
    axes[0, 0].set_ylabel("angle [rad]")
    axes[0, 0].legend(fontsize=8)
    for blank in axes[0, 1:]:
        blank.set_axis_off()
    for line, row in zip(axes[1:], rows, strict=True):
        own = next(
            each for each in result["planned"] if each["young_Pa"] == row["young_Pa"] and each["plant"] == "as planned"
        )
        label = f"E = {1e-6 * row['young_Pa']:g} MPa"
        for each, kind, scale, unit in ((row, "the document's law", 1e3, "mrad"), (own, "planned, held", 1e6, "urad")):
            axis = line[0] if each is row else line[1]
            for name, values in zip(("phi", "psi"), np.asarray(each["deviation_rad"]).T, strict=True):
                axis.plot(each["time_s"], scale * MIRROR * values, label=name)
            axis.set_ylabel(f"deviation [{unit}]")
            axis.set_title(f"{label}, {kind}", fontsize=10)
            axis.legend(fontsize=8)
        for k in range(3):
            line[2].plot(row["time_s"], 1e3 * np.asarray(row["strains"])[:, k], f"C{k}:", linewidth=1.0)
            line[2].plot(own["time_s"], 1e3 * np.asarray(own["strains"])[:, k], f"C{k}-", label=f"cable {k + 1}")
        line[2].axhline(1e3 * STRESS / row["young_Pa"], color="k", linewidth=0.8, linestyle="--")
        line[2].set_ylabel("strain [1e-3]")
        line[2].set_title("strains (dotted: the law; dashed: the floor)", fontsize=10)
        line[2].legend(fontsize=8)
    for axis in axes.ravel():
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.savefig(picture, dpi=110)
    plt.close(figure)
