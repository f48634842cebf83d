"""Near-rigid control: the printed law, the plan of strains, and what the closed loop reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import RobotState, make_controller
from tensegrity_control.laws.near_rigid_law import NearRigidLaw
from tensegrity_control.motion_planning import strain_planner
from tensegrity_control.motion_planning.near_rigid_model import NearRigidModel
from tensegrity_control.motion_planning.near_rigid_tracker import NearRigidTracker, NearRigidWeights
from tensegrity_control.motion_planning.strain_planner import plan_strains
from tensegrity_control.trajectories.smoothing import smoothed
from tensegrity_control.trajectories.splines import HermiteSpline
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms import forward_dynamics
from tensegrity_dynamics.mechanisms.cable_substitution import with_cables
from tensegrity_dynamics.robots.load_robot import parse_robot

TRACKED = ("x-revoluteJt", "y-revoluteJt")
STRESS, AREA = 20e6, np.pi * 1e-6
FLOOR = STRESS * AREA


def strut(young, *, scale=1.0, inertia=1.0):
    """The single strut of 000, section 5.3, without gravity; `scale` and `inertia` make the plant another one."""
    robot = load_robot("single_strut")
    model = with_cables(robot.model, young=young * scale, damping=1e7, strain=STRESS / young)
    bodies = tuple(
        replace(body, inertia=inertia * body.inertia) if body.name.endswith("-pulley") else body
        for body in model.mechanism.bodies
    )
    mechanism = replace(model.mechanism, gravity=np.zeros(3), bodies=bodies)
    actuators = tuple(replace(each, effort=1e3) for each in robot.actuators)
    return replace(robot, model=replace(model, mechanism=mechanism), actuators=actuators)


def short_path():
    """A part of the document's path in a third of its time: jumps of acceleration at every knot."""
    return HermiteSpline([0.0, 0.2, 0.8, 1.2], [[0.0, 0.0], [0.0, 0.0], [0.15, -0.2], [0.0, 0.0]], np.zeros((4, 2)))


@pytest.fixture(scope="module")
def control():
    return NearRigidTracker(strut(2e9), TRACKED, short_path(), period=1e-3, floor=FLOOR)


def follow(control, plant, period, late=0):
    """Largest errors (y,) and least strain over that of the floor; inputs arrive `late` periods after their state."""
    simulation = Simulation(plant, 1e-4, start="file", gravity=[0.0, 0.0, 0.0])
    error, least, given = np.zeros(2), np.inf, []
    for k in range(round(1.2 / period)):
        state = simulation.state
        given.append(control.effort(state.time, state.q, state.v))
        state = simulation.advance(round(period / 1e-4), effort=control.as_dict(given[max(0, k - late)]))
        error = np.maximum(error, np.abs(control.model.tracked_at(state.q) - control.trajectory.value(state.time)))
        least = min(least, float(np.min(state.q[control.model.q_strains])) / (STRESS / 2e9))
    return error, least


# -- smoothing ------------------------------------------------------------------------------------------------------


def test_smoothing_leaves_cubics_unchanged_away_from_knots():
    path = short_path()
    times = np.array([0.1, 0.35, 0.5, 0.7, 1.0])
    for found, derivative in zip(smoothed(path, 0.05, times), range(3), strict=True):
        np.testing.assert_allclose(found, path.value(times, derivative), atol=1e-12)


def test_smoothed_path_stays_within_its_bound_at_knots():
    path, width = short_path(), 0.04
    jump = np.max(np.abs(path.value(0.2 + 1e-9, 2) - path.value(0.2 - 1e-9, 2)))
    times = np.linspace(0.17, 0.23, 200)
    value, _, _ = smoothed(path, width, times)
    off = np.max(np.abs(value - path.value(times)))
    assert 0.0 < off < width**2 / 48.0 * jump


@given(st.floats(0.01, 0.1), st.floats(0.0, 1.2))
@settings(max_examples=40, deadline=None)
def test_rates_of_a_smoothed_path_are_its_derivatives(width, time):
    path, h = short_path(), 1e-5
    ahead, here, behind = (smoothed(path, width, [t]) for t in (time + h, time, time - h))
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * h), here[1], atol=1e-6)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * h), here[2], atol=1e-2)


def test_width_of_the_smoothing_must_be_a_time():
    with pytest.raises(TensegrityError, match="width of the smoothing is 0"):
        smoothed(short_path(), 0.0, [0.0])


