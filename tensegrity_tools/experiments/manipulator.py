"""Manipulator along its two trajectories: section 5.4 of 000 with tables 5.8 and 5.9 and figures 5.12 to 5.14.

Our control: the motion is planned over its whole length, with feedback (`task_plan`) and torques held over the period.
It starts at rest at h0, which the robot reaches by a previous motion and one second of settling, and ends with 20 s of
holding. For comparison, the law of the document (5.4.2 to 5.4.5) is evaluated at every stage of the integrator without
feedback, until it leaves the path, in several cases: from the position at rest of our plan, which is above the floor of
the law; from rest at its floor with minimum torques; with a new choice of the free coordinates when they become
ill-conditioned; after a time of stabilisation (figure 5.12); and with two additions to the document, an objective for
the free motions and feedback of the output. The text states neither gravity nor the initial strain; here gravity acts,
and every cable keeps 5 N. Table 5.9 moves along y.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_control.laws.least_effort_equilibrium import least_effort_equilibrium
from tensegrity_control.laws.near_rigid_extended_law import ExtendedNearRigidLaw
from tensegrity_control.motion_planning.near_rigid_model import NearRigidModel
from tensegrity_control.motion_planning.output_model import OutputModel
from tensegrity_control.trajectories.splines import HermiteSpline
from tensegrity_dynamics import Robot, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.units import STANDARD_GRAVITY

from ..output import panels, save_picture, table
from ..runtime.closed_loop import TrajectoryRun, Waypoint
from ._every_stage import every_stage
from ._progress import figures, report
from ._runs import Variants, gravity_vector, groups, listed, run_trajectory, through_nodes_in_words, twice_through_nodes

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
APPROACH, SETTLED = 4.0, 5.0  # times of arrival at the start of the path and of departure [s]
LOST = 0.05  # distance from the path at which the document's law is stopped [m]
FLOOR = 5.0  # N
USUAL_YOUNG, USUAL_DAMPING = 2e9, 10e6  # Pa and Pa s
STAGE, EVERY = 2e-3, 4  # step of the document's law [s], steps per sample
STABILISING = 5.0  # s
CASES: dict[str, dict[str, Any]] = {
    "from where the plan rests": {"start": "plan"},
    "from its floor": {},
    "coordinates re-chosen": {"rechosen": True},
    "stabilised first": {"rechosen": True, "stabilise": True},
    "free motions damped": {"rechosen": True, "damping": 10.0},
    "output fed back": {"rechosen": True, "feedback": 20.0},
    "damped and fed back": {"rechosen": True, "damping": 10.0, "feedback": 20.0},
}
"""Cases of the document's law; all except the first start at its floor."""
QUANTITIES = {
    "hold": "time",
    "period": "time",
    "young": "stress",
    "damping": "viscosity",
    "floor": "force",
    "gravity": "acceleration",
}
MAY_BE_ZERO = ("hold", "damping")
STRUTS = tuple(f"B{i}-{part}Jt" for i in (1, 2, 3) for part in ("dummy", "strut"))


def path(name: str, share: float = 1.0) -> HermiteSpline:
    """Trajectory of table 5.8 or 5.9; `share` scales its duration and its length."""
    moves = share * np.array(PATHS[name])
    return HermiteSpline(share * np.array(TIMES), np.array([0.0, 0.0, HEIGHT]) + moves, np.zeros((4, 3)))


def waypoints(spline: HermiteSpline) -> list[Waypoint]:
    """Waypoints: motion to the start of the path, rest there, and the knots of the path."""
    found: list[Waypoint] = [(APPROACH, spline.value(0.0), None), (SETTLED, spline.value(0.0), None)]
    return found + [(SETTLED + float(time), spline.value(float(time)), None) for time in spline.knots[1:]]


