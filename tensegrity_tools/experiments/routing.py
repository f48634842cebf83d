"""Routed cables compared with closed-form solutions: pulleys with inertia, capstan friction, blocks, hysteresis, drums
with layers.

The closed-form solutions are in this module; they use only masses, stiffness and friction of the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.route_readings import read_routes
from tensegrity_dynamics.mechanisms.routing.columns import LENGTH, REST, SLIP, TENSION, TRIAL
from tensegrity_dynamics.mechanisms.routing.efforts import keep_slip
from tensegrity_dynamics.mechanisms.simulation.adaptive import integrate
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_dynamics.robots.load_robot import parse_robot

from ..output import table

DESCRIPTION = "routed cables, compared with closed forms: Atwood machine, capstan, tackle, hysteresis, drum layers"
GRAVITY, RADIUS = 9.80665, 0.1

ATWOOD = """
name: atwood
kind: mechanism
bodies:
  heavy: {{mass: {heavy}, inertia: [1, 1, 1]}}
  light: {{mass: {light}, inertia: [1, 1, 1]}}
  wheel: {{mass: 1, inertia: [1, {inertia}, 1]}}
joints:
  - {{name: wheelJt, kind: revolute, parent: world, body: wheel, axis: [0, 1, 0], resistance: {{friction: {bearing}}}}}
  - {{name: heavyJt, kind: prismatic, parent: world, body: heavy, axis: [0, 0, -1], frame: {{at: [0.1, 0, -1]}}}}
  - {{name: lightJt, kind: prismatic, parent: world, body: light, axis: [0, 0, 1], frame: {{at: [-0.1, 0, -2]}}}}
routed_cables:
  - {{name: rope, young: {young}, cable_radius: 0.002, damping: {damping}, strain: 0, route: [
      {{body: heavy, at: [0, 0, 0]}}, {{joint: wheelJt, radius: 0.1, side: -1, friction: {friction}}},
      {{body: light, at: [0, 0, 0]}}]}}
