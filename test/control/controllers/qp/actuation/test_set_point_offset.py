"""Efforts against what pushes the output away, at the position that the set points hold."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.controllers.qp.controller import QPController
from tensegrity_dynamics import Simulation
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

FOREARM = """
kind: mechanism
name: forearm
gravity: [0, 0, -9.81]
density: 1500
bodies:
  upper: {shapes: [{kind: tube, size: [0.02, 0.016, 0.3], frame: {at: [0, 0, 0.15]}}]}
  lower: {shapes: [{kind: tube, size: [0.016, 0.012, 0.25], frame: {at: [0, 0, 0.125]}}]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, axis: [0, 1, 0], start: ["20 deg"]}
  - {name: elbow, kind: revolute, parent: upper, body: lower, axis: [0, 1, 0], frame: {at: [0, 0, 0.3]},
     start: ["50 deg"]}
outputs:
  - {name: tip, body: lower, frame: {at: [0, 0, 0.25]}, controlled: [x, z]}
defaults:
  cables: {block_axis: [0, 0, 1], pulley_axis: [0, 1, 0], pulley_radius: 0.015, young: "2 GPa", damping: "2 MPa s",
    cable_radius: "0.6 mm", length: 0.8, strain: 0.004, block: [{kind: cube, size: [0.02]}],
    pulley: [{kind: cylinder, size: [0.015, 0.008]}]}
  actuators: {position: [-20, 20], rate: "10 rad/s", effort: "3 N m", minimum_tension: 2}
cables:
  - {name: s1, body: world, at: [0.15, 0, 0], anchor: {body: upper, at: [0, 0, 0.2]}}
  - {name: s2, body: world, at: [-0.15, 0, 0], anchor: {body: upper, at: [0, 0, 0.2]}}
  - {name: e1, body: upper, at: [0.06, 0, 0.05], anchor: {body: lower, at: [0, 0, 0.1]}}
  - {name: e2, body: upper, at: [-0.06, 0, 0.05], anchor: {body: lower, at: [-0.05, 0, 0]}}
actuators: [{drives: s1}, {drives: s2}, {drives: e1}, {drives: e2}]
"""
"""Its output falls away with 40 1/s, as fast as a stick of 6 mm."""


@pytest.fixture(scope="module")
def reset():
    """A controller of the forearm, and q and v at rest."""
    control = make_controller("qp", parse_robot(FOREARM, "forearm.yaml"), period=0.01)
    q = np.array(Simulation(control.robot).state.q)
    v = np.zeros(control.robot.mechanism.velocity_count)
    control.reset(0.0, RobotState(q=q, v=v))
    control.growth.begin(q, [control.growth.held])
    return control, q, v


@pytest.fixture
def controlled(reset):
    """The same, with equations at this state."""
    control, q, v = reset
    control.equations.update(q, v)
    return reset


def seen(control, q, v):
    """Set points that hold the output at a state, and their rates."""
    arrays, amounts = control.equations.arrays, control.equations.stretches(q, v)
    pulls = np.linalg.solve(arrays.stretch @ arrays.pull_solved.T, np.column_stack(amounts[:2]))
    stretched = arrays.inputs @ arrays.pull_solved.T @ pulls
    return q[control.equations.drive_q] - stretched[:, 0], v[control.equations.parts.drive] - stretched[:, 1]


def test_at_its_set_points_nothing_pushes_the_output(controlled):
    control, q, v = controlled
    np.testing.assert_allclose(control._offset.push(q, v, *seen(control, q, v), 0.03), 0.0, atol=1e-9)


@pytest.mark.parametrize("late", [0.0, 0.02])
def test_an_output_off_its_set_points_is_pushed_by_the_slope_of_its_acceleration_at_held_efforts(controlled, late):
    control, q, v = controlled
    growth, offset = control.growth, np.array([2e-4, -3e-4])
    position, rate = seen(control, q, v)
    along = growth.directions[:, control.equations.parts.drive].T
    push = control._offset.push(q, v, position + along @ offset, rate + along @ (3.0 * offset), late)
    there = offset * (1.0 + 3.0 * late)
    np.testing.assert_allclose(push, growth.slopes @ there, rtol=1e-6)
    still, base, found = np.zeros_like(v), np.empty(2), np.empty(2)
    control.equations.held(q, growth.held, 0.0, still, base)
    control.equations.held(q, growth.held, 1e-3, 1e3 * there @ growth.directions, found)
    np.testing.assert_allclose(push, found - base, rtol=2e-2)


def test_expected_accelerations_are_those_without_the_push(controlled):
    control, q, v = controlled
    arrays = control.equations.update(q, v)
    push = np.array([0.3, -0.2])
    solution = control.program.solve(np.array([0.1, 0.2]) - push, 0.0, np.zeros(control.equations.count))
    expected = control._offset.expected(solution, push)
    np.testing.assert_allclose(expected.output, solution.output + push)
    np.testing.assert_allclose(expected.motion[-2:], expected.output)
    moving = expected.motion[: v.size]
    np.testing.assert_allclose(moving[control.equations.parts.drive], expected.actuator)
    change = control.equations.reduction.independent[: control.equations.count]
    np.testing.assert_allclose(arrays.jacobian @ (moving - solution.motion[: v.size])[change], push, rtol=1e-6)


@pytest.mark.parametrize(
    ("states", "commands"),
    [((1, 1), (1, 1)), ((2, 3), (1, 1)), pytest.param((0, 2), (0, 1), marks=pytest.mark.long)],
)
def test_a_light_arm_that_stiff_impedances_hold_reaches_goals_with_commands_up_to_four_periods_late(states, commands):
    robot = parse_robot(FOREARM, "forearm.yaml")
    period = QPController.period_for(robot).seconds
    assert period == 0.01
    delays = Delays(states=states, commands=commands, seed=2)
    loop = DelayedLoop(robot, make_controller("qp", robot, period=period), period, delays)
    home = np.array(loop.control.reference(0.0).pose[0])
    for move in ([0.03, 0.0, 0.02], [0.0, 0.0, 0.0]):
        arrival = loop.control.set_goal(loop.stamp, home + move).duration
        loop.run(arrival + 0.6)
        np.testing.assert_allclose(loop.simulation.observe().pose[0], home + move, atol=1e-4)
    assert loop.least() > 0.95 and not loop.control.relaxed()
