"""Motions from any motion to rest at a goal: continuity, and what a goal behind the output does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control.trajectories.online import GROWTH, OnlineMotion, astray

SEEDS = st.integers(0, 2**32 - 1)
BRAKE = 0.5


@given(seed=SEEDS, count=st.integers(2, 6), far=st.floats(1.0, 5.0))
@settings(max_examples=50)
def test_a_motion_that_brakes_first_is_continuous_to_its_second_derivative(seed, count, far):
    rng = np.random.default_rng(seed)
    start, goal = 0.1 * rng.normal(size=(3, count)), rng.normal(size=count)
    goal *= far / np.linalg.norm(goal)
    start[0], start[1] = 0.0, np.copysign(0.1 * start[1] / np.linalg.norm(start[1]), -goal)
    motion = OnlineMotion(start, goal, 0.3, 0.3, brake=BRAKE)
    assert motion.knots.size == 3
    brake = motion.knots[1]
    assert brake >= BRAKE
    for order in range(3):
        np.testing.assert_allclose(motion.value(0.0, order), start[order], atol=1e-9)
        np.testing.assert_allclose(motion.value(motion.end, order), goal if order == 0 else 0.0 * goal, atol=1e-7)
        before, after = (motion.value(brake * (1.0 + side), order) for side in (-1e-9, 1e-9))
        np.testing.assert_allclose(before, after, atol=1e-6)


@given(speed=st.floats(0.07, 0.3), far=st.floats(1.0, 5.0), seed=SEEDS)
@settings(max_examples=30)
def test_a_goal_behind_the_output_turns_it_back_within_the_brake(speed, far, seed):
    line = np.random.default_rng(seed).normal(size=3)
    line /= np.linalg.norm(line)
    start = np.stack((np.zeros(3), speed * line, np.zeros(3)))
    motion = OnlineMotion(start, -far * line, 0.3, 0.3, brake=BRAKE)
    brake = max(BRAKE, 1.5 * speed / 0.3)
    assert motion.knots[1] == pytest.approx(brake)
    ahead = motion.value(np.linspace(0.0, motion.end, 500)) @ line
    assert np.max(ahead) <= 0.5 * speed * brake * (1.0 + 1e-9)
    assert np.all(np.diff(ahead[motion.end * np.arange(500) / 499 > brake]) <= 1e-12)


@given(seed=SEEDS)
@settings(max_examples=30)
def test_a_rate_that_leads_nearer_to_the_goal_is_carried_along(seed):
    rng = np.random.default_rng(seed)
    start, goal = 0.1 * rng.normal(size=(3, 3)), 5.0 * rng.normal(size=3)
    start[1] *= np.sign(start[1] @ (goal - start[0]))
    assert not astray(start, goal).any()
    assert OnlineMotion(start, goal, 0.3, 0.3, brake=BRAKE).knots.size == 2


def test_a_goal_close_by_is_reached_in_one_piece():
    start = np.array([[0.0, 0.0], [0.1, 0.05], [0.0, 0.0]])
    assert OnlineMotion(start, [0.01, 0.0], 0.3, 1.0, brake=BRAKE).end == pytest.approx(
        OnlineMotion(start, [0.01, 0.0], 0.3, 1.0).end
    )


@given(far=st.floats(0.001, 5.0), asked=st.floats(0.1, 60.0))
@settings(max_examples=50)
def test_the_quickest_duration_is_that_of_the_same_motion_without_a_limit_of_its_rate(far, asked):
    start, goal = np.zeros((3, 2)), [0.6 * far, 0.8 * far]
    motion = OnlineMotion(start, goal, 0.1, 0.3, duration=asked, least=0.2)
    without = OnlineMotion(start, goal, 1e9, 0.3, least=0.2).end
    assert without / GROWTH <= motion.quickest <= without * (1.0 + 1e-9) and motion.quickest <= motion.end
