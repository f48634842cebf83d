"""What robots that hang in their cables keep above floors; `qp` on one that is sent where its floors cannot be kept."""

from __future__ import annotations

import numpy as np
import pytest
import qp_loop
from scipy.optimize import linprog

from tensegrity_control import make_controller
from tensegrity_control.controllers.qp.borders.tension_headroom import TensionHeadroom
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

LOAD = """
kind: mechanism
name: load
gravity: [0, 0, -9.81]
density: 2000
bodies:
  slide: {}
  load: {shapes: [{kind: sphere, size: [0.05], mass: 2}]}
joints:
  - {name: x, kind: prismatic, parent: world, body: slide, axis: [1, 0, 0]}
  - {name: z, kind: prismatic, parent: slide, body: load, axis: [0, 0, 1]}
repeat:
  count: 2
  about: z
  cables:
    - {name: rope_$, body: world, at: [1, 0, 1], anchor: {body: load, at: [0, 0, 0]}, block_axis: [0, 0, 1], length: 4,
       pulley_axis: [0, 1, 0], pulley_radius: 0.03, young: "2 GPa", damping: "8 MPa s", cable_radius: 0.001,
       strain: 0.0022, block: [{kind: cube, size: [0.03]}], pulley: [{kind: cylinder, size: [0.03, 0.01]}]}
  actuators:
    - {drives: rope_$, position: [-40, 40], rate: "10 rad/s", effort: "4 N m", minimum_tension: FLOOR}
outputs:
  - {name: load, body: load, controlled: [x, z]}
"""
"""A load in a plane on two ropes: what both pull follows from its weight alone."""

PLATE = """
kind: mechanism
name: plate
gravity: [0, 0, -9.81]
bodies:
  plate: {shapes: [{kind: cylinder, size: [0.3, 0.05], mass: 8}]}
joints: [{name: free, kind: floating, parent: world, body: plate, start: [0, 0, 0.8]}]
parameters: {c: "cos(25 * pi / 180)", s: "sin(25 * pi / 180)"}
defaults:
  cables: {block_axis: [0, 0, 1], pulley_radius: 0.03, young: "8 GPa", damping: "20 MPa s", cable_radius: "0.8 mm",
    length: 4, strain: 0.001, block: [{kind: cube, size: [0.04]}],
    pulley: [{kind: cylinder, size: [0.03, 0.01], density: 2700}]}
  actuators: {position: [-40, 40], rate: "15 rad/s", effort: "6 N m", minimum_tension: 2}
repeat:
  count: 3
  about: z
  cables:
    - {name: a$, body: world, at: [1.2, 0.1, 2.2], pulley_axis: [0.3, -1, 0],
       anchor: {body: plate, at: [0.3 * c, 0.3 * s, 0.02]}}
    - {name: b$, body: world, at: [1.2, -0.1, 2.2], pulley_axis: [-0.3, -1, 0],
       anchor: {body: plate, at: [0.3 * c, -0.3 * s, 0.02]}}
  actuators: [{drives: a$}, {drives: b$}]
outputs: [{name: plate, body: plate}]
"""
"""A plate on six cables, whose tensions follow from its pose, and which turns more easily than it moves."""


def load(floor=6):
    return parse_robot(LOAD.replace("FLOOR", str(floor)), "load.yaml")


def judged(equations, effort, low):
    """z of a linear program of another solver."""
    arrays = equations.arrays
    inputs = effort.size
    rows = np.hstack((-arrays.tension_1 * effort, low[:, None]))
    output = np.hstack((arrays.output_1 * effort, np.zeros((arrays.output_0.size, 1))))
    bounds = [(-1.0, 1.0)] * inputs + [(None, None)]
    found = linprog(
        np.append(np.zeros(inputs), -1.0), rows, arrays.tension_0 - low, output, -arrays.output_0, bounds=bounds
    )
    return -found.fun


