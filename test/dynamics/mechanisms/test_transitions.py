"""Fixed steps end where something begins or ceases to push, pull or slip, and keep their order across it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, TensegrityError, parse_robot

PEG = """
name: peg
kind: mechanism
gravity: [0, 0, -9.81]
bodies: {{cart: {{}}, ball: {{mass: 0.5, inertia: [0.001, 0.001, 0.001]}}}}
joints:
  - {{name: x, kind: prismatic, parent: world, body: cart, axis: [1, 0, 0], frame: {{at: [0.2, 0, -1]}}}}
  - {{name: z, kind: prismatic, parent: cart, body: ball, axis: [0, 0, 1]}}
routed_cables:
  - {{name: rope, young: 2e7, cable_radius: 0.001, damping: {damping}, strain: 0.0002, route: [
      {{body: world, at: [0, 0, 0]}},
      {{body: world, at: [0.05, 0, -0.5], axis: [0, -1, 0], radius: 0.03, side: 1, may_be_clear: true, {friction}}},
      {{body: ball, at: [0, 0, 0]}}]}}
"""
ROPE = """
name: rope
kind: mechanism
gravity: [0, 0, -9.81]
bodies: {{load: {{mass: 1, inertia: [1, 1, 1]}}}}
joints: [{{name: lift, kind: prismatic, parent: world, body: load, frame: {{at: [0, 0, -{start}]}}}}]
routed_cables: [{{name: rope, young: 1e8, cable_radius: 0.001, damping: 2e5, length: 1,
  route: [{{body: world, at: [0, 0, 0]}}, {{body: load, at: [0, 0, 0]}}]}}]
"""
STOP = """
name: stop
kind: mechanism
gravity: [0, 0, -9.81]
bodies: {{arm: {{mass: 1, inertia: [0.02, 0.02, 0.02], centre: [0.3, 0, 0]}}}}
joints: [{{name: knee, kind: revolute, parent: world, body: arm, axis: [0, 1, 0], start: -{start},
  resistance: {{limits: [-2, 0.5], stop_stiffness: 2000, stop_damping: 5}}}}]
"""
RAIL = """
name: rail
kind: mechanism
gravity: [0, 0, -9.81]
bodies: {{load: {{mass: 1, inertia: [0.02, 0.02, 0.02]}}}}
joints: [{{name: free, kind: floating, parent: world, body: load, start: [0, 0, -{start}]}}]
loops: [{{name: rail, kind: prismatic, before: world, after: load,
  sliding: {{limits: [-0.3, 9], stop_stiffness: 2000, stop_damping: 5}}}}]
"""
SLIDE = """
name: slide
kind: mechanism
gravity: [0, 0, -9.81]
bodies: {{load: {{mass: 1, inertia: [0.02, 0.02, 0.02]}}}}
joints: [{{name: free, kind: prismatic, parent: world, body: load, start: -{start},
  resistance: {{limits: [-0.3, 9], stop_stiffness: 2000, stop_damping: 5}}}}]
"""
WEIGHTS = """
name: weights
kind: mechanism
gravity: [0, 0, -9.81]
bodies: {{left: {{mass: 0.3, inertia: [1, 1, 1]}}, right: {{mass: {right}, inertia: [1, 1, 1]}}}}
joints:
  - {{name: down, kind: prismatic, parent: world, body: left, axis: [0, 0, -1], frame: {{at: [-0.1, 0, 0]}}}}
  - {{name: up, kind: prismatic, parent: world, body: right, axis: [0, 0, 1], frame: {{at: [0.5, 0, 0]}}}}
