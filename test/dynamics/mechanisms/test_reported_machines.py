"""Machines that users of other simulators asked for, with the closed forms that they had in mind.

MuJoCo issues 757 (a rope that turns a pulley), 1212 (a rope on a winch), 1704 (the cable of a crane, which only pulls
and whose natural length changes), 2580 (the length of a tendon round a fixed pulley), 3005 (capstan friction, and the
wrap angle behind it); IsaacLab issue 2277 (a platform on cables, moved by the winches that pull and release them).
"""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, parse_robot

GRAVITY = 9.80665
ROPE = "young: 1e10, cable_radius: 0.001"
STIFFNESS = 1e10 * np.pi * 0.001**2


def test_a_tendon_round_a_fixed_pulley_is_as_long_as_its_tangents_and_its_arc():
    """Issue 2580: a straight line through the pulley was its length there."""
    text = f"""
name: fixed_pulley
kind: mechanism
bodies: {{load: {{mass: 1, inertia: [1, 1, 1]}}}}
joints: [{{name: rail, kind: prismatic, parent: world, body: load, axis: [0, 0, 1], frame: {{at: [0.05, 0, 0.1]}}}}]
routed_cables: [{{name: tendon, {ROPE}, strain: 0, route: [{{body: world, at: [-0.3, 0, 0.4]}},
  {{body: world, at: [0, 0, 0.5], axis: [0, 1, 0], radius: 0.05, side: 1}}, {{body: load, at: [0, 0, 0]}}]}}]
"""
    simulation = Simulation(parse_robot(text, "here"), start="file")
    for height in (0.0, -0.05, 0.1):
        simulation.set_state([height])
        route = simulation.observe().routes["tendon"]
        towards = np.arctan2(0.1, 0.3) + np.arcsin(0.05 / np.hypot(0.3, 0.1))  # rise of the tangent from the left
        arc = towards + np.pi / 2  # to straight down on the right
        whole = np.sqrt(0.3**2 + 0.1**2 - 0.05**2) + 0.05 * arc + 0.4 - height
        assert route.wraps[1] == pytest.approx(arc, abs=1e-14)
        assert route.length == pytest.approx(whole, abs=1e-14)
        assert whole > np.hypot(0.35, 0.3 + height)


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_a_tendon_that_slips_on_a_cylinder_has_the_ratio_of_its_wrap_angle(integrator):
    """Issue 3005: tensions on both sides, and the angle between them."""
    text = f"""
name: capstan
kind: mechanism
bodies: {{heavy: {{mass: 4, inertia: [1, 1, 1]}}, light: {{mass: 1, inertia: [1, 1, 1]}}}}
joints:
  - {{name: down, kind: prismatic, parent: world, body: heavy, axis: [0, 0, -1], frame: {{at: [0.1, 0, -0.5]}}}}
  - {{name: up, kind: prismatic, parent: world, body: light, axis: [0, 0, 1], frame: {{at: [-0.1, 0, -1]}}}}
routed_cables: [{{name: tendon, {ROPE}, damping: 1e7, strain: {2 * GRAVITY / STIFFNESS}, route: [
  {{body: heavy, at: [0, 0, 0]}}, {{body: world, at: [0, 0, 0], axis: [0, -1, 0], radius: 0.1, side: 1, friction: 0.2}},
  {{body: light, at: [0, 0, 0]}}]}}]
"""
    simulation = Simulation(parse_robot(text, "here"), 1e-4, integrator, start="file")
    simulation.advance(duration=0.1)
    begin = simulation.state.v.copy()
    route = simulation.observe().routes["tendon"]
    assert route.contacts[1] == "slips" and route.wraps[1] == pytest.approx(np.pi, abs=1e-12)
    assert route.tensions[0] / route.tensions[1] == pytest.approx(np.exp(0.2 * np.pi), rel=1e-6)
    simulation.advance(duration=0.1)
    ratio = np.exp(0.2 * np.pi)
    gained = (simulation.state.v - begin) / 0.1  # however the rope swings: 4 (g - fall) = ratio (g + rise)
    assert 4 * gained[0] + ratio * gained[1] == pytest.approx((4 - ratio) * GRAVITY, rel=1e-5)