def run(
    paths: str | tuple[str, ...] = "vertical, horizontal",
    share: float = 1.0,
    hold: float = HOLD,
    period: float = PERIOD,
    young: float = USUAL_YOUNG,
    damping: float = USUAL_DAMPING,
    gravity: float = STANDARD_GRAVITY,
    floor: float = FLOOR,
    plans: bool = True,
    laws: bool = True,
    cases: str | tuple[str, ...] = ", ".join(CASES),
    nodes: bool = False,
) -> dict[str, Any]:
    """Errors, tensions and torques along the paths, for our control and for the document's law.

    Args:
        paths: names of `PATHS`, separated by commas. share: fraction of the document's duration and length.
        hold: duration of holding at the end [s]. period: control period [s].
        young, damping: modulus [Pa] and damping [Pa s] of all cables. gravity: m/s^2; without any, no
            prestress keeps the cables tight.
        floor: smallest tension of all cables [N]. plans, laws: whether our control and the document's law are run.
        cases: cases of the law, names of `CASES`, separated by commas.
        nodes: whether our control is also run with the real nodes in lock-step.
    """
    variants, rows = Variants(), []
    each_path, each_case = listed(paths, "paths", tuple(PATHS)), listed(cases, "cases", tuple(CASES))

    def change(blocks: dict[str, Any]) -> None:
        blocks["gravity"] = gravity_vector(gravity)
        for block in groups(blocks):
            for cable in block.get("cables", []):
                cable.update(young=young, damping=damping)
                cable["strain"] = cable["strain"] * USUAL_YOUNG / young
            for actuator in block.get("actuators", []):
                actuator["minimum_tension"] = floor

    file = variants.file(NAME, change)
    robot = load_robot(str(file))
    for name in each_path:
        spline = path(name, share)
        row: dict[str, Any] = {"path": name}
        rest = None
        if plans:
            through: dict[str, Any] = {"period": period, "time_step": min(1e-3, period), "hold": hold}
            part = f"the {name} path, planned"
            report(part)
            run = run_trajectory(file, "task", waypoints(spline), nodes=False, **through)
            row["ours"] = figures(part, _figures(run.after(SETTLED), spline, period, floor))
            report(f"{part}, observed")
            seen = run_trajectory(file, "task", waypoints(spline), nodes=False, observer=True, **through)
            row["observed"] = figures(f"{part}, observed", _figures(seen.after(SETTLED), spline, period, floor))
            rest = run.after(SETTLED).q[0]
            row |= {
                "planning_s": run.planning,
                "simulated_seconds_per_second": float(run.times[-1]) / run.wall,
            }
            if nodes:
                error = partial(_largest_error, spline, period, floor)
                points = waypoints(spline)
                found = twice_through_nodes(f"the {name} path", error, run, file, "task", points, **through)
                row["through_nodes"] = {"largest_error_m": found.pop("largest_error"), **found}
        if laws:
            row["laws"] = _laws(robot, spline, rest, floor, name, each_case)
        rows.append(row)
    if not any(row.get("ours") or row.get("laws") for row in rows):
        raise TensegrityError("these options leave nothing to run; leave out plans=no, laws=no or cases.")
    return {
        "experiment": NAME,
        "height_m": HEIGHT,
        "gravity_m_per_s2": robot.mechanism.gravity,
        "young_Pa": young,
        "damping_Pa_s": damping,
        "period_s": period,
        "floor_N": floor,
        "share_of_the_path": share,
        "paths": rows,
    }


def _largest_error(spline: HermiteSpline, period: float, floor: float, run: TrajectoryRun) -> float:
    """m, from the path, of a run after it has settled."""
    return float(_figures(run.after(SETTLED), spline, period, floor)["largest_error_m"])


def _figures(run: TrajectoryRun, spline: HermiteSpline, period: float, floor: float) -> dict[str, Any]:
    reference = np.array([spline.value(min(float(time), spline.end)) for time in run.times])
    errors = np.linalg.norm(run.poses - reference, axis=1)
    moving = round(spline.end / period) + 1
    least = float(np.min(run.tensions))
    return {
        "largest_error_m": float(np.max(errors[:moving])),
        "largest_error_while_holding_m": float(np.max(errors[moving:], initial=0.0)),
        "least_tension_N": least,
        "least_tension_over_floor": least / floor,
        "largest_torque_N_m": float(np.max(np.abs(run.commands))),
        "largest_error_of_the_observer": float(np.max(np.abs(run.seen_q - run.q))),
        "time_s": run.times[::8],
        "error_m": errors[::8],
        "tensions_N": run.tensions[::8],
    }


def _laws(
    robot: Robot, spline: HermiteSpline, rest: Array | None, floor: float, name: str, cases: list[str]
) -> list[dict[str, Any]]:
    """Results of the document's law in the given cases of `CASES`, see `_law`."""
    cables, limits = robot.mechanism.cables, tuple(replace(each, effort=1e6) for each in robot.actuators)
    unbounded = replace(robot, actuators=limits)
    strains = floor / np.array([cable.young * cable.area for cable in cables])
    at_floor = _start_at_floor(unbounded, spline.value(0.0), strains)
    rows = []
    for label in cases:
        options = CASES[label]
        start = rest if options.get("start") == "plan" else at_floor
        if start is None:  # without plans
            continue
        part = f"the {name} path, the document's law"
        report(f"{part}, {label}")
        own = {key: value for key, value in options.items() if key in ("rechosen", "damping")}
        law = ExtendedNearRigidLaw(unbounded, STRUTS, strains, **own)
        still = STABILISING if options.get("stabilise") else 0.0
        row = {"case": label, **_law(law, spline, start, still, options.get("feedback", 0.0))}
        rows.append(figures(part, row))
    return rows