# -- the model ------------------------------------------------------------------------------------------------------


def test_reduced_equations_give_the_accelerations_of_the_forward_dynamics():
    robot = strut(2e8)
    model, mechanism = NearRigidModel(robot, TRACKED), robot.mechanism
    random = np.random.default_rng(0)
    q = model.closed_configuration(robot.model.start, np.array([0.1, -0.2, 0.1, 0.12, 0.11]))
    reduced = model.reduced(q, random.normal(size=5))
    effort, torque = random.normal(size=3), np.zeros(14)
    torque[model.drives] = effort
    own = np.linalg.solve(reduced.mass, reduced.inputs @ effort + reduced.passive - reduced.bias)
    whole = forward_dynamics(mechanism, q, reduced.velocity, torque)
    np.testing.assert_allclose(own, whole.acceleration[model.index], rtol=1e-9)
    np.testing.assert_allclose(reduced.cables @ whole.tension, reduced.passive, rtol=1e-9, atol=1e-12)


def test_reduced_equations_of_a_platform_that_turns_give_its_accelerations():
    model, random = NearRigidModel(load_robot("cable_robot")), np.random.default_rng(0)
    start, count, tracked = np.array(model.robot.model.start), model.index.size, len(model.y)
    w, rates = np.tile(model.coordinates_at(start), (3, 1)), np.zeros((3, count))
    w[:, :tracked] += 0.02 * random.normal(size=(3, tracked))
    rates[:, :tracked] = 0.5 * random.normal(size=(3, tracked))
    positions, effort = model.closed_configurations(start, w), random.normal(size=model.drives.size)
    reduced = model.reduced_along(positions, rates)
    for k in range(3):
        pushed = reduced.inputs[k] @ effort + reduced.passive[k] - reduced.bias[k]
        found = model.accelerations(positions[k], rates[k], effort)
        np.testing.assert_allclose(np.linalg.solve(reduced.mass[k], pushed), found, atol=1e-9 * np.max(np.abs(found)))


def test_linearisation_predicts_a_small_deviation():
    robot = strut(2e8)
    model = NearRigidModel(robot, TRACKED)
    q = model.closed_configuration(robot.model.start, np.array([0.1, -0.2, 0.1, 0.1, 0.1]))
    rate = 0.2 * np.random.default_rng(1).normal(size=5)
    effort = np.array([4.0, 4.2, 4.4])
    matrix, inputs, _ = model.linearised(q, rate, effort)

    def slope(y, strains, speed, torques):
        position = model.closed_configuration(q, np.concatenate((y, strains)))
        reduced = model.reduced(position, speed)
        pushed = reduced.inputs @ torques + reduced.passive - reduced.bias
        return np.concatenate((speed, np.linalg.solve(reduced.mass, pushed)))

    random, h = np.random.default_rng(2), 1e-5
    change, push = random.normal(size=10) * np.repeat([1.0, 0.1, 1.0, 0.1], [2, 3, 2, 3]), random.normal(size=3)
    sides = [
        slope(
            np.array([0.1, -0.2]) + s * h * change[:2], 0.1 + s * h * change[2:5], rate + s * h * change[5:],
            effort + s * h * push,
        )
        for s in (1.0, -1.0)
    ]  # fmt: skip
    found = (sides[0] - sides[1]) / (2 * h)
    np.testing.assert_allclose(matrix @ change + inputs @ push, found, rtol=1e-5, atol=1e-5 * np.max(np.abs(found)))


def test_degrees_of_freedom_that_are_left_over_are_named():
    with pytest.raises(TensegrityError, match=r"not a choice of all 5 independent coordinates here: missing"):
        NearRigidModel(strut(2e9), ("x-revoluteJt",))
    with pytest.raises(TensegrityError, match="There is no coordinate 'x-revolute'"):
        NearRigidModel(strut(2e9), ("x-revolute",))
    robot = strut(2e9)
    other = replace(robot, model=with_cables(robot.model, variant="length"))
    with pytest.raises(TensegrityError, match="cable B1 has variant length; this control needs epsilon"):
        NearRigidModel(other, TRACKED)


# -- the document's law ---------------------------------------------------------------------------------------------


