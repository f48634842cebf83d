"""Mechanisms led to poses by the positions of their actuators."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_control.inverse_kinematics.mechanism_ik import limited, make_limits
from tensegrity_control.inverse_kinematics.pose_goal import make_goal
from tensegrity_control.inverse_kinematics.solve_ik import plan_path
from tensegrity_control.paths.equilibrium_path import EquilibriumPath
from tensegrity_dynamics import Simulation, load_robot, parse_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError, UnreachableGoalError


@pytest.fixture(scope="module")
def manipulator():
    return MechanismEquilibriumMap(load_robot("manipulator"))


def path_to(equilibria, start, position):
    """Equilibria from a start to a position of the output."""
    return plan_path(equilibria, start, make_goal(equilibria.robot.output, position, None, start.pose)).path


@pytest.mark.parametrize("name", ["manipulator", "single_strut", "biglide"])
def test_slopes_are_the_derivatives_of_pose_and_tensions(name):
    equilibria = MechanismEquilibriumMap(load_robot(name))
    slopes, h = equilibria.sensitivity(equilibria.home), 1e-4
    for k in range(len(equilibria.joints)):
        turn = h * np.eye(len(equilibria.joints))[k]
        ahead, behind = (
            equilibria.solve(equilibria.home.positions + sign * turn, equilibria.home) for sign in (1.0, -1.0)
        )
        rows = slopes.pose[:3, k]
        np.testing.assert_allclose((ahead.pose[0] - behind.pose[0]) / (2 * h), rows, atol=1e-6)
        pull = (ahead.tensions - behind.tensions) / (2 * h)
        np.testing.assert_allclose(pull, slopes.tensions[:, k], atol=1e-5 * (1.0 + np.max(np.abs(pull), initial=0.0)))


@pytest.mark.parametrize("name", ["manipulator", "single_strut", "biglide"])
def test_a_goal_is_reached_by_the_simulated_robot(name):
    robot = load_robot(name)
    controller, simulation = make_controller("joint_position", robot), Simulation(robot)
    controller.reset(0.0, RobotState(positions=np.array(list(simulation.observe().positions.values()))))
    goal = controller.home.pose[0] + np.array([0.05, 0.02, 0.0])
    accepted = controller.set_goal(0.0, goal)
    while simulation.time < accepted.arrival + 1.0:
        simulation.advance(duration=0.02, position=controller.command(simulation.time).as_dict())
    rows = robot.outputs[0].rows
    assert np.max(np.abs((simulation.observe().pose[0] - goal)[rows])) < 2e-4
    assert controller.status(simulation.time).phase == "holding"


def test_shapes_of_a_plan_keep_the_limits_and_end_at_the_goal(manipulator):
    goal = manipulator.home.pose[0] + np.array([0.0, 0.08, -0.05])
    path = path_to(manipulator, manipulator.home, goal)
    limits = make_limits(manipulator)
    for shape in path:
        assert limits.violation(limited(manipulator, shape, None)[0]) < 0.03
    assert limits.violation(limited(manipulator, path[-1], None)[0]) < 1e-3
    assert np.linalg.norm(path[-1].pose[0] - goal) < 1e-6
    assert all(np.linalg.norm(b.pose[0] - a.pose[0]) < 0.025 for a, b in pairwise(path))


def test_the_same_goal_from_elsewhere_has_nearly_the_same_tensions(manipulator):
    goal = manipulator.home.pose[0] + np.array([0.05, 0.0, 0.0])
    direct = path_to(manipulator, manipulator.home, goal)[-1]
    aside = path_to(manipulator, manipulator.home, goal + np.array([0.0, 0.06, -0.03]))[-1]
    other = path_to(manipulator, aside, goal)[-1]
    assert np.max(np.abs(direct.tensions - other.tensions)) < 0.05 * np.max(direct.tensions)


def test_goal_beyond_the_reach_names_what_binds_and_the_nearest_pose(manipulator):
    goal = manipulator.home.pose[0] + np.array([0.0, 0.0, 1.0])
    with pytest.raises(UnreachableGoalError, match=r"out of reach\. Nearest pose found") as caught:
        path_to(manipulator, manipulator.home, goal)
    assert caught.value.nearest.pose[0][2] > manipulator.home.pose[0][2]
    assert caught.value.binding


ARM = """
name: arm
kind: mechanism
bodies:
  upper: {mass: 0.5, centre: [0.2, 0, 0], inertia: [0.001, 0.01, 0.01]}
  middle: {mass: 0.3, centre: [0.15, 0, 0], inertia: [0.001, 0.005, 0.005]}
  lower: {mass: 0.3, centre: [0.15, 0, 0], inertia: [0.001, 0.005, 0.005]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, axis: [0, 1, 0], start: ["-30 deg"]}
  - {name: elbow, kind: revolute, parent: upper, body: middle, frame: {at: [0.4, 0, 0]}, axis: [0, 1, 0],
     start: ["60 deg"]}
  - {name: wrist, kind: revolute, parent: middle, body: lower, frame: {at: [0.3, 0, 0]}, axis: [0, 1, 0],
     start: ["20 deg"]WRIST}