def _start_at_floor(robot: Robot, goal: Array, strains: Array) -> Array:
    """(nq,) configuration at rest with the output at a position, minimum torques and no cable below its floor."""
    names = NearRigidModel(robot, STRUTS).names
    model, home = OutputModel(robot, names), MechanismEquilibriumMap(robot).home
    index = np.flatnonzero([name.endswith(".strain") for name in names])
    return least_effort_equilibrium(model, home.q, home.effort[model.drives], goal, index, strains)[0]


def _law(
    law: ExtendedNearRigidLaw, spline: HermiteSpline, start: Array, still: float, feedback: float
) -> dict[str, Any]:
    """Document's law at every stage of Runge-Kutta with unlimited torques, until it leaves the path.

    Args:
        still: duration of zero desired acceleration before the start of the path [s] (figure 5.12).
        feedback: bandwidth w of feedback gains 2 w and w^2 for rate and position of the output [1/s]; not part of the
            document.
    """
    model, measure = law.model, OutputModel(law.model.robot)
    young = min(cable.young for cable in model.mechanism.cables)
    step = STAGE * min(1.0, np.sqrt(USUAL_YOUNG / young))
    reason = "it stayed on the path"
    rows: list[tuple[float, Array, float, float, Array]] = []

    def note(time: float, q: Array) -> float:
        off = measure.output_position(q) - spline.value(max(0.0, time - still))
        least = float(np.min(q[model.q_strains] / law.floor))
        rows.append((time, off, least, _distance_to_singularity(measure, q), q[model.q_strains]))
        return float(np.linalg.norm(off))

    def efforts(time: float, q: Array, speed: Array) -> Array:
        desired = spline.value(max(0.0, time - still), 2) if time >= still else np.zeros(3)
        if feedback:
            position, rate = law.output(q, speed)
            at = max(0.0, time - still)
            desired = (
                desired + 2.0 * feedback * (spline.value(at, 1) - rate) + feedback**2 * (spline.value(at) - position)
            )
        return law.effort(q, speed, desired)

    note(0.0, start)
    motion = every_stage(law.model.robot, start, model.drives, efforts, step, still + spline.end)
    try:
        for k, (time, q) in enumerate(motion, start=1):
            if k % EVERY == 0 and not note(time, q) < LOST:
                reason = f"it was more than {1e3 * LOST:g} mm off its path"
                break
    except TensegrityError as lost:
        words = str(lost)
        for end in (" where ", " at ", " within "):
            words = words.split(end)[0]
        reason = f"it was thrown out of its shape ({words})"
    times, off, least, distance, strains = (np.array(each) for each in zip(*rows, strict=True))
    error = np.linalg.norm(off, axis=1)
    return {
        "start_over_floor": (float(np.min(strains[0] / law.floor)), float(np.max(strains[0] / law.floor))),
        "stopped_at_s": float(times[-1] - still),
        "because": reason,
        "slack": bool(np.min(least) <= 0.0),
        "least_strain_over_floor": float(np.min(least)),
        "largest_error_m": float(np.max(error)),
        "singular_value_at_the_start": float(distance[0]),
        "least_singular_value": float(np.min(distance)),
        "changes_of_coordinates": law.changes,
        "stabilising_s": still,
        "time_s": times - still,
        "error_m": error,
        "off_m": off,
        "singular_value": distance,
        "strains": strains,
    }


def _distance_to_singularity(model: OutputModel, q: Array) -> float:
    """Smallest singular value of K, the loop constraints with respect to all velocities."""
    found = equations(model.mechanism, q, np.zeros(model.mechanism.velocity_count))
    return float(np.linalg.svd(found.loop, compute_uv=False)[-1])


