"""Outputs that turn: angular rates of paths, and controllers that lead them to poses."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.inverse_kinematics.pose_goal import make_goal
from tensegrity_control.trajectories.quintic import minimum_jerk
from tensegrity_control.trajectories.turning_path import TurningPath, angular_motion
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.numerics.rotations import matrix_from_vector, quaternion_from_matrix, rotation_vector
from tensegrity_dynamics.robots.output_frame import pose_error


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
    simulation, places = Simulation(robot, time_step=2e-3), BodyPoses(robot.model)

    def state():
        return RobotState(q=simulation.state.q.copy(), v=simulation.state.v.copy())

    control.reset(0.0, state())
    position, _ = places.update(simulation.state.q).output(robot.output)[0]
    goal = make_goal(robot.output, position + [0.02, 0.01, 0.0], quaternion_from_matrix(matrix_from_vector(turn)))
    arrival = control.begin(0.0, control.plan_goal(0.0, goal, duration=0.4)).arrival
    for k in range(int(np.ceil((arrival + 0.1) / 0.01))):
        command = control.command(0.01 * k, state())
        simulation.advance(5, **{command.mode: command.set_points()})
    error = pose_error(goal.pose, places.update(simulation.state.q).output(robot.output)[0])
    assert np.abs(error).max() < (2e-4 if controller == "computed_torque" else 2e-3)
