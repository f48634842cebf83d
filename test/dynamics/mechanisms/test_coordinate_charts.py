"""Joints with quaternions among independent coordinates: rotation vectors from a centre that goes along."""

from __future__ import annotations

import numpy as np
import pytest
import qp_loop
from state_differences import change_of_coordinates

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import difference


@pytest.fixture(scope="module")
def mast():
    return qp_loop.robot_named("ball_mast")


def turned(robot, seed=0):
    """A model with charts, and a state off its centre in all coordinates."""
    model, random = ReducedModel(robot), np.random.default_rng(seed)
    start = np.array(robot.model.start)
    w = model.coordinates_at(start) + 0.1 * random.normal(size=model.index.size)
    q = model.closed_configuration(start, w)
    np.testing.assert_allclose(model.coordinates_at(q), w, rtol=0, atol=1e-12)
    return model, q, w, 0.5 * random.normal(size=w.size)


def test_whole_joints_are_independent_coordinates_with_numbers(mast):
    model = ReducedModel(mast)
    assert model.names[:3] == ("ball.wx", "ball.wy", "ball.wz") and model.index.size == 7
    with pytest.raises(TensegrityError, match=r"ball\.wx would be independent without the others of ball"):
        ReducedModel(mast, model.index[[0, 3, 4, 5, 6]])


def test_velocities_are_rates_of_what_the_coordinates_say(mast):
    model, q, w, rate = turned(mast)
    h = 1e-6
    ahead, behind = (model.closed_configuration(q, w + sign * h * rate) for sign in (1.0, -1.0))
    found = difference(mast.mechanism, behind, ahead) / (2 * h)
    velocity = model.velocity(q, rate)
    np.testing.assert_allclose(velocity, found, atol=1e-8)
    np.testing.assert_allclose(model.state(q, velocity), np.concatenate((w, rate)), atol=1e-12)


def test_the_linear_system_is_the_slope_of_accelerations(mast):
    model, q, w, rate = turned(mast)
    effort, h, n = np.array([2.0, 3.0, 1.0, 2.0]), 1e-5, w.size
    matrix, push, acceleration = model.linearised(q, rate, effort)
    np.testing.assert_allclose(acceleration, model.accelerations(q, rate, effort), atol=1e-9)
    slopes = np.zeros((n, 2 * n))
    for k, step in enumerate(h * np.eye(n)):
        positions = [model.closed_configuration(q, w + sign * step) for sign in (1.0, -1.0)]
        sides = [model.accelerations(each, rate, effort) for each in positions]
        slopes[:, k] = (sides[0] - sides[1]) / (2 * h)
        sides = [model.accelerations(q, rate + sign * step, effort) for sign in (1.0, -1.0)]
        slopes[:, n + k] = (sides[0] - sides[1]) / (2 * h)
    assert np.max(np.abs(matrix[n:] - slopes)) < 1e-6 * np.max(np.abs(slopes))
    other = model.accelerations(q, rate, effort + [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(push[n:, 0], other - acceleration, atol=1e-9 * np.max(np.abs(other)))


def test_states_along_a_motion_are_those_one_by_one(mast):
    model, q, w, rate = turned(mast)
    effort, h = np.zeros((3, 4)), 1e-4
    rows = np.array([w + k * h * rate for k in (-1, 0, 1)])
    body = int(mast.mechanism.body_index["mast"])
    states = model.states_along(q, rows, np.tile(rate, (3, 1)), effort, body, np.array([0.0, 0.0, 0.8]), (0, 1))
    np.testing.assert_allclose(states.accelerations[1], model.accelerations(q, rate, effort[0]), atol=1e-8)
    moved = (states.points[2] - states.points[0])[:2] / (2 * h)
    np.testing.assert_allclose(states.jacobians[1] @ rate, moved, atol=1e-7)


def test_configurations_along_a_motion_are_those_one_by_one(mast):
    model, q, w, rate = turned(mast)
    rows = w + 0.01 * np.arange(6)[:, None] * rate
    found = [model.closed_configuration(q, each) for each in rows]
    for starts, evenly in ((q, False), (q, True), (np.tile(q, (6, 1)), False)):
        closed = model.closed_configurations(starts, rows, evenly=evenly)
        np.testing.assert_allclose(closed, found, rtol=0, atol=1e-11)
        np.testing.assert_allclose(model.coordinates_at(closed), rows, rtol=0, atol=1e-12)


def test_another_centre_reads_what_is_known_in_the_old_one(mast):
    model, q, w, rate = turned(mast)
    far = w.copy()
    far[2] += 1.2  # a spin
    q = model.closed_configuration(q, far)
    v = model.velocity(q, rate)
    old = ReducedModel(mast)
    change = model.rechoose(q, v)
    assert change is not None and np.max(np.abs(model.coordinates_at(q)[:3])) < 1e-12
    np.testing.assert_allclose(change, change_of_coordinates(old, model, q, v, 1e-6), rtol=1e-5, atol=1e-5)
    assert model.rechoose(q, v) is None


def test_a_spin_that_nothing_resists_is_no_part_of_stability_and_of_regulators(mast):
    from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap

    home = MechanismEquilibriumMap(mast).home
    assert home.statics.stable and home.statics.softest > 1.0
    assert home.statics.idle.shape[1] == 1
    ball = mast.mechanism.velocities_of("ball")
    spin = home.statics.idle[ball, 0]
    assert np.max(np.abs(spin[:2])) < 1e-8 * abs(spin[2])
    model = ReducedModel(mast)
    effort = home.effort[model.drives]
    matrix, push, _ = model.linearised(home.q, np.zeros(7), effort)
    slowest = np.sort(np.abs(np.linalg.eigvals(matrix)))
    assert slowest[1] < 1e-3 < slowest[2]
    steadied = np.linalg.eigvals(model.steadied(home.q, matrix, push, 10.0))
    assert np.count_nonzero(np.abs(steadied + 10.0) < 1e-3) == 2
