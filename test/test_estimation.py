"""The estimator: shapes from spool positions over time."""

import numpy as np
import pytest

from tensegrity_dynamics import forward_kinematics, load_robot
from tensegrity_dynamics.estimation import ShapeEstimator


@pytest.fixture
def robot():
    return load_robot("tensebot")


def spools(robot, **changes):
    """Rest lengths by actuator."""
    lengths = {
        each.name: float(robot.structure.rest_lengths[robot.structure.member(each.drives)]) for each in robot.actuators
    }
    return lengths | changes


def test_estimate_is_the_shape_that_belongs_to_the_lengths(robot):
    estimator = ShapeEstimator(robot)
    lengths = spools(robot, draw_1=0.205)
    estimate = estimator.update(0.0, lengths)
    expected = forward_kinematics(robot, lengths, rigid_bars=True)
    assert estimate.converged
    np.testing.assert_allclose(estimate.shape.nodes, expected.nodes, atol=1e-9)


def test_same_time_gives_the_same_answer(robot):
    estimator = ShapeEstimator(robot)
    first = estimator.update(1.0, spools(robot, draw_1=0.205))
    assert estimator.update(1.0, spools(robot, draw_1=0.21)) is first


def test_velocities_are_differences_of_shapes(robot):
    estimator = ShapeEstimator(robot)
    first = estimator.update(0.0, spools(robot))
    second = estimator.update(0.1, spools(robot, draw_1=0.2155))
    np.testing.assert_allclose(second.velocities, (second.shape.nodes - first.shape.nodes) / 0.1)
    moved = (second.shape.pose[0] - first.shape.pose[0]) / 0.1
    np.testing.assert_allclose(second.twist[:3], moved, rtol=0.02, atol=1e-6)


def test_time_that_goes_back_starts_anew(robot):
    estimator = ShapeEstimator(robot)
    estimator.update(5.0, spools(robot, draw_1=0.2))
    again = estimator.update(0.0, spools(robot))
    assert again.converged
    np.testing.assert_allclose(again.velocities, 0.0)


@pytest.mark.parametrize("bad", [{"draw_1": float("nan")}, {"draw_1": -1.0}, {"draw_99": 0.2}])
def test_readings_that_make_no_sense_keep_the_last_shape_and_say_why(robot, bad):
    estimator = ShapeEstimator(robot)
    good = estimator.update(0.0, spools(robot))
    kept = estimator.update(0.1, spools(robot) | bad)
    assert not kept.converged
    assert kept.shape is good.shape
    assert next(iter(bad)) in kept.reason
    assert estimator.update(0.2, spools(robot)).converged
