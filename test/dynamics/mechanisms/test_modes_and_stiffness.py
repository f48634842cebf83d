"""Modes of mechanisms, the stiffness of their outputs and linear models of their simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from tensegrity_dynamics import Simulation, TensegrityError, load_robot
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.mechanisms.kinematics.independent_coordinates import wrench_jacobian
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.statics.modes import mechanism_modes
from tensegrity_dynamics.mechanisms.statics.output_stiffness import output_stiffness
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, rotation_vector
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_dynamics.robots.robot_types import type_of

HOIST = """
kind: mechanism
name: hoist
gravity: [0, 0, -9.81]
bodies:
  weight: {shapes: [{kind: point, mass: 2.0}]}
joints: [{name: guide, kind: prismatic, parent: world, body: weight, axis: [0, 0, 1]}]
cables:
  - {name: rope, body: world, at: [0.05, 0, 1.0], block_axis: [0, 0, 1], pulley_axis: [0, 1, 0], pulley_radius: 0.05,
     anchor: {body: weight, at: [0, 0, 0]}, young: "1 MPa", damping: "5 kPa s", cable_radius: "2 mm", length: 3.0,
     strain: 0.1, block: [{kind: cube, size: [0.02], density: 1000}],
     pulley: [{kind: cylinder, size: [0.05, 0.01], density: 1000}]}
actuators: [{drives: rope, position: [-20, 20], rate: "30 rad/s", effort: "50 N m"}]
outputs: [{name: hook, body: weight, controlled: [z]}]
"""


@pytest.fixture(scope="module")
def strut():
    """The single strut, its solver and its equilibrium."""
    robot = load_robot("single_strut")
    held = robot.model.driven_joints(robot.actuators)
    solver = MechanismEquilibriumSolver(robot.mechanism, held)
    return robot, solver, solver.solve(robot.model.start)


def test_weight_on_a_rope_swings_and_stretches_as_its_rope_says():
    robot = parse_robot(HOIST)
    solver = MechanismEquilibriumSolver(robot.mechanism, (robot.model.joint_of("rope"),))
    shape = solver.solve(robot.model.start)
    [mode] = mechanism_modes(solver, shape, robot.outputs[0])
    area, mass = np.pi * 0.002**2, 2.0
    rest = 1.0 / (1.0 + 0.1) if shape.strain[0] == 0.1 else None
    joint = robot.mechanism.joints[-1]
    rest = joint.radius * shape.q[robot.mechanism.positions_of(joint.name).start]
    stiffness, damping = 1e6 * area / rest, 5e3 * area / rest
    ratio = damping / (2.0 * np.sqrt(stiffness * mass))
    swing = np.sqrt(stiffness / mass) * np.sqrt(1.0 - ratio**2) / (2.0 * np.pi)
    assert np.isclose(mode.frequency, swing, rtol=1e-6) and np.isclose(mode.damping, ratio, rtol=1e-6)
    assert mode.what == "hook along z; weight" and mode.cables == pytest.approx({"rope": 1.0})
    found = output_stiffness(robot, shape)
    assert np.isclose(found.stiffness[0, 0], stiffness, rtol=1e-6) and not found.self_stresses
    assert found.rank == 1 and np.isclose(found.manipulability, 0.05 * (1.0 + shape.strain[0]), rtol=1e-5)


def pose_under(robot, solver, shape, wrench):
    """Place and turn of the output under a force and moment there."""
    frame = robot.outputs[0]
    jacobian = wrench_jacobian(robot.mechanism, shape.q, frame.body, np.asarray(frame.frame.origin))
    there = solver.solve(shape.q, effort=jacobian.T @ np.concatenate((wrench[3:], wrench[:3])), tolerance=1e-13)
    return robot.model.output_pose(frame, there.q)


def test_compliance_is_how_the_output_bends_under_load(strut):
    robot, solver, shape = strut
    found = output_stiffness(robot, shape)
    measured = np.zeros((6, 2))
    for column, size in enumerate((0.05, 0.05)):
        wrench = np.zeros(6)
        wrench[column] = size
        (p, r), (q, s) = (pose_under(robot, solver, shape, sign * wrench) for sign in (1.0, -1.0))
        turn = rotation_vector(matrix_from_quaternion(r) @ matrix_from_quaternion(s).T)
        measured[:, column] = np.concatenate((p - q, turn)) / (2.0 * size)
    assert np.abs(measured - found.compliance[:, :2]).max() < 1e-6 * np.abs(measured).max()
    assert found.axes == ("x", "y") and np.allclose(found.stiffness, np.linalg.inv(measured[:2]), rtol=1e-5, atol=1.0)


CART = """
kind: mechanism
name: cart
bodies: {cross: {}, cart: {shapes: [{kind: sphere, size: [0.04], mass: 1.5}]}}
joints:
  - {name: jx, kind: prismatic, parent: world, body: cross, axis: [1, 0, 0], start: [0.05]}
  - {name: jz, kind: prismatic, parent: cross, body: cart, axis: [0, 0, 1], start: [0.55]}
