"""The manipulator along its two trajectories, section 5.4 of 000 with tables 5.8 and 5.9 and figures 5.12 to 5.14.

Ours: the motion planned over its whole length and its own feedback (`task_plan`), torques held over 5 ms, from the
shape at rest at h0, then 20 s of holding. Beside it the document's law (5.4.2 to 5.4.5), evaluated at every stage of
the integrator and without feedback, until it leaves the path. The text states neither gravity nor the strain at the
start; here gravity acts, and the plan's shapes keep every cable above 5 N. Table 5.9 moves along y.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tensegrity_control.near_rigid_extended import ExtendedNearRigidLaw
from tensegrity_control.task_control import TaskControl
from tensegrity_control.task_model import TaskModel
from tensegrity_control.task_plan import plan_task
from tensegrity_control.trajectories import HermiteSpline
from tensegrity_dynamics import Robot, Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError

from ._every_stage import every_stage

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
LOST = 0.05  # m from the path at which the document's law is stopped
FLOOR = 5.0  # N
STRUTS = tuple(f"B{i}-{part}Jt" for i in (1, 2, 3) for part in ("dummy", "strut"))

Array = NDArray[np.float64]


def path(name: str, share: float = 1.0) -> HermiteSpline:
    """A trajectory of tables 5.8 and 5.9; `share` shrinks it in time and way alike."""
    moves = share * np.array(PATHS[name])
    return HermiteSpline(share * np.array(TIMES), np.array([0.0, 0.0, HEIGHT]) + moves, np.zeros((4, 3)))


def run(paths: tuple[str, ...] = ("vertical", "horizontal"), share: float = 1.0, hold: float = HOLD) -> dict[str, Any]:
    """Errors, tensions and torques along the paths, for ours and for the document's law.

    Args:
        share: of the document's time and way. hold: s at the end.
    """
    robot, rows = load_robot("manipulator"), []
    for name in paths:
        spline = path(name, share)
        model = TaskModel(robot)
        plan = plan_task(model, spline.value, spline.end, PERIOD)
        control = TaskControl(model, plan)
        rows.append(
            {
                "path": name,
                "plan_miss_m": plan.miss,
                "plan_defect": plan.defect,
                "ours": _follow(robot, spline, control, plan.position, hold),
                "law": _law(robot, spline, plan.position),
            }
        )
    return {
        "experiment": NAME,
        "height_m": HEIGHT,
        "gravity_m_per_s2": robot.mechanism.mechanism.gravity,
        "young_Pa": robot.mechanism.mechanism.cables[0].young,
        "damping_Pa_s": robot.mechanism.mechanism.cables[0].damping,
        "period_s": PERIOD,
        "floor_N": FLOOR,
        "share_of_the_path": share,
        "paths": rows,
    }


def _follow(robot: Robot, spline: HermiteSpline, control: TaskControl, start: Array, hold: float) -> dict[str, Any]:
    simulation = Simulation(robot, 1e-3, start=start)
    steps, least, largest = round(PERIOD / 1e-3), np.inf, 0.0
    times, errors, tensions = [], [], []
    for k in range(round((spline.end + hold) / PERIOD)):
        state = simulation.state
        effort = control.effort(state.time, state.q, state.v)
        largest = max(largest, float(np.max(np.abs(effort))))
        simulation.advance(steps, effort=control.as_dict(effort))
        seen = simulation.observe()
        error = float(np.linalg.norm(seen.pose[0] - spline.value(min(seen.time, spline.end))))
        pulls = list(seen.tensions.values())
        least = min(least, *pulls)
        errors.append(error)
        if k % 8 == 0:
            times.append(seen.time)
            tensions.append(pulls)
    moving = round(spline.end / PERIOD)
    return {
        "largest_error_m": max(errors[:moving]),
        "largest_error_while_holding_m": max(errors[moving:], default=0.0),
        "least_tension_N": float(least),
        "least_tension_over_floor": float(least) / FLOOR,
        "largest_torque_N_m": largest,
        "time_s": np.array(times),
        "error_m": np.array(errors[::8]),
        "tensions_N": np.array(tensions),
    }


def _law(robot: Robot, spline: HermiteSpline, start: Array) -> dict[str, Any]:
    """The document's law at every stage of Runge-Kutta, with torques without bounds, until it is lost."""
    cables = robot.mechanism.mechanism.cables
    unbounded = replace(robot, actuators=tuple(replace(each, effort=1e6) for each in robot.actuators))
    law = ExtendedNearRigidLaw(unbounded, STRUTS, FLOOR / np.array([cable.young * cable.area for cable in cables]))
    model, times, errors, reason = TaskModel(robot), [0.0], [0.0], "it stayed on the path"

    def efforts(time: float, place: Array, speed: Array) -> Array:
        return law.effort(place, speed, spline.value(time, 2))

    try:
        for time, q in every_stage(robot, start, law.model.drives, efforts, 2e-3, spline.end):
            times.append(time)
            errors.append(float(np.linalg.norm(model.output_place(q) - spline.value(time))))
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
    table = Table(title="planned over the whole way, with its feedback", title_justify="left", box=None, pad_edge=False)
    for head in ("path", "error [m]", "while holding", "least tension [N]", "of floor", "torque [N m]"):
        table.add_column(head, justify="left" if head == "path" else "right")
    for row in result["paths"]:
        own = row["ours"]
        table.add_row(
            row["path"], f"{own['largest_error_m']:.1e}", f"{own['largest_error_while_holding_m']:.1e}",
            f"{own['least_tension_N']:.2f}", f"{own['least_tension_over_floor']:.2f}",
            f"{own['largest_torque_N_m']:.2f}",
        )  # fmt: skip
    console.print(table)
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