"""


def model_of(text: str, **values: Any) -> MechanismModel:
    return parse_robot(text.format(**values), "routing").model_as(MechanismModel)


def atwood_form(
    heavy: float, light: float, inertia: float, stiffness: float, friction: float, slips: bool, bearing: float = 0.0
) -> tuple[float, float, float, float]:
    """Strains of both sides, flow of rest length [m/s^2] and angular acceleration [rad/s^2], in steady acceleration.

    EA e1 = m1 (g - (1 + e1) s), EA e2 = m2 (g + (1 + e2) s); without slip I s / r = r (Y1 - Y2), s = r alpha, with
    Y = EA e + 1/2 EA e^2; with slip e1 = e2 exp(mu pi), I alpha = r (Y1 - Y2). The friction moment of the bearing is
    subtracted from r (Y1 - Y2).
    """
    first = lambda s: heavy * (GRAVITY - s) / (stiffness + heavy * s)  # noqa: E731
    second = lambda s: light * (GRAVITY + s) / (stiffness - light * s)  # noqa: E731

    def drive(s: float) -> float:
        a, b = first(s), second(s)
        return stiffness * (a + 0.5 * a * a - b - 0.5 * b * b)

    def gap(s: float) -> float:
        if slips:
            return float(first(s) - np.exp(friction * np.pi) * second(s))
        return RADIUS * drive(s) - bearing - inertia * s / RADIUS

    from scipy.optimize import brentq  # here, so that listing the experiments stays quick

    flow = float(brentq(gap, -GRAVITY, GRAVITY, xtol=1e-16, rtol=9e-16))
    spin = (RADIUS * drive(flow) - bearing) / inertia if slips else flow / RADIUS
    return first(flow), second(flow), flow, spin


def atwood(
    *, heavy: float = 2.0, light: float = 1.0, inertia: float = 0.01, friction: float = 1.0, young: float = 2e9,
    damping: float = 1e6, duration: float = 0.3, bearing: float = 0.0,
) -> dict[str, float]:  # fmt: skip
    """Atwood machine in steady acceleration, compared with the elastic and the rigid closed-form solution.

    With bearing friction [N m] it starts in motion, so that the friction acts fully.
    """
    model = model_of(
        ATWOOD,
        heavy=heavy,
        light=light,
        inertia=inertia,
        friction=friction,
        young=young,
        damping=damping,
        bearing=bearing,
    )
    mechanism = model.mechanism
    stiffness = model.routes[0].stiffness
    rigid = ((heavy - light) * GRAVITY - bearing / RADIUS) / (heavy + light + inertia / RADIUS**2)
    ratio = heavy * (GRAVITY - rigid) / (light * (GRAVITY + rigid))
    slips = ratio > np.exp(friction * np.pi)
    if slips:
        bound = np.exp(friction * np.pi)
        rigid = (heavy - bound * light) * GRAVITY / (heavy + bound * light)
    one, two, flow, spin = atwood_form(heavy, light, inertia, stiffness, friction, slips, bearing)
    q = np.array(model.start)
    sizes = [joint.name for joint in mechanism.joints]
    rests = mechanism.flat.route_elements[:2, REST]
    wheel, left, right = (sizes.index(name) for name in ("wheelJt", "heavyJt", "lightJt"))
    q[left] += one * rests[0]
    q[right] -= two * rests[1]
    v = np.zeros(3)
    if bearing:
        v[wheel], v[left], v[right] = 1.0, (1 + one) * RADIUS, (1 + two) * RADIUS
    path = integrate(mechanism, q, v, np.zeros(3), duration, relative=1e-12, absolute=1e-13)
    moved = path.q[-1] - q - v * duration
    half = 0.5 * duration**2
    expected = np.zeros(3)
    expected[wheel], expected[left], expected[right] = spin * half, (1 + one) * flow * half, (1 + two) * flow * half
    work = make_workspace(mechanism.flat)
    work.route_state[:, SLIP] = path.slip
    evaluate(mechanism.flat, path.q[-1].copy(), path.v[-1].copy(), work)
    tensions = work.route_state[:2, TENSION]
    return {
        "slips": bool(slips), "acceleration": flow, "rigid": rigid,
        "error": float(np.max(np.abs(moved - expected) / np.maximum(np.abs(expected), 1e-3))),
        "from_rigid": abs(flow - rigid), "ratio": float(tensions[0] / tensions[1]),
        "bound": float(np.exp(friction * np.pi)),
    }  # fmt: skip


GUIDE = """
name: guide
kind: mechanism
gravity: [0, 0, 0]
bodies: {{slider: {{mass: {mass}, inertia: [1, 1, 1]}}}}
joints:
  - {{name: slide, kind: prismatic, parent: world, body: slider, axis: [1, 0, 0], frame: {{at: [0.5, 0, 0.05]}},
      resistance: {{stiffness: {spring}, rest: {rest}}}}}
routed_cables:
  - {{name: tendon, young: 1e9, cable_radius: 0.001, damping: {damping}, strain: 0.004, route: [
      {{body: world, at: [0.05, 0, -0.4]}}, {{body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.05, side: {side},
      friction: {friction}}}, {{body: slider, at: [0, 0, 0]}}]}}
"""


def tendon_round_guide(friction: float, **values: Any) -> MechanismModel:
    usual = {"mass": 1, "spring": 0, "damping": 0, "side": 1, "rest": 0}
    return model_of(GUIDE.replace("[0.05, 0, -0.4]", "[-0.05, 0, -0.4]"), friction=friction, **{**usual, **values})


def capstan(friction: float = 0.3, pulls: Sequence[float] = (1e-3, 1.5e-3, -1e-3, -1.5e-3, 1e-3)) -> dict[str, float]:
    """Tension ratio at a fixed guide for displacements of the tendon [m], compared with the capstan equation.

    Args:
        pulls: displacements of the slider [m], one after the other.
    """
    model = tendon_round_guide(friction)
    flat = model.mechanism.flat
    work = make_workspace(flat)
    worst, count = 0.0, 0
    bound = np.exp(friction * 0.5 * np.pi)
    for pull in pulls:
        evaluate(flat, model.start + pull, np.zeros(1), work)
        slipped = bool(np.any(work.route_state[:, TRIAL] != work.route_state[:, SLIP]))
        keep_slip(flat.route_elements, flat.routed_cables, work.route_state)
        first, second = work.route_state[:2, TENSION]
        count += slipped
        worst = max(worst, slipped * abs(max(first / second, second / first) / bound - 1.0))
    return {"bound": float(bound), "ratio_error": float(worst), "slips": count}


def chain(count: int = 20, friction: float = 0.05) -> dict[str, float]:
    """Cable over guides on alternating sides, pulled until it slips on all of them: product of the tension ratios."""
    route = ["{body: world, at: [-0.3, 0, 0]}"]
    for k in range(count):
        side = 1 if k % 2 == 0 else -1
        guide = f"at: [{0.2 * k:.1f}, 0, 0], axis: [0, 1, 0], radius: 0.05, side: {side}, friction: {friction}"
        route.append(f"{{body: world, {guide}}}")
    text = f"""
