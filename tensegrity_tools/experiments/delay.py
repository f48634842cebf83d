"""Torque control that comes late: error and least tension over a delay of the commands of 0 to 3 control periods.

Every controller of torques does the same motion twice, with impedances that the actuators close and with the efforts of
its own feedback. A run is lost where the simulation or the controller gives up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensegrity_control.controllers.sampled_controller import ACTUATIONS
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError

from ..output import table
from ..runtime.closed_loop import planned_control, through_libraries

DESCRIPTION = "torque control with late commands: error and least tension over the delay, impedances beside efforts"
DELAYS = (0, 1, 2, 3)
HOLD = 0.5


@dataclass(frozen=True)
class Case:
    """One motion: the output goes `move` m away in `duration` s, commands come every `period` s."""

    robot: str
    controller: str
    move: tuple[float, float, float]
    duration: float = 1.0
    period: float = 0.01


CASES = (
    Case("manipulator", "task", (0.0, 0.0, -0.03)),
    Case("single_strut", "near_rigid", (0.06, 0.04, 0.0)),
    Case("biglide", "computed_torque", (0.05, 0.03, 0.0)),
)


def late_run(case: Case, actuation: str, delay: int) -> dict[str, Any]:
    """One run: errors in m, tensions in N (None without cables), and why it was lost, if it was."""
    robot = load_robot(case.robot)
    row: dict[str, Any] = {
        "robot": case.robot, "controller": case.controller, "actuation": actuation, "delay": delay * case.period,
        "worst": None, "end": None, "least_tension": None, "lost": "",
    }  # fmt: skip

    home = np.array(Simulation(robot).observe().pose[0])
    waypoints = [(case.duration, home + np.array(case.move), None)]
    try:
        control = planned_control(
            robot, case.controller, waypoints, None, case.period, "minimum_jerk", {"actuation": actuation}
        )
        run = through_libraries(
            robot, case.controller, waypoints, period=case.period, hold=HOLD, delay=delay, control=control
        )
    except TensegrityError as error:
        return row | {"lost": str(error)}
    rows = robot.output.rows
    wanted = np.array([control.reference(float(time)).pose[0][rows] for time in run.times])
    errors = np.linalg.norm(run.poses[:, rows] - wanted, axis=1)
    if run.tensions.size:
        row["least_tension"] = float(run.tensions.min())
    return row | {"worst": float(errors.max()), "end": float(errors[-1])}


def run(cases: Sequence[Case] = CASES, delays: Sequence[int] = DELAYS) -> dict[str, Any]:
    """All runs."""
    return {
        "runs": [late_run(case, each, delay) for case in cases for each in ACTUATIONS for delay in delays],
        "floors": {
            case.robot: max(each.minimum_tension for each in load_robot(case.robot).actuators) for case in cases
        },
    }


def render(result: dict[str, Any], console: Any) -> None:
    """Print the runs."""
    rows = []
    for each in result["runs"]:
        figures = ["lost", "", ""]
        if each["worst"] is not None:
            least = each["least_tension"]
            figures = [
                f"{1e3 * each['worst']:.4f}",
                f"{1e3 * each['end']:.4f}",
                "" if least is None else f"{least:.2f}",
            ]
        late = f"{1e3 * each['delay']:.0f}"
        rows.append((each["robot"], each["controller"], each["actuation"], late, *figures))
    columns = ("robot", "controller", "sends", "late ms", "worst mm", "end mm", "least N")
    console.print(table("late commands", columns, rows))
    for each in result["runs"]:
        if each["lost"]:
            late = f"{1e3 * each['delay']:.0f} ms late"
            console.print(f"{each['robot']} {each['controller']} {each['actuation']}, {late}: {each['lost']}")


def draw(result: dict[str, Any], path: Path) -> None:
    """Error and least tension over the delay; what is lost is left out."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (errors, tensions) = plt.subplots(1, 2, figsize=(10, 4))
    groups = dict.fromkeys((each["robot"], each["controller"], each["actuation"]) for each in result["runs"])
    for group in groups:
        runs = [
            each
            for each in result["runs"]
            if (each["robot"], each["controller"], each["actuation"]) == group and each["worst"] is not None
        ]
        style = {"linestyle": "-" if group[2] == "impedance" else ":", "marker": "o", "label": " ".join(group)}
        errors.semilogy([1e3 * each["delay"] for each in runs], [1e3 * each["worst"] for each in runs], **style)
        tight = [each for each in runs if each["least_tension"] is not None]
        if tight:
            tensions.plot([1e3 * each["delay"] for each in tight], [each["least_tension"] for each in tight], **style)
    errors.set(xlabel="delay of the commands [ms]", ylabel="largest error [mm]")
    tensions.set(xlabel="delay of the commands [ms]", ylabel="least tension [N]")
    errors.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
