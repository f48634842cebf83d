"""Coulomb friction of joints under `qp`."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

BOOM = """
kind: mechanism
name: boom
gravity: [0, 0, -9.81]
bodies:
  drum: {mass: 0.5, inertia: [4e-4, 8e-4, 4e-4]}
  boom: {shapes: [{kind: box, size: [1, 0.03, 0.03], mass: 2, frame: {at: [0.5, 0, 0]}}]}
joints:
  - {name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {at: [-0.4, 0, 0.2]}}
  - {name: hinge, kind: revolute, parent: world, body: boom, axis: [0, 1, 0], start: ["-20 deg"],
     resistance: {damping: 0.2, friction: FRICTION}}
routed_cables:
  - {name: hoist, strain: 0.0005, young: "10 GPa", cable_radius: "1 mm", damping: "5 MPa s",
     route: [{joint: drumJt, radius: 0.05, side: 1},
             {body: world, at: [0, 0, 0.8], axis: [0, 1, 0], radius: 0.03, side: 1}, {body: boom, at: [0.95, 0, 0.02]}]}
actuators: [{name: winch, drives: drumJt, position: [-20, 20], rate: 8, effort: 8, minimum_tension: 2}]
outputs: [{name: tip, body: boom, frame: {at: [1, 0, 0]}, controlled: [z]}]
"""
"""A tenth of the hinge's torque of gravity is 0.95 N m."""


def boom(friction: float):
    return parse_robot(BOOM.replace("FRICTION", str(friction)), "boom.yaml")


def test_joints_rub_at_the_rates_that_are_desired_and_not_at_those_that_are_measured():
    rubs, slips = TightCables(boom(0.95), slides=True), TightCables(boom(0.95))
    q, desired = np.array(rubs.model.start), np.array([-2.0, 0.1])
    rubs.slide(q, desired)
    for v in (0.0 * desired, 0.01 * desired, -desired):
        one_way = np.array(rubs.update(q, v, held=0.01).rate_0)
        rubs.slide(q, -desired)
        other_way = np.array(rubs.update(q, v, held=0.01).rate_0)
        rubs.slide(q, desired)
        measured = slips.update(q, v, held=0.01).rate_0
        share = np.tanh(v[1] / 1e-3)
        assert np.allclose(measured, 0.5 * (one_way + other_way) + 0.5 * share * (one_way - other_way))
        assert np.max(np.abs(one_way - other_way)) > 1.0


def test_slopes_of_friction_are_those_of_small_rates():
    rubs = TightCables(boom(0.95), slides=True)
    motions = np.array([[0.0, 2.0], [1.0, 0.0]])
    np.testing.assert_allclose(
        rubs.friction_slopes(np.array(rubs.model.start), motions), np.diag([4.0 * 0.95 / 1e-3, 0.0]), rtol=1e-6
    )
    assert not TightCables(boom(0.95)).friction_slopes(np.array(rubs.model.start), motions).any()


@pytest.mark.parametrize("late", [0, 1])
def test_a_boom_whose_hinge_rubs_with_a_tenth_of_its_torque_arrives(late):
    robot = boom(0.95)
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.01), 0.01, Delays((late, late), (late, late)))
    loop.run(0.1)
    goal = loop.simulation.observe().pose[0] + [0.0, 0.0, 0.15]
    loop.control.set_goal(loop.time, goal)
    loop.run(4.0)
    assert abs(loop.simulation.observe().pose[0][2] - goal[2]) < 1e-5
    assert loop.least() > 1.0


def test_files_may_state_half_of_the_friction_or_twice_as_much_or_one_that_is_not_there():
    """Without any the boom was lost: within its width the compensation was 55 times as stiff as the loop."""
    for plant in (0.0, 0.48, 1.9):
        robot = boom(0.95)
        loop = DelayedLoop(robot, make_controller("qp", robot, period=0.01), 0.01, plant=boom(plant))
        loop.run(0.1)
        goal = loop.simulation.observe().pose[0] + [0.0, 0.0, 0.15]
        loop.control.set_goal(loop.time, goal)
        loop.run(4.0)
        assert abs(loop.simulation.observe().pose[0][2] - goal[2]) < 5e-4 and loop.least() > 1.0


ANTAGONISTS = """
kind: mechanism
name: antagonists
gravity: [0, 0, -9.81]
bodies:
  arm: {shapes: [{kind: box, size: [0.4, 0.02, 0.02], mass: 1, frame: {at: [0.2, 0, 0]}}]}
  d1: {mass: 0.2, inertia: [1e-4, 1e-4, 1e-4]}
  d2: {mass: 0.2, inertia: [1e-4, 1e-4, 1e-4]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: arm, axis: [0, 1, 0],
     resistance: {damping: 0.02, friction: 0.2}}
  - {name: j1, kind: revolute, parent: world, body: d1, axis: [0, 1, 0], frame: {at: [-0.3, 0, 0.1]}}
  - {name: j2, kind: revolute, parent: world, body: d2, axis: [0, 1, 0], frame: {at: [-0.3, 0, -0.1]}}
defaults:
  routed_cables: {young: "5 GPa", cable_radius: "1 mm", damping: "5 MPa s"}
  actuators: {position: [-20, 20], rate: 10, effort: 8, minimum_tension: 5}
routed_cables:
  - {name: up, tension: 60, route: [{joint: j1, radius: 0.03, side: 1}, {body: arm, at: [0.1, 0, 0.01]}]}
  - {name: down, tension: 40, route: [{joint: j2, radius: 0.03, side: -1}, {body: arm, at: [0.1, 0, -0.01]}]}
actuators: [{drives: j1}, {drives: j2}]
outputs: [{name: tip, body: arm, frame: {at: [0.4, 0, 0]}, controlled: [z]}]
"""
"""Friction that reverses moves one cable to its floor, and the stiffness of the arm steps with the other."""


def test_friction_that_reverses_at_the_start_of_a_motion_stops_it_nowhere():
    robot = parse_robot(ANTAGONISTS, "antagonists.yaml")
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.01), 0.01, observer=True)
    loop.run(0.3)
    home = loop.simulation.observe().pose[0]
    for up, lasts in ((0.06, 0.79), (-0.06, 1.1), (0.0, 1.5)):
        loop.control.set_goal(loop.time, home + [0.0, 0.0, up])
        loop.run(lasts)
    assert loop.control.relaxed() == ()
    assert abs(loop.simulation.observe().pose[0][2] - home[2]) < 2.5e-4


def test_an_arm_without_the_friction_of_its_file_comes_to_rest():
    """Within its width the compensation was 8 times as stiff as the loop, which left no phase margin."""
    without = ANTAGONISTS.replace(", friction: 0.2", "")
    robot, plant = (parse_robot(text, "antagonists.yaml") for text in (ANTAGONISTS, without))
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.01), 0.01, observer=True, plant=plant)
    loop.run(0.3)
    goal = loop.simulation.observe().pose[0] + [0.0, 0.0, 0.06]
    loop.control.set_goal(loop.time, goal)
    loop.run(2.0)
    loop.forget()
    loop.run(1.0)
    assert max(loop.errors) < 2e-4  # 8 mm before
