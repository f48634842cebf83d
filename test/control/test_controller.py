"""The values that controllers take and give."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control import RobotState
from tensegrity_control.inverse_kinematics.pose_goal import make_goal
from tensegrity_dynamics import Simulation, load_robot, make_estimator


@pytest.mark.parametrize("name", ["three_prism", "single_strut"])
def test_the_state_of_a_simulation_has_its_actuators_pose_and_coordinates(name: str) -> None:
    simulation = Simulation(load_robot(name))
    simulation.advance(5)
    seen, state, found = simulation.observe(), simulation.state, RobotState.of(simulation)
    assert found.pose is not None and found.positions is not None
    assert found.positions.tolist() == list(seen.positions.values())
    assert np.array_equal(found.pose[0], seen.pose[0]) and np.array_equal(found.pose[1], seen.pose[1])
    own = found.nodes if name == "three_prism" else found.q
    assert own is not None and np.array_equal(own, state.configuration)
    assert (found.v is None) == (name == "three_prism")


def test_with_an_estimate_the_state_is_the_estimated_one() -> None:
    robot = load_robot("single_strut")
    simulation, estimator = Simulation(robot), make_estimator(robot)
    simulation.advance(20, velocity={"B1": 0.5})
    estimate = estimator.update(simulation.time, simulation.observe().positions)
    found = RobotState.of(simulation, estimate)
    assert found.q is not None and np.array_equal(found.q, estimate.configuration)
    assert not np.array_equal(found.q, simulation.state.q)


def test_a_goal_says_which_of_its_numbers_the_output_does_not_take() -> None:
    robot = load_robot("single_strut")  # x and y are controlled
    goal = make_goal(robot.output, [0.02, 0.0, 1.005], [1.0, 0.0, 0.0, 0.0])
    upright = np.array([1.0, 0.0, 0.0, 0.0])
    assert goal.note((np.array([0.0, 0.0, 1.0]), upright)).startswith("z of ")
    assert goal.note((np.array([0.5, 0.3, 1.005]), upright)) == ""
