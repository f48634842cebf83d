"""`qp` where the ground holds its output back."""

from __future__ import annotations

import numpy as np
import pytest
from qp_loop import Loop

from tensegrity_control import make_controller
from tensegrity_dynamics import Simulation, load_robot, parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop

ARM = """
kind: mechanism
name: arm
gravity: [0, 0, -9.81]
bodies:
  upper: {shapes: [{kind: box, size: [0.04, 0.04, 0.3], mass: 1, frame: {at: [0, 0, 0.15]}}]}
  lower: {shapes: [{kind: box, size: [0.03, 0.03, 0.3], mass: 0.6, frame: {at: [0, 0, 0.15]}}]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, axis: [0, 1, 0], frame: {at: [0, 0, 0.25]},
     start: ["64 deg"], resistance: {damping: 0.05}}
  - {name: elbow, kind: revolute, parent: upper, body: lower, axis: [0, 1, 0], frame: {at: [0, 0, 0.3]},
     start: ["106 deg"], resistance: {damping: 0.05}}
actuators:
  - {name: shoulder, drives: shoulder, position: [-3, 3], rate: 2, effort: 30}
  - {name: elbow, drives: elbow, position: [-3, 3], rate: 2, effort: 15}
outputs:
  - {name: tip, body: lower, frame: {at: [0, 0, 0.3]}, controlled: [x, z]}
contact: {stiffness: 5.0e+4, damping: 200, friction: 0.5}
contact_parts: [{body: lower, kind: sphere, size: [0.02], at: [0, 0, 0.3]}]
"""


@pytest.mark.parametrize("period", [0.01, 0.005, 0.002])
def test_a_goal_in_the_ground_presses_gently_and_the_next_one_is_reached(period):
    robot = parse_robot(ARM, "arm.yaml")
    control = make_controller("qp", robot, period=period)
    loop = Loop(Simulation(robot, 2.5e-4), control)
    control.reset(0.0, loop.look())
    home = np.array(loop.simulation.observe().pose[0])
    loop.run(control.set_goal(loop.time, home - [0.0, 0.0, home[2] - 0.01]).duration + 3.0)  # 10 mm inside the ground
    pose, efforts = loop.simulation.observe().pose[0], [np.max(np.abs(each.values)) for each in loop.commands]
    assert 0.0185 < pose[2] <= 0.02 and abs(pose[0] - home[0]) < 0.01
    assert max(efforts) < 15.0, "of 30 N m"
    assert any("holds the output back" in each or "out of reach" in each for each in control.relaxed())
    loop.run(control.set_goal(loop.time, home).duration + 3.0)
    np.testing.assert_allclose(loop.simulation.observe().pose[0], home, atol=1e-3)


def test_after_a_push_that_the_loop_did_not_stand_goals_are_reached():
    robot = load_robot("three_rrr")
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.01), 0.01)
    loop.run(0.2)
    home = loop.simulation.observe().pose
    loop.simulation.apply_forces({robot.output.body: [150.0, 0.0, 0.0]})
    loop.run(0.5)
    assert "held by the actuators' impedances alone" in loop.control.relaxed()[0]
    loop.simulation.apply_forces(None)
    loop.run(1.0)
    accepted = loop.control.set_goal(loop.stamp, *home)
    loop.run(accepted.duration + 2.0)
    assert not loop.control.relaxed()  # it was "something holds it back": the force of the push, still in its program
    assert robot.output.distance(home, loop.simulation.observe().pose)[0] < 2e-4
