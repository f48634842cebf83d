"""Rolling of the six-bar structure: effect of every cable on every face, and tours with true and estimated state.

The faces and the cables that tip them are determined with the model; the first is compared with the prototype of 003.
The tour moves one metre forward, to the left and diagonally, each time with the way back, on level ground and on a
slope (first uphill). The estimator uses rest lengths and IMUs; its error per metre rolled is the drift of dead
reckoning, with the simulated model and with a different one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_control.controllers.rolling_mpc import RollingMPCController
from tensegrity_control.rolling.roll_map import RollMap, Stand
from tensegrity_dynamics import Robot, Simulation, Structure, StructureEquilibriumSolver, load_robot
from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.structures.analysis.footing import FootingReader

from ..output import panels, save_picture, table
from ..runtime.rolling_run import RollingLoop, roll_through_nodes

NAME = "rolling"
DESCRIPTION = "003: six bars roll, what every cable does on all 20 faces, and a tour in truth and estimated"
GOALS = ((1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (0.0, 0.0), (-0.7071, -0.7071), (0.0, 0.0))
SLOPE = np.radians(5.0)
"""Angle of the slope, which falls along x [rad]."""
QUANTITIES = {"slope": "angle"}
MAY_BE_ZERO = ("slope",)
PROTOTYPE: tuple[dict[str, Any], ...] = (
    {"rest_m": 0.50, "tips_below_m": 0.32, "rolls": "onto n1-n6-n10, 0.52 m away"},
    {"rest_m": 0.55, "tips_below_m": 0.39, "rolls": "does not come to lie on a closed face"},
)
"""Reported results for cable 1-5 on the face 1-5-9 of a prototype: two masses of 0.5 kg on each rod, k = 500 N/m,
friction 0.5. The speed of winding is not reported."""
ROBOT, CABLE = "six_bar", 6
"""Name of the robot, and index of cable_1 among the members."""
SWING = 6.0
"""Duration of oscillation after which the robot counts as not tipped [s]."""
LONGEST_ROLL = 2000
"""Largest number of periods of a plotted roll."""
CONTROLLERS = ("rolling", "rolling_mpc")
SECONDS = 30.0
"""Duration of a run with the nodes in the robot's time, enough for two rolls [s]."""


def run(
    nodes: bool = False, goals: Any = GOALS, faces: bool = True, mpc: bool = True, solver: str = "piqp",
    slope: float = SLOPE,
) -> dict[str, Any]:  # fmt: skip
    """Run all faces and tours.

    Args:
        nodes: whether two runs with the nodes are included. goals: goal positions of a tour (2,) [m].
        faces: whether the tables of faces are computed.
        mpc: whether one goal is also reached by model predictive control, compared with the gait of one cable.
        solver: solver of the model predictive control. slope: angle of the slope of the second three tours [rad].
    """
    robot = load_robot(ROBOT)
    rolls = RollMap(robot)
    result: dict[str, Any] = {"experiment": NAME, "robot": ROBOT, "tours": []}
    result |= roll_tables(rolls) if faces else {"faces": [], "prototype": []}
    for angle in (0.0, slope) if slope else (0.0,):
        ground = tilted(robot, angle)
        roll_map = RollMap(ground) if angle else rolls
        desired = [(-x, y) for x, y in goals] if angle else goals  # uphill first
        other = replace(ground, model=heavier(ground, 0.9))
        for sees, plant, what in (("truth", None, "truth"), ("rest", None, "estimated"),
                                  ("rest", other, "estimated, bars 10 % lighter, friction 0.4")):  # fmt: skip
            loop = RollingLoop(ground, plant=plant, sees=sees, rolls=roll_map)
            where = f"{np.degrees(angle):g} deg" if angle else "level"
            result["tours"].append({"state": what, "ground": where, "goals": tour_rows(loop, desired)})
    result["control"] = [control_row(robot, rolls, name, solver) for name in CONTROLLERS] if mpc else []
    result["speeds"] = [roll_speeds(robot, rolls, name) for name in CONTROLLERS] if mpc else []
    if nodes:
        two = [roll_through_nodes(ROBOT, np.array(GOALS[0]), duration=SECONDS) for _ in range(2)]
        result["nodes"] = {
            "periods": len(two[0].stamps),
            "answer": two[0].accepted,
            "two_runs_have_the_same_bits": bool(
                np.array_equal(two[0].nodes, two[1].nodes) and np.array_equal(two[0].commands, two[1].commands)
            ),
        }
    return result


def roll_tables(rolls: RollMap) -> dict[str, Any]:
    """Effect of every cable on every face, and one of them compared with the prototype."""
    return {"faces": [face_row(rolls, face) for face in rolls.faces()], "prototype": prototype_rows(rolls.body.robot)}


