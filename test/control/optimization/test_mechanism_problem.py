"""Efforts of a mechanism for an acceleration of its output, by a control problem made in one call."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control import InputOptimizer, mechanism_problem
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms import forward_dynamics
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables


def test_the_efforts_of_a_robot_without_cables_give_the_acceleration():
    robot = load_robot("biglide")
    mechanism, q = robot.mechanism, np.array(robot.model.start)
    desired = np.array([0.4, -0.7])
    found = InputOptimizer().solve(mechanism_problem(robot, desired))
    effort, still = np.zeros(mechanism.velocity_count), np.zeros(mechanism.velocity_count)
    for actuator, value in zip(robot.actuators, found.inputs, strict=True):
        effort[mechanism.velocities_of(actuator.drives)] = value
    moved = forward_dynamics(mechanism, q, still, effort).acceleration
    poses, time = BodyPoses(robot.model), 1e-3  # of rest: y(t) = y + y'' t^2 / 2
    positions = [poses.update(q + 0.5 * sign * time**2 * moved).output(robot.output)[0][0] for sign in (1.0, -1.0)]
    np.testing.assert_allclose((positions[0] - positions[1])[robot.output.rows] / time**2, desired, atol=1e-6)


@pytest.mark.parametrize("name", ["manipulator", "cable_robot", "single_strut"])
def test_tensions_keep_their_floors_and_limits_their_efforts(name):
    robot, random = load_robot(name), np.random.default_rng(4)
    tight, least = TightCables(robot).arrays, 1.5 * max(each.minimum_tension for each in robot.actuators)
    for size in (0.3, 300.0):  # the second one is out of reach
        desired = size * random.normal(size=robot.output.rows.size)
        problem = mechanism_problem(robot, desired, floor=least, level=2.0 * least)
        found = InputOptimizer().solve(problem)
        tension = tight.tension_0 + tight.tension_1 @ found.inputs
        assert np.all(np.abs(found.inputs) <= [(1.0 + 1e-9) * each.effort for each in robot.actuators])
        assert np.min(tension) > (1.0 - 1e-6) * least
        reached = np.allclose(tight.output_0 + tight.output_1 @ found.inputs, desired, atol=1e-6)
        assert reached == (size < 1.0) == (not found.relaxed)
    assert {each.name for each in found.relaxed} <= set(robot.output.controlled)


def test_what_is_wrong_is_named():
    robot = load_robot("manipulator")
    with pytest.raises(TensegrityError, match=r"desired must be \(3,\) finite numbers"):
        mechanism_problem(robot, [0.0, 0.0])
    with pytest.raises(TensegrityError, match="level: give tensions above zero"):
        mechanism_problem(robot, np.zeros(3), level=0.0)
    with pytest.raises(TensegrityError, match="floor must be one tension or 6 of them"):
        mechanism_problem(robot, np.zeros(3), floor=[1.0, 2.0])
    with pytest.raises(InfeasibleControlError, match="cable B1-top: the floor 10 N is above the ceiling 5 N"):
        mechanism_problem(robot, np.zeros(3), floor=10.0, ceiling=5.0)
    with pytest.raises(TensegrityError):
        mechanism_problem(load_robot("tensebot"), np.zeros(3))
