"""Six-bar spherical tensegrity of 003: its geometry, its start-up, and a comparison of its two models.

The document states no lengths, masses or stiffness: rods, stiffness and pretension are options here (`--set rod=0.6m`).
Geometry, start-up and motions are without gravity. On the ground it is the shipped robot; its tours are in the
experiment `rolling`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from tensegrity_control.rolling.roll_map import RollMap
from tensegrity_dynamics import Simulation, Structure, StructureEquilibriumSolver, load_robot, start_up
from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.structures.dynamics.minimal_rods import (
    change_charts,
    fill_rod_ends,
    make_rods,
    read_rods,
    rod_accelerations,
)
from tensegrity_dynamics.structures.structure import make_structure

from ..output import panels, save_picture, table
from ._six_bar_ground import ground_rows, render_ground
from .rolling import render_faces, roll_tables

NAME = "six_bar"
DESCRIPTION = "the six-bar robot of 003: geometry, start-up, minimal coordinates beside point masses, all rolls"
QUANTITIES = {
    "rod": "length",
    "mass": "mass",
    "stiffness": "stiffness",
    "pretension": "force",
    "smoothness": "length",
    "step": "time",
}
"""Physical quantities of the options, so that they may have units."""

CABLE, SPACING, COMPRESSION = np.sqrt(3.0 / 8.0), 0.5, np.sqrt(6.0)
GOLDEN = 2.0 / (1.0 + np.sqrt(5.0))
LOSS = GOLDEN - CABLE
"""CABLE, SPACING [rod lengths] and COMPRESSION [cable tensions] are values of the neutral pose. LOSS is the reduction
of the cable length from the regular icosahedron to the neutral pose [rod lengths] (CORRECTIONS to 003)."""
TIP_CLOSED, TIP_OPEN, TIP_NO_CABLE = (float(np.degrees(np.arctan(x))) for x in (1.0 / np.sqrt(6.0), CABLE / 2.0, 0.5))
"""Tipping angle over an edge of a closed face, over a cable of an open face, and over its edge without cable [deg]."""
DISTRIBUTIONS = {"uniform": (1.0, 0.0, 0.0), "end masses": (0.0, 0.5, 0.5), "mixture": (0.6, 0.3, 0.1)}
"""Fractions of the mass of a rod: uniformly distributed, at its + end, at its - end."""


def run(
    rod: float = 1.0,
    mass: float = 1.0,
    stiffness: float = 500.0,
    pretension: float = 50.0,
    smoothness: float = 0.0,
    step: float = 0.0,
    part: float = 1.0,
    faces: bool = True,
) -> dict[str, Any]:
    """Run all parts.

    Args:
        rod: length of the rods [m]. mass: mass of a rod [kg]. stiffness: stiffness of a cable [N/m].
        pretension: pretension of a cable [N]. smoothness: smoothing length of the tension law [m]; zero: hard law.
        step: time step [s]; zero: a twentieth of the shortest period.
        part: fraction of the durations of all runs, for tests.
        faces: whether the shipped robot on its ground is included: how it stands, slides and tips, and the effect of
            every cable on every face.

    Raises:
        TensegrityError: the pretension needs rest lengths below zero.
    """
    body = neutral(rod, mass, stiffness, pretension, smoothness)
    return {
        "experiment": NAME,
        "rod_m": rod,
        "mass_kg": mass,
        "stiffness_N_per_m": stiffness,
        "pretension_N": pretension,
        "smoothness_m": smoothness,
        "geometry": geometry(body, rod),
        "start_up": start_ups(body, rod, stiffness, pretension, part),
        "models": models(body, step, part),
        "energy": energies(body, step, part),
        "vertical": through_the_vertical(step, part),
        "stabilisation": stabilised(body, step, part),
        "jacobian": jacobian_over_the_angle(),
        "ground": ground_rows(load_robot("six_bar").structure) if faces else [],
        **(roll_tables(RollMap(load_robot("six_bar"))) if faces else {"faces": [], "prototype": []}),
    }


def neutral(rod: float, mass: float, stiffness: float, pretension: float, smoothness: float = 0.0) -> Structure:
    """Shipped robot with another size in its neutral pose, without gravity, ground and dampers."""
    given = load_robot("six_bar").structure
    bars = ~given.unilateral
    scale = rod / float(given.rest_lengths[bars][0])
    rest = CABLE * rod - pretension / stiffness
    if not rest > 0.0:
        raise TensegrityError(
            f"a pretension of {pretension:g} N stretches a cable of {stiffness:g} N/m by "
            f"{pretension / stiffness:.4g} m, more than its length of {CABLE * rod:.4g} m: its rest length would be "
            "negative. Choose a smaller pretension."
        )
    count = len(given.kinds)
    return replace(
        given, nodes=scale * given.nodes, rest_lengths=np.where(bars, rod, rest),
        stiffness=np.where(bars, given.stiffness, stiffness), masses=np.where(bars, mass, 0.0), damping=np.zeros(count),
        gravity=np.zeros(3), ground=None, smoothness=smoothness,
    )  # fmt: skip


def geometry(body: Structure, rod: float) -> list[dict[str, Any]]:
    """Neutral pose by Newton's method, compared with its geometry."""
    shape = StructureEquilibriumSolver(body, rigid_bars=True).solve()
    cables = body.unilateral
    pairs = [np.array(body.members[k]) for k in np.flatnonzero(~cables)]
    centres = [shape.nodes[pair].mean(axis=0) for pair in pairs]
    axes = [(shape.nodes[p] - shape.nodes[m]) / rod for p, m in pairs]
    spacings = [
        np.linalg.norm(centres[i] - centres[j])
        for i, j in combinations(range(len(pairs)), 2)
        if abs(axes[i] @ axes[j]) > 0.9
    ]
    closed, opened = _faces(body, shape.nodes)
    centre = shape.nodes.mean(axis=0)
    tips: dict[str, list[float]] = {"closed": [], "open": [], "no cable": []}
    heights: dict[str, list[float]] = {"closed": [], "open": []}
    turns: dict[str, list[float]] = {"closed to open": [], "open to open": []}
    joined = {frozenset(map(int, pair)) for pair in body.members[cables]}
    normals = {}
    for kind, faces in (("closed", closed), ("open", opened)):
        for face in faces:
            corners = shape.nodes[list(face)]
            normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
            normal /= np.linalg.norm(normal)
            height = float(normal @ (centre - corners[0]))
            normals[frozenset(face)] = (kind, -np.sign(height) * normal)
            heights[kind].append(abs(height))
            foot = centre - height * normal
            for a, b in combinations(face, 2):
                edge = shape.nodes[b] - shape.nodes[a]
                away = np.linalg.norm(np.cross(edge, foot - shape.nodes[a])) / np.linalg.norm(edge)
                name = kind if frozenset((a, b)) in joined else "no cable"
                tips[name].append(float(np.degrees(np.arctan2(away, abs(height)))))
    for (first, (kind, normal)), (second, (other, across)) in combinations(normals.items(), 2):
        if len(first & second) == 2:
            angle = float(np.degrees(np.arccos(np.clip(normal @ across, -1.0, 1.0))))
            name = "open to open" if kind == other else "closed to open"
            turns[name].append(angle)
    tension = shape.tensions[cables]
    compression = -shape.tensions[~cables]

    def row(what: str, expected: float, values: Any, unit: str = "") -> dict[str, Any]:
        array = np.asarray(values, dtype=np.float64)
        return {
            "what": what, "expected": float(expected), "least": float(array.min()), "largest": float(array.max()),
            "count": int(array.size), "unit": unit,
        }  # fmt: skip

    return [
        row("spacing of parallel rods", SPACING * rod, spacings, "m"),
        row("length of the cables", CABLE * rod, shape.lengths[cables], "m"),
        row("rod compression over cable tension", float(COMPRESSION), compression / tension.mean()),
        row("closed faces", 8, [len(closed)]),
        row("open faces", 12, [len(opened)]),
        row("height of the centre on a closed face", np.sqrt(3.0) / 4.0 * rod, heights["closed"], "m"),
        row("height of the centre on an open face", rod / np.sqrt(5.0), heights["open"], "m"),
        row("tipping over an edge of a closed face", TIP_CLOSED, tips["closed"], "deg"),
        row("tipping over a cable of an open face", TIP_OPEN, tips["open"], "deg"),
        row("tipping over the edge without cable", TIP_NO_CABLE, tips["no cable"], "deg"),
        row("turn of a roll, closed to open", TIP_CLOSED + TIP_OPEN, turns["closed to open"], "deg"),
        row("turn of a roll, open to open", 2.0 * TIP_NO_CABLE, turns["open to open"], "deg"),
    ]