def test_a_rope_that_runs_over_a_pulley_turns_it():
    """Issue 757."""
    text = """
name: turned
kind: mechanism
bodies: {weight: {mass: 2, inertia: [1, 1, 1]}, other: {mass: 1, inertia: [1, 1, 1]},
  pulley: {mass: 1, inertia: [1, 0.0018, 1]}}
joints:
  - {name: turn, kind: revolute, parent: world, body: pulley, axis: [0, 1, 0]}
  - {name: down, kind: prismatic, parent: world, body: weight, axis: [0, 0, -1], frame: {at: [0.06, 0, -0.5]}}
  - {name: up, kind: prismatic, parent: world, body: other, axis: [0, 0, 1], frame: {at: [-0.06, 0, -1]}}
routed_cables: [{name: rope, rigid: true, route: [{body: weight, at: [0, 0, 0]},
  {joint: turn, radius: 0.06, side: -1}, {body: other, at: [0, 0, 0]}]}]
"""
    simulation = Simulation(parse_robot(text, "here"), 1e-3, start="file")
    state = simulation.advance(duration=0.3)
    way = 0.5 * GRAVITY / (3 + 0.0018 / 0.06**2) * 0.3**2
    assert np.abs(state.q) == pytest.approx([way / 0.06, way, way], rel=1e-9)


def test_a_winch_winds_a_weight_up_by_its_radius_and_the_strain():
    """Issue 1212."""
    text = f"""
name: winch
kind: mechanism
bodies: {{drum: {{mass: 1, inertia: [1, 0.001, 1]}}, weight: {{mass: 3, inertia: [1, 1, 1]}}}}
joints:
  - {{name: axle, kind: revolute, parent: world, body: drum, axis: [0, 1, 0]}}
  - {{name: rail, kind: prismatic, parent: world, body: weight, frame: {{at: [0.04, 0, -1]}},
     resistance: {{damping: 400}}}}
routed_cables: [{{name: rope, {ROPE}, damping: 1e7, strain: {3 * GRAVITY / STIFFNESS}, route: [
  {{joint: axle, radius: 0.04, side: 1}}, {{body: weight, at: [0, 0, 0]}}]}}]
actuators: [{{name: motor, drives: axle, position: [-20, 20], rate: 20, effort: 5}}]
"""
    simulation = Simulation(parse_robot(text, "here"), 2e-4, "implicit", start="file")
    simulation.command("position", {"motor": -5.0})
    simulation.advance(duration=1.0)
    assert simulation.state.q[0] == pytest.approx(-5.0, abs=1e-6)
    assert simulation.state.q[1] == pytest.approx(5.0 * 0.04 * (1 + 3 * GRAVITY / STIFFNESS), abs=1e-6)
    assert simulation.observe().efforts["motor"] == pytest.approx(-3 * GRAVITY * 0.04, rel=1e-3)