defaults:
  cables: {block_axis: [0, 0, 1], pulley_radius: 0.03, young: "2 GPa", cable_radius: "0.7 mm", length: 3, strain: 0.01,
    anchor: {body: cart, at: [0, 0, 0]}, block: [{kind: cube, size: [0.04]}],
    pulley: [{kind: cylinder, size: [0.03, 0.01], density: 2700}]}
  actuators: {position: [-30, 30], rate: "25 rad/s", effort: "5 N m"}
cables:
  - {name: ll, body: world, at: [-0.6, 0, 0], pulley_axis: [0, -1, 0]}
  - {name: lr, body: world, at: [0.6, 0, 0], pulley_axis: [0, 1, 0]}
  - {name: ul, body: world, at: [-0.6, 0, 1], pulley_axis: [0, 1, 0]}
  - {name: ur, body: world, at: [0.6, 0, 1], pulley_axis: [0, -1, 0]}
actuators: [{drives: ll}, {drives: lr}, {drives: ul}, {drives: ur}]
outputs: [{name: cart, body: cart, controlled: [x, z]}]
"""


def test_stiffness_with_cables_that_lose_energy_when_wound_is_as_asymmetric_as_equilibria_under_load():
    robot = parse_robot(CART)
    solver = MechanismEquilibriumSolver(robot.mechanism, robot.model.driven_joints(robot.actuators))
    shape = solver.solve(robot.model.start)
    measured = np.zeros((2, 2))
    for column, axis in enumerate((0, 2)):
        wrench = 2.0 * np.eye(6)[axis]
        there, back = (pose_under(robot, solver, shape, sign * wrench)[0] for sign in (1.0, -1.0))
        measured[:, column] = (there - back)[[0, 2]] / 4.0
    found = output_stiffness(robot, shape).compliance[np.ix_((0, 2), (0, 2))]
    aside = measured[0, 1] - measured[1, 0]
    assert abs(aside) > 1e-3 * abs(measured[0, 1]) and np.isclose(found[0, 1] - found[1, 0], aside, rtol=1e-3)


def test_stiffness_follows_self_stress_as_its_slope_says(strut):
    robot, solver, shape = strut
    found = output_stiffness(robot, shape)
    [stress] = found.self_stresses
    assert np.allclose(list(stress.tensions.values()), 1.0 / np.sqrt(3.0), rtol=1e-6)  # three cables, all alike
    joints = robot.model.driven_joints(robot.actuators)
    turn = 1e-3  # rad: all wound in alike, so that the strut stays upright
    positions = {name: float(shape.q[robot.mechanism.positions_of(name)][0]) - turn for name in joints}
    tighter = solver.solve(shape.q, positions)
    change = float(np.linalg.norm(tighter.tension - shape.tension)) * np.sign(tighter.tension[0] - shape.tension[0])
    expected = found.stiffness + change * stress.slope
    stiffness = output_stiffness(robot, tighter).stiffness
    moved = np.abs(stiffness - found.stiffness).max()
    assert moved > 1e-3 and np.abs(stiffness - expected).max() < 0.02 * moved


def test_modes_of_a_strut_come_in_the_form_of_all_robots(strut):
    robot, _, _ = strut
    report = type_of(robot).report(robot).modes()
    modes = report.figures["modes"]
    assert [mode["kind"] for mode in modes] == ["vibration"] * len(modes) and len(modes) >= 2
    assert np.isclose(modes[0]["frequency_Hz"], modes[1]["frequency_Hz"], rtol=1e-4)  # alike in x and y
    assert {"what", "cable_energy_shares", "damping_ratio", "decay_time_s"} <= set(modes[0])
    assert np.isclose(sum(modes[0]["cable_energy_shares"].values()), 1.0, atol=5e-3)


def test_linear_model_of_a_simulation_is_that_of_the_reduced_equations(strut):
    robot, _, _ = strut
    simulation = Simulation(robot)
    simulation.set_motion(np.full(simulation.state.v.size, 0.05))
    model = simulation.linearise()
    reduced = ReducedModel(robot)
    state = simulation.state
    effort = np.array([each for each in model.input])
    matrix, inputs, _ = reduced.linearised(state.q, state.v[reduced.index], effort)
    # the same system in other coordinates: eigenvalues, and those of what the inputs do
    ours, theirs = np.sort_complex(model.eigenvalues()), np.sort_complex(np.linalg.eigvals(matrix))
    assert np.abs(ours - theirs).max() < 1e-4 * np.abs(theirs).max()
    values = [np.linalg.svd(a @ b, compute_uv=False) for a, b in ((matrix, inputs), (model.matrix, model.inputs))]
    names = (
        [model.state_names.index(name) for name in reduced.names]
        if set(reduced.names) <= set(model.state_names)
        else []
    )
    if len(names) == len(reduced.names):
        assert np.allclose(values[0], values[1], rtol=1e-4)
    with pytest.raises(TensegrityError, match="kind of inputs of mechanisms"):
        simulation.linearise("rates")


def test_linear_model_of_a_body_that_tumbles_leads_to_where_it_is_a_moment_later():
    """Its position is in axes that turn: the rates of its displacements are not the velocities."""
    robot = parse_robot(
        """