def _faces(body: Structure, nodes: NDArray) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Triangles of the convex hull: those bounded by three cables, and the others."""
    from scipy.spatial import ConvexHull

    joined = {frozenset(map(int, pair)) for pair in body.members[body.unilateral]}
    closed: list[tuple[int, ...]] = []
    opened: list[tuple[int, ...]] = []
    for corners in ConvexHull(nodes).simplices:
        face = tuple(map(int, corners))
        whole = all(frozenset(pair) in joined for pair in combinations(face, 2))
        (closed if whole else opened).append(face)
    return closed, opened


def icosahedron(body: Structure, rod: float) -> NDArray[np.float64]:
    """(n, 3) nodes of a regular icosahedron, the neutral pose with parallel rods moved apart [m]."""
    bars = body.members[~body.unilateral]
    nodes = np.array(body.nodes)
    centre = nodes.mean(axis=0)
    for pair in bars:
        middle = nodes[pair].mean(axis=0) - centre
        outward = middle / np.linalg.norm(middle)
        nodes[pair] += (0.5 * GOLDEN * rod - np.linalg.norm(middle)) * outward
    return nodes


def start_ups(body: Structure, rod: float, stiffness: float, pretension: float, part: float) -> list[dict[str, Any]]:
    """Final states and step counts of the start-up from the regular icosahedron, with and without its acceleration."""
    nodes, loss = icosahedron(body, rod), LOSS * stiffness * rod
    rows = []
    most = max(2000, round(200_000 * part))
    damped = replace(body, damping=np.where(body.unilateral, 0.05 * np.sqrt(stiffness * body.masses.max()), 0.0))
    start_up(body, pretension, start=nodes)  # compiles before the time measurement
    cases: list[tuple[str, Structure, float, dict[str, Any]]] = [
        ("ramp, velocities zeroed", body, pretension, {}),
        ("no ramp, velocities zeroed", body, pretension, {"ramp": 0.0}),
        ("ramp, dampers alone", damped, pretension, {"zero_velocities": False}),
        ("ramp, no damping", body, pretension, {"zero_velocities": False, "maximum_steps": max(2000, most // 10)}),
        ("pretension below the loss", body, 0.5 * loss, {}),
    ]
    for what, structure, level, options in cases:
        began = time.perf_counter()
        row: dict[str, Any] = {"what": what, "pretension_N": level, "expected_N": max(0.0, level - loss)}
        try:
            done = start_up(structure, level, start=nodes, **{"maximum_steps": most, **options})
        except NoEquilibriumError as error:
            rows.append({**row, "steps": options.get("maximum_steps", most), "note": str(error)})
            continue
        cables = structure.unilateral
        rows.append(
            {
                **row, "steps": done.steps, "peaks": done.peaks, "seconds": time.perf_counter() - began,
                "tension_N": (float(done.tensions[cables].min()), float(done.tensions[cables].max())),
                "error_kL": float(np.abs(done.tensions[cables] - row["expected_N"]).max() / (stiffness * rod)),
                "slack": list(done.slack), "residual_N": done.residual,
                "spacing_rods": _spacing(structure, done.nodes) / rod,
            }
        )  # fmt: skip
    lengths = np.linalg.norm(nodes[body.members[:, 0]] - nodes[body.members[:, 1]], axis=1)
    wound = replace(body, rest_lengths=np.where(body.unilateral, lengths - pretension / stiffness, rod), nodes=nodes)
    StructureEquilibriumSolver(wound, rigid_bars=True).solve()
    began = time.perf_counter()
    found = StructureEquilibriumSolver(wound, rigid_bars=True).solve()
    tensions = found.tensions[body.unilateral]
    rows.append(
        {
            "what": "newton", "pretension_N": pretension, "expected_N": max(0.0, pretension - loss),
            "steps": found.iterations, "peaks": 0, "seconds": time.perf_counter() - began,
            "tension_N": (float(tensions.min()), float(tensions.max())),
            "error_kL": float(np.abs(tensions - max(0.0, pretension - loss)).max() / (stiffness * rod)), "slack": [],
            "residual_N": float(found.residual), "spacing_rods": _spacing(body, found.nodes) / rod,
        }
    )  # fmt: skip
    return rows


def _spacing(body: Structure, nodes: NDArray) -> float:
    """Mean distance of the centres of parallel rods, from each rod to the one nearest to parallel [m]."""
    pairs = body.members[~body.unilateral]
    centres, axes = nodes[pairs].mean(axis=1), nodes[pairs[:, 0]] - nodes[pairs[:, 1]]
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    cosines = np.abs(axes @ axes.T) - np.eye(len(pairs))
    return float(np.mean(np.linalg.norm(centres - centres[cosines.argmax(axis=1)], axis=1)))


def with_distribution(body: Structure, parts: tuple[float, float, float]) -> Structure:
    """Structure with the masses of the rods split into a distributed part, the + end and the - end."""
    bars = np.flatnonzero(~body.unilateral)
    ends = np.array(body.node_masses)
    for k in bars:
        i, j = body.members[k]
        ends[i] += parts[1] * body.masses[k]
        ends[j] += parts[2] * body.masses[k]
    return replace(body, masses=np.where(body.unilateral, body.masses, parts[0] * body.masses), node_masses=ends)


def thrown(body: Structure, plucked: float = 0.02) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and velocities in flight: rotation at 4 rad/s about the centre, nodes displaced by fractions of a rod."""
    away, size = body.nodes - body.nodes.mean(axis=0), float(body.rest_lengths.max())
    wave = plucked * size * np.sin(1.0 + 2.3 * np.arange(away.size).reshape(away.shape))
    return away + wave, np.cross([3.2, 2.4, 0.0], away)


