"""Delayed control: error and smallest tension as functions of a command delay of 0 to 3 control periods.

Every torque controller executes the same motion with a constant delay and with a random delay of each command; with
impedance loops closed by the actuators, and with efforts by its own feedback. The controllers do not know the delay,
except by the reports of the plant about the times at which commands took effect. A run is lost if the simulation or the
controller fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensegrity_control import make_controller
from tensegrity_control.controllers.sampled_controller import ACTUATIONS
from tensegrity_control.registry import controller_class
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError, unknown_name

from ..output import panels, save_picture, table
from ..runtime.delayed_loop import DelayedLoop, Delays
from ._progress import figures, report

DESCRIPTION = "late commands: error and least tension of every controller of torques over a delay of 0 to 3 periods"
DELAYS = (0, 1, 2, 3)
KINDS = ("fixed", "varying")
SETTLING, HOLD = 0.1, 0.5
"""Duration before the motion, and after it [s]."""


@dataclass(frozen=True)
class Case:
    """One motion: the output moves by `move` m in `duration` s, with a control period of `period` s; None: the period
    that the controller needs for this robot."""

    robot: str
    controller: str
    move: tuple[float, float, float]
    duration: float = 1.0
    period: float | None = None

    @property
    def seconds(self) -> float:
        """Control period [s]."""
        return self.period or controller_class(self.controller).period_for(load_robot(self.robot)).seconds


CASES = (
    Case("manipulator", "qp", (0.0, 0.0, -0.03)),
    Case("manipulator", "task", (0.0, 0.0, -0.03)),
    Case("manipulator", "joint_position", (0.0, 0.0, -0.03), period=0.01),
    Case("single_strut", "qp", (0.06, 0.04, 0.0)),
    Case("single_strut", "near_rigid", (0.06, 0.04, 0.0)),
    Case("biglide", "qp", (0.05, 0.03, 0.0)),
    Case("biglide", "computed_torque", (0.05, 0.03, 0.0), period=0.01),
    Case("three_rrr", "qp", (0.015, 0.015, 0.0)),
    Case("stewart", "qp", (0.03, 0.0, 0.02)),
    Case("cable_robot", "qp", (0.1, 0.05, 0.05), 2.0),
)


def late_run(case: Case, actuation: str, delay: int, kind: str = "fixed", *, observer: bool = False, seed: int = 0
             ) -> dict[str, Any]:  # fmt: skip
    """Result of one run: errors [m], smallest tension [N] and relative to the floor (None without cables), failure."""
    robot, period = load_robot(case.robot), case.seconds
    row: dict[str, Any] = {
        "robot": case.robot, "controller": case.controller, "actuation": actuation, "kind": kind,
        "delay": delay * period, "worst": None, "end": None, "least_tension": None, "least": None, "lost": "",
    }  # fmt: skip
    try:
        control = control_of(case, actuation)
        delays = Delays(commands=(delay if kind == "fixed" else 0, delay), seed=seed)
        loop = DelayedLoop(robot, control, period, delays, observer)
        loop.run(SETTLING)
        goal = np.array(control.reference(loop.time).pose[0]) + np.array(case.move)
        arrival = control.set_goal(loop.stamp, goal, duration=case.duration).arrival
        loop.run(arrival - loop.time + HOLD)
    except TensegrityError as error:
        return row | {"lost": str(error)}
    if loop.tensions[0].size:
        row |= {"least_tension": float(np.min(loop.tensions)), "least": loop.least()}
    return row | {"worst": float(max(loop.errors)), "end": float(loop.errors[-1])}


def control_of(case: Case, actuation: str) -> Any:
    """Controller of a case."""
    given: dict[str, Any] = {"period": case.seconds, "actuation": actuation}
    available = controller_class(case.controller).parameters()
    return make_controller(
        case.controller, load_robot(case.robot), **{key: value for key, value in given.items() if key in available}
    )


def run(
    cases: Sequence[Case] = CASES,
    delays: Sequence[int] = DELAYS,
    robot: str = "",
    controller: str = "",
    kind: str = "",
    state: str = "truth",
    seed: int = 0,
) -> dict[str, Any]:
    """Run all cases.

    Args:
        cases: cases. delays: delays [periods]. robot, controller, kind: restriction to one of them; empty: all. state:
            "truth" or "observer". seed: seed of random delays.

    Raises:
        TensegrityError: no case matches.
    """
    for what, word, available in (
        ("robot", robot, {each.robot for each in cases}),
        ("controller", controller, {each.controller for each in cases}),
        ("kind of delay", kind, set(KINDS)), ("state", state, {"truth", "observer"}),
    ):  # fmt: skip
        if word and word not in available:
            raise TensegrityError(unknown_name(what, word, sorted(available)))
    runs = []
    for case in cases:
        if (robot and case.robot != robot) or (controller and case.controller != controller):
            continue
        takes = "actuation" in controller_class(case.controller).parameters()
        for actuation in ACTUATIONS if takes else ("position",):
            for each in (kind,) if kind else KINDS:
                for delay in delays:
                    if each == "varying" and not delay:
                        continue
                    part = f"{case.robot} {case.controller} {actuation}, {each} delay of {delay} periods"
                    report(part)
                    row = late_run(case, actuation, delay, each, observer=state == "observer", seed=seed)
                    runs.append(figures(part, row))
    floors = {each.robot: max(one.minimum_tension for one in load_robot(each.robot).actuators) for each in cases}
    return {"runs": runs, "floors": floors}


def render(result: dict[str, Any], console: Any) -> None:
    """Print one line per run."""
    rows = []
    for each in result["runs"]:
        cells = ["lost", "", "", ""]
        if each["worst"] is not None:
            tight = [each["least_tension"], each["least"]]
            cells = [f"{1e3 * each['worst']:.4f}", f"{1e3 * each['end']:.4f}"]
            cells += ["" if value is None else f"{value:.2f}" for value in tight]
        late = f"{1e3 * each['delay']:.0f}"
        rows.append((each["robot"], each["controller"], each["actuation"], each["kind"], late, *cells))
    columns = ("robot", "controller", "sends", "delay", "ms", "worst mm", "end mm", "least N", "of floor")
    console.print(table("late commands", columns, rows))
    for each in result["runs"]:
        if each["lost"]:
            late = f"{1e3 * each['delay']:.0f} ms late"
            console.print(f"{each['robot']} {each['controller']} {each['actuation']}, {late}: {each['lost']}")


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot error and smallest tension over the delay, for fixed and random delays, without lost runs."""
    figure, axes = panels(2, 2, figsize=(11, 8), sharex=True)
    groups = dict.fromkeys((each["robot"], each["controller"], each["actuation"]) for each in result["runs"])
    colours = {each[:2]: f"C{k}" for k, each in enumerate(dict.fromkeys(group[:2] for group in groups))}
    for (errors, tensions), kind in zip(axes, KINDS, strict=True):
        for group in groups:
            runs = [
                each
                for each in result["runs"]
                if (each["robot"], each["controller"], each["actuation"]) == group
                and each["worst"] is not None and (each["kind"] == kind or not each["delay"])
            ]  # fmt: skip
            if not runs:
                continue
            late = [1e3 * each["delay"] for each in runs]
            style: dict[str, Any] = {"marker": "o", "label": " ".join(group), "color": colours[group[:2]]}
            style["linestyle"] = ":" if group[2] == "effort" else "-"
            errors.semilogy(late, [1e3 * each["worst"] for each in runs], **style)
            if runs[0]["least_tension"] is not None:
                tensions.plot(late, [each["least_tension"] for each in runs], **style)
        errors.set(title=f"{kind} delay", ylabel="largest error [mm]")
        tensions.set(title=f"{kind} delay", ylabel="least tension [N]")
        tensions.axhline(0.0, color="0.8", zorder=0)
    for below in axes[1]:
        below.set(xlabel="delay of the commands [ms], where it varies the longest one")
    names = axes[0][0].get_legend_handles_labels()
    axes[0][1].legend(*names, fontsize=7, loc="center right", bbox_to_anchor=(1.0, 0.55))
    save_picture(figure, path, dpi=110)