def render(result: dict[str, Any], console: Console) -> None:
    """Print errors, tensions and torques as a table, and the point at which the document's law fails."""
    gravity = f"gravity {-result['gravity_m_per_s2'][2]:.4g} m/s^2"
    console.print(
        f"manipulator, E = {1e-6 * result['young_Pa']:g} MPa, damping {1e-6 * result['damping_Pa_s']:g} MPa s, "
        f"{gravity}, start at rest "
        f"at h0 = {result['height_m']:.6f} m, torques held over {1e3 * result['period_s']:g} ms, "
        f"cables above {result['floor_N']:g} N.\n",
        highlight=False,
    )
    rows: list[tuple[str, ...]] = [
        (row["path"] + label, f"{own['largest_error_m']:.1e}", f"{own['largest_error_while_holding_m']:.1e}",
         f"{own['least_tension_N']:.2f}", f"{own['least_tension_over_floor']:.2f}", f"{own['largest_torque_N_m']:.2f}")
        for row in result["paths"]
        for label, own in (("", row.get("ours")), (", observed", row.get("observed"))) if own
    ]  # fmt: skip
    heads: tuple[str, ...] = ("path", "error [m]", "while holding", "least tension [N]", "of floor", "torque [N m]")
    if rows:
        console.print(table("planned over the whole path, with feedback", heads, rows, right=range(1, 6)))
        console.print("observed: the state from pulley angles and torques; else the simulator's.\n", highlight=False)
    through = [row["through_nodes"] for row in result["paths"] if "through_nodes" in row]
    if through:
        console.print(through_nodes_in_words(through), highlight=False)
    floor = result["floor_N"]
    heads = ("path", "case", "start/floor", "ends at [s]", "off [mm]", "least/floor", "sv of K: start", "least", "why")
    rows = [
        (row["path"], law["case"], "{:.2f}..{:.2f}".format(*law["start_over_floor"]), f"{law['stopped_at_s']:.2f}",
         f"{1e3 * law['error_m'][-1]:.3g}", f"{law['least_strain_over_floor']:.2f}",
         f"{law['singular_value_at_the_start']:.3f}", f"{law['least_singular_value']:.3f}", law["because"])
        for row in result["paths"] for law in row.get("laws", [])
    ]  # fmt: skip
    if rows:
        console.print(table(f"the document's law at every stage, floor {floor:g} N", heads, rows, right=range(2, 8)))
        console.print(
            "sv of K: the smallest singular value of the loops, which no choice of coordinates changes.",
            highlight=False,
        )  # fmt: skip


def draw(result: dict[str, Any], picture: Path) -> None:
    """Plot the errors of both (5.13, 5.14) and the tensions of our control, one row per path."""
    rows = result["paths"]
    columns = 5 if any("ours" in row for row in rows) else 3
    size = (4.4 * columns, 3.8 * len(rows))
    figure, axes = panels(len(rows), columns, figsize=size, squeeze=False)
    for line, row in zip(axes, rows, strict=True):
        for n, law in enumerate(row.get("laws", [])):
            style = {"color": f"C{n}", "linewidth": 1.0, "label": law["case"]}
            line[0].semilogy(law["time_s"], 1e3 * np.maximum(np.asarray(law["error_m"]), 1e-9), **style)
            line[1].plot(law["time_s"], law["singular_value"], **style)
            if law["stabilising_s"]:
                still = np.asarray(law["time_s"]) <= 0.0
                for k, axis in enumerate("xyz"):
                    line[2].plot(np.asarray(law["time_s"])[still], 1e3 * np.asarray(law["off_m"])[still, k], label=axis)
        for axis in line[:2]:
            axis.legend(fontsize=7)
        line[0].set_ylabel("distance from the path [mm]")
        line[0].set_title(f"{row['path']}, the document's law", fontsize=10)
        line[1].set_ylabel("smallest singular value of K")
        line[1].set_title("distance to a kinematic singularity", fontsize=10)
        line[2].set_ylabel("output off its position [mm]")
        line[2].set_title("stabilising before the path (figure 5.12)", fontsize=10)
        if line[2].lines:
            line[2].legend(fontsize=7)
        if "ours" in row:
            own = row["ours"]
            line[3].plot(own["time_s"], 1e6 * np.asarray(own["error_m"]))
            tensions = np.asarray(own["tensions_N"])
            for k in range(tensions.shape[1]):
                line[4].plot(own["time_s"], tensions[:, k], label=f"cable {k + 1}", linewidth=1.0)
            line[4].legend(fontsize=7, ncol=2)
            line[3].set_ylabel("distance from the path [um]")
            line[3].set_title(f"{row['path']}, planned with feedback, then held", fontsize=10)
            line[4].axhline(result["floor_N"], color="k", linewidth=0.8, linestyle="--")
            line[4].set_ylabel("tension [N]")
            line[4].set_title("tensions, dashed the floor", fontsize=10)
        for axis in line:
            axis.grid(alpha=0.3)
            axis.set_xlabel("time [s]")
    save_picture(figure, picture, dpi=110)
