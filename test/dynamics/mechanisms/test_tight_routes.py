"""Strands of routed cables as control holds them: rows and bias against differences, the affine model against forward
dynamics, on arms whose ropes, blocks and sheaves are drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import TensegrityError, load_robot, parse_robot
from tensegrity_dynamics.mechanisms.dynamics.forward_dynamics import accelerate
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import make_reduction_workspace
from tensegrity_dynamics.mechanisms.routing.columns import LENGTH, REST, REST_NOW
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_dynamics.numerics.compilation import QuickCall

ARM = """
kind: mechanism
name: arm
gravity: [0, 0, -9.80665]
bodies:
  winch: {{mass: 0.1, inertia: [1.0e-4, 1.0e-4, 1.0e-4]}}
  drum: {{mass: 0.1, inertia: [1.0e-4, 1.0e-4, 1.0e-4]}}
  sheave: {{mass: 0.05, inertia: [2.0e-5, 2.0e-5, 2.0e-5]}}
  turret: {{mass: 0.5, inertia: [0.01, 0.01, 0.01]}}
  upper: {{shapes: [{{kind: box, size: [0.03, 0.03, 0.4], mass: 1.2, frame: {{at: [0, 0, 0.2]}}}}]}}
  fore: {{shapes: [{{kind: box, size: [0.03, 0.03, 0.3], mass: 0.6, frame: {{at: [0, 0, 0.15]}}}}]}}
joints:
  - {{name: turretJt, kind: revolute, parent: world, body: turret, axis: [0, 0, 1]}}
  - {{name: winchJt, kind: revolute, parent: turret, body: winch, axis: [0, 1, 0], frame: {{at: [-0.4, 0, 0]}}}}
  - {{name: drumJt, kind: revolute, parent: turret, body: drum, axis: [0, 1, 0], frame: {{at: [0.7, 0, -0.5]}}}}
  - {{name: sheaveJt, kind: revolute, parent: turret, body: sheave, axis: [0, 1, 0], frame: {{at: [-0.4, 0, 0.6]}}}}
  - {{name: shoulder, kind: revolute, parent: turret, body: upper, axis: [0, 1, 0], start: [0.7]}}
  - {{name: elbow, kind: revolute, axis: [0, 1, 0], parent: upper, body: fore,
     frame: {{at: [0, 0, 0.4]}}, start: [0.7]}}
routed_cables:
  - name: tackle
    young: 2.0e9
    cable_radius: 0.001
    damping: 4.0e6
    strain: 0.002
    route:
      - {{joint: winchJt, radius: {a}, side: 1}}
      - {{joint: sheaveJt, radius: {b}, side: 1{friction}}}
      - {{body: upper, at: [0, 0, {c}], axis: [0, 1, 0], radius: 0.015, side: 1{guide}}}
      - {{body: turret, at: [-0.4, 0, 0.5]}}
  - name: low
    young: 2.0e9
    cable_radius: 0.001
    damping: 4.0e6
    strain: 0.002
    route:
      - {{joint: drumJt, radius: {a}, side: -1}}
      - {{body: upper, at: [0, 0, {c}]}}
      - {{body: fore, at: [0, 0, {d}]}}
actuators:
  - {{drives: winchJt, position: [-30, 30], rate: 10, effort: 20, minimum_tension: 4}}
  - {{drives: drumJt, position: [-30, 30], rate: 10, effort: 20, minimum_tension: 3}}
  - {{drives: turretJt, position: [-30, 30], rate: 10, effort: 20}}
outputs:
  - {{name: tip, body: fore, frame: {{at: [0, 0, 0.3]}}, controlled: [x, y]}}
