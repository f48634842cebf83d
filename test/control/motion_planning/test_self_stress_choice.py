"""The choice among several self-stresses: inside its limits, smooth, and the least or nearest that there is."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tensegrity_control.motion_planning.near_rigid_model import NearRigidModel
from tensegrity_control.motion_planning.self_stress_choice import MISSED, choose_tensions
from tensegrity_control.motion_planning.strain_planner import plan_strains
from tensegrity_control.trajectories.quintic import minimum_jerk
from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.robots.load_robot import parse_robot


def problem(seed):
    """Particular tensions and two self-stresses of eight cables, with a gap between floor and ceiling."""
    rng = np.random.default_rng(seed)
    stress = np.linalg.qr(rng.normal(size=(8, 2)))[0].T
    inside = rng.uniform(20.0, 60.0, 8)
    return inside - (stress @ inside) @ stress, stress


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([None, 40.0]))
def test_chosen_tensions_are_inside_and_differ_from_the_forces_own_by_self_stress(seed, level):
    particular, stress = problem(seed)
    floor, ceiling = np.full(8, 10.0), np.full(8, 80.0)
    found = choose_tensions(particular, stress, floor, ceiling, level)
    assert np.all(found > floor)
    assert np.all(found < ceiling)
    np.testing.assert_allclose(found - particular, (stress @ (found - particular)) @ stress, atol=1e-9)


def test_least_tensions_are_near_those_of_the_linear_program():
    particular, stress = problem(3)
    floor = np.full(8, 10.0)
    found = choose_tensions(particular, stress, floor, np.full(8, np.inf), None)
    exact = linprog(stress @ np.ones(8), A_ub=-stress.T, b_ub=particular - floor, bounds=[(None, None)] * 2)
    least = float(np.sum(particular) + exact.fun)
    assert least < found.sum() < least + 2.5 * 10.0 * 8 / 30.0


def test_a_level_far_from_all_limits_is_met_as_nearly_as_can_be():
    particular, stress = problem(5)
    found = choose_tensions(particular, stress, np.full(8, 1.0), np.full(8, 1e4), 40.0)
    np.testing.assert_allclose(stress @ (found - 40.0), 0.0, atol=0.05)


def test_chosen_tensions_follow_the_forces_smoothly():
    first, stress = problem(7)
    along = np.linspace(-1.0, 1.0, 8)
    along -= (stress @ along) @ stress
    floor, ceiling = np.full(8, 10.0), np.full(8, 80.0)

    def at(s):
        return choose_tensions(first + s * along, stress, floor, ceiling, None)

    for s in (0.0, 1.0, 2.0):  # the slope is the same from both sides and at two scales
        wide, narrow = (at(s + h) - at(s - h) for h in (2e-3, 1e-3))
        np.testing.assert_allclose(narrow, 0.5 * wide, atol=1e-5)
        np.testing.assert_allclose(at(s + 1e-3) - at(s), at(s) - at(s - 1e-3), atol=1e-4)


def test_limits_that_no_self_stress_keeps_are_refused():
    particular, stress = problem(1)
    with pytest.raises(InfeasibleControlError, match="no self-stress"):
        choose_tensions(particular, stress, np.full(8, 60.0), np.full(8, 61.0), None)


def test_a_strut_on_four_cables_is_planned_with_tensions_between_floor_and_ceiling():
    text = (resources.files("tensegrity_dynamics") / "robots/single_strut.yaml").read_text()
    model = NearRigidModel(parse_robot(text.replace("count: 3", "count: 4"), "four cables"))
    model.tension_ceiling[:] = 90.0
    start = model.tracked_at(model.robot.model.start)
    plan = plan_strains(model, minimum_jerk(0.0, 0.5, start, start + [0.15, -0.1]), 0.01, np.full(4, 30.0), 0.04)
    assert plan.tensions.min() > 30.0
    assert plan.tensions.max() < 90.0
    assert np.abs(np.diff(plan.tensions, 2, axis=0)).max() < 0.02 * np.ptp(plan.tensions) + 0.5


def bent(tension):
    """A stiffness that grows with tensions and bends, in parts of the one that is asked for."""
    return float(np.sum(np.linspace(0.5, 2.0, 8) * tension**0.7)) / 140.0 - 1.0


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([None, 40.0]))
def test_a_stiffness_within_reach_is_met_by_tensions_inside_their_limits_and_one_beyond_is_refused(seed, level):
    particular, stress = problem(seed)
    floor, ceiling = np.full(8, 5.0), np.full(8, 90.0)
    free = choose_tensions(particular, stress, floor, ceiling, level)
    other = choose_tensions(particular, stress, floor, ceiling, 60.0 if level is None else None)
    asked = 0.5 * (bent(free) + bent(other))  # between two that there are
    found = choose_tensions(particular, stress, floor, ceiling, level, None, lambda each: bent(each) - asked)
    assert abs(bent(found) - asked) < MISSED
    assert np.all(found > floor) and np.all(found < ceiling)
    np.testing.assert_allclose(found - particular, (stress @ (found - particular)) @ stress, atol=1e-9)
    with pytest.raises(InfeasibleControlError, match="gives this stiffness; the closest"):
        choose_tensions(particular, stress, floor, ceiling, level, None, lambda each: bent(each) - bent(ceiling) - 0.05)
