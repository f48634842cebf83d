"""Struts on ball joints and struts that float: joints of several coordinates, with a spin that nothing resists."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import qp_loop

from tensegrity_control import make_controller
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.mechanisms.estimation.kalman_observer import MechanismObserver
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.experiments._runs import Variants

FLOATING_STRUT = """
kind: mechanism
name: floating_strut
gravity: [0, 0, -9.81]
density: 1500
bodies:
  strut: {shapes: [{kind: cylinder, size: [0.015, 0.4]}]}
joints:
  - {name: free, kind: floating, parent: world, body: strut, start: [0, 0, 0.5]}
repeat:
  count: 3
  about: z
  cables:
    - name: high$
      body: world
      at: [0.6, 0, 1]
      block_axis: [0, 0, 1]
      pulley_axis: [0, 1, 0]
      pulley_radius: 0.04
      anchor: {body: strut, at: [0, 0, 0.2]}
      young: "1 GPa"
      damping: "5 MPa s"
      cable_radius: "1 mm"
      length: 2.5
      strain: 0.01
      block: [{kind: cube, size: [0.05]}]
      pulley: [{kind: cylinder, size: [0.04, 0.02]}]
    - name: low$
      body: world
      at: [-0.6, 0, 0]
      block_axis: [0, 0, 1]
      pulley_axis: [0, 1, 0]
      pulley_radius: 0.04
      anchor: {body: strut, at: [0, 0, -0.2]}
      young: "1 GPa"
      damping: "5 MPa s"
      cable_radius: "1 mm"
      length: 2.5
      strain: 0.01
      block: [{kind: cube, size: [0.05]}]
      pulley: [{kind: cylinder, size: [0.04, 0.02]}]
  actuators:
    - {drives: high$, position: [-20, 20], rate: "20 rad/s", effort: "20 N m", minimum_tension: 10}
    - {drives: low$, position: [-20, 20], rate: "20 rad/s", effort: "20 N m", minimum_tension: 10}
outputs:
  - {name: middle, body: strut, controlled: [x, y, z]}
