"""The estimator: shapes from spool positions over time."""

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, forward_kinematics, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.structures.estimation.quasi_static_estimator import StructureEstimator


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
    estimator = StructureEstimator(robot)
    lengths = spools(robot, draw_1=0.205)
    estimate = estimator.update(0.0, lengths)
    expected = forward_kinematics(robot, lengths, rigid_bars=True)
    assert estimate.converged
    np.testing.assert_allclose(estimate.equilibrium.nodes, expected.nodes, atol=1e-9)


def test_same_time_gives_the_same_answer(robot):
    estimator = StructureEstimator(robot)
    first = estimator.update(1.0, spools(robot, draw_1=0.205))
    assert estimator.update(1.0, spools(robot, draw_1=0.21)) is first


def test_velocities_are_differences_of_shapes(robot):
    estimator = StructureEstimator(robot)
    first = estimator.update(0.0, spools(robot))
    second = estimator.update(0.1, spools(robot, draw_1=0.2155))
    np.testing.assert_allclose(second.velocities, (second.equilibrium.nodes - first.equilibrium.nodes) / 0.1)
    moved = (second.equilibrium.pose[0] - first.equilibrium.pose[0]) / 0.1
    np.testing.assert_allclose(second.twist[:3], moved, rtol=0.02, atol=1e-6)


def test_time_that_goes_back_starts_anew(robot):
    estimator = StructureEstimator(robot)
    estimator.update(5.0, spools(robot, draw_1=0.2))
    again = estimator.update(0.0, spools(robot))
    assert again.converged
    np.testing.assert_allclose(again.velocities, 0.0)


@pytest.mark.parametrize("bad", [{"draw_1": float("nan")}, {"draw_1": -1.0}, {"draw_99": 0.2}])
def test_readings_that_make_no_sense_keep_the_last_shape_and_say_why(robot, bad):
    estimator = StructureEstimator(robot)
    good = estimator.update(0.0, spools(robot))
    kept = estimator.update(0.1, spools(robot) | bad)
    assert not kept.converged
    assert kept.equilibrium is good.equilibrium
    assert next(iter(bad)) in kept.reason
    assert estimator.update(0.2, spools(robot)).converged


@pytest.fixture(scope="module")
def manipulator():
    return load_robot("manipulator")


def test_shape_of_a_mechanism_from_its_pulleys_is_where_the_simulation_settles():
    robot = load_robot("single_strut")
    simulation = Simulation(robot)
    simulation.advance(duration=3.0, position={"B1": 1.5, "B2": -0.5, "B3": -0.6})
    seen = simulation.observe()
    estimate = make_estimator(robot).update(0.0, seen.positions)
    assert estimate.converged and estimate.stable
    assert np.max(np.abs(estimate.q - simulation.state.q)) < 1e-6
    assert all(abs(estimate.tensions[name] - tension) < 1e-3 for name, tension in seen.tensions.items())
    assert np.linalg.norm(seen.pose[0] - make_estimator(robot).solve({}).pose[0]) > 0.1


def test_velocity_of_a_mechanism_is_that_of_its_slow_motion():
    robot = load_robot("single_strut")
    simulation, estimator = Simulation(robot), make_estimator(robot)
    simulation.advance(duration=2.0, velocity={"B1": 0.1, "B2": -0.05, "B3": -0.05})
    estimator.update(0.0, simulation.observe().positions)
    before = simulation.state
    simulation.advance(duration=0.02)
    estimate = estimator.update(0.02, simulation.observe().positions)
    v = 0.5 * (before.v + simulation.state.v)
    assert np.max(np.abs(v)) > 0.05
    assert np.max(np.abs(estimate.v - v)) < 0.05 * np.max(np.abs(v))
    assert np.linalg.norm(estimate.twist - simulation.observe().twist) < 1e-3


def test_whole_turns_of_a_pulley_are_not_taken_for_each_other(manipulator):
    estimator = make_estimator(manipulator)
    slow = None
    for k in range(1, 21):
        slow = estimator.update(float(k), {each.name: 0.2 * k for each in manipulator.actuators})
    fast = make_estimator(manipulator).solve({each.name: 4.0 for each in manipulator.actuators})
    assert slow is not None and slow.converged
    assert np.allclose(slow.q, fast.q, atol=1e-6)


def test_readings_of_a_mechanism_that_make_no_sense_keep_the_last_shape(manipulator):
    estimator = make_estimator(manipulator)
    good = estimator.update(0.0, {"B1-top": 0.1})
    for time, bad in ((0.1, {"B1-top": np.nan}), (0.2, {"nowhere": 0.0}), (0.3, {"B1-top": -1e3})):
        estimate = estimator.update(time, bad)
        assert not estimate.converged and estimate.reason
        assert np.array_equal(estimate.q, good.q) and not estimate.v.any()
    assert estimator.update(0.4, {"B1-top": 0.1}).converged


def test_the_same_time_again_gives_the_same_estimate_of_a_mechanism(manipulator):
    estimator = make_estimator(manipulator)
    assert estimator.update(1.0, {"B1-top": 0.1}) is estimator.update(1.0, {"B1-top": 0.5})
    assert estimator.update(0.5, {}).time == 0.5


def test_mechanisms_know_one_method_of_shape_finding(manipulator):
    with pytest.raises(TensegrityError, match="There is no method for mechanisms 'kinetic'"):
        make_estimator(manipulator).solve({}, "kinetic")
