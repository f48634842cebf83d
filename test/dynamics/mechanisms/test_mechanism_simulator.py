"""Mechanisms in time: balances of energy and momentum, integrators against each other, servos, ends of cables."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from multibody_examples import random_state, random_tree

from tensegrity_dynamics import Rollout, Simulation, load_robot, parse_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.cable_substitution import with_cables
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.mechanisms.kinematics.body_kinematics import body_kinematics
from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import make_reduction_workspace
from tensegrity_dynamics.mechanisms.simulation import adaptive
from tensegrity_dynamics.mechanisms.simulation.adaptive import integrate
from tensegrity_dynamics.mechanisms.simulation.runge_kutta import runge_kutta
from tensegrity_dynamics.mechanisms.workspace import make_stage_workspace, make_workspace


def with_other_cables(name, **changes):
    robot = load_robot(name)
    return replace(robot, model=with_cables(robot.model, **changes))


def kept(energy):
    """What stays the same, whatever happens."""
    return energy.total - energy.actuators + energy.damping + energy.winding


def pulled(simulation):
    """The torques that hold, a little more of each but the first, so that no cable goes slack."""
    return {name: effort * (1.0 + 0.1 * k) for k, (name, effort) in enumerate(simulation.observe().efforts.items())}


@pytest.mark.parametrize("name", ["single_strut", "manipulator", "biglide"])
def test_a_robot_left_alone_stays_where_it_is(name):
    simulation = Simulation(load_robot(name))
    before = simulation.state.q
    simulation.advance(duration=0.5)
    assert np.allclose(simulation.state.q, before, atol=1e-9)
    assert simulation.observe().constraint_error < 1e-12


@pytest.mark.parametrize("variant", ["u", "epsilon", "length"])
@pytest.mark.parametrize("name", ["single_strut", "manipulator"])
def test_energy_balances_with_work_damping_and_winding(name, variant):
    robot = with_other_cables(name, variant=variant)
    simulation = Simulation(robot, 1e-4)
    start, at_rest = kept(simulation.energy()), simulation.energy()
    simulation.advance(2000, effort=pulled(simulation))
    energy = simulation.energy()
    exchanged = abs(energy.actuators) + abs(energy.damping) + abs(energy.winding)
    assert exchanged > 0.01 * at_rest.elastic
    assert abs(kept(energy) - start) < 1e-6 * exchanged


def test_undamped_energy_is_conserved_while_no_cable_winds():
    robot = with_other_cables("single_strut", damping=0.0)
    simulation = Simulation(robot, 1e-4)
    q = simulation.state.q
    v = np.zeros(14)
    v[:2] = 0.3
    basis_start = equations(robot.mechanism, q, v).loop
    pulleys = [robot.mechanism.velocities_of(robot.model.joint_of(a.drives)).start for a in robot.actuators]
    held = np.vstack((basis_start, np.eye(14)[pulleys]))
    v -= np.linalg.pinv(held) @ (held @ v)
    simulation.set_state(q, v)
    before = simulation.energy()
    simulation.advance(3000)
    after = simulation.energy()
    assert before.kinetic > 1e-3
    assert abs(kept(after) - kept(before)) < 1e-6 * before.kinetic


def test_momentum_of_a_free_mechanism_is_conserved():
    kinds = ["floating", "revolute", "involute_epsilon", "universal"]
    mechanism = random_tree(kinds, ["world", "b0", "b1", "b0"], 4, cables=True, gravity=np.zeros(3))
    q, v = random_state(mechanism, 4)
    flat = mechanism.flat
    work, solver, stages = make_workspace(flat), make_reduction_workspace(flat), make_stage_workspace(flat)

    def momentum():
        body_kinematics(flat, q, v, work)
        total = np.zeros(6)
        for i in range(flat.mass.size):
            rotation, angular = work.rotation[i], work.velocity[i, :3]
            centre = work.position[i] + rotation @ flat.centre[i]
            linear = flat.mass[i] * (work.velocity[i, 3:] + np.cross(angular, centre))
            spin = rotation @ flat.inertia[i] @ rotation.T @ angular
            total += np.concatenate((spin + np.cross(centre, linear), linear))
        return total

    before = momentum()
    assert runge_kutta(flat, q, v, np.zeros(v.size), 1e-4, 2000, 0.0, work, solver, stages, False) == 0
    np.testing.assert_allclose(momentum(), before, atol=1e-8 * np.max(np.abs(before)))


@pytest.mark.parametrize("name", ["single_strut", "manipulator"])
def test_a_step_of_servos_is_one_under_the_torques_that_they_give(name):
    robot = load_robot(name)
    simulation = Simulation(robot, 1e-3)
    shown = simulation.observe().positions
    simulation.advance(3, position={each: value + 0.05 for each, value in shown.items()})
    before = simulation.state
    after, torques = simulation.advance(1), simulation.observe().efforts
    flat, effort = robot.mechanism.flat, np.zeros(before.v.size)
    for actuator in robot.actuators:
        joint = robot.model.joint_of(actuator.drives)
        effort[robot.mechanism.velocities_of(joint)] = torques[actuator.name]
    q, v = before.q.copy(), before.v.copy()
    arrays = make_workspace(flat), make_reduction_workspace(flat), make_stage_workspace(flat)
    assert runge_kutta(flat, q, v, effort, 1e-3, 1, 0.0, *arrays, False) == 0
    np.testing.assert_allclose(after.q, q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(after.v, v, rtol=0, atol=1e-9 * np.max(np.abs(v)))


def test_sensors_alone_read_what_the_whole_observation_has():
    simulation = Simulation(load_robot("manipulator"), 1e-3)
    simulation.advance(20, position={name: value + 0.1 for name, value in simulation.observe().positions.items()})
    sensors, seen = simulation.observe_sensors(), simulation.observe()
    for field, values in sensors._asdict().items():
        assert values == getattr(seen, field), field


@pytest.mark.parametrize("name", ["single_strut", "manipulator"])
def test_three_integrators_agree(name):
    robot = load_robot(name)
    ends = {}
    for integrator, step in (("rk4", 5e-5), ("implicit", 2e-4), ("adaptive", 0.1)):
        simulation = Simulation(robot, step, integrator)
        simulation.advance(duration=0.1, effort=pulled(simulation))
        ends[integrator] = simulation.state.q
        assert simulation.observe().constraint_error < 1e-12
    moved = np.max(np.abs(ends["adaptive"] - Simulation(robot).state.q))
    assert moved > 1e-2
    assert np.max(np.abs(ends["rk4"] - ends["adaptive"])) < 1e-7 * max(1.0, moved)
    assert np.max(np.abs(ends["implicit"] - ends["adaptive"])) < 1e-3 * max(1.0, moved)


def test_adaptive_steps_find_where_a_cable_goes_slack_and_taut_again():
    robot = with_other_cables("single_strut", damping=0.0, strain=0.0005)
    model = robot.model
    mechanism = model.mechanism
    effort = Simulation(robot).observe().efforts
    held_torques = np.zeros(14)
    for entry in model.entries:
        held_torques[mechanism.velocities_of(entry.joints[1])] = effort[entry.name]
    v = np.zeros(14)
    v[mechanism.velocities_of("x-revoluteJt")] = 1.0
    basis = equations(mechanism, model.start, v).loop
    # the strut swings and takes the blocks along, pulleys at rest
    held = np.vstack((basis, np.eye(14)[[mechanism.velocities_of(e.joints[1]).start for e in model.entries]]))
    v -= np.linalg.pinv(held) @ (held @ v)
    path = integrate(mechanism, model.start, v, held_torques, 0.1)
    kinds = [event.kind for event in path.events]
    assert {"slack", "taut"} <= set(kinds)
    for event in path.events:
        q, speed = path.at(event.time)
        k = [cable.name for cable in mechanism.cables].index(event.cable)
        assert abs(equations(mechanism, q[0], speed[0]).strain[k]) < 1e-10
    for name in {event.cable for event in path.events}:
        own = [event.kind for event in path.events if event.cable == name]
        assert own[0] == "slack" and all(a != b for a, b in itertools.pairwise(own))


@pytest.mark.long
def test_dense_output_lies_on_the_motion():
    robot = load_robot("manipulator")
    model = robot.model
    effort = np.zeros(39)
    whole = integrate(model.mechanism, model.start, np.zeros(39), effort, 0.05)
    half = integrate(model.mechanism, model.start, np.zeros(39), effort, 0.025)
    q, v = whole.at([0.025])
    np.testing.assert_allclose(q[0], half.q[-1], atol=1e-7)
    np.testing.assert_allclose(v[0], half.v[-1], atol=1e-5)
    with pytest.raises(TensegrityError, match=r"lasts from 0 to 0\.05 s"):
        whole.at(0.06)


def test_servos_arrive_at_their_target_and_keep_their_rate():
    robot = load_robot("single_strut")
    simulation = Simulation(robot)
    goal = {"B1": 1.5, "B2": -0.5, "B3": -0.5}
    fastest = 0.0
    for _ in range(200):
        simulation.advance(10, position=goal)
        fastest = max(fastest, *(abs(rate) for rate in simulation.observe().rates.values()))
    seen = simulation.observe()
    assert all(abs(seen.positions[name] - value) < 1e-4 for name, value in goal.items())
    assert fastest < 1.2 * robot.actuators[0].rate
    assert abs(seen.pose[0][0]) > 0.05


def test_servo_gives_no_more_than_its_effort():
    robot = load_robot("manipulator")
    weak = replace(robot, actuators=tuple(replace(each, effort=0.3) for each in robot.actuators))
    simulation = Simulation(weak)
    for _ in range(20):
        simulation.advance(20, position={each.name: 2.0 for each in weak.actuators})
        assert max(abs(effort) for effort in simulation.observe().efforts.values()) <= 0.3 + 1e-12


def test_joint_stops_at_its_position_limit_in_every_mode():
    robot = load_robot("biglide")
    near = replace(robot, actuators=tuple(replace(each, position=(-0.02, 0.02)) for each in robot.actuators))
    for mode, value in (("effort", 5.0), ("velocity", 0.2), ("position", 0.5)):
        simulation = Simulation(near)
        simulation.advance(duration=1.0, **{mode: {"foot_1": value, "foot_2": value}})
        assert all(abs(point - 0.02) < 2e-3 for point in simulation.observe().positions.values())


def test_cable_wound_past_its_end_stops_the_simulation_with_its_name():
    robot = load_robot("single_strut")
    free = replace(robot, actuators=tuple(replace(each, position=(-1e3, 1e3)) for each in robot.actuators))
    simulation = Simulation(free, 1e-4)
    with pytest.raises(
        TensegrityError, match=r"cable B\d is unwound past its end: all 2\.2 m of it are off the pulley"
    ):
        simulation.advance(duration=20.0, velocity={"B1": -5.0, "B2": -5.0, "B3": -5.0})
    last = simulation.state
    assert np.all(np.isfinite(last.q)) and 0.0 < last.time < 20.0
    assert simulation.observe().constraint_error < 1e-12


def test_reset_starts_the_same_motion_again():
    simulation = Simulation(load_robot("manipulator"))
    ends = []
    for _ in range(2):
        simulation.advance(100, effort={"B1-top": 2.0})
        ends.append(simulation.state.q)
        simulation.reset()
    assert np.array_equal(*ends)
    assert simulation.energy().actuators == 0.0


def test_gravity_of_the_simulation_replaces_that_of_the_file():
    light = Simulation(load_robot("manipulator"), gravity=[0.0, 0.0, 0.0])
    assert light.energy().gravity == 0.0


def test_unknown_integrator_and_start_are_refused():
    robot = load_robot("biglide")
    with pytest.raises(TensegrityError, match="There is no integrator for mechanisms 'rattle'"):
        Simulation(robot, integrator="rattle")
    with pytest.raises(TensegrityError, match="start is 'home'; give 'file'"):
        Simulation(robot, start="home")
    with pytest.raises(TensegrityError, match=r"q has shape \(3,\), this mechanism needs \(4,\)"):
        Simulation(robot, start=[0.0, 0.0, 0.0])


SWINGING = """
kind: mechanism
name: swinging
bodies: {{arm: {{shapes: [{{kind: point, mass: {mass}, frame: {{at: [0, 0, -0.4]}}}}]}}}}
joints: [{{name: hinge, kind: revolute, parent: world, body: arm, axis: [0, 1, 0], start: [0.3],
          resistance: {{damping: {damping}}}}}]