def _flown(body: Structure, step: float | None, duration: float, **options: Any) -> Simulation:
    nodes, velocities = thrown(body)
    simulation = Simulation(body, step, options.pop("integrator", "rk4"), start=nodes, **options)
    simulation.set_motion(velocities)
    simulation.advance(duration=duration)
    return simulation


def models(body: Structure, step: float, part: float) -> list[dict[str, Any]]:
    """Difference of the two models after one second of free flight, and their positions at rest."""
    rows = []
    drag = 0.05 * float(np.sqrt(body.stiffness[body.unilateral].max() * body.masses.max()))
    for name, parts in DISTRIBUTIONS.items():
        own = with_distribution(body, parts)
        h = step or Simulation(own, start=own.nodes).shortest_period / 200
        points, rods = (_flown(own, h, part, model=model) for model in ("point_masses", "minimal"))
        ends = _flown(own, h, part, rod_mass="ends")
        still = []
        heavy = replace(own, damping=np.where(own.unilateral, 0.5 * np.sqrt(own.stiffness * body.masses.max()), 0.0))
        for model in ("point_masses", "minimal"):
            # cables do not damp the mode in which parallel rods move apart, since it stretches no cable to first order
            simulation = Simulation(heavy, 10.0 * h, start=thrown(heavy)[0], model=model, air_damping=drag)
            simulation.advance(duration=40.0 * part)
            still.append(simulation.state.nodes)
        shape = StructureEquilibriumSolver(own, rigid_bars=True).solve()
        rows.append(
            {
                "masses": name, "step_s": h,
                "difference_m": float(np.abs(points.state.nodes - rods.state.nodes).max()),
                "ends_only_m": float(np.abs(points.state.nodes - ends.state.nodes).max()),
                "rest_m": [float(np.abs(_distances(nodes) - _distances(shape.nodes)).max()) for nodes in still],
                "note": rods.note,
            }
        )  # fmt: skip
    return rows