name: chain
kind: mechanism
gravity: [0, 0, 0]
bodies: {{slider: {{mass: 1, inertia: [1, 1, 1]}}}}
joints:
  - {{name: slide, kind: prismatic, parent: world, body: slider, axis: [1, 0, 0],
      frame: {{at: [{0.2 * count + 0.1:.1f}, 0, 0]}}}}
routed_cables:
  - {{name: rope, young: 1e9, cable_radius: 0.001, strain: 0.004,
      route: [{", ".join(route)}, {{body: slider, at: [0, 0, 0]}}]}}
"""
    model = parse_robot(text, "chain").model_as(MechanismModel)
    flat = model.mechanism.flat
    work = make_workspace(flat)
    for pull in np.linspace(0.0, 0.04, 9):
        evaluate(flat, model.start + pull, np.zeros(1), work)
        keep_slip(flat.route_elements, flat.routed_cables, work.route_state)
    reading = read_routes(model.mechanism, work)["rope"]
    bound = np.exp(friction * sum(reading.wraps))
    ratio = reading.tensions[-1] / reading.tensions[0]
    return {"pulleys": count, "bound": float(bound), "error": float(abs(ratio / bound - 1.0))}


def loop_area(model: MechanismModel, friction: float, low: float, high: float) -> float:
    """Work that moves the end of a tendon back and forth between two positions, in the closed hysteresis loop [J].

    It equals the heat in the guide, and the integral of the tension at that end over its displacement. Rest lengths: R1
    + R2 = R. R2 is constant while the tendon sticks; while it slips, strain 2 = c strain 1 or strain 1 = c strain 2,
    with c = e^(mu phi).
    """
    from scipy.integrate import quad  # here, so that listing the experiments stays quick
    from scipy.optimize import brentq

    flat, rows = model.mechanism.flat, make_workspace(model.mechanism.flat)
    stiffness, bound = model.routes[0].stiffness, float(np.exp(friction * 0.5 * np.pi))
    evaluate(flat, np.array(model.start), np.zeros(1), rows)
    one, two = rows.route_state[:2, LENGTH]
    whole = float(flat.route_elements[:2, REST].sum())

    def pulled(x: float, ratio: float) -> tuple[float, float]:
        """Strain and rest length of the strand of the slider, in slip with strain 2 = ratio strain 1."""
        strain = brentq(lambda e: one / (1 + e) + (two + x) / (1 + ratio * e) - whole, 0.0, 0.1, xtol=1e-17, rtol=9e-16)
        return ratio * strain, (two + x) / (1 + ratio * strain)

    def stroke(start: float, end: float, ratio: float) -> float:
        """Work of the slider from one end to the other: sticking until the ratio is reached, then slipping [J]."""
        _, rest = pulled(start, 1.0 / ratio)
        stuck = lambda x: (two + x) / rest - 1.0  # noqa: E731
        other = one / (whole - rest) - 1.0
        turn = rest * (1 + ratio * other) - two
        work = quad(lambda x: stiffness * stuck(x), start, turn, epsabs=0, epsrel=1e-13)[0]
        return work + quad(lambda x: stiffness * pulled(x, ratio)[0], turn, end, epsabs=0, epsrel=1e-13)[0]

    return float(stroke(low, high, bound) + stroke(high, low, 1.0 / bound))


def hysteresis(friction: float = 0.3, reach: float = 1.5e-3, steps: int = 400) -> dict[str, float]:
    """Friction loss [J] of one full cycle of the slider, compared with the area of the closed hysteresis loop."""
    model = tendon_round_guide(friction)
    flat = model.mechanism.flat
    work = make_workspace(flat)
    taken = 0.0
    positions = np.concatenate((np.linspace(0, reach, steps), np.linspace(reach, -reach, 2 * steps)[1:],
                             np.linspace(-reach, reach, 2 * steps)[1:]))  # fmt: skip
    for k, position in enumerate(positions):
        evaluate(flat, model.start + position, np.zeros(1), work)
        loss = keep_slip(flat.route_elements, flat.routed_cables, work.route_state)
        if k >= steps:
            taken += loss
    area = loop_area(model, friction, -reach, reach)
    return {"loss": float(taken), "area": area, "error": float(abs(taken / area - 1.0))}


def stick_slip(duration: float = 10.0, friction: float = 0.15, damping: float = 0.0) -> dict[str, Any]:
    """Decaying oscillation of a mass whose tendon slides round a guide until it sticks: energy balance."""
    model = tendon_round_guide(friction, mass=2.0, spring=4000.0, damping=damping)
    mechanism = model.mechanism
    flat, work = mechanism.flat, make_workspace(mechanism.flat)
    evaluate(flat, np.array(model.start), np.zeros(1), work)
    begin = float(work.route_results[0, 0])
    v = np.array([0.05])
    path = integrate(mechanism, model.start, v, np.zeros(1), duration, relative=1e-10, absolute=1e-12)
    work.route_state[:, SLIP] = path.slip
    evaluate(flat, path.q[-1].copy(), path.v[-1].copy(), work)
    stored = float(work.route_results[0, 0]) + 2000.0 * float(path.q[-1][0]) ** 2
    kinetic = float(path.v[-1][0]) ** 2
    lost = float(path.works[0] + path.works[3])
    whole = begin + v[0] ** 2
    return {
        "events": len(path.events), "lost": lost, "balance": abs(stored + kinetic + lost - whole) / max(lost, 1e-12),
        "last_event": path.events[-1].time if path.events else 0.0,
    }  # fmt: skip


def creep(friction: float = 0.3, duration: float = 10.0) -> float:
    """Slip [m] at a guide below the capstan limit while the load oscillates for a duration [s]."""
    pull = 0.004 * 1e9 * np.pi * 0.001**2  # of the tendon at the start, which the spring balances
    model = tendon_round_guide(friction, mass=2.0, spring=4000.0, damping=1e5, rest=pull / 4000.0)
    path = integrate(model.mechanism, model.start, [1e-3], np.zeros(1), duration)
    return float(np.abs(path.slip).max())


def tackle(sheaves: int = 4, load: float = 40.0, young: float = 1e9) -> dict[str, float]:
    """Block and tackle with 2 n lines: displacement under load, compared with the elastic form W l / (4 n^2 E A)."""
    route = ["{body: world, at: [0, 0, 0]}"]
    for k in range(sheaves):
        route.append(f"{{body: block, at: [{0.1 + 0.4 * k:.1f}, 0, 0], axis: [0, 1, 0], radius: 0.1, side: -1}}")
        route.append(f"{{body: world, at: [{0.3 + 0.4 * k:.1f}, 0, 0], axis: [0, 1, 0], radius: 0.1, side: 1}}")
    route[-1] = f"{{body: world, at: [{0.2 + 0.4 * (sheaves - 1):.1f}, 0, 0]}}"
    text = f"""