def test_law_at_rest_holds_the_start():
    robot = strut(2e9)
    law = NearRigidLaw(robot, TRACKED, STRESS / 2e9)
    torques = law.effort(robot.model.start, np.zeros(14), np.zeros(2))
    np.testing.assert_allclose(torques, 0.07 * FLOOR, rtol=1e-6)


def test_corrected_sign_pulls_strains_back_to_the_floor_and_the_printed_one_lets_them_go():
    robot = strut(2e9)
    q = np.array(robot.model.start)
    model = NearRigidModel(robot, TRACKED)
    q = model.closed_configuration(q, np.concatenate((np.zeros(2), np.full(3, 0.9 * STRESS / 2e9))))
    for corrected, side in ((True, 1.0), (False, -1.0)):
        law = NearRigidLaw(robot, TRACKED, STRESS / 2e9, corrected=corrected)
        torques = law.effort(q, np.zeros(14), np.zeros(2))
        held = np.zeros(14)
        held[model.drives] = torques
        winding = forward_dynamics(robot.mechanism, q, np.zeros(14), held).acceleration[model.strains]
        assert np.all(side * winding > 1.0)


def test_law_gives_the_desired_accelerations_where_the_cables_are_rigid_at_that_instant():
    robot = strut(2e9)
    law = NearRigidLaw(robot, TRACKED, STRESS / 2e9)
    model, q = law.model, np.array(robot.model.start)
    desired = np.array([0.4, -0.3])
    torques = law.effort(q, np.zeros(14), desired)
    reduced = model.reduced(q, np.zeros(5))
    # with the strains prescribed, B u and the fictitious changes of strain are all that acts
    rest = reduced.mass[:, :2] @ desired + reduced.bias - reduced.passive - reduced.inputs @ torques
    change = np.linalg.lstsq(reduced.cables * model.stiffness, rest, rcond=None)[0]
    np.testing.assert_allclose(reduced.cables * model.stiffness @ change, rest, atol=1e-9)
    assert np.all(q[model.q_strains] + change >= STRESS / 2e9 - 1e-12)


# -- the plan and the closed loop -----------------------------------------------------------------------------------


def test_plan_meets_the_equations_of_motion_and_keeps_the_floor(control):
    plan = control.strains
    assert plan.residual < 0.01 * np.max(np.abs(plan.inputs))
    assert np.min(plan.tensions) >= FLOOR * (1.0 - 1e-9)
    assert np.min(plan.coordinates[:, 2:]) >= STRESS / 2e9 * (1.0 - 1e-9)
    assert np.max(np.min(plan.tensions, axis=1)) < 1.05 * FLOOR


def test_a_plan_in_nodes_is_that_with_the_equations_at_every_time(monkeypatch):
    model, looked, tensions = NearRigidModel(strut(2e9), TRACKED), [], strain_planner.lowest_tensions
    path = HermiteSpline([0.0, 0.16], [[0.0, 0.0], [0.02, -0.03]], np.zeros((2, 2)))
    monkeypatch.setattr(strain_planner, "lowest_tensions", lambda *given: looked.append(1) or tensions(*given))
    plan = plan_strains(model, path, 1e-3, np.full(3, FLOOR), 0.03)
    in_nodes = len(looked)
    monkeypatch.setattr(strain_planner, "KEPT", 0.0)
    whole = plan_strains(model, path, 1e-3, np.full(3, FLOOR), 0.03)
    assert in_nodes < 0.6 * (len(looked) - in_nodes)
    np.testing.assert_allclose(plan.tensions, whole.tensions, atol=1e-4 * FLOOR)
    np.testing.assert_allclose(plan.positions, whole.positions, atol=1e-6)
    np.testing.assert_allclose(plan.inputs, whole.inputs, atol=1e-3 * np.max(np.abs(whole.inputs)))
    # and that its inputs give the motion that is planned, by the forward dynamics at a time between nodes
    k = len(plan.times) // 4 + 1
    rates = (plan.rates[k + 1] - plan.rates[k - 1]) / 2e-3
    found = model.accelerations(plan.positions[k], plan.rates[k], plan.inputs[k])
    np.testing.assert_allclose(found[:2], rates[:2], atol=0.02 * np.max(np.abs(rates[:2])))


def test_path_is_followed_with_held_inputs_far_better_than_asked(control):
    error, least = follow(control, strut(2e9), 1e-3)
    assert np.max(error) < 1e-5
    assert least > 0.999