routed_cables: [{{name: rope, young: {young}, cable_radius: 0.001, damping: {damping}, strain: 0, route: [
  {{body: left, at: [0, 0, 0]}},
  {{body: world, at: [0, 0, 1], axis: [0, 1, 0], radius: 0.04, side: 1, friction: 0.3}},
  {{body: world, at: [0.2, 0, 0.6], axis: [0, 1, 0], radius: 0.03, side: -1, friction: 0.1}},
  {{body: world, at: [0.4, 0, 1], axis: [0, 1, 0], radius: 0.05, side: 1, friction: 0.2}},
  {{body: right, at: [0, 0, 0]}}]}}]
"""
ROLLING = """
name: ball
kind: mechanism
gravity: [0, 0, -9.81]
bodies: {ball: {mass: 0.4, inertia: [4e-4, 4e-4, 4e-4]}}
joints: [{name: free, kind: floating, parent: world, body: ball, frame: {at: [0, 0, 0.1]}}]
contact: {stiffness: "100 kN/m", damping: "100 N s/m", friction: 0.5, slope: "10 deg"}
contact_parts: [{body: ball, kind: sphere, size: [0.03]}]
"""


@pytest.mark.parametrize(("friction", "damping", "most"), [("", 0, 1e-8), ("", 1e4, 1e-8), ("friction: 0.2", 0, 1e-6)])
def test_a_rope_that_touches_a_peg_only_sometimes_keeps_its_energy_for_ten_seconds(friction, damping, most):
    simulation = Simulation(parse_robot(PEG.format(friction=friction, damping=damping)), start="file")
    begin, touches = simulation.energy().balance, []
    for _ in range(100):
        simulation.advance(duration=0.1)
        assert abs(simulation.energy().balance - begin) < most
        touches.append(simulation.observe().routes["rope"].wraps[1] > 0.0)
    assert 5 < np.count_nonzero(np.diff(touches))


@cache
def ends(text, integrator, step):
    """Where the motion is behind its first impact, from some starts."""
    starts, time = ((0.9, 0.9037), 0.35) if text is ROPE else ((0.0, 0.0037), 0.4)
    made = [Simulation(parse_robot(text.format(start=each)), step, integrator, start="file") for each in starts]
    return np.array([each.advance(duration=time).q[0] for each in made])


def missed(text, integrator, step):
    """By how much steps are off others that are far shorter."""
    return float(np.abs(ends(text, integrator, step) - ends(text, "rk4", 1e-5)).max())


@pytest.mark.parametrize(("text", "energy"), [(ROPE, 1e-7), (STOP, 5e-6)])
def test_steps_keep_their_order_where_a_damper_sets_in(text, energy):
    assert missed(text, "implicit", 2e-4) < 1e-6
    assert missed(text, "rk4", 1e-4) < 2e-7
    simulation = Simulation(
        parse_robot(text.format(start=0.9 if text is ROPE else 0.0)), 2e-4, "implicit", start="file"
    )
    begin = simulation.energy().balance
    simulation.advance(duration=0.4)
    assert abs(simulation.energy().balance - begin) < energy


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_a_stop_of_a_loop_is_met_as_exactly_as_one_of_a_tree_joint(integrator):
    by_loop, by_tree = (
        Simulation(parse_robot(text.format(start=0.0037)), 1e-3, integrator, start="file") for text in (RAIL, SLIDE)
    )
    assert by_loop.advance(duration=0.4).q[2] == pytest.approx(by_tree.advance(duration=0.4).q[0], abs=1e-9)
    assert by_loop.energy_error == pytest.approx(by_tree.energy_error, abs=1e-9)


@pytest.mark.parametrize("text", [RAIL, SLIDE])
def test_steps_with_error_control_end_where_stops_begin_and_cease_to_push(text):
    robot = parse_robot(text.replace("stop_damping: 5", "stop_damping: 50").format(start=0.0011))
    simulation = Simulation(robot, 0.4, "adaptive", start="file")
    simulation.set_motion(np.append(np.zeros(simulation.state.v.size - 1), -1.0))
    simulation.advance(1)
    assert simulation.energy().damping > 1.0
    assert abs(simulation.energy_error) < 1e-9


def test_implicit_steps_are_of_third_order_behind_an_impact():
    coarse, fine = (missed(STOP, "implicit", step) for step in (4e-4, 2e-4))
    assert 6.0 < coarse / fine < 16.0


def test_implicit_steps_count_all_energy_of_a_ball_that_comes_to_roll():
    simulation = Simulation(parse_robot(ROLLING), 1e-4, "implicit", start="file")
    simulation.set_motion([0.0, 0.0, 0.0, 1.0, 0.0, -1.1])
    begin = simulation.energy().balance
    simulation.advance(duration=0.5)
    assert simulation.energy().friction > 0.1
    assert abs(simulation.energy().balance - begin) < 1e-3


def swung(integrator, step, duration, **values):
    """Two weights on a rope over three guides, with how far they came, the balance and the most that energy grew."""
    simulation = Simulation(parse_robot(WEIGHTS.format(**values)), step, integrator, start="file")
    simulation.set_motion([0.3, -0.2])
    begin = simulation.energy()
    before, most = begin.kinetic + begin.elastic + begin.gravity, -np.inf
    for _ in range(round(duration / 1e-3)):
        simulation.advance(round(1e-3 / step))
        energy = simulation.energy()
        now = energy.kinetic + energy.elastic + energy.gravity
        most, before = max(most, now - before), now
    return simulation.state.q, energy.balance - begin.balance, most


def test_implicit_steps_of_a_damped_rope_that_rubs_go_as_explicit_ones():
    """On three guides, of which one coordinate alone lets some slip on and others stick."""
    values = {"right": 0.2, "young": 3e8, "damping": 4e5}
    here, balance, most = swung("implicit", 1e-3, 0.1, **values)
    there, _, _ = swung("rk4", 2e-5, 0.1, **values)
    assert here == pytest.approx(there, abs=1e-5)
    assert abs(balance) < 1e-5 and most < 1e-9


@pytest.mark.parametrize(("young", "time"), [(1e11, 1e-3), (3e10, 1e-5), (5e9, 1e-4), (1e9, 2e-3)])
def test_implicit_steps_never_gain_energy_of_a_stiff_rope_that_rubs(young, time):
    for right in (0.1, 0.35):
        _, balance, most = swung("implicit", 1e-3, 0.3, right=right, young=young, damping=young * time)
        assert most < 1e-5 and balance < 1e-4


def test_a_step_that_fails_behind_a_change_leaves_energies_and_slip_as_they_were():
    text = PEG.format(friction="friction: 0.2", damping=0).replace("may_be_clear: true, ", "")
    simulation = Simulation(parse_robot(text), 2e-3, start="file")
    simulation.set_motion([6.0, 1.0])
    for _ in range(2000):
        before = simulation.energy(), simulation.observe().routes["rope"].slipped
        try:
            simulation.advance(1)
        except TensegrityError:
            assert simulation.energy() == before[0]
            assert simulation.observe().routes["rope"].slipped == before[1]
            return
    pytest.fail("nothing went wrong")


RUBBING = """
kind: mechanism
name: rubbing_arm
gravity: [0, 0, -9.80665]
defaults: {actuators: {position: [-9, 9], rate: 100, effort: 40}}
bodies:
  near: {mass: 1, centre: [0.3, 0, 0], inertia: [0.001, 0.01, 0.01]}
  far: {mass: 1, centre: [0.3, 0, 0], inertia: [0.001, 0.01, 0.01]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: near, axis: [0, 1, 0], resistance: {friction: 1}}
  - {name: elbow, kind: revolute, parent: near, body: far, axis: [0, 1, 0], frame: {at: [0.3, 0, 0]},
     resistance: {friction: 1}}