kind: mechanism
name: thrown
gravity: [0, 0, -9.81]
bodies: {top: {mass: 1, centre: [0.1, 0.05, 0.2], inertia: [0.02, 0.03, 0.015, 0.002, 0.001, -0.003]}}
joints: [{name: topJt, kind: floating, parent: world, body: top, start: [0, 0, 0, 0.3, 0.2, -0.1]}]
"""
    )
    simulation = Simulation(robot, time_step=1e-4, start="file")
    simulation.set_motion([2.0, -3.0, 4.0, 0.5, -0.7, 0.3])
    model, before, h = simulation.linearise(), simulation.state, 1e-3
    n = model.rate.size
    system = np.zeros((n + 1, n + 1))
    system[:n, :n], system[:n, n] = model.dense_matrix, model.rate
    predicted = expm(h * system)[:n, n]
    after = simulation.advance(duration=h)
    moved = matrix_from_quaternion(before.q[3:]).T @ (after.q[:3] - before.q[:3])
    assert moved == pytest.approx(predicted[3:6], abs=5e-8)  # off by h^2 / 2 |w x v| = 1.6e-6 without
    assert after.v - before.v == pytest.approx(predicted[6:], abs=1e-5)


def test_a_cable_that_has_slipped_to_its_bound_sticks_in_small_motions():
    robot = parse_robot(
        """
kind: mechanism
name: hung
gravity: [0, 0, -10]
bodies: {load: {mass: 2, inertia: [1, 1, 1]}}
joints: [{name: hoist, kind: prismatic, parent: world, body: load, frame: {at: [0.05, 0, -0.5]}}]
routed_cables:
  - {name: rope, young: 1e9, cable_radius: 1e-3, tension: 5, route: [{body: world, at: [-0.05, 0, -0.3]},
      {body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.05, side: 1, friction: 0.2}, {body: load, at: [0, 0, 0]}]}
