"""Sections 5.3 and 5.4 of 000 without offline planning: controller `qp`, one quadratic program per control period.

Manipulator along its vertical and its horizontal path, with commands held over 5 ms and over 1 ms; then a tenth of the
horizontal path with commands delayed by one to three periods, and with a stiffer cable and larger masses than in the
model of the controller. Gravity acts, cables keep 5 N, and the controller moves the robot from rest to the start of the
path.

Single strut through the knots of table 5.6 at 1 kHz with cables of 200, 2,000 and 20,000 MPa, as in `near_rigid`: no
gravity, 20 MPa as initial stress and as floor. Its errors are those of its two angles, relative to a path of its tip
that is cubic between the knots.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control.motion_planning.near_rigid_model import NearRigidModel
from tensegrity_control.trajectories.splines import HermiteSpline
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.units import STANDARD_GRAVITY

from ..output import table
from ..runtime.closed_loop import TrajectoryRun
from . import manipulator, near_rigid
from ._progress import figures, report
from ._runs import (
    Variants,
    gravity_vector,
    groups,
    listed,
    quantities,
    run_trajectory,
    through_nodes_in_words,
    twice_through_nodes,
)

NAME = "qp"
DESCRIPTION = "sections 5.3 and 5.4 of 000 by one quadratic program a period, without any plan"
SHORT = 0.1
"""Fraction of the paths for runs with delayed commands or a wrong model."""


ROBOTS = ("manipulator", "single_strut")
STATES = ("truth", "observer")
QUANTITIES = {"period": "time", "gravity": "acceleration"}


def run(
    share: float = 1.0,
    robots: str | tuple[str, ...] = "manipulator, single_strut",
    paths: str | tuple[str, ...] = "vertical, horizontal",
    moduli: str | tuple[float, ...] = near_rigid.MODULI,
    period: float = 1e-3,
    state: str = "truth",
    gravity: float = STANDARD_GRAVITY,
    strut_gravity: bool = False,
    nodes: bool = False,
) -> dict[str, Any]:
    """Run the experiment: errors, tensions and torques.

    Args:
        share: fraction of the document's duration and length, for the manipulator.
        robots: names of `ROBOTS`, separated by commas.
        paths: names of `manipulator.PATHS`, separated by commas. Runs with delays and with a wrong model take the last.
        moduli: moduli of the cables of the single strut [Pa], or a text with units.
        period: control period of the single strut [s]. state: "truth" or "observer".
        gravity: m/s^2, on the manipulator; without it no prestress keeps its cables tight.
        strut_gravity: whether gravity acts on the single strut.
        nodes: whether the paths, with nothing late or wrong, are also run with the real nodes in lock-step, twice.

    Raises:
        TensegrityError: an unknown robot, path or state.
    """
    chosen, rows, struts = listed(robots, "robots", ROBOTS), [], []
    if state not in STATES:
        raise TensegrityError(unknown_name("state", state, STATES))
    observer = state == "observer"
    if "manipulator" in chosen:
        variants, each_path = Variants(), listed(paths, "paths", tuple(manipulator.PATHS))
        arm = partial(_row, _arm(variants, gravity), observer=observer)
        rows = [
            arm(path, held, share, actuation, nodes=nodes)
            for path in each_path
            for held, actuation in ((5e-3, "impedance"), (5e-3, "effort"), (1e-3, "impedance"))
        ]
        rows += [arm(each_path[-1], 5e-3, SHORT, "impedance", delay=delay) for delay in (1, 2, 3)]
        stiffer = _arm(variants, gravity, stiffer=True)
        rows.append(arm(each_path[-1], 5e-3, SHORT, "impedance", plant=stiffer, label="E, masses + 10 %"))
    if "single_strut" in chosen:
        struts = [
            _strut(young, period, actuation, observer, nodes, strut_gravity)
            for young in quantities(moduli, "moduli", "stress") for actuation in ("impedance", "effort")
        ]  # fmt: skip
    return {"experiment": NAME, "floor_N": manipulator.FLOOR, "rows": rows, "single_strut": struts}


def _strut(young: float, period: float, actuation: str, observer: bool, nodes: bool, gravity: bool) -> dict[str, Any]:
    """Result of the single strut along the path of table 5.6."""
    part = f"single strut, {1e-6 * young:g} MPa, {actuation}"
    report(part)
    variants = Variants()
    file = near_rigid.strut_file(variants, young, gravity=gravity)
    robot = load_robot(str(file))
    model = NearRigidModel(robot, near_rigid.TRACKED)
    points = near_rigid.waypoints(model)
    floor = near_rigid.STRESS * robot.mechanism.cables[0].area
    through: dict[str, Any] = {
        "period": period, "time_step": near_rigid.STEP, "observer": observer,
        "parameters": {"actuation": actuation, "floor": floor},
    }  # fmt: skip
    found = run_trajectory(file, "qp", points, nodes=False, **through)
    knots = np.array([(0.0, 0.0), *((point[0], point[1]) for _, point, _ in points)])
    reference = HermiteSpline([0.0, *(time for time, _, _ in points)], knots, np.zeros_like(knots))

    def errors_of(run: TrajectoryRun) -> Array:
        return np.abs(np.array([model.tracked_at(q) for q in run.q]) - _angles(reference.value(run.times)))

    errors = errors_of(found)
    row: dict[str, Any] = {
        "young_Pa": young,
        "period_s": period,
        "actuation": actuation,
        "largest_error_rad": float(np.max(errors)),
        "last_error_rad": float(np.max(errors[-1])),
        "least_tension_over_floor": float(np.min(found.tensions)) / floor,
        "largest_torque_N_m": float(np.max(np.abs(found.commands))),
    }
    if nodes:
        row["through_nodes"] = twice_through_nodes(
            part, lambda run: float(np.max(errors_of(run))), found, file, "qp", points, **through
        )
    return figures(part, row)


def _angles(tip: Array) -> Array:
    """(k, 2) angles phi about x and then psi about y of a strut of 1 m with its tip at x, y (k, 2) [m]."""
    psi = np.arcsin(tip[:, 0])
    return np.column_stack((np.arcsin(-tip[:, 1] / np.cos(psi)), psi))


def _arm(variants: Variants, gravity: float, *, stiffer: bool = False) -> Path:
    """File of the manipulator; with `stiffer`, modulus of its cables and its masses are a tenth larger."""

    def change(blocks: dict[str, Any]) -> None:
        blocks["gravity"] = gravity_vector(gravity)
        if not stiffer:
            return
        blocks["density"] *= 1.1
        for block in groups(blocks):
            for cable in block.get("cables", []):
                cable["young"] = "2.2 GPa"

    return variants.file("manipulator", change)


def _row(
    robot: Path, path: str, period: float, share: float, actuation: str, *, observer: bool, delay: int = 0,
    plant: Path | None = None, label: str = "", nodes: bool = False,
) -> dict[str, Any]:  # fmt: skip
    part = f"manipulator, {path}, {1e3 * period:g} ms, {actuation}, {delay} periods late, {label or 'as modelled'}"
    report(part)
    spline = manipulator.path(path, share)
    points = manipulator.waypoints(spline)
    through: dict[str, Any] = {
        "period": period, "time_step": 1e-3, "delay": delay, "observer": observer, "plant": plant,
        "parameters": {"actuation": actuation},
    }  # fmt: skip

    def errors_of(run: TrajectoryRun) -> Array:
        run = run.after(manipulator.SETTLED)
        reference = np.array([spline.value(min(float(time), spline.end)) for time in run.times])
        return np.asarray(np.linalg.norm(run.poses - reference, axis=1))

    whole = run_trajectory(robot, "qp", points, nodes=False, **through)
    found, errors = whole.after(manipulator.SETTLED), errors_of(whole)
    limit = max(each.effort for each in load_robot("manipulator").actuators)
    row: dict[str, Any] = {
        "path": path,
        "share": share,
        "period_s": period,
        "actuation": actuation,
        "delay_periods": delay,
        "plant": label or "as modelled",
        "largest_error_m": float(np.max(errors)),
        "last_error_m": float(errors[-1]),
        "least_tension_over_floor": float(np.min(found.tensions)) / manipulator.FLOOR,
        "largest_torque_over_limit": float(np.max(np.abs(found.commands))) / limit,
    }
    if nodes:
        row["through_nodes"] = twice_through_nodes(
            part, lambda run: float(np.max(errors_of(run))), whole, robot, "qp", points, **through
        )
    return figures(part, row)


def render(result: dict[str, Any], console: Console) -> None:
    """Print one line per run."""
    heads: tuple[str, ...] = (
        "path", "s", "held", "commands", "late", "robot", "error [m]", "at the end", "tension/floor", "torque/limit"
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [
        (row["path"], f"{20.0 * row['share']:g}", f"{1e3 * row['period_s']:g} ms", row["actuation"],
         str(row["delay_periods"]), row["plant"], f"{row['largest_error_m']:.1e}", f"{row['last_error_m']:.1e}",
         f"{row['least_tension_over_floor']:.2f}", f"{row['largest_torque_over_limit']:.2f}")
        for row in result["rows"]
    ]  # fmt: skip
    if rows:
        console.print(table("no plan, one program a period", heads, rows, right=(1, 2, 4, 6, 7, 8, 9)))
    heads = ("E [MPa]", "held", "commands", "error [rad]", "at the end", "tension/floor", "torque [N m]")
    rows = [
        (f"{1e-6 * row['young_Pa']:g}", f"{1e3 * row['period_s']:g} ms", row["actuation"],
         f"{row['largest_error_rad']:.1e}", f"{row['last_error_rad']:.1e}",
         f"{row['least_tension_over_floor']:.3f}", f"{row['largest_torque_N_m']:.2f}")
        for row in result["single_strut"]
    ]  # fmt: skip
    if rows:
        console.print(table("single strut, table 5.6", heads, rows, right=(0, 1, 3, 4, 5, 6)))
    nodes = [row["through_nodes"] for row in (*result["rows"], *result["single_strut"]) if "through_nodes" in row]
    if nodes:
        console.print(through_nodes_in_words(nodes), highlight=False)