actuators: [{drives: shoulder}, {drives: elbow}]
"""


def test_friction_of_joints_that_reverse_in_implicit_steps_neither_pushes_on_nor_holds_back():
    ends = []
    for integrator, step in (("rk4", 5e-5), ("implicit", 1e-3)):
        simulation = Simulation(parse_robot(RUBBING), step, integrator, start="file")
        most = last = 0.0
        for n in range(10):  # to and fro, 20 ms each
            for _ in range(20):
                simulation.advance(duration=1e-3, effort={"shoulder": 30.0 * (-1) ** n, "elbow": -20.0 * (-1) ** n})
                most, last = max(most, simulation.energy_error - last), simulation.energy_error
        assert simulation.energy().friction > 2.0
        assert most < 5e-6  # 1.7e-4 in a step before
        ends.append(simulation.state.q)
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-3)  # 5e-2 before


PULLEYS = """
kind: mechanism
name: light_pulleys
gravity: [0, 0, -9.80665]
bodies:
  arm: {mass: 0.2, centre: [0.15, 0, 0], inertia: [1e-4, 2e-3, 2e-3]}
  up: {mass: 0.01, inertia: [1e-6, 1e-6, 1e-6]}
  down: {mass: 0.01, inertia: [1e-6, 1e-6, 1e-6]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: arm, axis: [0, 1, 0], resistance: {friction: 0.01}}
  - {name: above, kind: revolute, parent: world, body: up, axis: [0, 1, 0], frame: {at: [-0.3, 0, 0.15]},
     resistance: {friction: 0.01}}
  - {name: below, kind: revolute, parent: world, body: down, axis: [0, 1, 0], frame: {at: [-0.3, 0, -0.15]},
     resistance: {friction: 0.01}}