def _distances(nodes: NDArray) -> NDArray[np.float64]:
    return np.linalg.norm(nodes[:, None] - nodes[None, :], axis=2)


def energies(body: Structure, step: float, part: float) -> list[dict[str, Any]]:
    """Conserved quantities of both integrators and both models in free flight without damping."""
    rows = []
    cases: tuple[tuple[str, float, float, dict[str, Any]], ...] = (
        ("rk4, point masses, spun", 0.0, 1.0, {}),
        ("rk4, minimal, spun", 0.0, 1.0, {"model": "minimal"}),
        ("rattle, point masses, spun", 0.0, 1.0, {"integrator": "rattle"}),
        ("rk4, point masses, plucked", 0.02, 1.0, {}),
        ("the same, half the step", 0.02, 0.5, {}),
        ("the same, a third of the step", 0.02, 1.0 / 3.0, {}),
        ("rk4, minimal, plucked", 0.02, 1.0, {"model": "minimal"}),
        ("rattle, point masses, plucked", 0.02, 1.0, {"integrator": "rattle"}),
    )
    for what, plucked, finer, options in cases:
        nodes, velocities = thrown(body, plucked)
        options = {"integrator": "rk4", **options}
        natural = step or Simulation(body, start=nodes, **options).time_step
        simulation = Simulation(body, finer * natural, start=nodes, **options)
        simulation.set_motion(velocities)
        start = _kept(body, simulation)
        steps = round((1e5 if "rattle" in what else 10.0 / simulation.time_step) * part)
        worst, momentum, gap = 0.0, np.zeros(2), 0.0
        scale = start[0]
        for piece in np.array_split(np.arange(steps), 50):
            simulation.advance(len(piece))
            now = _kept(body, simulation)
            worst = max(worst, abs(simulation.energy_error) / scale)
            momentum = np.maximum(momentum, [np.abs(now[1] - start[1]).max(), np.abs(now[2] - start[2]).max()])
            bars = body.members[~body.unilateral]
            lengths = np.linalg.norm(simulation.state.nodes[bars[:, 0]] - simulation.state.nodes[bars[:, 1]], axis=1)
            gap = max(gap, float(np.abs(lengths / body.rest_lengths[~body.unilateral] - 1.0).max()))
        rows.append(
            {
                "what": what, "step_s": simulation.time_step, "steps": steps, "energy": worst,
                "momentum_Ns": float(momentum[0]), "angular_momentum_Nms": float(momentum[1]), "bars": gap,
            }
        )  # fmt: skip
    return rows


