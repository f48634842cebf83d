"""Six-bar structure on its ground: depth, contact forces, sliding, tipping and bouncing; 003, section 3.3.3.

Each result is compared with a closed-form solution or statics. All are for the shipped robot (k = 1e4 N/m), except for
the friction stated in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

from tensegrity_dynamics import Simulation, Structure, forward_kinematics
from tensegrity_dynamics.contact.ground import Ground
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.structures.analysis.footing import FootingReader
from tensegrity_dynamics.structures.analysis.support import find_support, tipping_slope
from tensegrity_dynamics.structures.structure import make_structure

from ..output import table

SMOOTHNESS = 1e-3
"""Smoothing length of the soft-plus law [m]."""
SLIPPERY, SLIDES = 0.2, 10.0
"""Coefficient of friction for the sliding test; speed that counts as sliding, relative to the regularisation speed."""
DROP = 0.05
"""Height of the drop [m]."""


def ground_rows(structure: Structure) -> list[dict[str, Any]]:
    """Rows with name, found, expected, off (all in `unit`) and `allowed`; without an expected value the last three are
    None.

    Args:
        structure: six-bar structure on level ground.
    """
    rows: list[dict[str, Any]] = []

    def row(what: str, unit: str, found: float, expected: float | None = None, allowed: float | None = None) -> None:
        off = None if expected is None else abs(found - expected)
        rows.append({"what": what, "unit": unit, "found": found, "expected": expected, "off": off, "allowed": allowed})

    weight = float(structure.lumped_masses().sum() * np.linalg.norm(structure.gravity))
    assert structure.ground is not None
    stiffness, speed = structure.ground.stiffness, structure.ground.friction_speed
    for law in ("linear", "softplus"):
        own = _on(structure, law=law, smoothness=SMOOTHNESS)
        shape = forward_kinematics(own, rigid_bars=True)
        feet = list(FootingReader(own).touching(shape.nodes))
        assert shape.contacts is not None
        raised = float(np.delete(shape.contacts, feet, axis=0)[:, 2].sum())
        f = (weight - raised) / (len(feet) * stiffness)
        expected = f - SMOOTHNESS**2 / (4.0 * f) if law == "softplus" else f
        sunk = -shape.nodes[feet, 2]
        worst = float(sunk[np.argmax(np.abs(sunk - expected))])
        row(f"feet sink, {law}, statics", "m", worst, expected, 1e-8)
        if law == "softplus":
            row("  what it exerts on raised nodes", "N", raised)
        damped = _on(own, damping=300.0, friction_speed=0.1)  # below this speed feet creep, fast enough for the test
        simulation = Simulation(damped, 2e-3, "rattle", start=shape.nodes + [0.0, 0.0, 0.02])
        simulation.advance(duration=25.0)
        sunk = -simulation.state.nodes[feet, 2]
        row(f"feet sink, {law}, simulated", "m", float(sunk[np.argmax(np.abs(sunk - expected))]), expected, 1e-8)
        carried = float(sum(force[2] for force in simulation.observe().contacts.values()))
        row(f"contacts carry the weight, {law}", "N", carried, weight, 1e-6 * weight)
    tilt, slides = np.degrees(np.arctan(SLIPPERY)), _on(structure, friction=SLIPPERY)
    found = _threshold(partial(_slides, slides, speed), tilt - 0.4, tilt + 0.4)
    row(f"slides at friction {SLIPPERY:g}", "deg", found, float(tilt), 0.1)
    for angle in (5.0, float(tilt) - 0.1):
        part = np.tan(np.radians(angle)) / SLIPPERY
        expected = 60.0 * speed * part / np.sqrt(1.0 - part * part)
        row(f"creeps in a minute on {angle:.3g} deg", "m", 60.0 * _speeds(slides, angle)[1], float(expected), None)
    own = _on(structure, friction=5.0)  # tips before it slides
    shape = forward_kinematics(own, rigid_bars=True)
    feet = list(FootingReader(own).touching(shape.nodes))
    support = find_support(shape)
    assert support is not None
    row("tipping angle as one body", "deg", float(np.degrees(support.tipping.min())))
    for behind in feet:
        edge = [node for node in feet if node != behind]
        out = shape.nodes[edge].mean(axis=0) - shape.nodes[behind]
        out = np.array([out[0], out[1], 0.0]) / np.hypot(out[0], out[1])
        limit = float(np.degrees(tipping_slope(shape, out, rigid_bars=True)))
        near = forward_kinematics(own, start=shape, gravity=_leaning(own, limit - 0.3, out), rigid_bars=True).nodes
        tips = partial(_tips, own, near, out, behind)
        simulated = _threshold(tips, limit - 0.25, limit + 0.25)
        name = "-".join(structure.node_names[node] for node in edge)
        row(f"tips over {name}, simulated and by statics", "deg", simulated, limit, 0.2)
    rows += _drop_rows(structure, weight)
    for damping in (0.0, 60.0):
        for what, unit, value, expected in _impact(damping):
            row(f"impact of 1 kg at 0.5 m/s, damping {damping:g} N s/m: {what}", unit, value, expected, 2e-3 * expected)
    return rows


def _on(structure: Structure, **changes: Any) -> Structure:
    assert structure.ground is not None
    return replace(structure, ground=replace(structure.ground, **changes))


def _threshold(happens: Callable[[float], bool], least: float, most: float) -> float:
    """Value between two limits at which `happens` becomes true, within 0.02; a limit if it is always or never true."""
    if happens(least):
        return least
    if not happens(most):
        return most
    while most - least > 0.02:
        middle = 0.5 * (least + most)
        least, most = (least, middle) if happens(middle) else (middle, most)
    return 0.5 * (least + most)


def _speeds(structure: Structure, angle: float) -> tuple[float, float]:
    """Speed of the centre after 3 s and after 6 s on a slope [deg] [m/s]."""
    own, tilt = _on(structure, slope=np.radians(angle)), np.radians(angle)
    turned = structure.nodes @ np.array(
        [[np.cos(tilt), 0.0, -np.sin(tilt)], [0.0, 1.0, 0.0], [np.sin(tilt), 0.0, np.cos(tilt)]]
    )
    sticks = forward_kinematics(_on(own, friction=1.0), start=turned, rigid_bars=True)
    simulation = Simulation(own, 2e-3, "rattle", start=sticks.nodes)
    speeds = []
    for _ in range(2):
        simulation.advance(duration=3.0)
        speeds.append(float(np.linalg.norm(simulation.state.velocities.mean(axis=0))))
    return speeds[0], speeds[1]


def _slides(structure: Structure, slow: float, angle: float) -> bool:
    early, late = _speeds(structure, angle)
    return late > SLIDES * slow and late > early


def _leaning(structure: Structure, angle: float, out: Array) -> Array:
    """(3,) gravity inclined by an angle [deg] along a horizontal direction (3,) [m/s^2]."""
    tilt, size = np.radians(angle), float(np.linalg.norm(structure.gravity))
    return size * (np.sin(tilt) * out - np.cos(tilt) * np.array([0.0, 0.0, 1.0]))


def _tips(structure: Structure, start: Array, out: Array, foot: int, angle: float) -> bool:
    """Whether a foot leaves the ground under inclined gravity, from nodes (n, 3) at rest at a slightly smaller angle
    [m]."""
    simulation = Simulation(structure, 1e-3, "rattle", start=start, gravity=_leaning(structure, angle, out))
    simulation.advance(duration=10.0)
    return structure.node_names[foot] not in simulation.observe().contacts


def _drop_rows(structure: Structure, weight: float) -> list[dict[str, Any]]:
    """Drop test: energy balance relative to the energy of the fall, and smallest contact force on a node."""
    start = forward_kinematics(structure, rigid_bars=True).nodes + [0.0, 0.0, DROP]
    simulation, least = Simulation(structure, 1e-5, "rattle", start=start), np.inf
    before = simulation.energy().balance
    for _ in range(800):
        simulation.advance(100)
        least = min([least, *(float(force[2]) for force in simulation.observe().contacts.values())])
    off = abs(simulation.energy().balance - before) / (weight * DROP)
    return [
        {"what": "drop from 5 cm, energy not accounted for, in parts of the fall", "unit": "", "found": off,
         "expected": 0.0, "off": off, "allowed": 1e-4},
        {"what": "  least push on a node that touches (never below 0)", "unit": "N", "found": least,
         "expected": None, "off": None, "allowed": None},
    ]  # fmt: skip


def _impact(damping: float) -> list[tuple[str, str, float, float]]:
    """Stopping distance and largest force of a point mass, by simulation and by m x'' + c x' + k x = 0 from x = 0."""
    k, m, v, step = 1e4, 1.0, 0.5, 2e-5
    structure = make_structure(
        {"post": (0, 0, 5), "ball": (0, 0, 0)}, [("loose", "tendon", "post", "ball", 1.0, 50.0)], fixed=["post"],
        node_masses={"ball": m}, gravity=(0, 0, 0), ground=Ground(k, damping=damping),
    )  # fmt: skip
    simulation = Simulation(structure, step, "rattle", start=[[0, 0, 5], [0, 0, 0]])
    simulation.set_motion(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -v]]))
    depths, forces = [0.0], [damping * v]
    while len(depths) < 3 or depths[-1] > depths[-2]:
        simulation.advance(1)
        depths.append(-float(simulation.state.nodes[1, 2]))
        forces.append(float(simulation.observe().contacts["ball"][2]))
    decay = damping / (2.0 * m)
    turn = np.sqrt(k / m - decay * decay)
    when = np.arctan2(turn, decay) / turn
    deepest = v / turn * np.exp(-decay * when) * np.sin(turn * when)
    # the force is largest at the zero of its derivative k x' + c x''
    times = np.linspace(0.0, when, 20001)
    x = v / turn * np.exp(-decay * times) * np.sin(turn * times)
    rate = v * np.exp(-decay * times) * (np.cos(turn * times) - decay / turn * np.sin(turn * times))
    return [
        ("stopping distance", "m", max(depths), float(deepest)),
        ("largest force", "N", max(forces), float(np.max(k * x + damping * rate))),
    ]


def render_ground(rows: list[dict[str, Any]], console: Console) -> None:
    """Print each result, its expected value, and the difference."""
    lines = [
        (each["what"], f"{each['found']:.7g} {each['unit']}",
         "" if each["expected"] is None else f"{each['expected']:.7g}",
         "" if each["off"] is None else f"{each['off']:.1e}",
         "" if each["allowed"] is None else f"{each['allowed']:.1e}",
         "" if each["allowed"] is None or each["off"] <= each["allowed"] else "MISSED")
        for each in rows
    ]  # fmt: skip
    if lines:
        console.print(table("on its ground", ("", "found", "expected", "off by", "goal", ""), lines))
