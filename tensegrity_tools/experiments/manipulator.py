"""The manipulator along its two trajectories, section 5.4 of 000 with tables 5.8 and 5.9 and figures 5.12 to 5.14.

Ours: the motion planned over its whole length and its own feedback (`task_plan`), torques held over 5 ms, from rest at
h0, where it came by itself and settled for a second, then 20 s of holding. Beside it the document's law (5.4.2 to
5.4.5), evaluated at every stage of the integrator and without feedback, until it leaves the path. The text states
neither gravity nor the strain at the start; here gravity acts, and the plan's shapes keep every cable above 5 N. Table
5.9 moves along y.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tensegrity_control.laws.near_rigid_extended_law import ExtendedNearRigidLaw
from tensegrity_control.motion_planning.output_model import OutputModel
from tensegrity_control.trajectories.splines import HermiteSpline
from tensegrity_dynamics import Robot, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array

from ..runtime.closed_loop import TrajectoryRun, Waypoint
from ._every_stage import every_stage
from ._runs import run_trajectory, same_bits, spread, through_nodes_in_words

NAME = "manipulator"
DESCRIPTION = "the manipulator along a vertical and a horizontal path, section 5.4 of 000"

SIDE = 1.0 / np.sqrt(2.0)
HEIGHT = SIDE * (1.0 + np.sqrt(2.0 / 3.0))
TIMES = (0.0, 5.0, 15.0, 20.0)
PATHS = {
    "vertical": ((0.0, 0.0, 0.0), (0.0, 0.0, -0.5), (0.0, 0.0, 0.25), (0.0, 0.0, 0.0)),
    "horizontal": ((0.0, 0.0, 0.0), (0.0, -0.35, 0.0), (0.0, 0.35, 0.0), (0.0, 0.0, 0.0)),
}
PERIOD, HOLD = 5e-3, 20.0
APPROACH, SETTLED = 4.0, 5.0  # s: when the start of the path is reached, and left
LOST = 0.05  # m from the path at which the document's law is stopped
FLOOR = 5.0  # N
STRUTS = tuple(f"B{i}-{part}Jt" for i in (1, 2, 3) for part in ("dummy", "strut"))


def path(name: str, share: float = 1.0) -> HermiteSpline:
    """A trajectory of tables 5.8 and 5.9; `share` scales its time and its length alike."""
    moves = share * np.array(PATHS[name])
    return HermiteSpline(share * np.array(TIMES), np.array([0.0, 0.0, HEIGHT]) + moves, np.zeros((4, 3)))


def waypoints(spline: HermiteSpline) -> list[Waypoint]:
    """To the start of the path, some rest there, and the path's own knots."""
    found: list[Waypoint] = [(APPROACH, spline.value(0.0), None), (SETTLED, spline.value(0.0), None)]
    return found + [(SETTLED + float(time), spline.value(float(time)), None) for time in spline.knots[1:]]


def run(
    paths: tuple[str, ...] = ("vertical", "horizontal"), share: float = 1.0, hold: float = HOLD, nodes: bool = False
) -> dict[str, Any]:
    """Errors, tensions and torques along the paths, for ours and for the document's law.

    Args:
        share: of the document's time and length. hold: s at the end.
        nodes: run ours through the real nodes in lock-step as well.
    """
    robot, rows = load_robot(NAME), []
    for name in paths:
        spline = path(name, share)
        through: dict[str, Any] = {"period": PERIOD, "time_step": 1e-3, "hold": hold}
        run = run_trajectory(NAME, "task", waypoints(spline), nodes=False, **through)
        seen = run_trajectory(NAME, "task", waypoints(spline), nodes=False, observer=True, **through)
        row: dict[str, Any] = {
            "path": name,
            "planning_s": run.planning,
            "simulated_seconds_per_second": float(run.times[-1]) / run.wall,
            "ours": _figures(run.after(SETTLED), spline),
            "observed": _figures(seen.after(SETTLED), spline),
            "law": _law(robot, spline, run.after(SETTLED).q[0]),
        }
        if nodes:
            runs = [run_trajectory(NAME, "task", waypoints(spline), nodes=True, **through) for _ in range(2)]
            own = _figures(runs[0].after(SETTLED), spline)
            row["through_nodes"] = {
                "largest_error_m": own["largest_error_m"],
                "apart": spread(own["largest_error_m"], row["ours"]["largest_error_m"]),
                "two_runs_have_the_same_bits": same_bits(*runs),
                "simulated_seconds_per_second": float(runs[0].times[-1]) / runs[0].wall,
            }
        rows.append(row)
    return {
        "experiment": NAME,
        "height_m": HEIGHT,
        "gravity_m_per_s2": robot.mechanism.gravity,
        "young_Pa": robot.mechanism.cables[0].young,
        "damping_Pa_s": robot.mechanism.cables[0].damping,
        "period_s": PERIOD,
        "floor_N": FLOOR,
        "share_of_the_path": share,
        "paths": rows,
    }


