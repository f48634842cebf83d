"""Cables that sag: the elastic catenary against its differential equation and closed forms, in shapes and in motion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad_vec
from scipy.optimize import brentq

from tensegrity_dynamics import RobotFileError, Simulation, parse_robot
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.estimation.quasi_static_estimator import MechanismEstimator
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.route_readings import polylines, read_routes
from tensegrity_dynamics.mechanisms.routing.columns import ELASTIC, TENSION, W_OUT
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_dynamics.robots.robot_types import type_of

GRAVITY = 9.80665
LINE = """
name: line
kind: mechanism
bodies: {{trolley: {{mass: 1, inertia: [1, 1, 1]}}, load: {{mass: 5, inertia: [1, 1, 1]}}}}
joints:
  - {{name: along, kind: prismatic, parent: world, body: trolley, axis: [0.8, 0.6, 0],
     resistance: {{stiffness: {spring}}}}}
  - {{name: up, kind: prismatic, parent: trolley, body: load, axis: [0, 0, 1], resistance: {{stiffness: 5000}}}}
routed_cables:
  - {{name: line, sag: true, young: {young}, cable_radius: 0.005, density: {density}, length: {length},
     route: [{{body: world, at: [0, 0, 0]}}, {{body: load, at: [8, 6, 0]}}]}}
"""
AREA = np.pi * 0.005**2


def line(length=10.5, density=6000.0, young=1e9, spring=200):
    return parse_robot(LINE.format(length=length, density=density, young=young, spring=spring), "here")


def state(model, q, work=None):
    work = make_workspace(model.mechanism.flat) if work is None else work
    evaluate(model.mechanism.flat, np.array(q, dtype=np.float64), np.zeros(2), work)
    return work


@settings(max_examples=8, deadline=None)
@given(
    length=st.floats(9.9, 25.0), density=st.floats(1.0, 2e4), rise=st.floats(-6.0, 6.0), reach=st.floats(-5.0, 0.5),
)  # fmt: skip
def test_a_sagging_cable_obeys_its_differential_equation(length, density, rise, reach):
    model = line(length, density).model_as(MechanismModel)
    row = state(model, [reach, rise]).route_state[0]
    pull = row[TENSION] * row[W_OUT : W_OUT + 3]
    weight = np.array([0, 0, density * AREA * GRAVITY])
    lowest = min(max(-pull[2] / weight[2], 0.0), length)

    def slope(s):  # dr/ds = (1 + T / E A) t with T t = pull + weight s
        force = pull + s * weight
        return force * (1.0 / np.linalg.norm(force) + 1.0 / (1e9 * AREA))

    end, _ = quad_vec(slope, 0.0, length, epsabs=1e-9, points=[lowest])
    # reached: (8, 6, 0) and the coordinates
    assert np.allclose(end, [8 + 0.8 * reach, 6 + 0.6 * reach, rise], atol=1e-7)


@settings(max_examples=5, deadline=None)
@given(length=st.floats(9.9, 14.0), rise=st.floats(-3.0, 3.0), reach=st.floats(-2.0, 0.1))
def test_pulls_of_a_sagging_cable_are_the_gradient_of_its_energy(length, rise, reach):
    model = line(length, spring=0).model_as(MechanismModel)
    q = np.array([reach, rise])
    efforts = state(model, q).passive.copy()
    efforts[1] += 5000.0 * rise
    for d in range(2):
        shift = np.zeros(2)
        shift[d] = 1e-5
        one, two = (state(model, q + sign * shift).route_results[0, ELASTIC] for sign in (1, -1))
        assert efforts[d] == pytest.approx(-(one - two) / 2e-5, rel=1e-5, abs=1e-4)


def test_sag_and_tension_of_a_stiff_level_cable_are_those_of_the_catenary():
    model = line(10.5, young=1e15).model_as(MechanismModel)
    work = state(model, [0, 0])
    found = read_routes(model.mechanism, work)["line"]
    a = brentq(lambda a: 2 * a * np.sinh(5 / a) - 10.5, 1, 100, xtol=1e-14)
    weight = 6000 * AREA * GRAVITY
    assert found.sag == pytest.approx(a * (np.cosh(5 / a) - 1), rel=1e-7)
    assert found.tensions == pytest.approx((weight * a * np.cosh(5 / a),) * 2, rel=1e-7)
    drawn = polylines(model.mechanism, work)[0]
    assert np.allclose(drawn[-1], [8, 6, 0], atol=1e-9)
    assert drawn[:, 2].min() == pytest.approx(-found.sag, rel=1e-6)


def test_a_taut_cable_of_little_weight_is_the_straight_one():
    # 3 w^2 L / 8 H^2 and less: the parabola's share of length
    model = line(9.99, density=1e-3).model_as(MechanismModel)
    found = read_routes(model.mechanism, state(model, [0, 0]))["line"]
    assert found.tension == pytest.approx(1e9 * AREA * (10 / 9.99 - 1), rel=1e-9)
    weight = 1e-3 * AREA * GRAVITY
    assert found.sag == pytest.approx(weight * 9.99 * 10 / 8 / found.tension, rel=1e-6)


def test_check_shows_the_sag_and_a_swinging_load_keeps_its_energy():
    robot = line()
    solved = MechanismEstimator(robot).solve({})
    text = type_of(robot).report(robot).check()
    section = next(part for part in text.parts if getattr(part, "title", "") == "routed cables")
    assert f"{1e3 * solved.equilibrium.routes['line'].sag:.5g} mm" in section.rows[0]
    simulation = Simulation(robot, time_step=2e-3, start="file")
    before = simulation.energy().total
    simulation.advance(100)
    assert abs(simulation.state.q[0]) > 1e-2
    assert simulation.energy().total == pytest.approx(before, abs=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("density: 6000.0, ", "", "density: a cable that sags needs its density"),
        ("length: 10.5,", "", "length: a cable that sags needs its rest length"),
        ("sag: true, ", "", "only a cable that sags has weight"),
        ("sag: true, ", "sag: true, damping: 3, ", "without damping"),
        ("}, {body: load", "}, {body: trolley, at: [1, 0, 0]}, {body: load", "between two points"),
        ("length: 10.5", "length: 5", "too short"),
    ],
)
def test_what_cannot_sag_is_refused_by_name(old, new, said):
    text = LINE.format(length=10.5, density=6000.0, young=1e9, spring=200)
    assert old in text
    with pytest.raises(RobotFileError, match=said):
        parse_robot(text.replace(old, new, 1), "here")