def tilted(robot: Robot, angle: float) -> Robot:
    """Copy of the robot on a slope [rad] that falls along x."""
    structure = robot.structure
    return replace(robot, model=replace(structure, ground=replace(structure.ground, slope=angle)))


def prototype_rows(robot: Robot) -> list[dict[str, Any]]:
    """Results for cable 1 on the initial face, with the masses of the prototype and with those of the file [m].

    The faster a cable is wound, the earlier the robot tips. `slowly_m`: rest length below which there is no equilibrium
    on the face (with freely sliding feet). `wound_m`: rest length at tipping with the gait. `at_once_m`: rest length
    below which the robot tips if the rest length changes instantaneously.
    """
    rows = []
    for reported in PROTOTYPE:
        for ends in (True, False):
            own = with_rods(robot, reported["rest_m"], ends)
            rolls = RollMap(own)
            stand = rolls.stand(rolls.home)
            found = rolls.outcome(stand, 0)
            assert found is not None  # it stands on its first face
            rows.append(
                {
                    **reported, "masses": "at the ends" if ends else "uniform", "cable": rolls.body.names[0],
                    "slowly_m": tips_slowly(own.structure), "wound_m": found.shortest,
                    "at_once_m": tips_at_once(own), "onto": rolls.body.face_words(found.feet),
                    "length_m": float(np.linalg.norm(found.shift)),
                }
            )  # fmt: skip
    return rows


def with_rods(robot: Robot, rest: float, ends: bool) -> Robot:
    """Copy of the robot with one rest length of all cables [m], and the rod masses at the ends or unchanged."""
    structure = robot.structure
    lengths = np.where(structure.unilateral, rest, structure.rest_lengths)
    masses = structure.lumped_masses()
    changes = {"masses": np.zeros_like(structure.masses), "node_masses": masses} if ends else {}
    return replace(robot, model=replace(structure, rest_lengths=lengths, **changes))


def tips_slowly(structure: Structure) -> float:
    """Rest length of the first driven cable below which there is no equilibrium on the present face [m]."""
    solver, reader, k = StructureEquilibriumSolver(structure, rigid_bars=True), FootingReader(structure), CABLE
    shape = solver.solve()
    feet, lengths, step = reader.touching(shape.nodes), np.array(structure.rest_lengths), 0.02
    while step > 1e-3:
        trial = lengths.copy()
        trial[k] -= step
        try:
            found = solver.solve(trial, start=shape)
            stands = reader.touching(found.nodes) == feet
        except NoEquilibriumError:
            stands = False
        if stands:
            shape, lengths = found, trial
        else:
            step *= 0.5
    return float(lengths[k])


def tips_at_once(robot: Robot) -> float:
    """Rest length below which the first cable tips the robot if it changes instantaneously [m]."""
    structure, reader, k = robot.structure, FootingReader(robot.structure), CABLE
    home = StructureEquilibriumSolver(structure, rigid_bars=True).solve().nodes
    feet, least, most = reader.touching(home), 0.0, float(structure.rest_lengths[k])
    while most - least > 2e-3:
        lengths = np.array(structure.rest_lengths)
        lengths[k] = 0.5 * (least + most)
        short = replace(structure, rest_lengths=lengths)
        simulation = Simulation(replace(robot, model=short, outputs=()), integrator="rattle", start=home)
        simulation.advance(duration=SWING)
        if reader.touching(simulation.state.nodes) == feet:
            most = float(lengths[k])
        else:
            least = float(lengths[k])
    return most


def heavier(robot: Robot, factor: float) -> Any:
    """Structure with other masses and less friction than in the model of the controller."""
    structure = robot.structure
    ground = replace(structure.ground, friction=0.8 * structure.ground.friction)
    return replace(structure, masses=factor * structure.masses, ground=ground)


def control_row(robot: Robot, rolls: RollMap, name: str, solver: str) -> dict[str, Any]:
    """Time, energy and tension for the first goal with one controller [s, ms, J, N]."""
    options: dict[str, Any] = {"solver": solver} if name == "rolling_mpc" else {"rolls": rolls}
    loop = RollingLoop(robot, controller=name, **options)
    found = loop.go(loop.position + np.array(GOALS[0]))
    row: dict[str, Any] = {
        "controller": name, "rolls": found.rolls, "error_m": found.error, "time_s": found.duration,
        "work_J": found.work, "peak_tension_N": found.peak, "gave_up": found.gave_up,
    }  # fmt: skip
    if isinstance(loop.controller, RollingMPCController):
        spent = [1e3 * each.seconds for each in loop.controller.horizons]
        row |= {
            "solver": solver, "horizons": len(spent), "horizon_ms_median": float(np.median(spent)),
            "horizon_ms_longest": max(spent), "iterations": max(each.iterations for each in loop.controller.horizons),
            "gait_took_over": loop.controller.took_over,
        }  # fmt: skip
    return row


