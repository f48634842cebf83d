"""Biglide: kinematic control, computed torque and crossing of a singularity, chapters 3 and 4 of 002.

Cases: kinematic control with communication times of 0.1, 0.05 and 0.025 s; computed torque from (0, 0.30005393) to
(0.1, 0.1) in 2 s; the crossing (0.1, 0.3) -> (0, 1) -> (-0.1, 1.8) on the working mode (+, -), planned with the
criterion (4.2), or with y'' = 0 instead, and the straight path (0.1, 0.4) -> (-0.1, 0.2) of chapter 3. Velocity and
acceleration at the crossing are not printed: here they follow from the straight line from start to end over 2 s, with
a non-zero acceleration, since with zero the criterion is trivially satisfied (0 = 0). All three paths are followed by
computed torque without a guard at the singularity, with efforts held over several periods.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control.controllers.computed_torque import ComputedTorqueTracker
from tensegrity_control.motion_planning.singularity_crossing import (
    SingularPathError,
    check_path,
    crossing_trajectory,
    efforts_along,
    smooth_crossing,
)
from tensegrity_control.trajectories.quintic import QuinticSpline
from tensegrity_control.trajectories.splines import PiecewisePolynomial, Trajectory
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.kinematics.mode_enumeration import working_modes
from tensegrity_dynamics.mechanisms.kinematics.parallel_kinematics import LoopKinematics
from tensegrity_dynamics.mechanisms.robot_kinematics import loop_kinematics
from tensegrity_dynamics.numerics.types import Array

from ..output import panels, save_picture, table
from ..runtime.closed_loop import TrajectoryRun
from ._progress import figures, report
from ._runs import Variants, run_trajectory, same_bits, spread, through_nodes_in_words

NAME = "biglide"
DESCRIPTION = "kinematic control, computed torque and a crossed singularity of 002, chapters 3 and 4"

START, END, DURATION = (0.0, 0.30005393), (0.1, 0.1), 2.0
COMMUNICATION = (0.1, 0.05, 0.025)
GAIN, STIFFNESS, DAMPING = 2.0, 1.0, 2.0
CROSSING, CROSSING_TIMES = ((0.1, 0.3), (0.0, 1.0), (-0.1, 1.8)), (0.0, 1.0, 2.0)
CROSSED = CROSSING_TIMES[1]
BESIDE = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # times before and after the crossing [s]
PERIODS = (2e-3, 5e-3, 1e-2)  # periods over which efforts are held [s]
NEAREST = 0.02  # as in `ComputedTorqueController`
QUANTITIES = {"speed": "speed", "acceleration": "acceleration"}
MAY_BE_ZERO = ("acceleration", "damping")
FORCES = "force_N_before_and_after"
FAILING = ((0.1, 0.4), (-0.1, 0.2))
GOAL = [(DURATION, (*END, 0.0), None)]


def straight(first: tuple[float, float], last: tuple[float, float]) -> QuinticSpline:
    """Quintic polynomial of (3.1) from rest to rest."""
    return QuinticSpline([0.0, DURATION], [first, last], rates=np.zeros((2, 2)), accelerations=np.zeros((2, 2)))


def run(
    speed: float = 0.7566, acceleration: float = 0.7566, stiffness: float = 100.0, damping: float = 20.0,
    nearest: float = NEAREST, nodes: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run all cases.

    Args:
        speed: speed at the crossing along the line from start to end [m/s].
        acceleration: acceleration at the crossing along the same line [m/s^2]; the nearest one that satisfies the
            criterion is used.
        stiffness, damping: gains K_p [1/s^2] and K_d [1/s] of computed torque on the paths through the singularity.
        nearest: distance to the singularity below which feedback is disabled, as in the controller.
        nodes: whether runs with a controller are repeated with the real nodes in lock-step.
    """
    robot = load_robot(NAME)
    kinematics, start = loop_kinematics(robot), robot.model.initial_configuration
    line = np.subtract(CROSSING[2], CROSSING[0])
    line /= np.linalg.norm(line)
    crossed = speed * line, acceleration * line
    try:  # before the minutes of the other cases
        mode, paths = crossing_paths(kinematics, start, crossed)
    except TensegrityError as error:
        raise TensegrityError(
            f"the crossing with speed={speed:g} m/s and acceleration={acceleration:g} m/s^2: {error}"
        ) from None
    kinematic = []
    for period in COMMUNICATION:
        report(f"kinematic control, a communication time of {period:g} s")
        kinematic.append(figures("kinematic control", _kinematic(period, nodes)))
    report("computed torque")
    torque = figures("computed torque", _computed_torque(nodes))
    report("the crossing")
    return {
        "experiment": NAME,
        "kinematic": kinematic,
        "computed_torque": torque,
        "crossing": _crossing(kinematics, mode, paths, (stiffness, damping, nearest), nodes),
    }


