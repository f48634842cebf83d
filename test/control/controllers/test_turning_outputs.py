"""Outputs that turn: angular rates of paths, and controllers that lead them to poses."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.inverse_kinematics.pose_goal import make_goal
from tensegrity_control.motion_planning.output_model import OutputModel
from tensegrity_control.trajectories.quintic import minimum_jerk
from tensegrity_control.trajectories.turning_path import TurningPath, angular_motion
from tensegrity_dynamics import Simulation, load_robot, parse_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    rotation_vector,
)
from tensegrity_dynamics.robots.output_frame import pose_error
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays


@pytest.mark.parametrize("size", [1e-4, 9e-3, 1.1e-2, 1.0, 2.5])
def test_angular_rates_are_those_of_the_rotation(size):
    start = size * np.array([0.6, -0.64, 0.48])
    rate, acceleration = np.array([0.3, 0.7, -0.2]), np.array([-0.5, 0.1, 0.9])

    def rotation(t):
        return matrix_from_vector(start + t * rate + 0.5 * t**2 * acceleration)

    def omega(t):
        return angular_motion(start + t * rate + 0.5 * t**2 * acceleration, rate + t * acceleration, acceleration)[0]

    h = 1e-4
    turned = rotation_vector(rotation(h) @ rotation(-h).T) / (2.0 * h)
    np.testing.assert_allclose(omega(0.0), turned, atol=1e-6)
    alpha = angular_motion(start, rate, acceleration)[1]
    np.testing.assert_allclose(alpha, (omega(h) - omega(-h)) / (2.0 * h), atol=1e-6)


def test_a_turning_path_gives_the_same_rates_alone_and_together():
    path = TurningPath(minimum_jerk(0.0, 1.0, np.zeros(6), [0.1, 0.2, 0.3, 0.4, -0.5, 0.6]), np.array([3, 4, 5]))
    times = [0.2, 0.7]
    for derivative in (1, 2):
        np.testing.assert_array_equal(path.value(times, derivative), [path.sample(time)[derivative] for time in times])


@pytest.mark.parametrize(
    ("name", "turn"), [("three_rrr", [0, 0, 0.2]), pytest.param("stewart", [0.1, -0.08, 0.1], marks=pytest.mark.long)]
)
@pytest.mark.parametrize("controller", ["computed_torque", pytest.param("kinematic", marks=pytest.mark.long)])
def test_a_parallel_robot_is_led_to_a_pose(name, turn, controller):
    robot = load_robot(name)
    control = make_controller(controller, robot, period=0.01)
    simulation, body_poses = Simulation(robot, time_step=2e-3), BodyPoses(robot.model)

    def state():
        return RobotState(q=simulation.state.q.copy(), v=simulation.state.v.copy())

    control.reset(0.0, state())
    position, _ = body_poses.update(simulation.state.q).output(robot.output)[0]
    goal = make_goal(robot.output, position + [0.02, 0.01, 0.0], quaternion_from_matrix(matrix_from_vector(turn)))
    arrival = control.begin(0.0, control.plan_goal(0.0, goal, duration=0.4)).arrival
    for k in range(int(np.ceil((arrival + 0.1) / 0.01))):
        command = control.command(0.01 * k, state())
        simulation.advance(5, **{command.mode: command.set_points()})
    error = pose_error(goal.pose, body_poses.update(simulation.state.q).output(robot.output)[0])
    assert np.abs(error).max() < (2e-4 if controller == "computed_torque" else 2e-3)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "turn"), [("three_rrr", [0, 0, 0.3]), ("stewart", [0.1, -0.08, 0.1]), ("cable_robot", [0.05, -0.04, 0.1])]
)
def test_task_leads_outputs_that_turn(name, turn):
    robot = load_robot(name)
    control, period = make_controller("task", robot, period=0.005), 0.005
    steps = int(np.ceil(period / min(Simulation(robot).time_step, 1e-3) - 1e-9))
    simulation, worst = Simulation(robot, period / steps), np.zeros(2)

    def look():
        seen = simulation.observe()
        positions = np.array(list(seen.positions.values()))
        return RobotState(positions=positions, pose=seen.pose, q=simulation.state.q.copy(), v=simulation.state.v.copy())

    control.reset(0.0, look())
    position, quaternion = look().pose
    turned = quaternion_from_matrix(matrix_from_vector(turn) @ matrix_from_quaternion(quaternion))
    goal = make_goal(robot.output, position + [0.02, 0.01, 0.0], turned)
    arrival = control.begin(0.0, control.plan_goal(0.0, goal)).arrival
    for k in range(int(np.ceil((arrival + 0.3) / period))):
        command = control.command(period * k, look())
        simulation.command(command.mode, command.set_points(), period=period)
        simulation.advance(duration=period)
        error = pose_error(control.reference(period * (k + 1)).pose, look().pose)
        worst = np.maximum(worst, [np.linalg.norm(error[:3]), np.linalg.norm(error[3:])])
    assert np.abs(pose_error(goal.pose, look().pose)).max() < 2e-5  # of `stewart`, whose joints still settle
    assert worst[0] < (3e-4 if name == "stewart" else 1e-4) and worst[1] < 1e-3


def test_paths_of_a_planner_are_rotation_vectors_from_the_start_and_what_is_off_them_counts_about_world_axes():
    robot = load_robot("stewart")
    model, rng = OutputModel(robot), np.random.default_rng(5)
    q = np.array(robot.model.start)
    pose = model.pose_at(rng.normal(size=6), (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])))
    np.testing.assert_allclose(model.pose_at(model.coordinates(pose), pose)[0], pose[0])
    np.testing.assert_allclose(np.abs(model.pose_at(model.coordinates(pose), pose)[1] @ pose[1]), 1.0)
    w, h = q[model.q_index], 1e-5
    change, values = 1e-2 * rng.normal(size=6), model.output_position(q)
    off = [model.output_error(model.closed_configuration(q, w + s * h * change), values) for s in (1.0, -1.0)]
    np.testing.assert_allclose(model.output_jacobian(q) @ change, (off[0] - off[1]) / (2.0 * h), atol=1e-8)
    with pytest.raises(TensegrityError, match="plans up to 172 deg"):
        model.coordinates((np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])))


FLOATING_STRUT = """
kind: mechanism
name: floating_strut
gravity: [0, 0, -9.81]
density: 1500
bodies:
  strut: {shapes: [{kind: cylinder, size: [0.015, 0.5]}]}