def _kept(body: Structure, simulation: Simulation) -> tuple[float, NDArray, NDArray]:
    """Energy [J], momentum [N s] and angular momentum about the origin [N m s]."""
    state, masses = simulation.state, body.mass_matrix()
    impulses = masses @ state.velocities
    return simulation.energy().total, impulses.sum(axis=0), np.cross(state.nodes, impulses).sum(axis=0)


def tumbling_rod(tilt: float) -> tuple[Structure, NDArray[np.float64]]:
    """Rod of 1 m and 1 kg on a cable, and velocities with which it passes the vertical at an angle `tilt` [rad]."""
    direction = np.array([np.cos(0.4), 0.0, np.sin(0.4)])
    nodes = {"top": (0.2, 0.1, 1.5), "up": tuple(0.5 * direction), "down": tuple(-0.5 * direction)}
    structure = make_structure(
        nodes, [("rod", "bar", "up", "down", 1e6, 1.0), ("cable", "tendon", "top", "up", 50.0, 0.8)], fixed=["top"],
        masses={"rod": 1.0},
    )  # fmt: skip
    side = np.array([0.0, 1.0, 0.0])
    turn = 4.0 * (np.cross(direction, side) * -np.cos(tilt) + side * np.sin(tilt))
    rate = np.cross(np.cross(direction, turn), direction)
    return structure, np.array([np.zeros(3), 0.5 * rate, -0.5 * rate])