def _kinematic(period: float, nodes: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        "period": period, "interpolation": "minimum_jerk", "hold": DURATION, "parameters": {"gain": GAIN}
    }  # fmt: skip
    first = run_trajectory(NAME, "kinematic", GOAL, nodes=False, **options)
    own = _errors(first)
    result = {
        "communication_time_s": period,
        "largest_error_m": own["largest_error_m"],
        "error_at_the_end_m": float(np.linalg.norm(own["error_m"][-1])),
        "time_s": own["time_s"],
        "error_m": own["error_m"],
    }
    return _compared(result, "kinematic", GOAL, options) if nodes else result


def _computed_torque(nodes: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        "period": 1e-3, "interpolation": "minimum_jerk", "parameters": {"stiffness": STIFFNESS, "damping": DAMPING}
    }  # fmt: skip
    first = run_trajectory(NAME, "computed_torque", GOAL, nodes=False, **options)
    result = _errors(first)
    return _compared(result, "computed_torque", GOAL, options) if nodes else result


def _errors(run: TrajectoryRun, path: Trajectory | None = None) -> dict[str, Any]:
    reference = path or straight(START, END)
    error = run.poses[:, :2] - np.array([reference.value(min(float(time), reference.end)) for time in run.times])
    every = max(1, len(run.times) // 400)
    return {
        "largest_error_m": float(np.max(np.linalg.norm(error, axis=1))),
        "largest_force_N": float(np.max(np.abs(run.commands))),
        "time_s": run.times[:-1:every],
        "error_m": error[:-1:every],
        "force_N": run.commands[::every],
    }


def _compared(
    result: dict[str, Any], controller: str, waypoints: Any, options: dict[str, Any],
    robot: Path | str = NAME, path: Trajectory | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Result, with the results of two runs with the nodes added."""
    report(f"{controller} through the nodes, twice")
    runs = [run_trajectory(robot, controller, waypoints, nodes=True, **options) for _ in range(2)]
    error = _errors(runs[0], path)["largest_error_m"]
    return {
        **result,
        "through_nodes": {
            "largest_error_m": error,
            "apart": spread(error, result["largest_error_m"]),
            "two_runs_have_the_same_bits": same_bits(*runs),
        },
    }


def crossing_paths(
    kinematics: LoopKinematics, start: Array, crossed: tuple[Array, Array]
) -> tuple[Array, tuple[PiecewisePolynomial, PiecewisePolynomial]]:
    """Working mode (nq,) of the crossing, and the paths with the criterion and with y'' = 0.

    Args:
        start: (nq,) configuration. crossed: velocity (2,) [m/s] and acceleration (2,) [m/s^2] at the crossing.

    Raises:
        TensegrityError: a path leaves the workspace of the mode.
    """
    q = kinematics.inverse(CROSSING[0], start)
    mode = next(each for each in working_modes(kinematics, q).values() if each[0] > CROSSING[0][1] > each[2])
    good = crossing_trajectory(kinematics, CROSSING, CROSSING_TIMES, mode, *crossed)
    rate, acceleration = good.value(CROSSED, 1), good.value(CROSSED, 2)
    flat = smooth_crossing(np.array(CROSSING_TIMES), np.array(CROSSING), rate, acceleration * [1.0, 0.0])
    for path in (good, flat):
        with suppress(SingularPathError):  # `_crossing` reports it
            check_path(kinematics, path, mode)
    return mode, (good, flat)


def _crossing(
    kinematics: LoopKinematics, mode: Array, made: tuple[PiecewisePolynomial, PiecewisePolynomial],
    gains: tuple[float, ...], nodes: bool,
) -> dict[str, Any]:  # fmt: skip
    good, flat = made
    rate, acceleration = good.value(CROSSED, 1), good.value(CROSSED, 2)
    times = np.linspace(*CROSSING_TIMES[::2], 402)  # never exactly at the crossing
    result: dict[str, Any] = {
        "velocity_at_the_crossing_m_per_s": rate,
        "acceleration_at_the_crossing_m_per_s2": acceleration,
        "time_s": times,
        "path_m": good.value(times),
        "force_with_criterion_N": efforts_along(kinematics, good, mode, times),
        "force_without_criterion_N": efforts_along(kinematics, flat, mode, times),
    }
    for name in ("with", "without"):
        result[f"largest_force_{name}_criterion_N"] = float(np.max(np.abs(result[f"force_{name}_criterion_N"])))
    paths: dict[str, PiecewisePolynomial] = {"with the criterion": good, "y'' = 0": flat}
    result["beside_the_crossing"] = [
        {"path": label, "s_from_the_crossing": beside,
         FORCES: efforts_along(kinematics, path, mode, [CROSSED - beside, CROSSED + beside])[:, 0]}
        for label, path in paths.items() for beside in BESIDE
    ]  # fmt: skip
    refused = {}
    for label, path in paths.items():
        try:
            check_path(kinematics, path, mode)
            refused[label] = ""
        except SingularPathError as error:
            refused[label] = str(error)
    result["refused"] = refused
    first = kinematics.inverse(FAILING[0], mode)
    followed: list[tuple[str, PiecewisePolynomial, Array]] = [(label, path, mode) for label, path in paths.items()]
    followed.append(("straight, of chapter 3", straight(*FAILING), first))
    result["followed"] = []
    for label, path, q in followed:
        for period in PERIODS:
            report(f"the crossing followed, {label}, efforts held over {1e3 * period:g} ms")
            row = _followed(kinematics, label, path, q, gains, period)
            result["followed"].append(figures("the crossing followed", row))
    report("the crossing that the controller plans")
    result["controlled"] = figures("the crossing that the controller plans", _controlled(mode, gains, nodes))
    return result


def _controlled(mode: Array, gains: tuple[float, ...], nodes: bool) -> dict[str, Any]:
    """Result of the controller for the crossing that it plans for waypoints, with sufficiently fast actuators."""
    variants = Variants()

    def change(blocks: dict[str, Any]) -> None:
        for joint, start in zip(blocks["joints"], mode.tolist(), strict=True):
            joint["start"] = [start]
        for actuator in blocks["actuators"]:
            actuator["rate"] = 5.0

    robot = variants.file(NAME, change)
    positions = zip(CROSSING_TIMES[1:], CROSSING[1:], strict=True)
    waypoints = [(time, (*position, 0.0), None) for time, position in positions]
    parameters = dict(zip(("stiffness", "damping", "nearest"), gains, strict=True))
    options: dict[str, Any] = {"period": 1e-3, "interpolation": "crossing", "parameters": parameters}
    kinematics = loop_kinematics(load_robot(robot))
    path = crossing_trajectory(kinematics, CROSSING, CROSSING_TIMES, mode)  # as planned by the controller
    first = run_trajectory(robot, "computed_torque", waypoints, nodes=False, **options)
    result = _errors(first, path)
    return _compared(result, "computed_torque", waypoints, options, robot, path) if nodes else result


def _followed(
    kinematics: LoopKinematics,
    label: str,
    path: PiecewisePolynomial,
    first: Array,
    gains: tuple[float, ...],
    period: float,
) -> dict[str, Any]:
    """Computed torque through the singularity with unlimited efforts held over a period, as in the controller.

    At distances below `nearest` feedback is disabled and the efforts of the path act; at the singularity, the last
    ones.
    """
    stiffness, damping, nearest = gains
    robot = load_robot(NAME)
    control = ComputedTorqueTracker(kinematics, path, first, stiffness=stiffness, damping=damping, nearest=0.0)
    simulation, force, error, reason = Simulation(robot, 1e-3, start=first), 0.0, 0.0, ""
    names, effort = [each.name for each in robot.actuators], np.zeros(len(robot.actuators))
    try:
        for _ in range(round(path.end / period)):
            q, v = simulation.state.q, simulation.state.v
            time = simulation.state.time
            error = max(error, float(np.linalg.norm(kinematics.output_values(q) - path.value(time))))
            with suppress(InfeasibleControlError):
                planned = control.reference(time)
                if kinematics.first_order(planned.q).type_2 < nearest:
                    q, v = planned.q, planned.v
                effort = control.effort(time, q, v)
            force = max(force, float(np.max(np.abs(effort))))
            simulation.advance(round(period / 1e-3), effort=dict(zip(names, effort.tolist(), strict=True)))
    except TensegrityError as stopped:
        reason = str(stopped)
    return {
        "path": label, "period_s": period, "largest_force_N": force, "largest_error_m": error,
        "ended_at_s": simulation.state.time, "because": reason,
    }  # fmt: skip


def render(result: dict[str, Any], console: Console) -> None:
    """Print errors and forces as tables."""
    errors = [row["largest_error_m"] for row in result["kinematic"]]
    ratios = ("", *(f"{error / last:.3f}" for last, error in pairwise(errors)))
    rows: list[tuple[str, ...]] = [
        (f"{row['communication_time_s']:g}", f"{1e3 * row['largest_error_m']:.3f}", ratio)
        for row, ratio in zip(result["kinematic"], ratios, strict=False)
    ]
    title = f"kinematic control, gain {GAIN:g}: printed: halving the communication time halves the error"
    heads: tuple[str, ...] = ("communication time [s]", "largest error [mm]", "ratio to the one above")
    console.print(table(title, heads, rows, right=range(3)))
    own = result["computed_torque"]
    console.print(
        f"\ncomputed torque, K_p = {STIFFNESS:g}, K_d = {DAMPING:g}: largest error "
        f"{1e3 * own['largest_error_m']:.3g} mm, largest force {own['largest_force_N']:.3g} N (printed: converges).",
        highlight=False,
    )
    crossing = result["crossing"]
    console.print(
        f"\ncrossing at (0, 1): velocity {np.round(crossing['velocity_at_the_crossing_m_per_s'], 4).tolist()} m/s, "
        f"acceleration {np.round(crossing['acceleration_at_the_crossing_m_per_s2'], 4).tolist()} m/s^2.",
        highlight=False,
    )
    rows = [
        (row["path"], f"{row['s_from_the_crossing']:g}", *(f"{force:.5g}" for force in row[FORCES]))
        for row in crossing["beside_the_crossing"]
    ]
    title = "force of the first foot beside the crossing [N] (printed: 1e7 to 1e8 at it)"
    console.print(table(title, ("path", "s from it", "before", "after"), rows, right=range(1, 4)))
    controlled = crossing["controlled"]
    console.print(
        "computed torque on the crossing that the controller plans itself: largest error "
        f"{1e3 * controlled['largest_error_m']:.3g} mm, largest force {controlled['largest_force_N']:.4g} N.",
        highlight=False,
    )
    runs = [*result["kinematic"], own, controlled]
    through = [row["through_nodes"] for row in runs if "through_nodes" in row]
    if through:
        console.print(through_nodes_in_words(through), highlight=False)
    for label, reason in crossing["refused"].items():
        console.print(f"{label}: {'refused: ' + reason if reason else 'let through'}", highlight=False)
    rows = [
        (row["path"], f"{1e3 * row['period_s']:g}", f"{row['largest_force_N']:.4g}",
         f"{1e3 * row['largest_error_m']:.3g}", f"{row['ended_at_s']:.3f}", row["because"] or "the end of the path")
        for row in crossing["followed"]
    ]  # fmt: skip
    heads = ("path", "period [ms]", "largest force [N]", "largest error [mm]", "until [s]", "because")
    console.print(table("\nfollowed by computed torque with unlimited forces", heads, rows, right=range(1, 5)))


def draw(result: dict[str, Any], picture: Path) -> None:
    """Plot tracking errors (3.2 to 3.4, 3.6), and path and forces of the crossing (4.1, 4.2, 4.4)."""
    figure, axes = panels(2, 3, figsize=(13, 7))
    for row in result["kinematic"]:
        error = 1e3 * np.linalg.norm(row["error_m"], axis=1)
        axes[0, 0].plot(row["time_s"], error, label=f"{row['communication_time_s']:g} s")
    axes[0, 0].set_title("kinematic control (figures 3.2 to 3.4)", fontsize=10)
    own, crossing = result["computed_torque"], result["crossing"]
    for k, name in enumerate(("x", "y")):
        axes[0, 1].plot(own["time_s"], 1e3 * np.asarray(own["error_m"])[:, k], label=name)
        axes[0, 2].plot(own["time_s"], np.asarray(own["force_N"])[:, k], label=f"foot {k + 1}")
        axes[1, 0].plot(crossing["time_s"], np.asarray(crossing["path_m"])[:, k], label=name)
        axes[1, 1].plot(crossing["time_s"], np.asarray(crossing["force_with_criterion_N"])[:, k], label=f"foot {k + 1}")
        axes[1, 2].plot(
            crossing["time_s"], np.asarray(crossing["force_without_criterion_N"])[:, k], label=f"foot {k + 1}"
        )
    for axis, title, unit in (
        (axes[0, 0], None, "error [mm]"),
        (axes[0, 1], "computed torque (figure 3.6)", "error [mm]"),
        (axes[0, 2], "its forces", "force [N]"),
        (axes[1, 0], "crossing path (figure 4.1)", "position [m]"),
        (axes[1, 1], "forces with the criterion (4.2)", "force [N]"),
        (axes[1, 2], "forces without it (4.4)", "force [N]"),
    ):
        if title:
            axis.set_title(title, fontsize=10)
        axis.set_ylabel(unit)
        axis.set_xlabel("time [s]")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    save_picture(figure, picture, dpi=110)
