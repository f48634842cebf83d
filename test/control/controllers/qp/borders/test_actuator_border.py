"""Ends of actuators and cables: a goal beyond them is approached as far as they permit, and nothing is unwound."""

from __future__ import annotations

import re
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import make_controller
from tensegrity_control.controllers.qp.borders.goal_reach import GoalReach
from tensegrity_dynamics import Robot, load_robot, parse_robot
from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

TEXT = (resources.files("tensegrity_dynamics.robots") / "cable_robot.yaml").read_text()
OFF = 3.08
"""m of the longer cables of the shipped robot that are off their pulleys at the start, rounded up."""


def short_cables(spare: float) -> Robot:
    """The suspended robot with `spare` m of its cables left on the pulleys, and limits of its file far beyond."""
    return parse_robot(re.sub(r"length: 6\b", f"length: {spare + OFF}", TEXT))


def wound(robot: Robot, q: np.ndarray) -> np.ndarray:
    """(a,) m of the cables on their pulleys."""
    place, turns = robot.model.cable_turns(robot.actuators)
    radius = np.array([robot.model.cable_radius(each) for each in robot.actuators])
    return radius * (turns - q[place])


def test_limits_of_an_actuator_end_where_its_cable_ends():
    robot = short_cables(0.5)
    on_pulley = wound(robot, robot.model.start)
    for each, left in zip(robot.actuators, on_pulley, strict=True):
        assert each.position == pytest.approx((-left / 0.05, 40.0))
    assert all(each.position == (-40.0, 40.0) for each in parse_robot(TEXT).actuators)


@given(spare=st.floats(0.05, 0.2), direction=st.floats(-3.1, 3.1), late=st.integers(0, 2))
@settings(deadline=None, max_examples=10, derandomize=True)
@pytest.mark.examples(2)
def test_a_goal_beyond_the_end_of_a_cable_is_approached_and_said(spare, direction, late):
    robot = short_cables(spare)
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01, Delays((0, late), (0, late)))
    loop.run(0.3)
    home = loop.simulation.observe().pose[0]
    goal = home + 0.5 * np.array([np.cos(direction), np.sin(direction), -0.3])
    with pytest.raises(InfeasibleControlError, match=r"cable (low|high)_\d would be unwound past its end"):
        GoalReach(robot).refuse(loop.simulation.state.q, (goal, np.array([1.0, 0, 0, 0])), np.full(8, 5.0))
    loop.run(control.set_goal(loop.stamp, goal).duration)
    status = control.status(loop.time)
    assert any(
        re.search(r"out of reach: the output stopped where it is \(cable (low|high)_\d is nearly all unwound", each)
        for each in status.relaxed
    )
    before = loop.simulation.observe().pose[0]
    loop.run(0.5)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - before) < 1e-3
    assert np.min(wound(robot, loop.simulation.state.q)) > 0.0
    assert loop.least() > 1.0


def test_a_goal_within_the_ends_is_reached():
    robot = short_cables(0.6)
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01)
    goal = loop.simulation.observe().pose[0] + np.array([0.25, 0.0, 0.0])
    loop.run(control.set_goal(0.0, goal).duration + 0.5)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - goal) < 1e-3


@pytest.mark.sampled(2)
@pytest.mark.parametrize("observer", [False, True])
@pytest.mark.parametrize("offset", [(0.2, 0.1), (0.206, 0.046)])
def test_near_a_fold_that_takes_high_rates_the_reference_slows_down_and_the_motion_home_is_free(offset, observer):
    robot = load_robot("biglide")
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01, Delays((0, 1), (0, 1), seed=1), observer=observer)
    loop.run(0.3)
    home = loop.simulation.observe().pose[0]
    accepted = control.set_goal(loop.stamp, home + np.array([*offset, 0.0]))
    loop.run(accepted.duration + 2.0)
    assert any("out of reach" in each for each in control.status(loop.time).relaxed)
    loop.run(control.set_goal(loop.stamp, home).duration + 2.5)
    assert np.linalg.norm((loop.simulation.observe().pose[0] - home)[:2]) < 1e-3


def test_a_stream_of_goals_ends_before_the_end_of_a_cable_and_comes_back():
    robot = short_cables(0.15)
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01)
    loop.run(0.3)
    home, refused = loop.simulation.observe().pose[0], []

    def drag(now: float) -> None:
        away = min(0.3 * (now - 0.3), 0.4) if now < 2.7 else 0.1
        if round(now / 0.01) % 2:
            try:
                control.set_goal(loop.stamp, home + away * np.array([1.0, 0.3, 0.0]))
            except InfeasibleControlError as error:
                refused.append(str(error))

    loop.run(2.2, drag)
    before = loop.simulation.observe().pose[0]
    assert re.search(r"cable low_\d is nearly all unwound", refused[-1])
    loop.run(0.2, drag)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - before) < 1e-3
    assert np.min(wound(robot, loop.simulation.state.q)) > 0.01 and loop.least() > 1.0
    loop.run(1.2, drag)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - home) < np.linalg.norm(before - home) - 0.02


def test_a_reference_that_stood_still_for_a_late_computer_goes_on():
    robot = load_robot("cable_robot")
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01, Delays((0, 2), (0, 2), (1, 3), freezes=((0.9, 0.2),), seed=1))
    loop.run(0.3)
    goal = loop.simulation.observe().pose[0] + np.array([0.1, 0.05, -0.1])
    loop.run(control.set_goal(loop.stamp, goal).duration + 3.0)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - goal) < 1e-3


@pytest.mark.parametrize("name", ["biglide", "cable_robot", "manipulator", "single_strut"])
def test_a_goal_to_which_no_shape_leads_is_decided_without_an_error(name):
    control = make_controller("qp", load_robot(name))
    border, equations, q = control.border, control.equations, control.robot.model.start
    still = np.zeros(equations.mechanism.velocity_count)
    for k, away in enumerate(([9.0, 0.0, 0.0], [0.0, -9.0, 0.0], [0.0, 0.0, -9.0])):
        equations.update(q, still)
        goal = equations.arrays.position[:3] + away, np.array([1.0, 0.0, 0.0, 0.0])
        calls = 0
        while not border.is_decided(k):
            border.is_reached(q, goal, k, np.zeros(equations.parts.axes.size), 0.3)
            calls += 1
        assert calls < 500