def test_the_cable_of_a_crane_pulls_and_never_pushes_while_its_natural_length_changes():
    """MuJoCo issue 1704: the load falls freely, hangs, is set down, and is taken up again."""
    text = f"""
name: crane
kind: mechanism
gravity: [0, 0, -{GRAVITY}]
bodies: {{drum: {{mass: 1, inertia: [1, 0.001, 1]}}, load: {{mass: 2, inertia: [1, 1, 1]}}}}
joints:
  - {{name: axle, kind: revolute, parent: world, body: drum, axis: [0, 1, 0]}}
  - {{name: rail, kind: prismatic, parent: world, body: load, frame: {{at: [0.05, 0, -1]}},
     resistance: {{limits: [-0.3, 1], stop_stiffness: 1e5, stop_damping: 300}}}}
routed_cables: [{{name: rope, {ROPE}, damping: 1e8, length: 1.1, route: [
  {{joint: axle, radius: 0.05, side: 1}}, {{body: load, at: [0, 0, 0]}}]}}]
actuators: [{{name: winch, drives: axle, position: [-20, 20], rate: 20, effort: 50}}]
"""
    simulation = Simulation(parse_robot(text, "here"), 5e-4, "implicit", start="file")

    def rope():
        return simulation.observe().routes["rope"].tension

    simulation.advance(duration=0.1)  # it falls 0.1 m in 0.14 s
    assert rope() == 0.0
    assert simulation.state.q[1] == pytest.approx(-0.5 * GRAVITY * 0.1**2, rel=1e-12)
    simulation.advance(duration=0.9)
    strain = 2 * GRAVITY / STIFFNESS
    assert rope() == pytest.approx(2 * GRAVITY, rel=1e-6)
    assert simulation.state.q[1] == pytest.approx(-0.1 - 1.1 * strain, abs=1e-8)
    simulation.command("position", {"winch": 5.0})  # 0.25 m of rope: the load stands on its stop, the rope hangs slack
    simulation.advance(duration=2.0)
    assert rope() == 0.0
    assert simulation.state.q[1] == pytest.approx(-0.3 - 2 * GRAVITY / 1e5, abs=1e-8)
    simulation.command("position", {"winch": -2.0})
    simulation.advance(duration=2.0)
    assert rope() == pytest.approx(2 * GRAVITY, rel=1e-6)
    assert simulation.state.q[1] == pytest.approx(-1.0 * strain, abs=1e-8)  # of a metre


def test_winches_move_a_suspended_platform_along_a_line():
    """IsaacLab issue 2277: the lengths of the cables say where it is."""
    half, height, radius = 1.0, 1.0, 0.05

    def lengths(x, z):
        """From the top of each drum: its arc, and the tangent to the platform."""
        found = []
        for side in (-1.0, 1.0):
            away, down = half + side * x, height - z  # drums at x = half and -half, reached by side -1 and 1
            free = np.sqrt(away**2 + down**2 - radius**2)
            found.append(free + radius * (np.arctan2(down, away) + np.arctan2(radius, free)))
        return np.array(found)

    drum = "{{name: {0}Jt, kind: revolute, parent: world, body: {0}, axis: [0, 1, 0], frame: {{at: [{1}, 0, 1]}}}}"
    hook = "{body: platform, at: [0, 0, 0]}"
    text = f"""
name: suspended
kind: mechanism
gravity: [0, 0, -{GRAVITY}]
bodies: {{right: {{mass: 1, inertia: [1, 0.001, 1]}}, left: {{mass: 1, inertia: [1, 0.001, 1]}}, slide: {{}},
  platform: {{mass: 3, inertia: [1, 1, 1]}}}}
joints:
  - {drum.format("right", half)}
  - {drum.format("left", -half)}
  - {{name: x, kind: prismatic, parent: world, body: slide, axis: [1, 0, 0]}}
  - {{name: z, kind: prismatic, parent: slide, body: platform, axis: [0, 0, 1]}}
routed_cables:
  - {{name: one, rigid: true, route: [{{joint: rightJt, radius: {radius}, side: -1}}, {hook}]}}
  - {{name: two, rigid: true, route: [{{joint: leftJt, radius: {radius}, side: 1}}, {hook}]}}
actuators:
  - {{name: right, drives: rightJt, position: [-40, 40], rate: 40, effort: 50}}
  - {{name: left, drives: leftJt, position: [-40, 40], rate: 40, effort: 50}}
"""
    simulation = Simulation(parse_robot(text, "here"), 2e-3, start="file")
    begin = lengths(0.0, 0.0)
    for k in range(1, 101):
        x, z = 0.4 * np.sin(0.5 * np.pi * k / 100), 0.2 * k / 100
        right, left = (lengths(x, z) - begin) / radius
        simulation.command("position", {"right": -right, "left": left})  # by side: paying out is against it
        simulation.advance(5)
    simulation.advance(400)
    seen = simulation.observe().routes
    assert simulation.state.q[2:] == pytest.approx([0.4, 0.2], abs=1e-9)
    assert min(seen["one"].tension, seen["two"].tension) > 0.0