@pytest.mark.sampled(1)
@pytest.mark.parametrize("change", [{"scale": 0.9}, {"scale": 1.1}, {"inertia": 0.9}, {"inertia": 1.1}])
def test_same_gains_survive_another_plant(control, change):
    error, _ = follow(control, strut(2e9, **change), 1e-3)
    assert np.max(error) < 2e-4


def test_inputs_that_arrive_two_milliseconds_late_do_no_harm(control):
    error, _ = follow(control, strut(2e9), 1e-3, late=2)
    assert np.max(error) < 2e-4


def test_slow_control_stays_within_its_bound():
    slow = NearRigidTracker(strut(2e9), TRACKED, short_path(), period=5e-3, floor=FLOOR)
    error, _ = follow(slow, strut(2e9), 5e-3)
    assert np.max(error) < 1e-4


def test_inputs_keep_the_limits_of_the_actuators():
    robot = strut(2e9)
    weak = replace(robot, actuators=tuple(replace(each, effort=4.5) for each in robot.actuators))
    control = NearRigidTracker(weak, TRACKED, short_path(), period=1e-3, floor=FLOOR)
    q = weak.model.start
    assert np.max(np.abs(control.effort(0.5, q, np.zeros(14)))) <= 4.5


def test_floor_and_weights_must_be_above_zero():
    model = NearRigidModel(strut(2e9), TRACKED)
    with pytest.raises(InfeasibleControlError, match="tension floor of every cable must be above zero"):
        plan_strains(model, short_path(), 1e-3, np.zeros(3), 0.016)
    with pytest.raises(TensegrityError, match="weight rate is 0"):
        NearRigidWeights(rate=0.0)
    with pytest.raises(TensegrityError, match="control period is"):
        NearRigidTracker(strut(2e9), TRACKED, short_path(), period=0.0, floor=FLOOR)


def test_no_joint_of_a_cable_is_tracked_where_others_suffice_and_the_plan_ends_at_its_goal() -> None:
    """A plate in a plane on massless slides: pulleys with mass carry more than these, and say less of where it is."""
    cables, actuators = [], []
    for k, (x, z, side) in enumerate([(-1, 2, 1), (1, 2, -1), (-1, 0, -1), (1, 0, 1)]):
        cables.append(
            {"name": f"c{k}", "body": "world", "at": [x, 0, z], "block_axis": [0, 0, 1], "pulley_axis": [0, side, 0],
             "pulley_radius": 0.03, "cable_radius": 0.001, "young": 5e9, "damping": 5e6, "variant": "epsilon",
             "length": 4, "strain": 0.001, "pulley": [{"kind": "cylinder", "size": [0.03, 0.01], "mass": 0.1}],
             "anchor": {"body": "plate", "at": [0.1 * x, 0, 0.05 * (z - 1)]}}
        )  # fmt: skip
        actuators.append({"drives": f"c{k}", "position": [-60, 60], "rate": 10, "effort": 5})
    joints = [
        {"name": "sx", "kind": "prismatic", "parent": "world", "body": "slide", "axis": [1, 0, 0]},
        {"name": "sz", "kind": "prismatic", "parent": "slide", "body": "cart", "axis": [0, 0, 1],
         "frame": {"at": [0, 0, 1]}},
        {"name": "ry", "kind": "revolute", "parent": "cart", "body": "plate", "axis": [0, 1, 0]},
    ]  # fmt: skip
    plate = {"shapes": [{"kind": "box", "size": [0.2, 0.1, 0.1], "mass": 2}]}
    robot = parse_robot(
        yaml.safe_dump(
            {"kind": "mechanism", "name": "plate", "bodies": {"slide": {}, "cart": {}, "plate": plate},
             "joints": joints, "cables": cables, "actuators": actuators,
             "outputs": [{"name": "plate", "body": "plate", "controlled": ["x", "z"]}]}
        )
    )  # fmt: skip
    control = make_controller("near_rigid", robot)
    assert set(control.model.tracked) == {"sx", "sz", "ry"}
    control.reset(0.0, RobotState.of(Simulation(robot, 1e-3)))
    goal = [0.05, 0.0, 1.0]
    control.set_goal(0.0, goal)
    assert control.status(0.0).goal[0] == pytest.approx(goal, abs=1e-6)  # 0.9 mm off with a pulley's angle
