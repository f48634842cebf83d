"""Figures 7 to 13 of 001: shapes from lengths, also from disturbed starts, and lengths for goals.

The document prints only these numbers: initial and final shape of the three-bar prism (5.4.1), the flange of TenseBot
with strings of 8.5 in (6.1), and 48 of 50 disturbed starts that lead to the same shape (5.5). The bar of figures 7 and
12 has the length 1. The ends and the stiffness of its tendons, and the size of the disturbances are not stated; the
values used here are the constants below.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control import inverse_kinematics
from tensegrity_dynamics import Robot, forward_kinematics, load_robot
from tensegrity_dynamics.errors import NoEquilibriumError
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, quaternion_from_matrix
from tensegrity_dynamics.structures.structure import Structure, make_structure

from ..output import panels, save_picture, table
from ._progress import figures, report

NAME = "kinematics"
DESCRIPTION = "001: figures 7 to 13, shapes from lengths, from disturbed starts, too, and lengths for goals"
QUANTITIES = {"noise": "length"}

INCH = 0.0254
BAR, STRING, REST = 1000.0, 100.0, 1.2
"""Stiffness of the single bar [N/m], stiffness [N/m] and rest length [m] of its tendons. The bar has a length of 1 m
and its foot at the origin; the tendons end at x = -1 m and 1 m."""
BAR_START, BAR_GOAL = 60.0, 45.0
"""Angles of figures 7 and 12 [deg]; in the document the bar moves from 90 to 45."""
DELTA, EPSILON, THRESHOLD = 0.01, 0.05, 1e-5
"""Parameters of Algorithm 1 (table 7, section 5.4.1) [m/N, -, N]."""
PRISM = ((0.4981, 0.2920, 0.9555), (-0.0038, -0.5774, 0.9555), (-0.5019, 0.2854, 0.9555))
PRISM_ITERATIONS = 644
"""Printed top of the three-bar prism [m], and number of iterations (table 7)."""
FLANGE_HEIGHT, FLANGE_TURN = 7.5324, -0.0029
"""Printed height [in] and rotation [rad] of the flange of TenseBot."""
SAME_SHAPE = 1e-4
"""Largest distance of nodes of equal shapes [m]."""
MOVES = (
    ("x + 1 in", (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)), ("y + 1 in", (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)),
    ("z + 0.5 in", (0.0, 0.0, 0.5), (0.0, 0.0, 0.0)), ("5 deg about x", (0.0, 0.0, 0.0), (5.0, 0.0, 0.0)),
    ("5 deg about y", (0.0, 0.0, 0.0), (0.0, 5.0, 0.0)), ("5 deg about z", (0.0, 0.0, 0.0), (0.0, 0.0, 5.0)),
)  # fmt: skip


def run(starts: int = 50, noise: float = 1.5 * INCH, seed: int = 0) -> dict[str, Any]:
    """Run all figures.

    Args:
        starts: number of disturbed starts of figure 11. noise: standard deviation of their free node coordinates [m].
        seed: seed of the noise.
    """
    report("a single bar")
    found: dict[str, Any] = {"experiment": NAME, "figure_7": _single_bar()}
    for figure, name in (("figure_8", "three_prism"), ("figure_9", "four_prism"), ("figure_10", "tensebot")):
        report(f"{name} from its start")
        found[figure] = figures(name, _shape(_robot(name)))
    found["figure_8"] |= figures("three_prism as printed", _printed_prism(_robot("three_prism")))
    report(f"{starts} disturbed starts")
    found["figure_11"] = figures("disturbed starts", _disturbed(_robot("tensebot"), starts, noise, seed))
    found["figure_12"] = figures("a goal of the bar", _bar_goal())
    found["figure_13"] = [figures(name, _goal(_robot("tensebot"), name, *move)) for name, *move in MOVES]
    return found


def _robot(name: str) -> Robot:
    """Shipped robot without gravity, since the flange of the document has no weight, see robots/tensebot.yaml."""
    robot = load_robot(name)
    return replace(robot, model=replace(robot.structure, gravity=np.zeros(3)))


def _lengths(robot: Robot) -> dict[str, float] | None:
    """Lengths of all strings of TenseBot, 8.5 in as in the document; None for other robots: lengths of the file."""
    return {each.name: 8.5 * INCH for each in robot.actuators} if robot.name == "tensebot" else None


# -- figures 7 and 12: a bar of length 1 in the plane ------------------------------------------------------------------


def single_bar(angle: float, rest: tuple[float, float] = (REST, REST)) -> Structure:
    """Structure of the bar at an angle [rad] to the x axis between its tendons with given rest lengths [m]."""
    tip = (np.cos(angle), 0.0, np.sin(angle))
    nodes = {"foot": (0.0, 0.0, 0.0), "left": (-1.0, 0.0, 0.0), "right": (1.0, 0.0, 0.0), "tip": tip}
    members = [
        ("bar", "bar", "foot", "tip", BAR, 1.0),
        ("left", "tendon", "left", "tip", STRING, rest[0]),
        ("right", "tendon", "right", "tip", STRING, rest[1]),
    ]
    return make_structure(nodes, members, fixed=("foot", "left", "right"), rollers={"tip": "y"})


def angle_of(nodes: Any) -> float:
    """Angle of the bar [rad]."""
    return float(np.arctan2(nodes[3][2], nodes[3][0]))


def _single_bar() -> dict[str, Any]:
    """Algorithm 1, implemented here step by step, compared with the result of the library."""
    structure = single_bar(np.radians(BAR_START))
    tip, speed, angles, pulls = np.array(structure.nodes[3]), np.zeros(3), [], []
    ends = structure.nodes[:3]
    stiffness, rest = np.array([BAR, STRING, STRING]), np.array([1.0, REST, REST])
    while True:
        away = tip - ends
        lengths = np.linalg.norm(away, axis=1)
        force = stiffness * (rest - lengths)
        force[1:] = np.minimum(force[1:], 0.0)  # slack tendons carry no force
        pull = (force / lengths) @ away
        angles.append(float(np.degrees(np.arctan2(tip[2], tip[0]))))
        pulls.append(float(np.linalg.norm(pull)))
        if np.abs(pull).max() < THRESHOLD:
            break
        speed = (1.0 - EPSILON) * speed + EPSILON * pull
        tip = tip + DELTA * speed
    ours = forward_kinematics(structure)
    return {
        "start_deg": BAR_START, "iterations": len(angles) - 1, "swings_to_deg": float(np.max(angles)),
        "end_deg": angles[-1], "ours_deg": np.degrees(angle_of(ours.nodes)), "first_pull_N": pulls[0],
        "angles_deg": angles,
    }  # fmt: skip


def _bar_goal() -> dict[str, Any]:
    """Algorithm 2 with the Jacobian by finite differences, from 90 to 45 deg, with minimum change of both tendons."""
    goal, rest = np.radians(BAR_GOAL), np.array([REST, REST])
    shape = forward_kinematics(single_bar(0.5 * np.pi))
    angles = [angle_of(shape.nodes)]

    def solved(lengths: Any) -> Any:
        return forward_kinematics(single_bar(0.5 * np.pi, tuple(lengths)), start=shape.nodes)

    while abs(goal - angles[-1]) > 1e-9 and len(angles) < 100:
        step = 1e-6 * np.eye(2)
        slope = np.array([
            (angle_of(solved(rest + h).nodes) - angle_of(solved(rest - h).nodes)) / 2e-6 for h in step
        ])  # fmt: skip
        error = np.clip(goal - angles[-1], -np.radians(5.0), np.radians(5.0))
        rest = rest + slope * error / (slope @ slope)
        shape = solved(rest)
        angles.append(angle_of(shape.nodes))
    tip = shape.nodes[3]
    pulls = [shape.tensions[k] * (shape.nodes[k] - tip) / shape.lengths[k] for k in (1, 2)]
    left, right = (float(np.cross(tip, pull)[1]) for pull in pulls)
    return {
        "steps": len(angles) - 1, "end_deg": np.degrees(angles[-1]), "rest_lengths_m": rest.tolist(),
        "tensions_N": shape.tensions[1:].tolist(), "stable": shape.stable,
        "moment_left_Nm": left, "moment_right_Nm": right,
        "angles_deg": np.degrees(angles).tolist(),
    }  # fmt: skip


# -- figures 8 to 11: shapes -------------------------------------------------------------------------------------------


def _shape(robot: Robot) -> dict[str, Any]:
    """Shape by relaxation from the nodes of the file, and by Newton's method."""
    exact = forward_kinematics(robot, _lengths(robot))
    try:
        relaxed = forward_kinematics(robot, _lengths(robot), method="relaxation")
    except NoEquilibriumError as error:
        iterations: int | str = str(error)
        apart = None
    else:
        iterations, apart = relaxed.iterations, float(np.abs(relaxed.nodes - exact.nodes).max())
    pulling = exact.structure.unilateral
    found = {
        "iterations": iterations, "apart_m": apart, "newton_iterations": exact.iterations,
        "residual_N": exact.residual, "stable": exact.stable,
        "bars_m": np.sort(exact.lengths[~pulling])[[0, -1]].tolist(),
        "tendons_m": np.sort(exact.lengths[pulling])[[0, -1]].tolist(),
        "start_m": robot.structure.nodes.tolist(), "nodes_m": exact.nodes.tolist(),
        "members": robot.structure.members.tolist(), "pulling": pulling.tolist(),
    }  # fmt: skip
    if robot.name == "tensebot":
        found["height_in"], found["turn_rad"] = float(exact.pose[0][2] / INCH), _turn(exact.pose[1])
    return found


