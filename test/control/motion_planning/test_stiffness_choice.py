"""Stiffness of the output by choice of self-stress, against forces and motions of equilibria."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import qp_loop
from planar_arm import PLANAR_ARM

from tensegrity_control import RobotState, make_controller
from tensegrity_control.motion_planning.stiffness_choice import StiffnessChoice
from tensegrity_dynamics import Simulation, load_robot, parse_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.kinematics.independent_coordinates import wrench_jacobian
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.statics.tension_stiffness import TensionStiffness
from tensegrity_tools.experiments.stiffness import LoadedShapes

DIRECTION = np.array([1.0, 0.5, 0.0])
LOW, HIGH = np.full(4, 10.3), np.full(4, 60.0)

BOOM = """
kind: mechanism
name: boom
gravity: [0, 0, -9.81]
bodies: {boom: {shapes: [{kind: box, size: [0.04, 0.04, 0.8], mass: 2, frame: {at: [0, 0, 0.4]}}]}}
joints: [{name: hinge, kind: revolute, parent: world, body: boom, axis: [0, 1, 0], start: ["60 deg"]}]
cables:
  - {name: hoist, body: world, at: [-0.3, 0, 0.9], block_axis: [0, 0, 1], pulley_axis: [0, 1, 0], pulley_radius: 0.03,
     young: "5 GPa", damping: "10 MPa s", cable_radius: "1 mm", length: 3, strain: 0.001,
     anchor: {body: boom, at: [0, 0, 0.7]}, block: [{kind: cube, size: [0.04], density: 1000}],
     pulley: [{kind: cylinder, size: [0.03, 0.01], density: 1000}]}