def through_the_vertical(step: float, part: float) -> list[dict[str, Any]]:
    """Rod on a cable that passes its polar axis: each value of `vertical` compared with point masses."""
    rows = []
    for tilt in (0.0, 0.02, 0.2):
        structure, velocities = tumbling_rod(tilt)
        ends = {}
        options_by_name: tuple[tuple[str, dict[str, Any]], ...] = (
            ("points", {}),
            ("chart", {"model": "minimal"}),
            ("none", {"model": "minimal", "vertical": "none"}),
            ("guard", {"model": "minimal", "vertical": "guard"}),
        )
        for name, options in options_by_name:
            simulation = Simulation(structure, step or 2e-4, start=structure.nodes, **options)
            simulation.set_motion(velocities)
            try:
                simulation.advance(duration=2.0 * part)
                ends[name] = (simulation.state.nodes, simulation.energy_error, simulation.note)
            except TensegrityError as error:
                ends[name] = (np.full((3, 3), np.nan), np.nan, str(error))
        for name in ("chart", "none", "guard"):
            nodes, drift, note = ends[name]
            rows.append(
                {
                    "tilt_rad": tilt, "vertical": name, "difference_m": float(np.abs(nodes - ends["points"][0]).max()),
                    "energy_error_J": float(drift), "note": note,
                }
            )  # fmt: skip
    return rows


def stabilised(body: Structure, step: float, part: float) -> list[dict[str, Any]]:
    """Bars stabilised by k_s and k_d: as in (3.36), without stabilisation, and with the sign of (3.37)."""
    rows = []
    bars = np.flatnonzero(~body.unilateral)
    for what, gains in (
        ("(3.36), k_s = 1000, k_d = 60", (1000.0, 60.0)),
        ("k_s = k_d = 0", (0.0, 0.0)),
        ("sign of (3.37)", (-1000.0, -60.0)),
    ):
        nodes, velocities = thrown(body)
        simulation = Simulation(body, step or None, start=nodes, stabilisation=gains)
        simulation.set_motion(velocities)
        gap, end = 0.0, 0.0
        for _ in range(100):
            try:
                simulation.advance(duration=0.05 * part)
            except TensegrityError:
                gap = np.inf
                break
            pairs = body.members[bars]
            lengths = np.linalg.norm(simulation.state.nodes[pairs[:, 0]] - simulation.state.nodes[pairs[:, 1]], axis=1)
            gap = max(gap, float(np.abs(lengths / body.rest_lengths[bars] - 1.0).max()))
            end = simulation.time
        rows.append({"what": what, "largest_gap": gap, "until_s": end})
    return rows