def _printed_prism(robot: Robot) -> dict[str, Any]:
    """Prism by Algorithm 1 with the values of the document, which stop it early, as its torsional stiffness is
    small."""
    shape = forward_kinematics(robot, method="relaxation", delta=DELTA, epsilon=EPSILON, tolerance=THRESHOLD)
    return {
        "printed_iterations": PRISM_ITERATIONS, "as_printed_iterations": shape.iterations,
        "printed_error_m": float(np.abs(shape.nodes[3:] - PRISM).max()),
    }  # fmt: skip


def _turn(quaternion: Any) -> float:
    """Rotation about z, the last of the 3-2-1 Euler angles [rad]."""
    rotation = matrix_from_quaternion(quaternion)
    return float(np.arctan2(rotation[1, 0], rotation[0, 0]))


def _disturbed(robot: Robot, starts: int, noise: float, seed: int) -> dict[str, Any]:
    """Shapes by relaxation and by Newton's method from starts with disturbances of all free nodes."""
    draw, usual = np.random.default_rng(seed), robot.structure.nodes
    home, free = forward_kinematics(robot, _lengths(robot)).nodes, robot.structure.free
    held = ~np.isin(np.arange(3 * len(usual)), free).reshape(-1, 3).any(axis=1)
    same, heights, began = {"relaxation": 0, "newton": 0}, [], []
    for _ in range(starts):
        start = usual.copy()
        start.flat[free] += noise * draw.normal(size=len(free))
        began.append(start[~held].tolist())
        for method in same:
            try:
                shape = forward_kinematics(robot, _lengths(robot), start=start, method=method)
            except NoEquilibriumError:
                continue
            same[method] += bool(np.abs(shape.nodes - home).max() < SAME_SHAPE)
            if method == "relaxation":
                heights.append(float(shape.pose[0][2]))
    return {
        "starts": starts, "noise_m": noise, "same_by_relaxation": same["relaxation"], "same_by_newton": same["newton"],
        "printed": "48 of 50", "heights_m": sorted(heights), "began_m": began, "home_m": home.tolist(),
    }  # fmt: skip