outputs: [{name: load, body: load, controlled: [z]}]
"""
    )
    solver = MechanismEquilibriumSolver(robot.model_as(MechanismModel).mechanism)
    shape = solver.solve(robot.model.initial_configuration)
    light, heavy = shape.routes["rope"].tensions
    assert heavy / light == pytest.approx(np.exp(0.2 * np.pi))
    area = np.pi * 1e-6
    rest = (0.5 - shape.q[0] + 0.05 * np.pi / 2) / (1.0 + heavy / (1e9 * area))  # of the strand on the side of the load
    stiffness, frequency = 1e9 * area / rest, np.sqrt(1e9 * area / rest / 2.0) / (2.0 * np.pi)
    [mode] = mechanism_modes(solver, shape)
    assert mode.frequency == pytest.approx(frequency, rel=1e-6)
    assert output_stiffness(robot, shape).compliance[2, 2] == pytest.approx(1.0 / stiffness, rel=1e-6)
    simulation = Simulation(robot)
    assert np.abs(simulation.linearise().eigenvalues()) == pytest.approx(2.0 * np.pi * frequency, rel=1e-6)
    assert simulation.simulator.shortest_period == pytest.approx(1.0 / frequency, rel=1e-6)


def test_nothing_moves_where_actuators_hold_all():
    robot = load_robot("biglide")
    report = type_of(robot).report(robot).modes()
    assert report.figures["modes"] == [] and "Nothing can move" in report.parts[0]


def test_the_energy_of_a_mode_is_reported_by_routed_cables_too():
    """Two ropes side by side share the stretch as their stiffnesses; one that hangs slack has none of it."""
    rope = (
        "{{name: {}, young: {} GPa, cable_radius: 1 mm, length: {},"
        " route: [{{body: world, at: [0, {}, 2]}}, {{body: weight, at: [0, {}, 0]}}]}}"
    )
    ropes = [rope.format("soft", 1, 1.9, 0.1, 0.1), rope.format("hard", 3, 1.9, -0.1, -0.1)]
    ropes.append(rope.format("slack", 1, 2.5, 0, 0))
    robot = parse_robot(
        "kind: mechanism\nname: lift\ngravity: [0, 0, -9.81]\nbodies: {weight: {shapes: [{kind: point, mass: 2.0}]}}\n"
        "joints: [{name: guide, kind: prismatic, parent: world, body: weight, axis: [0, 0, 1]}]\n"
        "routed_cables:\n" + "".join(f"  - {each}\n" for each in ropes),
        "here",
    )
    solver = MechanismEquilibriumSolver(robot.mechanism)
    [mode] = mechanism_modes(solver, solver.solve(robot.model.start))
    assert mode.cables == pytest.approx({"hard": 0.75, "soft": 0.25}, rel=1e-9)
    assert mode.frequency == pytest.approx(np.sqrt(4e9 * np.pi * 1e-6 / 1.9 / 2.0) / (2 * np.pi), rel=1e-6)


TABLE = """
kind: mechanism
name: table
gravity: [0, 0, -9.81]
contact: {stiffness: 2.0e+4, damping: 200, friction: 0.6}
bodies: {top: {mass: 4.0, inertia: [0.03, 0.03, 0.05]}}
joints: [{name: base, kind: floating, parent: world, body: top, start: [0, 0, 0.199]}]
contact_parts:
  - {body: top, kind: point, at: [0.13, 0, -0.2]}
  - {body: top, kind: point, at: [-0.065, 0.11258330249197703, -0.2]}
  - {body: top, kind: point, at: [-0.065, -0.11258330249197703, -0.2]}
outputs: [{name: top, body: top, controlled: [z]}]
"""


def test_a_table_on_three_feet_bounces_with_the_damping_of_its_ground():
    robot = parse_robot(TABLE)
    solver = MechanismEquilibriumSolver(robot.mechanism)
    modes = mechanism_modes(solver, solver.solve(robot.model.initial_configuration), robot.output)
    stiffness, damping, mass = 3 * 2.0e4, 3 * 200.0, 4.0
    ratio = 0.5 * damping / np.sqrt(stiffness * mass)
    rate = np.sqrt(stiffness / mass)
    expected = rate * complex(-ratio, np.sqrt(1.0 - ratio**2))
    assert min(abs(mode.eigenvalue - expected) for mode in modes) < 1e-6 * rate


def test_modes_say_that_friction_of_joints_damps_them_at_rest():
    text = """