name: tackle
kind: mechanism
bodies: {{block: {{mass: {load / GRAVITY!r}, inertia: [1, 1, 1]}}}}
joints: [{{name: hoist, kind: prismatic, parent: world, body: block, frame: {{at: [0, 0, -1]}}}}]
routed_cables: [{{name: rope, young: {young}, cable_radius: 0.002, strain: 0, route: [{", ".join(route)}]}}]
"""
    model = parse_robot(text, "tackle").model_as(MechanismModel)
    shape = MechanismEquilibriumSolver(model.mechanism).solve(model.start)
    reading = shape.routes["rope"]
    lines = 2 * sheaves
    strain = load / (lines * model.routes[0].stiffness)
    sinks = reading.rest_length * strain / lines
    return {
        "lines": lines, "tension": reading.tension, "tension_error": abs(reading.tension * lines / load - 1.0),
        "sinks": float(-shape.q[0]), "sink_error": float(abs(-shape.q[0] / sinks - 1.0)),
    }  # fmt: skip


DRUM = """
name: drum
kind: mechanism
bodies:
  drum: {{mass: 1, inertia: [1, 1, 1]}}
  load: {{mass: 1, inertia: [1, 1, 1]}}
joints:
  - {{name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0]}}
  - {{name: loadJt, kind: prismatic, parent: world, body: load, axis: [0, 0, 1], frame: {{at: [0.05, 0, -20]}}}}