# -- figure 13: goals of TenseBot --------------------------------------------------------------------------------------


def _goal(robot: Robot, name: str, move: Any, turn: Any) -> dict[str, Any]:
    """String lengths for a motion of the flange; their shape is verified by relaxation."""
    start = forward_kinematics(robot, _lengths(robot))
    position = start.pose[0] + INCH * np.array(move)
    rotation = matrix_from_vector(np.radians(turn)) @ matrix_from_quaternion(start.pose[1])
    solved = {
        method: inverse_kinematics(
            robot, position, quaternion_from_matrix(rotation), start=start, method=method, tension_floor=0.0
        )
        for method in ("newton", "broyden")
    }  # fmt: skip
    ours = solved["newton"]
    again = forward_kinematics(robot, ours.positions, start=start, method="relaxation")
    left = again.pose[0] - position
    return {
        "move": name, "steps": ours.iterations, "steps_broyden": solved["broyden"].iterations,
        "shapes": ours.solves, "shapes_broyden": solved["broyden"].solves,
        "error_m": float(np.linalg.norm(left)),
        "least_tension_N": float(again.tensions[again.structure.unilateral].min()),
        "lengths_in": {each: value / INCH for each, value in ours.positions.items()},
        "nodes_m": again.nodes.tolist(),
    }  # fmt: skip