@pytest.mark.parametrize("name", ["load", "cable_robot"])
def test_headroom_is_that_of_a_linear_program(name):
    robot = load() if name == "load" else qp_loop.robot_named(name)
    equations, effort = TightCables(robot), np.array([each.effort for each in robot.actuators])
    headroom = TensionHeadroom(equations, effort, equations.floors)
    q, still = np.array(robot.model.initial_configuration), np.zeros(robot.mechanism.velocity_count)
    equations.update(q, still)
    headroom.begin(equations.tension)
    assert headroom.hangs
    random, found = np.random.default_rng(5), []
    for _ in range(12):
        rates = equations.reduction.basis[:, : equations.count] @ random.normal(size=equations.count)
        equations.update(equations.moved(q, rates, 0.15 * random.random()), still)
        found.append(headroom.value())
        assert found[-1] == pytest.approx(judged(equations, effort, equations.floors), rel=1e-4, abs=1e-4)
        equations.update(q, still)
    assert np.ptp(found) > 0.1


@pytest.mark.parametrize("turn", [0.0, 0.3, -0.3])
def test_where_free_motions_have_to_rest_too_headroom_is_what_the_equilibrium_leaves(turn):
    robot = qp_loop.robot_named("manipulator")  # no self-stress: six cables, three outputs and three free motions
    model = robot.model_as(MechanismModel)
    joints = model.driven_joints(robot.actuators)
    solver = MechanismEquilibriumSolver(robot.mechanism, joints)
    start = solver.solve(model.start)
    angles = {name: float(start.q[robot.mechanism.positions_of(name)][0]) for name in joints}
    shape = solver.solve(start.q, {name: angle + turn * (-1) ** k for k, (name, angle) in enumerate(angles.items())})
    equations, effort = TightCables(robot), np.array([each.effort for each in robot.actuators])
    headroom = TensionHeadroom(equations, effort, equations.floors)
    equations.update(shape.q, np.zeros(robot.mechanism.velocity_count))
    headroom.begin(equations.tension)
    assert headroom.hangs
    least = np.min((equations.tension - equations.floors) / equations.floors)
    assert headroom.value() == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize("name", ["single_strut", "ball_mast"])
def test_where_self_stress_lifts_all_cables_nothing_hangs(name):
    equations = TightCables(qp_loop.robot_named(name))
    effort = np.array([each.effort for each in equations.robot.actuators])
    headroom = TensionHeadroom(equations, effort, equations.floors)
    headroom.begin(equations.tension)
    assert not headroom.hangs


@pytest.mark.long
def test_a_load_on_two_ropes_stops_before_the_one_that_it_leaves_falls_below_its_floor(monkeypatch):
    robot = load()
    monkeypatch.setattr(qp_loop, "robot_named", lambda name: robot)
    made = qp_loop.loop("load", period=0.01)
    home = made.look().pose[0]
    duration = made.control.set_goal(0.0, home + np.array([0.7, 0.0, 0.0])).duration
    said = set()
    _, tensions = made.run(duration + 2.0, lambda time: said.update(made.control.relaxed()))
    assert np.min(tensions) > 6.0
    assert "reaches its tension floor" in " ".join(said) and "out of reach" in " ".join(made.control.relaxed())
    assert 0.2 < made.look().pose[0][0] < 0.7
    _, tensions = made.run(made.control.set_goal(made.time, home).duration + 0.5)
    assert np.min(tensions) > 6.0 and np.linalg.norm(made.look().pose[0] - home) < 1e-4


@pytest.mark.parametrize(
    ("x", "late"),
    [(0.22, 0), pytest.param(0.3, 2, marks=pytest.mark.long), pytest.param(-2.0, 1, marks=pytest.mark.long)],
)
def test_a_plate_sent_beyond_where_its_cables_are_tight_stops_at_the_border_and_comes_home(x, late):
    robot = parse_robot(PLATE, "plate.yaml")
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.005), 0.005, Delays((0, late), (0, late)))
    home = loop.simulation.observe().pose[0]
    end = loop.time + loop.control.set_goal(loop.stamp, home + np.array([x, 0.0, 0.0])).duration
    while loop.control.motion_at(loop.time)[0].end > loop.time:
        loop.run(0.1)
        assert loop.time < end + 5.0
    assert "out of reach" in (said := " ".join(loop.control.relaxed())) and "reaches its tension floor" in said
    assert 0.16 < abs(loop.simulation.observe().pose[0][0] - home[0]) < 0.32
    loop.run(loop.control.set_goal(loop.stamp, home).duration + 0.5)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - home) < 1e-4
    assert max(loop.errors) < 1e-3 and loop.least() > 0.95