routed_cables:
  - {{name: rope, young: 1e9, cable_radius: 0.002, strain: 0.001, route: [
      {{joint: drumJt, radius: 0.05, side: 1, wound: {wound}, layers: {{turns: 5, pitch: 0.004, count: 4, ramp: 0.5}}}},
      {{body: load, at: [0, 0, 0]}}]}}
"""


def drum(wound: float = 14.5, off: float = 14.0) -> dict[str, float]:
    """Rest length paid out by a drum with three layers, compared with the sum over its turns."""
    from scipy.integrate import quad  # here, so that listing the experiments stays quick

    model = model_of(DRUM, wound=wound)
    flat, work = model.mechanism.flat, make_workspace(model.mechanism.flat)
    evaluate(flat, np.array(model.start), np.zeros(2), work)
    before = read_routes(model.mechanism, work)["rope"].rest_length
    q = np.array(model.start)
    q[0] += 2.0 * np.pi * off
    evaluate(flat, q, np.zeros(2), work)
    after = read_routes(model.mechanism, work)["rope"].rest_length

    def radius(turn: float) -> float:
        layer, rest = divmod(turn, 5.0)
        return 0.05 + 0.004 * (layer + max(0.0, (rest - 4.5) / 0.5))

    edges = [wound - off, *[x for x in (4.5, 5.0, 9.5, 10.0, 14.5, 15.0) if wound - off < x < wound], wound]
    exact = sum(2.0 * np.pi * quad(radius, a, b)[0] for a, b in pairwise(edges))
    return {"paid_out": after - before, "exact": float(exact), "error": float(abs((after - before) / exact - 1.0))}


def run() -> dict[str, Any]:
    """Run all cases."""
    youngs = (2e8, 2e9, 2e10)
    sticks = [atwood(young=each) for each in youngs]
    slips = [atwood(heavy=5.0, friction=0.05, young=each) for each in youngs]
    return {
        "atwood": {"sticks": sticks, "slips": slips, "young": youngs}, "capstan": capstan(), "hysteresis": hysteresis(),
        "stick_slip": stick_slip(), "creep": creep(), "tackle": [tackle(n) for n in (1, 2, 4, 11)], "chain": chain(),
        "drum": drum(),
    }  # fmt: skip


def render(result: dict[str, Any], console: Any) -> None:
    """Print the results and their closed forms."""
    rows = []
    for kind in ("sticks", "slips"):
        for young, each in zip(result["atwood"]["young"], result["atwood"][kind], strict=True):
            rows.append(
                (f"Atwood {kind}, E = {young:.0e}", f"{each['acceleration']:.8f} m/s^2", f"{each['error']:.1e}",
                 f"difference to rigid {each['from_rigid']:.2e} m/s^2, T1/T2 {each['ratio']:.9f}, "
                 f"limit {each['bound']:.9f}")
            )  # fmt: skip
    each = result["capstan"]
    rows.append(("capstan", f"{each['bound']:.9f}", f"{each['ratio_error']:.1e}", "tension ratio at the slip limit"))
    each = result["chain"]
    rows.append(
        (
            f"{each['pulleys']} guides",
            f"{each['bound']:.9f}",
            f"{each['error']:.1e}",
            "tension ratio in slip at all guides",
        )
    )
    each = result["hysteresis"]
    rows.append(("hysteresis", f"{each['loss']:.9f} J", f"{each['error']:.1e}", "area of the hysteresis loop"))
    each = result["stick_slip"]
    rows.append(("stick and slip", f"{each['lost']:.6f} J lost", f"{each['balance']:.1e}",
                 f"energy balance, {each['events']} transitions"))  # fmt: skip
    rows.append(("sticking guide", f"{result['creep']:.1e} m", "", "slip in 10 s below the limit"))
    for each in result["tackle"]:
        rows.append((f"tackle of {each['lines']} lines", f"{each['tension']:.6f} N", f"{each['tension_error']:.1e}",
                     f"displacement {1e3 * each['sinks']:.6f} mm, error {each['sink_error']:.1e}"))  # fmt: skip
    each = result["drum"]
    rows.append(
        (
            "drum of three layers",
            f"{each['paid_out']:.9f} m",
            f"{each['error']:.1e}",
            "rest length paid out, compared with the sum over the turns",
        )
    )
    console.print(
        table("routed cables, compared with closed-form solutions", ("case", "result", "relative error", ""), rows)
    )