defaults:
  routed_cables: {young: 2e9, cable_radius: 0.0006, damping: 2e6}
  actuators: {position: [-20, 20], rate: 10, effort: 3}
routed_cables:
  - {name: upper, tension: 12, route: [{joint: above, radius: 0.015, side: 1}, {body: arm, at: [0.1, 0, 0.01]}]}
  - {name: lower, tension: 6, route: [{joint: below, radius: 0.015, side: -1}, {body: arm, at: [0.1, 0, -0.01]}]}
actuators: [{drives: above}, {drives: below}]
"""


def test_light_pulleys_that_friction_holds_stay_at_rest_in_implicit_steps():
    simulation = Simulation(parse_robot(PULLEYS), 1e-3, "implicit")
    simulation.advance(duration=2e-3)
    hold, heat = simulation.observe().efforts, simulation.energy().friction
    for n in range(20):  # within the band of friction, 0.01 N m of 0.18 and 0.09
        efforts = {name: effort * (1.0 + 0.03 * (-1) ** n) for name, effort in hold.items()}
        for _ in range(10):
            rates = simulation.advance(duration=1e-3, effort=efforts).v
            assert np.abs(rates).max() < 0.02  # 6 rad/s before
            heat, last = simulation.energy().friction, heat
            assert heat > last - 1e-7  # friction gave 2 mJ in all


THROWN = """
kind: mechanism
name: thrown
bodies: {c: {mass: 1, inertia: [0.01, 0.01, 0.02]}}
joints: [{name: free, kind: floating, parent: world, body: c, start: [0, 0, 0.5, 0.3, 0.2, 0.1]}]
contact: {stiffness: 2e4, damping: 40, friction: 0.4, friction_speed: 0.01}
contact_parts: [{body: c, kind: capsule, size: [0.08, 0.3]}]
"""


def test_error_control_rejects_trial_steps_that_an_impact_throws_far_off():
    simulation = Simulation(parse_robot(THROWN), 1e-3, "adaptive", start="file")
    simulation.set_motion([0.1, 4.1, 3.7, -1.5, -0.9, -1.6])
    simulation.advance(duration=0.34)  # before: "can move without moving any mass"
    assert simulation.energy().ground >= 0.0 and simulation.energy().friction > 0.1
    assert abs(simulation.energy_error) < 1e-8