def jacobian_over_the_angle(count: int = 60) -> dict[str, Any]:
    """Norm and condition number of d(rate of the state)/d(state) of one rod under forces, over its polar angle.

    This is an open point of 003, section 3.3.4. State: two angles and their rates (theta' = phi' = 1 rad/s, forces of
    10 N).
    """
    structure, _ = tumbling_rod(0.0)
    angles = np.concatenate((np.geomspace(1e-3, 0.3, count // 2), np.linspace(0.31, 0.5 * np.pi, count - count // 2)))
    forces = np.array([[0.0, 0.0, 0.0], [6.0, 5.0, -7.0], [-3.0, 4.0, 2.0]])
    curves: dict[str, Any] = {"angle_rad": angles}
    for vertical in ("none", "guard", "chart"):
        norms, conditions = [], []
        for angle in angles:
            rods = make_rods(structure, vertical)
            rods.q[0], rods.rates[0] = (0.0, 0.0, 0.0, 0.3, angle), (0.0, 0.0, 0.0, 1.0, 1.0)
            if vertical == "chart":
                nodes, velocities = np.zeros((3, 3)), np.zeros((3, 3))
                fill_rod_ends(rods, rods.q, rods.rates, nodes, velocities)
                read_rods(rods, nodes, velocities)
                change_charts(rods)
            matrix = np.zeros((4, 4))
            for column in range(4):
                sides = []
                for sign in (1.0, -1.0):
                    q, rates = rods.q.copy(), rods.rates.copy()
                    target = q if column < 2 else rates
                    target[0, 3 + column % 2] += sign * 1e-7
                    rod_accelerations(rods, q, rates, forces, rods.acceleration)
                    sides.append(np.concatenate((rates[0, 3:], rods.acceleration[0, 3:])))
                matrix[:, column] = (sides[0] - sides[1]) / 2e-7
            norms.append(float(np.linalg.norm(matrix, 2)))
            conditions.append(float(np.linalg.cond(matrix)))
        curves[vertical] = {"norm": norms, "condition": conditions}
    return curves


def render(result: dict[str, Any], console: Console) -> None:
    """Print the results as tables."""
    console.print(
        f"rods of {result['rod_m']:g} m and {result['mass_kg']:g} kg, cables of {result['stiffness_N_per_m']:g} N/m at "
        f"{result['pretension_N']:g} N, "
        + (f"soft-plus law with {result['smoothness_m']:g} m" if result["smoothness_m"] else "hard tension law")
        + " (all assumed: 003 prints none)\n",
        highlight=False,
    )

    def show(title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        console.print(table(title, heads, rows, right=range(1, len(heads))), "")

    show(
        "neutral pose", ("", "expected", "found, least", "largest", "of"),
        [
            (each["what"], f"{each['expected']:.7g} {each['unit']}", f"{each['least']:.7g}", f"{each['largest']:.7g}",
             str(each["count"]))
            for each in result["geometry"]
        ],
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for each in result["start_up"]:
        if "note" in each:
            blank = ("not at rest", "", "", str(each["steps"]), "", "")
            rows.append((each["what"], f"{each['pretension_N']:.5g}", f"{each['expected_N']:.6g}", *blank))
            continue
        low, high = each["tension_N"]
        rows.append((
            each["what"], f"{each['pretension_N']:.5g}", f"{each['expected_N']:.6g}", f"{low:.6g} to {high:.6g}",
            f"{each['error_kL']:.1e}", f"{each['spacing_rods']:.7f}", str(each["steps"]), str(each["peaks"]),
            f"{1e3 * each['seconds']:.3g} ms",
        ))  # fmt: skip
    show("start-up from the regular icosahedron",
         ("", "T0 [N]", "expected [N]", "found [N]", "error / kL", "spacing / L", "steps", "peaks", "time"),
         rows)  # fmt: skip
    for each in result["start_up"]:
        if each.get("slack"):
            console.print(f"{each['what']}: slack are {', '.join(each['slack'])}", highlight=False)
    show(
        "two models, free flight and rest",
        ("rods", "apart", "all mass at the ends instead", "rest: points", "minimal"),
        [
            (each["masses"], f"{each['difference_m']:.1e} m", f"{each['ends_only_m']:.1e} m",
             *(f"{left:.1e} m" for left in each["rest_m"]))
            for each in result["models"]
        ],
    )  # fmt: skip
    show(
        "what is kept without damping", ("", "step", "steps", "energy", "momentum", "angular momentum", "bars"),
        [
            (each["what"], f"{1e3 * each['step_s']:.3g} ms", str(each["steps"]), f"{each['energy']:.1e}",
             f"{each['momentum_Ns']:.1e} N s", f"{each['angular_momentum_Nms']:.1e} N m s", f"{each['bars']:.1e}")
            for each in result["energy"]
        ],
    )  # fmt: skip
    show(
        "a rod led past the vertical", ("tilt", "vertical", "from point masses", "energy error"),
        [
            (f"{each['tilt_rad']:g} rad", each["vertical"], f"{each['difference_m']:.1e} m",
             f"{each['energy_error_J']:.1e} J")
            for each in result["vertical"]
        ],
    )  # fmt: skip
    show(
        "bars held by k_s and k_d",
        ("", "largest relative gap", "until"),
        [(each["what"], f"{each['largest_gap']:.1e}", f"{each['until_s']:.3g} s") for each in result["stabilisation"]],
    )
    curves = result["jacobian"]
    for name in ("none", "guard", "chart"):
        console.print(
            f"Jacobian over the polar angle, {name}: norm up to {max(curves[name]['norm']):.3g}, condition number up "
            f"to {max(curves[name]['condition']):.3g}",
            highlight=False,
        )
    render_ground(result["ground"], console)
    render_faces(result, console)


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot norm and condition number of the Jacobian over the polar angle."""
    figure, axes = panels(1, 2, figsize=(10, 4))
    curves = result["jacobian"]
    for axis, what in zip(axes, ("norm", "condition"), strict=True):
        for name, style in (("none", "-"), ("guard", "--"), ("chart", ":")):
            axis.loglog(curves["angle_rad"], curves[name][what], style, label=name)
        axis.set_xlabel("polar angle [rad]")
        axis.set_title("norm of the Jacobian" if what == "norm" else "condition number")
        axis.legend(loc="best", title="at the vertical")
        axis.grid(alpha=0.3)
    save_picture(figure, path, dpi=120)
