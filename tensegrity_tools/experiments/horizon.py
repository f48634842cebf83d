"""Offline plan, receding horizon and `qp` for the same motion: numerical results on the open question of document 000.

Every controller moves the output by the same distance in the same time, from rest along a straight minimum-jerk line:
with the exact model, with a push during the motion, and with other cables and masses than in its model. All send
efforts, or with `actuation=impedance` set points of the actuators' impedance loops, which are then the only feedback of
an offline plan. Error: distance from the line at the same time. Effort: root mean square of the effort in addition to
that at rest. Planning: processor time of the plan before the motion, and of a plan or program during the motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.tension_floor import TensionFloor
from tensegrity_control.trajectories.quintic import minimum_jerk
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion

from ..output import table
from ._progress import figures, report
from ._runs import plant_of

DESCRIPTION = "offline plan, receding horizon and `qp` on the same motion: error, effort and planning time"
QUANTITIES = {
    "move": "length",
    "duration": "time",
    "push": "force",
    "period": "time",
    "horizon": "time",
    "replan": "time",
}
MAY_BE_ZERO = ("push", "error")
AFTER = 0.5
"""Duration after the motion [s]."""
SIMULATED = 1e-3  # longest step of the simulation [s]
CONTROLLERS: dict[str, tuple[str, dict[str, Any]]] = {
    "offline": ("task", {}),
    "receding": ("task", {"plan": "receding_in_step"}),
    "qp": ("qp", {}),
}


@dataclass(frozen=True)
class Case:
    """Disturbance of a run: push on the output during the motion [N], and relative excess of cable modulus and
    masses."""

    name: str
    push: float = 0.0
    error: float = 0.0


def one_run(
    robot_name: str,
    which: str,
    case: Case,
    move: float,
    duration: float,
    period: float,
    horizon: float,
    replan: float,
    actuation: str = "effort",
) -> dict[str, Any]:
    """Result of one motion; errors [m], effort [N m or N], times [s]."""
    robot = load_robot(robot_name)
    plant = plant_of(robot, young=1.0 + case.error, masses=1.0 + case.error)
    kind, given = CONTROLLERS[which]
    more = {"horizon": horizon, "replan": replan} if which == "receding" else {}
    control: Any = make_controller(kind, robot, period=period, actuation=actuation, **given, **more)
    simulation = Simulation(plant, period / max(1, int(np.ceil(period / SIMULATED - 1e-9))))
    body, frame = robot.output.body, robot.output.frame  # type: ignore[attr-defined]
    rows = robot.output.rows[robot.output.rows < 3]  # type: ignore[attr-defined]

    row: dict[str, Any] = {"controller": which, "case": case.name, "lost": "", "floor": ""}
    control.reset(0.0, RobotState.of(simulation))
    here = np.array(control.reference(0.0).pose[0])
    still = np.array(list(simulation.observe().efforts.values()))
    target = here.copy()
    target[rows[-1]] -= move
    began = process_time()
    accepted = control.set_goal(0.0, target, duration=duration)
    planned = process_time() - began
    line = minimum_jerk(0.0, accepted.duration, here, target)
    errors, efforts, took = [], [], []
    lowest: dict[str, tuple[float, float]] = {}
    for k in range(round((accepted.duration + AFTER) / period)):
        time = k * period
        seen = simulation.observe()
        pushed = 0.3 * accepted.duration <= time < 0.6 * accepted.duration
        force = np.zeros(3)
        force[rows[0]] = case.push if pushed else 0.0
        arm = matrix_from_quaternion(seen.pose[1]) @ frame.axes.T @ frame.origin
        simulation.apply_forces({body: np.concatenate((force, np.cross(arm, force)))})
        try:
            began = process_time()
            command = control.command(time, RobotState.of(simulation))
            took.append(process_time() - began)
            timing = {"age": 0.0, "period": period} if command.position is not None else {}
            simulation.command(command.mode, command.set_points(), **timing)
            simulation.advance(duration=period)
        except TensegrityError as error:
            return row | {"lost": str(error)}
        seen = simulation.observe()
        errors.append(float(np.linalg.norm((seen.pose[0] - line.value(time + period))[rows])))
        efforts.append(np.array(list(seen.efforts.values())) - still)
        for name, tension in seen.tensions.items():
            lowest[name] = min(lowest.get(name, (np.inf, 0.0)), (tension, time + period))
    replanning = getattr(control, "replanning", None)
    again = took if replanning is None else replanning.times
    return row | {
        "worst": max(errors), "rms": float(np.sqrt(np.mean(np.square(errors)))), "end": errors[-1],
        "effort": float(np.sqrt(np.mean(np.square(efforts)))),
        "least_tension": min((least for least, _ in lowest.values()), default=np.nan),
        "floor": TensionFloor(robot).worst(lowest),
        "planning": planned, "again": 0.0 if which == "offline" else float(np.median(again)),
        "new_plans": 0 if replanning is None else replanning.made, "duration": accepted.duration,
    }  # fmt: skip


def run(
    robot: str = "manipulator",
    controller: str = "",
    move: float = 0.03,
    duration: float = 1.0,
    push: float = 5.0,
    error: float = 0.1,
    period: float = 0.005,
    horizon: float = 0.3,
    replan: float = 0.05,
    actuation: str = "effort",
) -> dict[str, Any]:
    """Run all motions.

    Args:
        robot: name or file. controller: one of `CONTROLLERS`; empty: all.
        move: displacement along the last controlled axis [m]. duration: duration of the motion [s].
        push: force along the first controlled axis [N]. error: relative excess of Young's modulus and masses.
        period: control period [s]. horizon: prediction horizon [s]. replan: interval between two plans [s].
        actuation: type of commands, "effort" or "impedance".
    """
    if controller and controller not in CONTROLLERS:
        raise TensegrityError(unknown_name("controller", controller, CONTROLLERS))
    cases = (
        Case("as modelled"), Case(f"push of {push:g} N", push=push),
        Case(f"model {100 * error:g} % off", error=error),
    )  # fmt: skip
    runs = []
    for case in cases:
        for which in (controller,) if controller else CONTROLLERS:
            report(f"{which}, {case.name}")
            row = one_run(robot, which, case, move, duration, period, horizon, replan, actuation)
            runs.append(figures(f"{which}, {case.name}", row))
    return {"robot": robot, "runs": runs}


def render(result: dict[str, Any], console: Console) -> None:
    """Print one line per run."""
    rows = []
    for each in result["runs"]:
        if each["lost"]:
            rows.append((each["controller"], each["case"], "lost", *[""] * 6))
            continue
        least = "none" if np.isnan(each["least_tension"]) else f"{each['least_tension']:.2f}"
        rows.append((
            each["controller"], each["case"], f"{1e3 * each['worst']:.5f}", f"{1e3 * each['rms']:.5f}",
            f"{1e3 * each['end']:.5f}", f"{each['effort']:.4f}", least,
            f"{1e3 * each['planning']:.1f}", f"{1e3 * each['again']:.2f} ({each['new_plans']})",
        ))  # fmt: skip
    columns = ("controller", "case", "worst mm", "rms mm", "end mm", "effort", "least N", "plan ms", "again ms")
    console.print(table(f"the same motion of {result['robot']}", columns, rows))
    for each in result["runs"]:
        if said := each["lost"] or each["floor"]:
            console.print(f"{each['controller']}, {each['case']}: {said}")