actuators: [{{drives: {drives}, position: [-3, 3], rate: 9, effort: 9}}]
"""


def test_every_member_of_a_rollout_may_have_a_robot_of_its_own():
    robots = [
        parse_robot(SWINGING.format(mass=mass, damping=damping, drives="hinge"), "here")
        for mass, damping in ((1.0, 0.0), (2.0, 0.1), (0.5, 0.3))
    ]
    torques = np.full((20, 1), 0.2)
    found = [
        Rollout(robots, 3, 1e-3, start="file", threads=threads).run(torques, "effort", period=0.01).configurations
        for threads in (1, 2)
    ]
    assert np.array_equal(*found)
    for robot, ends in zip(robots, found[0], strict=True):
        alone = Simulation(robot, 1e-3, start="file")
        alone.advance(duration=0.2, effort={"hinge": 0.2})
        assert np.array_equal(ends[-1], alone.state.configuration)
    assert len({float(each) for each in found[0][:, -1, 0]}) == 3
    with pytest.raises(TensegrityError, match="there are 3 robots for 2 members"):
        Rollout(robots, 2)
    with pytest.raises(TensegrityError, match="member 1 has other coordinates or actuators than member 0"):
        Rollout([robots[0], load_robot("three_rrr")], 2)


@pytest.mark.parametrize("option", [{"rigid_bars": False}, {"air_damping": 0.1}])
def test_what_only_structures_have_is_refused(option):
    with pytest.raises(TensegrityError, match="single_strut is a mechanism: elastic bars and air_damping are for"):
        Simulation(load_robot("single_strut"), **option)


TWO_LINKS = """
name: two_links
kind: mechanism
bodies:
  upper: {mass: 0.5, centre: [0.2, 0, 0], inertia: [0.001, 0.01, 0.01]}
  lower: {mass: 0.6, centre: [0.3, 0, 0], inertia: [0.001, 0.01, 0.01]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, axis: [0, 1, 0], start: [-0.5]}
  - {name: elbow, kind: revolute, parent: upper, body: lower, frame: {at: [0.4, 0, 0]}, axis: [0, 1, 0], start: [1.0]}