# -- output ------------------------------------------------------------------------------------------------------------


def render(result: dict[str, Any], console: Console) -> None:
    """Print the results as tables."""
    bar, goal = result["figure_7"], result["figure_12"]
    rows = [
        ("7, Algorithm 1", f"{bar['start_deg']:g} to {bar['end_deg']:.6f} deg in {bar['iterations']} iterations"),
        ("", f"pulled by {bar['first_pull_N']:.4g} N at first, swings to {bar['swings_to_deg']:.2f} deg"),
        ("by Newton's method", f"{bar['ours_deg']:.6f} deg"),
        ("12, Algorithm 2", f"90 to {goal['end_deg']:.6f} deg in {goal['steps']} steps of 5 deg at most"),
        ("", "rest lengths " + " and ".join(f"{each:.5f}" for each in goal["rest_lengths_m"]) + " m"),
        ("moments of the tendons", f"{goal['moment_left_Nm']:.6f} and {goal['moment_right_Nm']:.6f} N m"),
    ]
    console.print(table("figures 7 and 12, a bar of length 1", ("", ""), rows))
    shapes = []
    for number, name in ((8, "three_prism"), (9, "four_prism"), (10, "tensebot")):
        shape = result[f"figure_{number}"]
        apart = "-" if shape["apart_m"] is None else f"{1e3 * shape['apart_m']:.2g}"
        spans = [" to ".join(f"{each:.4f}" for each in shape[what]) for what in ("bars_m", "tendons_m")]
        shapes.append((f"{number}, {name}", str(shape["iterations"]), apart, *spans, str(shape["stable"])))
    head = (
        "",
        "iterations of relaxation",
        "its shape from Newton's [mm]",
        "bars [m]",
        "tendons, springs [m]",
        "stable",
    )
    console.print(table("figures 8 to 10, shapes from the file's start", head, shapes))
    flange, prism, disturbed = (result[f"figure_{number}"] for number in (10, 8, 11))
    same = f"{disturbed['same_by_relaxation']} of {disturbed['starts']}, by Newton's method "
    same += f"{disturbed['same_by_newton']}; each coordinate off by {1e3 * disturbed['noise_m']:.3g} mm"
    height = f"{flange['height_in']:.4f} in, {flange['turn_rad']:.4f} rad"
    there = (
        f"{prism['as_printed_iterations']}, its top up to {1e3 * prism['printed_error_m']:.2f} mm from the printed one"
    )
    printed = [
        ("prism with the document's numbers", f"{prism['printed_iterations']} iterations", there),
        ("flange of TenseBot", f"{FLANGE_HEIGHT} in, {FLANGE_TURN} rad", height),
        ("starts that lead to one shape", disturbed["printed"], same),
    ]
    console.print(table("what is printed", ("", "001", "here"), printed))
    goals = [
        (each["move"], f"{each['shapes']}", f"{each['shapes_broyden']}", f"{1e6 * each['error_m']:.2g}",
         f"{each['least_tension_N']:.3g}",
         f"{min(each['lengths_in'].values()):.3f} to {max(each['lengths_in'].values()):.3f}")
        for each in result["figure_13"]
    ]  # fmt: skip
    head = ("move", "shapes solved", "by Broyden's", "error left [um]", "least tension [N]", "strings [in]")
    console.print(table("figure 13, goals of TenseBot from strings of 8.5 in", head, goals))


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot figures 7 to 13, with side views of the robots: before in grey, after in colour."""
    figure, axes = panels(2, 4, figsize=(16, 8))
    bar, goal = axes[0][0], axes[1][2]
    bar.plot(result["figure_7"]["angles_deg"])
    bar.set(title="7: a bar, Algorithm 1", xlabel="iteration", ylabel="angle [deg]")
    goal.plot(result["figure_12"]["angles_deg"], marker=".")
    goal.set(title="12: the bar led to 45 deg", xlabel="step", ylabel="angle [deg]")
    for axis, number, name in (
        (axes[0][1], 8, "three_prism"), (axes[0][2], 9, "four_prism"), (axes[0][3], 10, "tensebot")
    ):  # fmt: skip
        shape = result[f"figure_{number}"]
        _wires(axis, shape, shape["start_m"], "0.8")
        _wires(axis, shape, shape["nodes_m"], None)
        axis.set_title(f"{number}: {name}")
    for colour, width, label in (("C0", 2.4, "bars"), ("C3", 1.2, "tendons"), ("0.8", 1.2, "before")):
        axes[0][1].plot([], [], color=colour, linewidth=width, label=label)
    axes[0][1].legend(fontsize=8)
    spread, disturbed = axes[1][0], result["figure_11"]
    began, home = np.array(disturbed["began_m"]), np.array(disturbed["home_m"])
    spread.plot(began[..., 0].ravel(), began[..., 2].ravel(), ".", color="C2", markersize=3, label="starts")
    spread.plot(home[:, 0], home[:, 2], "o", color="C3", label="shape")
    spread.set_title(f"11: {disturbed['same_by_relaxation']} of {disturbed['starts']} lead to one shape")
    heights = axes[1][1]
    heights.plot(1e3 * np.array(disturbed["heights_m"]), ".")
    heights.set(title="11: height of the flange", xlabel="start, in order of the height", ylabel="height [mm]")
    moved = axes[1][3]
    shape = result["figure_10"]
    for each in result["figure_13"]:
        _wires(moved, shape, each["nodes_m"], None, width=0.4)
    moved.set_title("13: TenseBot at six goals")
    for axis in (*axes[0][1:], spread, moved):
        axis.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
    spread.legend(loc="best")
    save_picture(figure, path, dpi=120)


def _wires(axis: Any, shape: dict[str, Any], nodes: Any, colour: str | None, width: float = 1.2) -> None:
    """Draw members in a view along y: bars blue and thick, tendons red, or all in one colour."""
    where = np.array(nodes)
    for (a, b), pulls in zip(shape["members"], shape["pulling"], strict=True):
        usual = "C3" if pulls else "C0"
        thick = width if pulls else 2.0 * width
        axis.plot(where[[a, b], 0], where[[a, b], 2], color=colour or usual, linewidth=thick)