def roll_speeds(robot: Robot, rolls: RollMap, name: str) -> dict[str, Any]:
    """Figure 3.5 of 003: linear and angular velocities of all rods during one roll.

    Results: time_s (k,), linear_m_per_s and angular_rad_per_s (k, rods, 3), without rotation about the rod axis.
    """
    loop = RollingLoop(robot, rolls=rolls if name == "rolling" else None, controller=name)
    ends = robot.structure.members[~robot.structure.unilateral]
    loop.controller.set_goal(0.0, np.append(loop.position + np.array(GOALS[0]), 0.0))
    times: list[float] = []
    linear: list[Array] = []
    angular: list[Array] = []
    while not loop.controller.done and len(times) < LONGEST_ROLL:
        loop.step()
        state = loop.simulation.state
        axes = state.nodes[ends[:, 1]] - state.nodes[ends[:, 0]]
        rates = state.velocities[ends[:, 1]] - state.velocities[ends[:, 0]]
        times.append(state.time)
        linear.append(state.velocities[ends].mean(axis=1))
        angular.append(np.cross(axes, rates) / np.sum(axes * axes, axis=1)[:, None])
    return {
        "controller": name, "time_s": np.array(times), "linear_m_per_s": np.array(linear),
        "angular_rad_per_s": np.array(angular),
    }  # fmt: skip


def face_row(rolls: RollMap, face: tuple[int, ...]) -> dict[str, Any]:
    """Results for one face [m, deg, s, N]."""
    body = rolls.body
    stand = Stand(face, 0.0, np.zeros(2))
    nodes = rolls.standing(stand)
    row: dict[str, Any] = {"face": body.face_words(face), "stands": nodes is not None, "rolls": []}
    if nodes is None:
        return row
    own = nodes[list(face)].mean(axis=0)
    row["height_of_the_centre_m"] = float(body.reader.centre(nodes)[2] - own[2])
    row["margin_m"] = body.reader.margin(nodes, face)
    for k in range(len(body.names)):
        found = rolls.outcome(stand, k)
        if found is None or found.feet == face:
            continue
        row["rolls"].append(
            {
                "cable": body.names[k], "onto": body.face_words(found.feet), "rests": found.rests,
                "length_m": float(np.linalg.norm(found.shift)), "turn_deg": float(np.degrees(found.turn)),
                "tips_at_m": found.shortest, "time_s": found.duration, "peak_tension_N": found.peak,
                "least_tension_N": found.least,
            }
        )  # fmt: skip
    return row


def tour_rows(loop: RollingLoop, goals: Any) -> list[dict[str, Any]]:
    """One row per goal position, relative to the start of its motion."""
    rows: list[dict[str, Any]] = []
    home = loop.position
    for position in goals:
        try:
            found = loop.go(home + np.array(position))
        except TensegrityError as error:
            rows.append({"goal_m": list(position), "refused": str(error)})
            continue
        rows.append(
            {
                "goal_m": list(position), "rolls": found.rolls, "error_m": found.error, "time_s": found.duration,
                "rolled_m": found.path_length, "estimate_off_m": float(np.linalg.norm(found.seen - found.position)),
                "gave_up": found.gave_up,
            }
        )  # fmt: skip
    return rows


