"""How late motion answers to commands, found from what was stated and what was seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import make_controller
from tensegrity_control.controllers.qp.timing.answer_delay import LONGEST, STEP, AnswerDelay
from tensegrity_dynamics import load_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays


def found(reported, seen, expected):
    """Delay in periods that is found from rows told (n, k) and seen (n, k); None where it is the expected one."""
    answer, one, none = AnswerDelay(reported.shape[1]), np.ones(reported.shape[1]), np.zeros(reported.shape[1])
    for change, next_told in zip(seen, reported, strict=True):
        if answer.see(1.0, one, change, none, none, expected):
            return answer.periods
        answer.record(1.0, one, next_told, none)
    return None


@settings(max_examples=20)
@given(st.integers(0, LONGEST - 1), st.integers(0, LONGEST - 1), st.integers(0, 1000))
def test_the_delay_of_motion_that_swings_is_found_beside_pushes_of_a_third_of_it(true, expected, seed):
    random = np.random.default_rng(seed)
    reported = 0.02 * random.normal(size=(120, 2))
    seen = 0.007 * random.normal(size=reported.shape)
    seen[true + 1 :] += reported[: -true - 1]
    towards = min(max(true, expected - STEP), expected + STEP)  # it is looked for again from there
    assert found(reported, seen, expected) == (None if true == expected else towards)


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_pushes_alone_are_no_delay(seed):
    random = np.random.default_rng(seed)
    reported = 0.02 * random.normal(size=(120, 2))
    seen = np.cumsum(0.02 * random.normal(size=reported.shape), axis=0) * 0.2
    seen[1:] += reported[:-1]
    assert found(reported, seen, 0) is None


def test_where_next_to_nothing_is_reported_nothing_is_concluded():
    reported = 1e-5 * np.random.default_rng(0).normal(size=(120, 2))
    assert found(reported, np.vstack((np.zeros((4, 2)), reported[:-4])), 0) is None


@pytest.mark.long
@pytest.mark.parametrize("late", [(6, 6), (0, 6)])
def test_commands_six_periods_late_that_nobody_tells_lose_no_robot(late):
    robot = load_robot("manipulator")
    loop = DelayedLoop(robot, make_controller("qp", robot), 0.005, Delays(commands=late, latency="unknown"))
    loop.run(0.5)
    here = np.array(loop.simulation.observe().pose[0])
    loop.control.set_goal(loop.stamp, here + np.array([0.03, 0.0, -0.02]))
    loop.run(4.0)
    assert loop.least() > 1.0
    assert np.linalg.norm(loop.simulation.observe().pose[0] - here - (0.03, 0.0, -0.02)) < 2e-3
