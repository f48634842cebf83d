"""Stiffness of the output of structures, against equilibria under load, and what changes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensegrity_dynamics import TensegrityError, forward_kinematics, load_robot
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, rotation_vector
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.structures.analysis.output_stiffness import output_stiffness


@pytest.fixture(scope="module")
def tensebot():
    robot = load_robot("tensebot")
    return robot, forward_kinematics(robot, rigid_bars=True)


def twist(before, after):
    """(6,) from one pose to another."""
    turn = rotation_vector(matrix_from_quaternion(after[1]) @ matrix_from_quaternion(before[1]).T)
    return np.concatenate((after[0] - before[0], turn))


def test_compliance_is_how_the_output_bends_under_load(tensebot):
    robot, shape = tensebot
    found = output_stiffness(robot, shape, rigid_bars=True)
    jacobian = robot.output.jacobian(shape.nodes)
    for axis, size in ((0, 0.1), (2, 0.1), (5, 0.01)):
        sides = [
            forward_kinematics(
                robot,
                forces=(sign * size * jacobian[axis]).reshape(-1, 3),
                start=shape,
                rigid_bars=True,
                tolerance=1e-11,
            )
            for sign in (1.0, -1.0)
        ]
        measured = twist(sides[1].pose, sides[0].pose) / (2.0 * size)
        assert np.abs(measured - found.compliance[:, axis]).max() < 1e-6 * np.abs(measured).max()


def test_the_twist_of_moving_nodes_is_the_difference_of_poses(tensebot):
    robot, shape = tensebot
    velocities = np.random.default_rng(0).normal(size=shape.nodes.shape)
    pose, rates = robot.output.motion(shape.nodes, velocities)
    np.testing.assert_array_equal(np.concatenate(pose), np.concatenate(robot.output.pose(shape.nodes)))
    sides = [robot.output.pose(shape.nodes + sign * 1e-6 * velocities) for sign in (1.0, -1.0)]
    np.testing.assert_allclose(rates, twist(sides[1], sides[0]) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(rates, robot.output.jacobian(shape.nodes) @ velocities.ravel(), rtol=1e-12, atol=1e-12)


def test_actuators_move_the_output_as_its_jacobian_says(tensebot):
    robot, shape = tensebot
    found = output_stiffness(robot, shape, rigid_bars=True)
    assert found.rank == 6 and found.jacobian.shape == (6, 12)
    drive = robot.actuators[3].drives
    rest = float(shape.rest_lengths[robot.structure.member(drive)])
    sides = [
        forward_kinematics(robot, {drive: rest + sign * 1e-5}, start=shape, rigid_bars=True, tolerance=1e-11)
        for sign in (1.0, -1.0)
    ]
    measured = twist(sides[1].pose, sides[0].pose) / 2e-5
    assert np.abs(measured - found.jacobian[:, 3]).max() < 1e-5 * np.abs(measured).max()


def test_stiffness_grows_with_self_stress_as_its_slope_says():
    robot = load_robot("three_prism")
    shape = forward_kinematics(robot, rigid_bars=True)
    found = output_stiffness(robot, shape, rigid_bars=True)
    [stress] = found.self_stresses
    change = 0.01
    tensions = shape.tensions + change * np.array([stress.tensions.get(n, 0.0) for n in robot.structure.member_names])
    # the same nodes under other tensions: of rest lengths that make them
    rest = shape.lengths - tensions / robot.structure.stiffness
    tighter = replace(shape, tensions=tensions, structure=shape.structure.with_rest_lengths(rest))
    after = output_stiffness(robot, tighter, rigid_bars=True).stiffness
    expected = found.stiffness + change * stress.slope
    assert np.abs(after - found.stiffness).max() > 0.1 and np.abs(after - expected).max() < 1e-4 * change * 17.5


def test_robot_without_hold_or_output_is_refused_by_name():
    robot = load_robot("six_bar")
    shape = forward_kinematics(robot, rigid_bars=True)
    afloat = replace(shape, structure=replace(shape.structure, ground=None))
    with pytest.raises(TensegrityError, match="floats free"):
        output_stiffness(robot, afloat, rigid_bars=True)
    with pytest.raises(TensegrityError, match="has no output"):
        output_stiffness(replace(robot, outputs=()), shape, rigid_bars=True)
    figures = type_of(robot).report(robot).stiffness().figures["stiffness"]
    assert figures["rank"] == 2 and figures["stiffness"][0, 0] > 0.0