joints:
  - {name: free, kind: floating, parent: world, body: strut, start: [0, 0, 0.6]}
defaults:
  cables: {block_axis: [0, 0, 1], pulley_radius: 0.025, young: "1 GPa", damping: "3 MPa s", cable_radius: "0.8 mm",
    length: 2.5, block: [{kind: cube, size: [0.03]}], pulley: [{kind: cylinder, size: [0.025, 0.01]}]}
  actuators: {position: [-25, 25], rate: "20 rad/s", effort: "5 N m", minimum_tension: 4}
repeat:
  count: 4
  about: z
  cables:
    - {name: up$, body: world, at: [0.5, 0.1, 1.2], pulley_axis: [0, -1, 0], strain: 0.015,
       anchor: {body: strut, at: [0, 0, 0.25]}}
    - {name: down$, body: world, at: [0.5, -0.1, 0], pulley_axis: [0, 1, 0], strain: 0.012,
       anchor: {body: strut, at: [0, 0, -0.25]}}
  actuators: [{drives: up$}, {drives: down$}]
outputs: [{name: middle, body: strut, controlled: [x, y, z, rx, ry]}]
"""
"""A strut whose spin about its own axis nothing drives, holds or measures."""


def test_a_strut_that_may_spin_is_tilted_with_states_from_the_observer():
    """The observer took loads and noise for a spin, whose estimate ran away as soon as the strut was tilted."""
    robot = parse_robot(FLOATING_STRUT, "floating_strut.yaml")
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01, Delays(), observer=True)
    loop.run(0.2)
    home = loop.simulation.observe().pose[0]
    tilted = np.array([np.cos(0.05), np.sin(0.05), 0.0, 0.0])
    loop.run(control.set_goal(loop.stamp, home, tilted).duration + 1.5)
    position, quaternion = loop.simulation.observe().pose
    assert np.linalg.norm(position - home) < 1e-4 and abs(quaternion @ tilted) > np.cos(0.5e-3)
    assert loop.least() > 3.0
