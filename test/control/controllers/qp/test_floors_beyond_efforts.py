"""Floors that the actuators' efforts do not reach, from tensions that start below them."""

from __future__ import annotations

import numpy as np
import pytest
from damped_mast import DAMPED_MAST
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import make_controller
from tensegrity_dynamics import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

RADIUS, START = 0.04, 15.7
"""m of a pulley, and N of the stays at the start."""


def mast_loop(effort: float, floor: float, late: int = 0) -> DelayedLoop:
    text = DAMPED_MAST.format(mass=0.6, damping=0.05)
    robot = parse_robot(text.replace("effort: 8, minimum_tension: 4", f"effort: {effort}, minimum_tension: {floor}"))
    return DelayedLoop(robot, make_controller("qp", robot), 0.005, Delays((late, late), (late, late)))


@pytest.mark.examples(2)
@given(spare=st.floats(1.2, 3.0), beyond=st.floats(1.05, 4.0), late=st.integers(0, 1))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_floors_beyond_the_efforts_never_cost_the_robot(spare, beyond, late):
    effort = spare * START * RADIUS
    loop = mast_loop(effort, beyond * effort / RADIUS, late)
    home = loop.simulation.observe().pose[0]
    loop.run(3.0)
    seen = loop.simulation.observe()
    assert np.linalg.norm(seen.pose[0] - home) < 1e-3
    assert min(seen.tensions.values()) > START
    assert max(map(abs, seen.efforts.values())) <= effort
    assert any("stay_1" in each and "no more effort" in each for each in loop.control.status(loop.time).relaxed)
    goal = home + np.array([0.01, 0.0, 0.0])
    loop.run(loop.control.set_goal(loop.stamp, goal).duration + 1.0)
    assert np.linalg.norm((loop.simulation.observe().pose[0] - goal)[:2]) < 1e-3


def test_floors_within_the_efforts_are_reached_from_below():
    loop = mast_loop(effort=2.0, floor=30.0)
    loop.run(3.0)
    assert min(loop.simulation.observe().tensions.values()) >= 0.99 * 30.0
    assert not loop.control.status(loop.time).relaxed