def render(result: dict[str, Any], console: Console) -> None:
    """Print faces, then tours."""
    render_faces(result, console)
    for tour in result["tours"]:
        lines = [
            (str(row["goal_m"]), row["refused"], *[""] * 4)
            if "refused" in row
            else (str(row["goal_m"]), str(row["rolls"]), f"{row['error_m']:.3f}", f"{row['time_s']:.1f}",
                  f"{row['rolled_m']:.2f}", f"{row['estimate_off_m']:.3f}", row["gave_up"])
            for row in tour["goals"]
        ]  # fmt: skip
        console.print(
            table(f"tour, {tour['ground']}, state: {tour['state']}",
                  ("goal m", "rolls", "off m", "time s", "rolled m", "estimate off m", ""), lines)
        )  # fmt: skip
        rolled = sum(row.get("rolled_m", 0.0) for row in tour["goals"])
        off = tour["goals"][-1].get("estimate_off_m", np.nan)
        if rolled > 0.0 and tour["state"] != "truth":
            worst = max(row.get("estimate_off_m", 0.0) for row in tour["goals"])
            console.print(
                f"the estimate is {1e3 * worst:.3g} mm off at most, {1e3 * off:.3g} mm at the end, after {rolled:.3g} m"
                f": {1e3 * off / rolled:.3g} mm per metre rolled"
            )
    if result["control"]:
        compared = [
            (row["controller"], str(row["rolls"]), f"{row['error_m']:.3f}", f"{row['time_s']:.1f}",
             f"{row['work_J']:.3g}", f"{row['peak_tension_N']:.3g}",
             f"{row['horizons']} of {row['horizon_ms_median']:.3g} ms (longest {row['horizon_ms_longest']:.3g}, "
             f"{row['iterations']} iterations), {row['solver']}" if "horizons" in row else "",
             "; ".join([*row.get("gait_took_over", []), row["gave_up"]]).strip("; "))
            for row in result["control"]
        ]  # fmt: skip
        columns = ("a metre by", "rolls", "off m", "time s", "work J", "peak N", "horizons", "gait took over")
        console.print(table("all cables by model predictive control, and one cable by the gait", columns, compared))
    speeds = [
        (each["controller"], f"{each['time_s'][-1]:.1f}",
         *(f"{np.linalg.norm(each[key], axis=2).max():.3g}" for key in ("linear_m_per_s", "angular_rad_per_s")))
        for each in result["speeds"]
    ]  # fmt: skip
    if speeds:
        heads = ("one roll by", "time s", "quickest rod m/s", "rad/s")
        console.print(table("velocities of all rods over a roll (figure 3.5; --plot-to draws them)", heads, speeds))
    if "nodes" in result:
        same = result["nodes"]["two_runs_have_the_same_bits"]
        console.print(
            f"through the nodes in lock-step, {result['nodes']['periods']} periods twice: "
            f"{'the same bits' if same else 'NOT the same bits'} ({result['nodes']['answer']})"
        )


def render_faces(result: dict[str, Any], console: Console) -> None:
    """Print one row for each face and each cable that tips it, then the comparison with the prototype."""
    rows = []
    for face in result["faces"]:
        for roll in face["rolls"] or [{}]:
            height = f"{face['height_of_the_centre_m']:.4f}" if face["stands"] else "does not stand"
            rows.append(
                (face["face"], height, roll.get("cable", "none"), roll.get("onto", ""),
                 *(f"{roll[key]:.3g}" if key in roll else "" for key in
                   ("length_m", "turn_deg", "tips_at_m", "time_s", "peak_tension_N", "least_tension_N")))
            )  # fmt: skip
    heads = ("face", "centre m", "cable", "onto", "roll m", "turn deg", "tips at m", "time s", "peak N", "least N")
    if rows:
        console.print(table("what each cable does on each face", heads, rows))
    compared = [
        (f"{each['rest_m']:g}", each["masses"], f"{each['tips_below_m']:g}", *(f"{each[key]:.3f}" for key in
         ("slowly_m", "wound_m", "at_once_m")), each["rolls"], f"{each['onto']}, {each['length_m']:.3f} m away")
        for each in result["prototype"]
    ]  # fmt: skip
    if compared:
        columns = (
            "rest m",
            "masses",
            "prototype tips below m",
            "slowly",
            "by the gait",
            "at once",
            "prototype",
            "ours",
        )
        console.print(table("cable n1-n5 on the face n1-n5-n9, beside a prototype", columns, compared))


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot the length of each roll from each face, and the velocities of all rods in a roll with one and with all
    cables."""
    count = len(result["speeds"])
    figure, axes = panels(1 + count, 2, figsize=(11, 3.5 * (1 + count)))
    for k, face in enumerate(result["faces"]):
        for roll in face["rolls"]:
            axes[0, 0].plot(k, roll["length_m"], "o", color="C0" if roll["rests"] else "C3")
            axes[0, 1].plot(k, roll["tips_at_m"], "o", color="C0" if roll["rests"] else "C3")
    for axis, what in zip(axes[0], ("length of a roll [m]", "rest length at which it tips [m]"), strict=True):
        axis.set_xticks(
            range(len(result["faces"])), [face["face"] for face in result["faces"]], rotation=90, fontsize=6
        )
        axis.set_ylabel(what)
    for row, each in zip(axes[1:], result["speeds"], strict=True):
        for axis, key in zip(row, ("linear_m_per_s", "angular_rad_per_s"), strict=True):
            axis.plot(each["time_s"], each[key].reshape(len(each["time_s"]), -1), linewidth=0.8)
            axis.set_xlabel("time [s]")
            axis.set_title(
                f"{each['controller']}: {'m/s' if key.startswith('linear') else 'rad/s'} of all rods, x, y, z"
            )
            axis.grid(alpha=0.3)
    save_picture(figure, path, dpi=120)