actuators: [{drives: hoist, position: [-20, 20], rate: 10, effort: "4 N m", minimum_tension: 3}]
outputs: [{name: tip, body: boom, frame: {at: [0, 0, 0.8]}, controlled: [z]}]
"""


@cache
def soft_mast():
    """A mast on four stays that stretch by a third, so that tension makes stiffness, and its equilibrium solver."""
    robot = load_robot(str(Path(__file__).parents[3] / "examples" / "soft_mast.yaml"))
    joints = robot.model.driven_joints(robot.actuators)
    return robot, MechanismEquilibriumSolver(robot.mechanism, joints)


def measured(q, direction):
    """N/m: a force on the output over what it moves, between two equilibria with the pulleys held."""
    robot, solver = soft_mast()
    along, output, force = direction / np.linalg.norm(direction), robot.output, 1e-3

    def position(pull):
        jacobian = wrench_jacobian(robot.mechanism, q, output.body, output.frame.origin)[3:]
        shape = solver.solve(q, effort=pull * (along @ jacobian))
        index = robot.mechanism.body_index[output.body]
        return along @ (shape.positions[index] + shape.rotations[index] @ output.frame.origin)

    return 2.0 * force / (position(force) - position(-force))


def test_stiffness_at_other_tensions_is_that_of_forces_and_motions_and_winding_to_them_moves_nothing():
    robot, solver = soft_mast()
    rest, model = solver.solve(robot.model.start), TensionStiffness(robot, DIRECTION)
    for desired in (rest.tension, np.array([30.0, 20.0, 35.0, 25.0])):
        tension, stress = model.self_stresses(rest.q, desired)
        wound = model.wound(rest.q, tension)
        shape = solver.solve(wound)
        assert stress.shape == (4, 2)
        np.testing.assert_allclose(shape.q, wound, atol=1e-8)
        np.testing.assert_allclose(shape.tension, tension, rtol=1e-8)
        assert model.value(rest.q, tension) == pytest.approx(measured(shape.q, DIRECTION), rel=1e-5)


def test_stiffness_by_derivatives_is_that_of_a_force_whatever_the_mast_spins_to():
    """Twisted by any angle: nothing resists its spin, and the output does not follow it."""
    robot, solver = soft_mast()
    along = DIRECTION / np.linalg.norm(DIRECTION)
    shapes, held = LoadedShapes(robot, along), {"stay1": 2.5, "stay2": 2.5, "stay3": -2.5, "stay4": -2.5}
    start = solver.solve(robot.model.start).q
    mechanism = robot.mechanism
    turned = {
        name: float(start[mechanism.positions_of(name)][0]) + held[each.drives]
        for each in robot.actuators for name in (robot.model.joint_of(each.drives),)
    }  # fmt: skip
    for shape in (solver.solve(start), solver.solve(start, turned)):
        by_load, derived = shapes.stiffness(shape.q)
        assert derived == pytest.approx(by_load, rel=1e-6)


def test_a_stiffness_within_reach_is_found_and_one_beyond_refused_with_the_range():
    robot, solver = soft_mast()
    rest = solver.solve(robot.model.start)
    choice = StiffnessChoice(robot, DIRECTION, 55.0)
    tension = choice.settle(rest.q, rest.tension, rest.tension, LOW, HIGH)
    assert np.all(tension >= LOW - 1e-6) and np.all(tension <= HIGH + 1e-6)
    assert measured(choice.model.wound(rest.q, tension), DIRECTION) == pytest.approx(55.0, rel=1e-4)
    least, most = choice.range(rest.q, rest.tension, LOW, HIGH)
    ends = [choice.model.value(rest.q, choice.model.self_stresses(rest.q, each)[0]) for each in (LOW, HIGH)]
    np.testing.assert_allclose([least, most], ends, rtol=1e-3)  # of this mast all stays at one end of their tensions
    with pytest.raises(TensegrityError, match=rf"goes from {least:.4g} to {most:.4g} N/m"):
        StiffnessChoice(robot, DIRECTION, 1.2 * most).settle(rest.q, rest.tension, rest.tension, LOW, HIGH)
    with pytest.raises(TensegrityError, match="out of reach of the self-stress"):
        make_controller("qp", robot, stiffness=500.0, stiffness_x=1.0, stiffness_z=0.0, ceiling=60.0)
    with pytest.raises(TensegrityError, match="not all zero"):
        make_controller("qp", robot, stiffness=50.0, stiffness_z=0.0)


def test_the_range_of_a_robot_that_sags_is_that_of_its_shape_at_rest():
    robot = parse_robot(PLANAR_ARM)
    state = RobotState.of(Simulation(robot))
    control = make_controller("qp", robot, period=0.004, stiffness=19000.0, stiffness_x=1.0, stiffness_z=0.0)
    control.reset(0.0, state)  # at the positions of the file it would be 18.2 to 18.5 kN/m
    with pytest.raises(TensegrityError, match=r"from 1\.897e\+04 to 1\.924e\+04 N/m"):
        make_controller("qp", robot, stiffness=18400.0, stiffness_x=1.0, stiffness_z=0.0)


def test_a_robot_without_a_self_stress_is_refused_with_the_stiffness_that_it_has():
    with pytest.raises(TensegrityError, match=r"no self-stress that could hold a stiffness of 50 N/m: it is .* N/m"):
        make_controller("qp", parse_robot(BOOM), stiffness=50.0, stiffness_x=1.0)


def test_no_cables_hold_no_stiffness():
    with pytest.raises(TensegrityError, match="biglide has no cables"):
        make_controller("qp", qp_loop.robot_named("biglide"), stiffness=50.0)


@pytest.mark.parametrize("stiffness", [53.0, pytest.param(0.0, marks=pytest.mark.long)])
def test_the_stiffness_is_held_along_a_path_with_floors_and_ceilings_kept(monkeypatch, stiffness):
    monkeypatch.setattr(qp_loop, "robot_named", lambda _: soft_mast()[0])
    asked = {"stiffness": stiffness, "stiffness_x": 1.0, "stiffness_y": 0.5, "stiffness_z": 0.0} if stiffness else {}
    made = qp_loop.loop("soft_mast", period=0.01, ceiling=50.0, **asked)
    made.run(1.2)  # tensions are there
    here = made.look().pose[0]
    moves = [[0.2, 0.1, 0.0], [0.1, 0.25, 0.0]]
    made.control.follow(made.time, [(0.6 * (k + 1), here + move, None) for k, move in enumerate(moves)], "smooth")
    found, pulled = [], []
    for _ in range(6):
        _, tensions = made.run(0.2)
        found.append(measured(soft_mast()[1].solve(made.simulation.state.q).q, DIRECTION))
        pulled.append([tensions.min(), tensions.max()])
    if not stiffness:
        assert np.ptp(found) / np.mean(found) > 0.06  # left alone it changes
        return
    np.testing.assert_allclose(found, stiffness, rtol=0.03)
    assert np.min(pulled) > 9.9 and np.max(pulled) < 50.5
    assert not made.control.relaxed()


@pytest.mark.long
@pytest.mark.parametrize("stiffness", [53.0, 0.0])
def test_plans_of_near_rigid_hold_the_stiffness(stiffness):
    """0: left alone it changes, so that holding it is no accident."""
    asked = {"stiffness_x": 1.0, "stiffness_y": 0.5, "stiffness_z": 0.0, "floor": LOW, "ceiling": 60.0}
    robot = soft_mast()[0]
    control = make_controller("near_rigid", robot, period=0.01, stiffness=stiffness, **asked)
    made = qp_loop.Loop(Simulation(robot, 1e-3), control)
    control.reset(0.0, made.look())
    home = made.look().pose[0]
    plan = control.plan_goal(0.0, control.make_goal(0.0, home + [0.2, 0.1, 0.0])).tracker.strains
    model, order = control.model, [entry.name for entry in robot.model.entries]
    own = TensionStiffness(robot, DIRECTION)
    by = [order.index(name) for name in own.cables]
    found = [own.value(plan.positions[k], plan.tensions[k][by]) for k in range(0, len(plan.times), 8)]
    if not stiffness:
        assert np.ptp(found) / np.mean(found) > 0.03
        return
    np.testing.assert_allclose(found, stiffness, rtol=0.01)
    assert np.all(plan.tensions > LOW[0]) and np.all(plan.tensions < 60.0)
    assert plan.residual < 1e-4 * np.max(plan.tensions) and model.held_stiffness is not None
    with pytest.raises(TensegrityError, match="choose another stiffness"):
        make_controller("near_rigid", robot, stiffness=500.0, **asked)


@pytest.mark.long
def test_near_rigid_holds_the_stiffness_on_the_robot_once_tensions_are_those_of_the_plan():
    robot, solver = soft_mast()
    asked = {"stiffness_x": 1.0, "stiffness_y": 0.5, "stiffness_z": 0.0, "floor": LOW, "ceiling": 60.0}
    control = make_controller("near_rigid", robot, period=0.005, actuation="effort", stiffness=53.0, **asked)
    made = qp_loop.Loop(Simulation(robot, 1e-3), control)
    control.reset(0.0, made.look())
    goal = made.look().pose[0] + [0.2, 0.1, 0.0]
    accepted = control.set_goal(0.0, goal)
    made.run(0.5 * accepted.duration + 0.02)
    found = []
    for _ in range(5):
        outputs, tensions = made.run(0.1)
        assert np.all((tensions > 10.0) & (tensions < 60.0))
        found.append(measured(solver.solve(made.simulation.state.q).q, DIRECTION))
    np.testing.assert_allclose(found, 53.0, rtol=0.03)
    assert np.max(np.abs(outputs[-1] - goal)[:2]) < 1e-4