"""
"""A strut that floats, held at both tips by three cables each: class 1, with a spin that nothing resists."""

FREE = pytest.param("floating", marks=pytest.mark.long), pytest.param("spherical", marks=pytest.mark.long)


def free_strut_manipulator(kind: str):
    """The manipulator with its struts on ball joints, or floating and held at the base by closed loops."""
    variants = Variants()

    def change(blocks):
        struts = blocks["repeat"][1]
        del struts["bodies"]["B$-dummy"], blocks["provenance"]
        frame = struts["joints"][0]["frame"]
        struts["joints"] = [{"name": "B$-strutJt", "kind": kind, "parent": "world", "body": "B$-strut", "frame": frame}]
        if kind == "floating":
            base = {"at": list(frame["at"])}
            struts["loops"] = [
                {"name": "B$-base", "kind": "point", "before": "world", "after": "B$-strut", "frame_before": base}
            ]

    return load_robot(str(variants.file("manipulator", change)))


@pytest.mark.parametrize("kind", FREE)
def test_free_struts_are_simulated_and_controlled_by_qp(monkeypatch, kind):
    robot = free_strut_manipulator(kind)
    monkeypatch.setattr(qp_loop, "robot_named", lambda _: robot)
    made = qp_loop.loop("free struts")
    assert made.control.equations.count == 12 + 3  # three spins more
    made.run(1.2)
    goal = made.look().pose[0] + [0.03, 0.02, -0.04]
    accepted = made.control.set_goal(made.time, goal)
    worst, least = 0.0, np.inf
    for _ in range(int((accepted.duration + 0.5) / 0.05)):
        outputs, tensions = made.run(0.05)
        worst = max(worst, np.linalg.norm(outputs[-1] - made.control.reference(made.time).pose[0]))
        least = min(least, np.min(tensions))
    assert worst < 1e-5 and np.linalg.norm(outputs[-1] - goal) < 1e-5 and least > 0.99 * 5.0
    assert not made.control.relaxed()


def followed(robot, kind, offset, **parameters):
    """Largest error of the output [m] while it goes to a goal and after it, and the least tension [N], each 20 ms."""
    control = make_controller(kind, robot, period=0.005, **parameters)
    made = qp_loop.Loop(Simulation(robot, 1e-3), control)
    control.reset(0.0, made.look())
    accepted = control.set_goal(0.0, made.look().pose[0] + offset)
    axes = [row for row in robot.output.rows if row < 3]
    worst, least = 0.0, np.inf
    for _ in range(int((accepted.duration + 0.1) / 0.02)):
        outputs, tensions = made.run(0.02)
        worst = max(worst, np.max(np.abs(outputs[-1] - control.reference(made.time).pose[0])[axes]))
        least = min(least, np.min(tensions))
    return worst, least


@pytest.mark.parametrize(
    ("kind", "actuation"),
    [
        ("task", "impedance"),
        pytest.param("task", "effort", marks=pytest.mark.long),
        pytest.param("near_rigid", "impedance", marks=pytest.mark.long),
        pytest.param("near_rigid", "effort", marks=pytest.mark.long),
    ],
)
def test_a_floating_strut_follows_its_plan(kind, actuation):
    robot = parse_robot(FLOATING_STRUT, "floating_strut.yaml")
    worst, least = followed(robot, kind, np.array([0.03, 0.02, 0.02]), actuation=actuation)
    assert worst < 2e-5 and least > 10.0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["task", "near_rigid"])
def test_a_mast_on_a_ball_follows_its_plan(kind):
    robot = qp_loop.robot_named("ball_mast")
    worst, least = followed(robot, kind, np.array([0.03, 0.02, 0.0]), actuation="effort")
    assert worst < 1e-4 and least > 10.0


def test_near_rigid_follows_with_a_mast_on_a_universal_joint_by_the_angles_of_that_joint():
    text = qp_loop.BALL_MAST.replace("kind: spherical", "kind: universal").replace("ball_mast", "universal_mast")
    robot = parse_robot(text, "universal_mast.yaml")
    assert make_controller("near_rigid", robot).model.tracked == ("ball.x", "ball.y")
    worst, least = followed(robot, "near_rigid", np.array([0.03, 0.02, 0.0]), actuation="effort")
    assert worst < 2e-5 and least > 10.0


@pytest.mark.parametrize("offset", [None, pytest.param([0.05, 0.04, 0.03], marks=pytest.mark.long)])
def test_near_rigid_chooses_coordinates_and_floors_of_a_robot_that_hangs(offset):
    robot = load_robot("cable_robot")
    control = make_controller("near_rigid", robot)
    assert sorted(control.model.tracked) == sorted(f"floating.{axis}" for axis in ("wx", "wy", "wz", "vx", "vy", "vz"))
    np.testing.assert_array_equal(control.floor, [each.minimum_tension for each in robot.actuators])
    if offset is not None:
        worst, least = followed(robot, "near_rigid", np.array(offset))
        assert worst < 1e-5 and least > 5.0
        return
    bare = replace(robot, actuators=tuple(replace(each, minimum_tension=0.0) for each in robot.actuators))
    with pytest.raises(TensegrityError, match=r"cable_robot has no self-stress that tightens.*set floor=\d"):
        make_controller("near_rigid", bare)
    advised = float(re.search(r"floor=([\d.]+)", advice(bare))[1])
    assert make_controller("near_rigid", bare, floor=advised).floor[0] == advised


def advice(robot):
    with pytest.raises(TensegrityError) as refused:
        make_controller("near_rigid", robot)
    return str(refused.value)


@pytest.mark.long
def test_struts_on_balls_follow_a_plan_of_task():
    robot = free_strut_manipulator("spherical")
    worst, least = followed(robot, "task", np.array([0.03, 0.02, -0.04]), actuation="effort")
    assert worst < 2e-5 and least > 5.0


@pytest.mark.long
def test_the_observer_follows_a_floating_strut():
    robot = parse_robot(FLOATING_STRUT, "floating_strut.yaml")
    observer, control = MechanismObserver(robot), make_controller("task", robot, period=0.005, actuation="effort")
    made = qp_loop.Loop(Simulation(robot, 1e-3), control)
    control.reset(0.0, made.look())
    control.set_goal(0.0, made.look().pose[0] + [0.03, 0.02, 0.02])
    for _ in range(150):
        made.run(0.005)
        state, seen = made.simulation.state, made.simulation.observe()
        found = observer.update(state.time, seen.positions, seen.efforts)
    np.testing.assert_allclose(found.pose[0], seen.pose[0], rtol=0, atol=1e-6)
    assert np.max(np.abs(found.v - state.v)) < 1e-2


@pytest.mark.long
def test_an_output_that_spins_where_nothing_resists_is_refused_by_name():
    text = qp_loop.BALL_MAST.replace("controlled: [x, y]", "controlled: [x, y, rx, ry, rz]")
    with pytest.raises(TensegrityError, match="ball_mast does not hold its output tip: no stiffness resists"):
        make_controller("task", parse_robot(text, "ball_mast.yaml"))


def test_coordinates_of_universal_and_cable_joints_may_be_independent_ones():
    robot = load_robot("cable_robot")
    model = ReducedModel(robot)
    assert model.index.size == 14
    assert not any(name.startswith("floating") for name in model.names)
    with pytest.raises(TensegrityError, match="turns freely: its coordinates have numbers together or not at all"):
        ReducedModel(robot, [robot.mechanism.coordinate_names().index("floating.vx"), *model.index[1:]])


def test_near_rigid_plans_in_others_where_the_given_coordinates_are_singular_on_the_way():
    """Angles of blocks turn back while the strut goes on: they are coordinates on one side of that only."""
    robot = load_robot("single_strut")
    control = make_controller("near_rigid", robot, tracked=["B1-blockJt", "B2-blockJt"], actuation="effort")
    made = qp_loop.Loop(Simulation(robot, 1e-3), control)
    control.reset(0.0, made.look())
    home = made.look().pose[0]
    near = control.plan_goal(0.0, control.make_goal(0.0, home + [0.0, 0.2, 0.0])).tracker
    assert near.model.tracked == ("B1-blockJt", "B2-blockJt")
    far = control.plan_goal(0.0, control.make_goal(0.0, home + [0.0, 0.5, 0.0])).tracker
    assert far.model.tracked == ("x-revoluteJt", "y-revoluteJt")
    strains = far.strains
    assert strains.residual < 1e-4 * np.max(strains.tensions)
    assert np.min(strains.tensions - far.floor) > -1e-2 * np.min(far.floor)