"""
SIZES = {"a": 0.03, "b": 0.03, "c": 0.35, "d": 0.1}
arms = st.fixed_dictionaries(
    {"a": st.floats(0.01, 0.05), "b": st.floats(0.01, 0.05), "c": st.floats(0.2, 0.38), "d": st.floats(0.05, 0.25)}
)


def arm(sizes=SIZES, friction="", guide=""):
    return parse_robot(ARM.format(**sizes, friction=friction, guide=guide), "here")


def drawn_state(tight, robot, seed):
    """q near the start, and v."""
    random = np.random.default_rng(seed)
    still = np.zeros(tight.mechanism.velocity_count)
    q = tight.moved(np.array(robot.model.start), random.normal(size=still.size) * 0.05, 1.0)
    return q, 3.0 * random.normal(size=still.size)


@given(arms, st.integers(0, 1000))
@settings(deadline=None, max_examples=10)
def test_rows_and_bias_of_strands_are_the_derivatives_of_their_strains(sizes, seed):
    robot = arm(sizes)
    tight = TightCables(robot)
    q, v = drawn_state(tight, robot, seed)
    arrays, step = tight.update(q, v), 1e-6
    rows, bias = arrays.rows.copy(), arrays.stretch_bias.copy()

    def read(along, time, velocity):
        tight.see(tight.moved(q, along, time), velocity)
        return arrays.strain.copy(), arrays.strain_rate.copy()

    for d, unit in enumerate(np.eye(v.size)):
        ahead, behind = (read(unit, sign * step, 0.0 * v)[0] for sign in (1.0, -1.0))
        np.testing.assert_allclose(rows[:, d], (ahead - behind) / (2.0 * step), atol=1e-7 * np.abs(rows).max())
    ahead, behind = (read(v, sign * step, v)[1] for sign in (1.0, -1.0))
    np.testing.assert_allclose(bias, (ahead - behind) / (2.0 * step), atol=1e-6 * max(1.0, np.abs(bias).max()))


def strained(robot, tight, tension):
    """The robot whose routed cables have other rest lengths, so that they pull tensions (s,) N where `tight` is."""
    model, routes, first = robot.model, [], 0
    for number, route in enumerate(model.mechanism.routes):
        rows = np.array(route.elements)
        for e in route.holding:
            own = tight.work.route_state[int(model.mechanism.flat.routed_cables[number, 0]) + e]
            rows[e, REST] += own[LENGTH] / (1.0 + tension[first] / route.stiffness) - own[REST_NOW]
            first += 1
        routes.append(replace(route, elements=rows))
    return replace(robot, model=replace(model, mechanism=replace(model.mechanism, routes=tuple(routes))))


@given(arms, st.integers(0, 1000))
@settings(deadline=None, max_examples=10)
def test_tensions_and_accelerations_are_those_of_forward_dynamics_where_strains_stay(sizes, seed):
    robot = arm(sizes)
    tight = TightCables(robot)
    assert tight.cables == ("tackle[0]", "tackle[1]", "low")
    np.testing.assert_array_equal(tight.floors, [4.0, 4.0, 3.0])
    q, v = drawn_state(tight, robot, seed)
    arrays = tight.update(q, v)
    v = tight.without_stretching(v)
    tight.see(q, v)
    np.testing.assert_allclose(arrays.strain_rate, 0.0, atol=1e-9)
    effort = np.linalg.lstsq(arrays.tension_1, np.full(3, 50.0) - arrays.tension_0, rcond=None)[0]
    for _ in range(6):  # strains that these tensions need change what they pull by a part of them
        tight.update(q, v)
        tension = arrays.tension_0 + arrays.tension_1 @ effort
        assert (tension > 0.0).all()
        robot = strained(robot, tight, tension)
        tight = TightCables(robot)
        arrays = tight.update(q, v)
        v = tight.without_stretching(v)
    tight.update(q, v)
    np.testing.assert_allclose(arrays.tension_0 + arrays.tension_1 @ effort, tight.tension, rtol=1e-7)
    flat, efforts = robot.mechanism.flat, np.zeros(v.size)
    efforts[tight.parts.drive] = effort
    reduction = make_reduction_workspace(flat)
    assert accelerate(flat, q, v, efforts, 0.0, make_workspace(flat), reduction, False)[0] == 0
    rates = arrays.rate_0 + arrays.rate_1 @ effort
    found = tight.reduction.basis[:, : tight.count] @ rates + tight.reduction.offset
    np.testing.assert_allclose(found, reduction.acceleration, rtol=1e-6, atol=1e-6 * np.abs(found).max())


def test_guides_that_rub_are_slid_over_and_joints_that_may_slip_are_refused_by_name():
    robot = arm(guide=", friction: 0.2")
    assert len(robot.mechanism.routes[0].holding) == 3
    rubs, slides = TightCables(robot), TightCables(arm())
    assert rubs.cables == slides.cables
    np.testing.assert_allclose(rubs.arrays.tension_1, slides.arrays.tension_1, rtol=1e-9)
    with pytest.raises(TensegrityError, match=r"cable tackle may slip over joint sheaveJt.*joint_position"):
        TightCables(arm(friction=", friction: 0.2"))


@pytest.mark.parametrize("robot", ["manipulator", "examples/finger.yaml"])
def test_no_control_period_waits_for_a_compilation(robot: str):
    """The first goal after an installation held the actuators for half a second."""
    tight = TightCables(load_robot(robot))
    calls = [each for each in vars(tight).values() if isinstance(each, QuickCall)]
    before = [each.is_compiled for each in calls]
    q, still = np.array(tight.model.start), np.zeros(tight.mechanism.velocity_count)
    tight.held(q, np.zeros(tight.parts.drive.size), 0.0, still, np.empty(tight.parts.axes.size))
    tight.moved_under(q, still, np.zeros(tight.parts.drive.size), 0.01)
    tight.without_stretching(still)
    tight.stretches(q, still)
    assert before == [each.is_compiled for each in calls] and any(before)