kind: mechanism
name: swing
bodies: {bob: {shapes: [{kind: sphere, size: [0.05], mass: 1, frame: {at: [0, 0, -1]}}]}}
joints: [{name: hinge, kind: revolute, parent: world, body: bob, axis: [0, 1, 0], resistance: {friction: FRICTION}}]
"""
    robots = [parse_robot(text.replace("FRICTION", each), "swing.yaml") for each in ("0", "0.01")]
    said = [str(type_of(robot).report(robot).modes()) for robot in robots]
    assert ["Coulomb friction" in each for each in said] == [False, True]


def test_feet_that_stick_give_the_output_of_a_standing_robot_its_stiffness():
    table = TABLE.replace("controlled: [z]", "controlled: [x, y, z]")
    robot = parse_robot(table, "table.yaml")
    feet, height = 3, 0.2
    found = output_stiffness(robot)
    turning = (
        feet * 2.0e4 * 0.13**2 / 2.0 - 4.0 * 9.81 * height
    )  # of the ground below the feet, less that of the weight
    free = 1.0 / (1.0 / (feet * 2.0e4) + height**2 / turning)  # x with free rotation about the feet
    assert np.allclose(found.stiffness, np.diag([free, free, feet * 2.0e4]), rtol=1e-3, atol=1.0)


BETWEEN_DRUMS = """
kind: mechanism
name: between_drums
gravity: [0, 0, 0]
bodies:
  left: {shapes: [{kind: cylinder, size: [0.05, 0.02], mass: 0.1, frame: {z: [0, 1, 0]}}]}
  right: {shapes: [{kind: cylinder, size: [0.05, 0.02], mass: 0.1, frame: {z: [0, 1, 0]}}]}
  car: {mass: 1.0}
joints:
  - {name: reel_left, kind: revolute, parent: world, body: left, axis: [0, 1, 0], frame: {at: [-1, 0, -0.05]}}
  - {name: reel_right, kind: revolute, parent: world, body: right, axis: [0, 1, 0], frame: {at: [1, 0, -0.05]}}
  - {name: rail, kind: prismatic, parent: world, body: car, axis: [1, 0, 0]}
routed_cables:
  - {name: one, young: "1 GPa", cable_radius: "1 mm", tension: "20 N",
     route: [{joint: reel_left, radius: 0.05, side: 1}, {body: car, at: [0, 0, 0]}]}
  - {name: two, young: "1 GPa", cable_radius: "1 mm", tension: "20 N",
     route: [{joint: reel_right, radius: 0.05, side: -1}, {body: car, at: [0, 0, 0]}]}
actuators:
  - {drives: reel_left, position: [-9, 9], rate: 1, effort: 9}
  - {drives: reel_right, position: [-9, 9], rate: 1, effort: 9}
outputs: [{name: car, body: car, controlled: [x]}]
"""


def test_drums_that_pull_against_each_other_make_a_self_stress():
    robot = parse_robot(BETWEEN_DRUMS, "between.yaml")
    found = output_stiffness(robot)
    firm = 1e9 * np.pi * 1e-6
    [stress] = found.self_stresses
    assert found.stiffness[0, 0] == pytest.approx(2.0 * (firm + 20.0), rel=1e-6)  # E A / rest length of 1 m long cables
    assert stress.tensions == pytest.approx({"one": np.sqrt(0.5), "two": np.sqrt(0.5)}, rel=1e-6)
    assert stress.slope[0, 0] == pytest.approx(np.sqrt(2.0), rel=1e-3)


def test_a_rope_that_sticks_on_its_guide_does_not_hide_what_its_winch_moves():
    text = """
kind: mechanism
name: lift
gravity: [0, 0, -9.81]
bodies: {load: {mass: 2.0}, drum: {shapes: [{kind: cylinder, size: [0.05, 0.02], mass: 0.1, frame: {z: [0, 1, 0]}}]}}
joints:
  - {name: rail, kind: prismatic, parent: world, body: load, axis: [0, 0, 1], frame: {at: [0.05, 0, -1]}}
  - {name: winch, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {at: [-1, 0, 0]}}
routed_cables:
  - {name: rope, young: "1 GPa", cable_radius: "1 mm", tension: "19.62 N",
     route: [{joint: winch, radius: 0.05, side: 1},
             {body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.05, side: 1, friction: 0.3},
             {body: load, at: [0, 0, 0]}]}
actuators: [{drives: winch, position: [-9, 9], rate: 1, effort: 9}]
outputs: [{name: load, body: load, controlled: [z]}]
"""
    found = output_stiffness(parse_robot(text, "lift.yaml"))
    assert found.rank == 1 and found.singular_values[0] == pytest.approx(0.05, rel=1e-2)