actuators:
  - {drives: shoulder, position: [-3, 3], rate: 2, effort: 50}
  - {drives: elbow, position: [-2.6, 2.6], rate: 2, effort: 50}
ACTUATOR
outputs: [{name: tip, body: BODY, frame: {at: [0.3, 0, 0]}, controlled: [x, z]}]
"""


def test_a_goal_far_beyond_a_stretched_arm_takes_no_more_shapes_than_one_within_reach():
    actuator = "  - {drives: wrist, position: [-2.6, 2.6], rate: 2, effort: 50}"
    text = ARM.replace("WRIST", "").replace("ACTUATOR", actuator).replace("BODY", "lower")
    equilibria = MechanismEquilibriumMap(parse_robot(text, "here"))
    solved, solve = [], equilibria.solve
    equilibria.solve = lambda *given: solved.append(given) or solve(*given)
    within = plan_path(equilibria, equilibria.home, make_goal(equilibria.output, [0.0, 0.0, 0.95], [1, 0, 0, 0]))
    assert np.linalg.norm(within.pose_error) < 1e-6
    reachable = len(solved)
    for far in ([0.8, 0.0, 10.0], [10.0, 0.0, 10.0], [-50.0, 0.0, 50.0]):
        solved.clear()
        with pytest.raises(UnreachableGoalError, match="out of reach") as caught:
            path_to(equilibria, equilibria.home, far)
        assert np.linalg.norm(caught.value.nearest.pose[0]) > 0.98  # the arm is stretched, 1 m long
        assert len(solved) < 2 * reachable


def test_narrow_positions_bind_by_name():
    robot = load_robot("biglide")
    near = replace(robot, actuators=tuple(replace(each, position=(-0.05, 0.05)) for each in robot.actuators))
    equilibria = MechanismEquilibriumMap(near)
    with pytest.raises(UnreachableGoalError, match=r"foot_\d: position .* m at its highest of 0\.05 m"):
        path_to(equilibria, equilibria.home, equilibria.home.pose[0] + np.array([0.0, 0.2, 0.0]))


def test_curve_passes_through_its_shapes_with_the_rates_of_its_poses(manipulator):
    goal = manipulator.home.pose[0] + np.array([0.04, -0.03, 0.02])
    path = path_to(manipulator, manipulator.home, goal)
    curve = EquilibriumPath(manipulator, path)
    assert np.array_equal(curve.positions(0.0), path[0].positions)
    assert np.array_equal(curve.positions(1.0), path[-1].positions)
    for parameter in (0.21, 0.5, 0.83):
        solved = curve.equilibrium(parameter)
        assert np.linalg.norm(curve.pose(parameter)[0] - solved.pose[0]) < 2e-4
        h = 1e-5
        rate = (curve.pose(parameter + h)[0] - curve.pose(parameter - h)[0]) / (2 * h)
        np.testing.assert_allclose(curve.pose_rates(parameter)[:3], rate, atol=1e-5)
        turned = (curve.positions(parameter + h) - curve.positions(parameter - h)) / (2 * h)
        np.testing.assert_allclose(curve.position_rates(parameter), turned, atol=1e-4)


def test_a_motion_is_broken_off_without_a_jump():
    robot = load_robot("manipulator")
    controller = make_controller("joint_position", robot)
    controller.reset(0.0)
    accepted = controller.set_goal(0.0, controller.home.pose[0] + np.array([0.05, 0.0, 0.0]))
    middle = 0.5 * accepted.arrival
    before = controller.command(middle - 1e-4).values
    controller.hold(middle)
    after = [controller.command(middle + t).values for t in (0.0, 1e-4, 5.0, 6.0)]
    np.testing.assert_allclose(after[1] - after[0], after[0] - before, atol=1e-5)
    assert np.array_equal(after[2], after[3])


def test_waypoints_that_are_too_fast_name_the_actuator_in_its_units():
    controller = make_controller("joint_position", load_robot("single_strut"))
    controller.reset(0.0)
    with pytest.raises(InfeasibleControlError, match=r"move B\d at .* rad/s, above its rate limit of 30 rad/s"):
        controller.follow(0.0, [(0.01, controller.home.pose[0] + np.array([0.2, 0.0, 0.0]), None)])


def test_positions_that_make_no_sense_are_refused():
    controller = make_controller("joint_position", load_robot("single_strut"))
    with pytest.raises(TensegrityError, match=r"finite actuator positions \(B1, B2, B3\)"):
        controller.reset(0.0, RobotState(positions=np.array([0.0, np.nan, 0.0])))
    with pytest.raises(TensegrityError, match="has not received a state yet"):
        controller.set_goal(0.0, [0.0, 0.0, 1.0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["manipulator", "single_strut"])
@pytest.mark.parametrize("move", [(0.1, 0.0, 0.0), (0.02, 0.0, 0.0), (0.03, 0.06, -0.02)])
@pytest.mark.parametrize("asked", [1e-3, None])
def test_a_motion_leaves_the_tensions_above_their_floors_in_simulation(name, move, asked):
    robot, period = load_robot(name), 0.02
    controller, simulation = make_controller("joint_position", robot, swing_periods=0.0), Simulation(robot)
    controller.reset(0.0, RobotState(positions=np.array(list(simulation.observe().positions.values()))))
    accepted = controller.set_goal(0.0, controller.home.pose[0] + np.array(move), duration=asked)
    floors = {each.drives: each.minimum_tension for each in robot.actuators}
    lowest = dict.fromkeys(floors, np.inf)
    while simulation.time < accepted.arrival + 0.5:
        command = controller.command(simulation.time)
        simulation.command(command.mode, command.set_points(), period=period)
        for _ in range(4):
            simulation.advance(duration=0.25 * period)
            seen = simulation.observe().tensions
            lowest = {each: min(lowest[each], seen[each]) for each in floors}
    assert all(lowest[each] >= floors[each] for each in floors), lowest
    assert (asked is not None) == ("needed by" in accepted.note)


@pytest.mark.parametrize("latest", [0, 1, 3])
def test_floors_are_kept_and_the_goal_is_reached_however_late_commands_are(latest):
    """Each command is late by zero to some periods, at random, and one in eight does not come at all."""
    robot, period, random = load_robot("single_strut"), 0.02, np.random.default_rng(latest)
    controller, simulation = make_controller("joint_position", robot, period=period), Simulation(robot)
    controller.reset(0.0, RobotState(positions=np.array(list(simulation.observe().positions.values()))))
    goal = controller.home.pose[0] + np.array([0.1, 0.0, 0.0])
    accepted = controller.set_goal(0.0, goal)
    floors = {each.drives: each.minimum_tension for each in robot.actuators}
    sent, arrived, least = [], 0, np.inf
    for k in range(round((accepted.arrival + 0.5) / period)):
        sent.append(controller.command(k * period))
        newest = k - int(random.integers(0, latest + 1))
        if newest >= arrived and (not latest or random.random() > 0.125):
            arrived = newest
            command = sent[arrived]
            simulation.command(command.mode, command.set_points(), age=(k - arrived) * period, period=period)
        simulation.advance(duration=period)
        seen = simulation.observe()
        least = min(least, *(seen.tensions[name] / floor for name, floor in floors.items()))
    assert least > 0.99
    rows = robot.outputs[0].rows
    assert np.max(np.abs((seen.pose[0] - goal)[rows])) < 1e-3


def test_a_robot_without_an_equilibrium_is_held_by_its_actuators_and_takes_goals_where_there_is_one():
    robot = load_robot("single_strut")
    controller, home = make_controller("joint_position", robot), Simulation(robot)
    q, loose = home.state.configuration, np.full(3, -0.6)  # so much cable that the strut would fall
    pose = (np.array([0.01, 0.0, 0.9]), np.array([1.0, 0.0, 0.0, 0.0]))
    controller.reset(0.0, RobotState(positions=loose, q=q, pose=pose))
    for time in (0.0, 1.0):
        command = controller.command(time, RobotState(positions=loose + 0.01, q=q, pose=pose))
        np.testing.assert_array_equal(command.values, loose)
        assert not np.any(command.velocity)
    assert "is not stable" in controller.diagnostics()["held_without_equilibrium"]
    with pytest.raises(TensegrityError, match=r"no motion can start here.*Send the goal again when the robot rests"):
        controller.set_goal(1.0, pose[0])
    controller.hold(1.0)
    assert controller.status(1.0).phase == "holding"
    controller.reset(2.0, RobotState(positions=np.zeros(3), q=q, pose=pose))
    assert not controller.diagnostics()
    assert controller.set_goal(2.0, controller.home.pose[0] + [0.01, 0.0, 0.0]).duration > 0.0
