"""Servos whose law is part of the implicit integrator: a wing of one gram on stiff cables, with pulleys that are light
beside these, at every step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import Robot, Simulation, parse_robot

pytestmark = pytest.mark.filterwarnings("ignore::tensegrity_dynamics.errors.AccuracyWarning")

WING = """
kind: mechanism
name: wing
gravity: [0, 0, -9.80665]
bodies:
  wing: {{shapes: [{{kind: box, size: [0.02, 0.008, 0.002], mass: 0.001, frame: {{at: [0.01, 0, 0]}}}}]}}
joints:
  - {{name: hinge, kind: revolute, parent: world, body: wing, axis: [0, 1, 0]}}
repeat:
  count: 2
  cables:
    - name: stay_$
      body: world
      at: [0.01, 0, 0.06 * (3 - 2 * $)]
      block_axis: [0, 0, 1]
      pulley_axis: [0, 1, 0]
      pulley_radius: 0.001
      anchor: {{body: wing, at: [0.015, 0, 0]}}
      young: 2.0e+9
      damping: 1.0e+6
      cable_radius: 0.00005
      length: 0.2
      strain: 0.01
      pulley: [{{kind: cylinder, size: [0.001, 0.002], mass: {pulley}}}]
  actuators:
    - {{drives: stay_$, position: [-30, 30], rate: 30, effort: {effort}}}
outputs:
  - {{name: tip, body: wing, frame: {{at: [0.02, 0, 0]}}, controlled: [z]}}
"""
STEPS = st.floats(-5.0, -2.5).map(lambda exponent: 10.0**exponent)
HELD = 1.6e-4
"""N m at rest."""


def wing(pulley: float = 2e-5, effort: float = 0.01) -> Robot:
    return parse_robot(WING.format(pulley=pulley, effort=effort))


@pytest.mark.examples(3)
@given(step=STEPS, pulley=st.floats(-7.0, -3.0).map(lambda exponent: 10.0**exponent))
@example(step=3e-4, pulley=2e-5)  # the torque of a step grew without bound
@example(step=1e-3, pulley=2e-5)
@settings(max_examples=25, deadline=None)
def test_held_servos_bring_a_wing_to_rest_whatever_the_step_and_the_pulleys(step, pulley):
    simulation = Simulation(wing(pulley), time_step=step, integrator="implicit")
    start = simulation.state.q
    simulation.set_motion(np.where(np.arange(simulation.state.v.size) == 0, 2.0, 0.0))
    simulation.advance(duration=0.5)
    np.testing.assert_allclose(simulation.state.q, start, atol=2e-3)
    seen = simulation.observe()
    assert max(map(abs, seen.positions.values())) < 1e-6
    assert all(tension > 0.1 for tension in seen.tensions.values())


@pytest.mark.examples(3)
@given(step=STEPS, turn=st.floats(-3.0, 3.0))
@settings(max_examples=15, deadline=None)
def test_servos_reach_what_is_commanded_whatever_the_step(step, turn):
    simulation = Simulation(wing(), time_step=step, integrator="implicit")
    simulation.advance(duration=0.4, position={"stay_1": turn, "stay_2": -turn})
    seen = simulation.observe()
    assert seen.positions == pytest.approx({"stay_1": turn, "stay_2": -turn}, abs=1e-6)
    assert all(tension > 0.1 for tension in seen.tensions.values())


@pytest.mark.parametrize("step", [2e-5, 2e-4, 1e-3])
def test_a_servo_at_its_limit_rests_alike_at_every_step(step):
    limit = 1.2 * HELD
    simulation, efforts = Simulation(wing(effort=limit), time_step=step, integrator="implicit"), []
    for _ in range(200):
        simulation.advance(duration=2e-3, position={"stay_1": 2.0, "stay_2": 2.0})  # both wind: more than one can
        efforts.append(max(map(abs, simulation.observe().efforts.values())))
    assert max(efforts) == pytest.approx(limit, rel=1e-12)
    seen = simulation.observe()
    assert seen.tensions["stay_1"] * 1e-3 == pytest.approx(limit, rel=1e-6)
    weak, strong = seen.tensions["stay_2"], seen.tensions["stay_1"]
    assert weak < strong and seen.positions["stay_2"] == pytest.approx(2.0, abs=1e-6)
    assert seen.positions["stay_1"] == pytest.approx(-1.75278, abs=1e-4)  # as explicit steps of 28 us find it


def test_work_of_servos_is_the_energy_that_the_mechanism_takes_up():
    given = []
    for integrator, step in (("rk4", None), ("implicit", 1e-4)):
        simulation = Simulation(wing(), time_step=step, integrator=integrator)
        before = simulation.energy()
        simulation.advance(duration=0.4, position={"stay_1": 1.0, "stay_2": 1.0})
        after = simulation.energy()
        given.append(after.actuators - before.actuators)
        assert abs(after.balance - before.balance) < 2e-3 * given[-1]
    assert given[1] == pytest.approx(given[0], rel=2e-3)


def test_implicit_steps_of_a_tumbling_body_are_of_third_order():
    robot = parse_robot(
        "{kind: mechanism, name: tumbling, gravity: [0, 0, 0], bodies: {b: {mass: 0.7, inertia: [0.01, 0.02, 0.03], "
        "centre: [0.2, 0.1, 0.1]}}, joints: [{name: free, kind: floating, parent: world, body: b}]}",
        "here",
    )
    ends = []
    for integrator, step in (("rk4", 5e-4), ("implicit", 8e-3), ("implicit", 4e-3)):
        simulation = Simulation(robot, time_step=step, integrator=integrator)
        simulation.set_motion([1.0, 2.0, -0.7, 0.3, 0.2, 0.4])
        simulation.advance(duration=0.8)
        ends.append(np.concatenate((simulation.state.q, simulation.state.v)))
    errors = [np.abs(end - ends[0]).max() for end in ends[1:]]
    assert errors[1] < 1e-6  # 3e-3 at 4 ms before: quaternions grew, and displacements were taken as integrals of rates
    assert errors[0] / errors[1] > 7.0