actuators:
  - {drives: shoulder, position: [-3, 3], rate: 2, effort: 20}
  - {drives: elbow, position: [-3, 3], rate: 2, effort: 20}
"""


@pytest.mark.filterwarnings("ignore::tensegrity_dynamics.errors.AccuracyWarning")
@pytest.mark.parametrize(("step", "integrator"), [(1e-3, "implicit"), (1e-3, "rk4"), (1e-4, "rk4"), (1e-5, "rk4")])
def test_servos_at_their_effort_limits_come_to_rest_at_every_step(step, integrator):
    simulation = Simulation(parse_robot(TWO_LINKS, "here"), step, integrator)
    for goal in ({"shoulder": -0.4, "elbow": 1.1}, {"shoulder": -0.5, "elbow": 1.0}):
        simulation.advance(duration=0.3, position=goal)  # they cannot stop within one step
        seen = simulation.observe()
        for name, position in goal.items():
            assert seen.positions[name] == pytest.approx(position, abs=1e-6)
            assert abs(seen.rates[name]) < 1e-4


def test_servos_beside_error_control_have_their_interval_whatever_the_shortest_period_is():
    robot = parse_robot("""
name: stiff
kind: mechanism
bodies: {arm: {mass: 1, inertia: [0.01, 0.01, 0.01]}, tip: {mass: 0.01, inertia: [1e-5, 1e-5, 1e-5]}}
joints:
  - {name: slide, kind: prismatic, parent: world, body: arm, axis: [1, 0, 0]}
  - {name: spring, kind: prismatic, parent: arm, body: tip, axis: [1, 0, 0], resistance: {stiffness: 1e4, damping: 20}}
actuators: [{name: motor, drives: slide, position: [-1, 1], rate: 0.2, effort: 500}]
""")
    assert Simulation(robot, integrator="rk4").time_step < 3e-4
    simulation = Simulation(robot, integrator="adaptive")
    assert simulation.time_step == 1e-3
    simulation.advance(duration=0.08, position={"motor": 0.01})
    assert simulation.state.q[0] == pytest.approx(0.01, abs=1e-3)
    assert abs(simulation.energy_error) < 1e-6


def test_error_control_finds_the_types_of_its_arguments_once(monkeypatch):
    """A kernel without an entry for Python finds them anew in every call, for longer than it then computes."""
    simulation = Simulation(load_robot("single_strut"), integrator="adaptive")
    simulation.advance(1)
    calls = []
    kernels = {name: each for name, each in vars(adaptive).items() if hasattr(each, "_compile_for_args")}
    if not kernels:
        pytest.skip("compilation is switched off")
    for name, kernel in kernels.items():
        found = kernel._compile_for_args
        monkeypatch.setattr(kernel, "_compile_for_args", lambda *a, n=name, f=found: calls.append(n) or f(*a))
    simulation.advance(2)
    assert {"accelerate", "powers_in"} <= kernels.keys() and not calls