def _figures(run: TrajectoryRun, spline: HermiteSpline) -> dict[str, Any]:
    reference = np.array([spline.value(min(float(time), spline.end)) for time in run.times])
    errors = np.linalg.norm(run.poses - reference, axis=1)
    moving = round(spline.end / PERIOD) + 1
    least = float(np.min(run.tensions))
    return {
        "largest_error_m": float(np.max(errors[:moving])),
        "largest_error_while_holding_m": float(np.max(errors[moving:], initial=0.0)),
        "least_tension_N": least,
        "least_tension_over_floor": least / FLOOR,
        "largest_torque_N_m": float(np.max(np.abs(run.commands))),
        "largest_error_of_the_observer": float(np.max(np.abs(run.seen_q - run.q))),
        "time_s": run.times[::8],
        "error_m": errors[::8],
        "tensions_N": run.tensions[::8],
    }


def _law(robot: Robot, spline: HermiteSpline, start: Array) -> dict[str, Any]:
    """The document's law at every stage of Runge-Kutta, with torques without bounds, until it is lost."""
    cables = robot.mechanism.cables
    unbounded = replace(robot, actuators=tuple(replace(each, effort=1e6) for each in robot.actuators))
    law = ExtendedNearRigidLaw(unbounded, STRUTS, FLOOR / np.array([cable.young * cable.area for cable in cables]))
    model, times, errors, reason = OutputModel(robot), [0.0], [0.0], "it stayed on the path"

    def efforts(time: float, q: Array, speed: Array) -> Array:
        return law.effort(q, speed, spline.value(time, 2))

    try:
        for time, q in every_stage(robot, start, law.model.drives, efforts, 2e-3, spline.end):
            times.append(time)
            errors.append(float(np.linalg.norm(model.output_position(q) - spline.value(time))))
            if not errors[-1] < LOST:
                reason = f"it was more than {1e3 * LOST:g} mm off its path"
                break
    except TensegrityError as error:
        reason = f"it was thrown out of its shape ({str(error).split(' at ')[0]})"
    return {"stopped_at_s": times[-1], "because": reason, "time_s": np.array(times), "error_m": np.array(errors)}


def render(result: dict[str, Any], console: Console) -> None:
    """Errors, tensions and torques as a table, and where the document's law ends."""
    console.print(
        f"manipulator, E = {1e-6 * result['young_Pa']:g} MPa, damping {1e-6 * result['damping_Pa_s']:g} MPa s, gravity "
        f"on, start at rest at h0 = {result['height_m']:.6f} m, torques held over {1e3 * result['period_s']:g} ms, "
        f"cables above {result['floor_N']:g} N.\n",
        highlight=False,
    )
    table = Table(title="planned over the whole path, with feedback", title_justify="left", box=None, pad_edge=False)
    for head in ("path", "error [m]", "while holding", "least tension [N]", "of floor", "torque [N m]"):
        table.add_column(head, justify="left" if head == "path" else "right")
    lines = [(row["path"] + label, row[kind]) for row in result["paths"]
             for label, kind in (("", "ours"), (", observed", "observed"))]  # fmt: skip
    for label, own in lines:
        table.add_row(
            label, f"{own['largest_error_m']:.1e}", f"{own['largest_error_while_holding_m']:.1e}",
            f"{own['least_tension_N']:.2f}", f"{own['least_tension_over_floor']:.2f}",
            f"{own['largest_torque_N_m']:.2f}",
        )  # fmt: skip
    console.print(table)
    console.print("observed: the state from pulley angles and torques; else the simulator's.", highlight=False)
    through = [row["through_nodes"] for row in result["paths"] if "through_nodes" in row]
    if through:
        console.print(through_nodes_in_words(through), highlight=False)
    for row in result["paths"]:
        law = row["law"]
        console.print(
            f"the document's law on the {row['path']} path ends at {law['stopped_at_s']:.2f} s, "
            f"{1e3 * law['error_m'][-1]:.3g} mm off: {law['because']}",
            highlight=False,
        )


def draw(result: dict[str, Any], picture: Path) -> None:
    """Errors of both (5.13, 5.14) and tensions of ours, one row for each path."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    count = len(result["paths"])
    figure, axes = plt.subplots(count, 3, figsize=(13, 3.6 * count), squeeze=False, layout="constrained")
    for line, row in zip(axes, result["paths"], strict=True):
        own, law = row["ours"], row["law"]
        line[0].plot(law["time_s"], 1e3 * np.asarray(law["error_m"]), color="C3")
        line[0].set_ylabel("distance from the path [mm]")
        line[0].set_title(f"{row['path']}, the document's law", fontsize=10)
        line[1].plot(own["time_s"], 1e6 * np.asarray(own["error_m"]))
        line[1].set_ylabel("distance from the path [um]")
        line[1].set_title(f"{row['path']}, planned with feedback, then held", fontsize=10)
        tensions = np.asarray(own["tensions_N"])
        for k in range(tensions.shape[1]):
            line[2].plot(own["time_s"], tensions[:, k], label=f"cable {k + 1}", linewidth=1.0)
        line[2].axhline(result["floor_N"], color="k", linewidth=0.8, linestyle="--")
        line[2].set_ylabel("tension [N]")
        line[2].set_title("tensions, dashed the floor", fontsize=10)
        line[2].legend(fontsize=7, ncol=2)
        for axis in line:
            axis.grid(alpha=0.3)
            axis.set_xlabel("time [s]")
    figure.savefig(picture, dpi=110)
    plt.close(figure)
