"""Motions that the output of `qp` leaves free: how fast they fall away, what holds them, and what is refused."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import qp_loop
import yaml

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.controllers.qp.free_motions import FreeMotions
from tensegrity_control.optimization.motion_program import MotionProgram
from tensegrity_dynamics import Simulation
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.experiments._runs import plant_of

CART = """
kind: mechanism
name: cart
gravity: [0, 0, -9.81]
bodies:
  cart: {{mass: 1, inertia: [0.01, 0.01, 0.01]}}
  rod: {{mass: 0.2, inertia: [{inertia}, {inertia}, {inertia}], centre: [0, 0, {high}]}}
joints:
  - {{name: slide, kind: prismatic, parent: world, body: cart, axis: [1, 0, 0]}}
  - {{name: swing, kind: revolute, parent: cart, body: rod, axis: [0, 1, 0]}}
actuators:
  - {{drives: slide, position: [-1, 1], rate: "3 m/s", effort: "20 N"}}
outputs:
  - {{name: cart, body: cart, frame: {{at: [0, 0, 0]}}, controlled: [x]}}
"""


def cart(high, inertia=0.001):
    return parse_robot(CART.format(high=high, inertia=inertia), "cart.yaml")


def mast(arm, skew=0.6, strain=0.02):
    """A mast on a ball joint, whose stays end `arm` m off its axis on their own side of it, every second one `skew` rad
    to the left of that and the others to the right."""
    head, block = qp_loop.BALL_MAST.split("repeat:")
    cable, rest = block.split("  actuators:\n")
    driver, outputs = rest.split("outputs:")
    one = textwrap.dedent(cable[cable.index("    - name") :])
    cables, actuators = "", ""
    for k, angle in enumerate(0.5 * np.pi * np.arange(4)):
        (x, y), (c, s) = arm * np.array([np.cos(angle + skew), np.sin(angle + skew)]), (np.cos(angle), np.sin(angle))
        skew = -skew
        text = one.replace("$", str(k + 1)).replace("at: [0, 0, 0.8]", f"at: [{x}, {y}, 0.8]")
        text = text.replace("at: [0.6, 0, 0]", f"at: [{0.6 * c}, {0.6 * s}, 0]")
        text = text.replace("pulley_axis: [0, 1, 0]", f"pulley_axis: [{-s}, {c}, 0]")
        cables += text.replace("strain: 0.02", f"strain: {strain}")
        actuators += textwrap.dedent(driver).replace("$", str(k + 1))
    return parse_robot(f"{head}cables:\n{cables}actuators:\n{actuators}outputs:{outputs}", "ball_mast.yaml")


def state_of(robot):
    state, seen = Simulation(robot).state, Simulation(robot).observe()
    return RobotState(pose=seen.pose, q=state.q, v=state.v)


@pytest.mark.parametrize(("high", "inertia"), [(0.1, 0.001), (0.4, 0.02), (-0.1, 0.001)])
def test_a_rod_that_swings_on_a_held_cart_falls_away_as_in_closed_form(high, inertia):
    free = FreeMotions(MotionProgram(TightCables(cart(high, inertia))))
    squared, half = 0.2 * 9.81 * high / (inertia + 0.2 * high**2), 5.0
    expected = (np.sqrt(half**2 + squared + 0j) - half).real
    try:
        free.begin(np.zeros(2), 2.0 * half, 20.0)
    except TensegrityError:
        assert high > 0.0
    assert free.stiffness == (100.0 if high > 0.0 else 0.0)
    free.stiffness, free.damping = 0.0, 2.0 * half
    assert free.fastest()[0] == pytest.approx(expected, rel=1e-2, abs=1e-6)


def test_a_free_motion_that_no_actuator_holds_is_refused_by_name():
    state = RobotState(q=np.zeros(2), v=np.zeros(2))
    with pytest.raises(TensegrityError, match=r"cart has a free motion .* holds: swing"):
        make_controller("qp", cart(0.1)).reset(0.0, state)
    make_controller("qp", cart(-0.1)).reset(0.0, state)


def test_a_mast_that_its_stays_turn_about_its_axis_is_held_and_one_that_they_hold_is_left_alone():
    for arm, held in ((0.02, False), (-0.02, True)):
        robot = mast(arm)
        control = make_controller("qp", robot, period=0.002)
        control.reset(0.0, state_of(robot))
        assert (control.free_motions.stiffness > 0.0) == held and control.free_motions.rate <= 0.0
    robot = mast(-0.02, skew=0.0)  # stays through its axis turn it, but cannot turn it back
    with pytest.raises(TensegrityError, match=r"diverges with .* 1/s and that no actuator holds: ball.wz"):
        make_controller("qp", robot).reset(0.0, state_of(robot))


def test_a_free_motion_that_falls_away_between_two_commands_is_refused_unless_actuators_that_stand_hold_it():
    robot = mast(-0.02)
    with pytest.raises(TensegrityError, match=r"with 153 1/s between two commands, .* 100 1/s .*: ball.wz. Shorten"):
        make_controller("qp", robot).reset(0.0, state_of(robot))


def test_a_mast_on_its_way_keeps_its_turn_about_its_axis(monkeypatch):
    robot = mast(-0.02)
    monkeypatch.setattr(qp_loop, "robot_named", lambda name: robot)
    made = qp_loop.loop("mast", period=0.002)
    made.run(0.05)
    made.control.set_goal(made.time, made.look().pose[0] + np.array([0.06, 0.03, 0.0]))
    _, tensions = made.run(0.6)
    assert abs(2.0 * made.look().q[3]) < 0.005  # 0.05 where nothing holds it
    assert tensions.min() > 10.0


def finger(seed, tendons=3):
    """Two hinges on springs, pulled by tendons that run to drawn links, all on one side."""
    draw = np.random.default_rng(seed)
    length = draw.uniform(0.02, 0.05, 2).tolist()
    bodies, joints, above, cables, motors = {}, [], "world", [], []
    for k in range(2):
        box = {"kind": "box", "size": [0.009, 0.009, length[k]], "mass": float(draw.uniform(0.005, 0.015))}
        bodies[f"link{k}"] = {"shapes": [{**box, "frame": {"at": [0.0, 0.0, -0.5 * length[k]]}}]}
        spring = {"stiffness": float(draw.uniform(0.02, 0.05)), "damping": float(draw.uniform(1e-4, 4e-4))}
        joint = {"name": f"hinge{k}", "kind": "revolute", "parent": above, "body": f"link{k}", "axis": [0, 1, 0]}
        joint |= {"start": [float(draw.uniform(0.2, 0.5))], "resistance": spring}
        joints.append(joint | ({"frame": {"at": [0.0, 0.0, -length[0]]}} if k else {}))
        above = f"link{k}"
    for t in range(tendons):
        last, off = 1 if t == 0 else int(draw.integers(0, 2)), -float(draw.uniform(0.004, 0.007))
        bodies[f"drum{t}"] = {"mass": 0.004, "inertia": [2e-7] * 3}
        drum = {"name": f"turn{t}", "kind": "revolute", "parent": "world", "body": f"drum{t}", "axis": [0, 1, 0]}
        joints.append(drum | {"frame": {"at": [off - 0.008, 0, 0.04 + 0.02 * t]}, "resistance": {"damping": 1e-4}})
        route = [{"joint": f"turn{t}", "radius": 0.008, "side": 1}, {"body": "world", "at": [off, 0, 0.006]}]
        for k in range(last + 1):
            parts = (0.3, 0.75) if k < last else (0.3,)
            route += [{"body": f"link{k}", "at": [off, 0, -part * length[k]]} for part in parts]
        cable = {"name": f"tendon{t}", "young": 2e9, "cable_radius": 2e-4, "damping": 1e6, "route": route}
        cables.append(cable | {"tension": float(draw.uniform(1.5, 2.5))})
        motors.append({"name": f"motor{t}", "drives": f"turn{t}", "position": [-6, 6], "rate": 10, "effort": 0.3})
    tip = {"name": "tip", "body": "link1", "frame": {"at": [0, 0, -length[1]]}, "controlled": ["z"]}
    file = {
        "kind": "mechanism", "name": f"finger_{seed}", "bodies": bodies, "joints": joints, "routed_cables": cables,
        "actuators": motors, "outputs": [tip],
    }  # fmt: skip
    return parse_robot(yaml.safe_dump(file), "finger.yaml")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [12, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
def test_goals_that_a_finger_of_several_tendons_accepts_are_reached(seed):
    robot = finger(seed)
    simulation, control = Simulation(robot, 1e-3, integrator="implicit"), make_controller("qp", robot, period=0.005)
    control.reset(0.0, RobotState.of(simulation))
    home, step, reached = RobotState.of(simulation).pose[0], 0, 0
    for move in np.random.default_rng(seed).uniform(-0.016, 0.016, 4):
        goal = home + np.array([0.0, 0.0, move])
        try:
            arrival = control.set_goal(0.005 * step, goal).arrival + 0.6
        except TensegrityError:
            continue  # out of reach, or a cable would be slack on the way
        while 0.005 * step < arrival:
            command = control.command(0.005 * step, RobotState.of(simulation))
            simulation.command(command.mode, command.set_points(), period=0.005)
            simulation.advance(duration=0.005)
            step += 1
        assert abs(RobotState.of(simulation).pose[0][2] - goal[2]) < 2e-4 and not control.relaxed()
        reached += 1
    assert reached


def test_a_start_with_slack_cables_is_refused_by_name():
    robot = mast(0.02, strain=0.0)
    with pytest.raises(TensegrityError, match="cables of ball_mast are slack: stay1, stay2, stay3, stay4"):
        make_controller("qp", robot).reset(0.0, state_of(robot))


def test_a_robot_lighter_than_stated_is_not_lifted_by_the_tensions_that_it_began_with():
    made = qp_loop.loop("cable_robot", plant=plant_of(qp_loop.robot_named("cable_robot"), masses=0.9))
    home = made.look().pose[0]
    outputs, tensions = made.run(0.3)
    floor = made.control.bounds.floor
    assert np.max(np.abs(outputs - home)) < 2e-3 and np.min(tensions / floor) > 2.0


def folding_arm(lengths, start):
    """A hanging arm of links in a plane, each driven by a motor, whose tip is controlled."""
    bodies, joints, above, last = {}, [], "world", 0.0
    for k, (length, angle) in enumerate(zip(lengths, start, strict=True)):
        shape = {"kind": "box", "size": [length, 0.03, 0.03], "density": 2000, "frame": {"at": [0.5 * length, 0, 0]}}
        bodies[f"link{k}"] = {"shapes": [shape]}
        joint = {"name": f"j{k}", "kind": "revolute", "parent": above, "body": f"link{k}", "axis": [0, 1, 0]}
        joints.append({**joint, "frame": {"at": [last, 0, 0]}, "start": [angle]})
        above, last = f"link{k}", length
    motors = [{"drives": f"j{k}", "position": [-3, 3], "rate": 4, "effort": 100} for k in range(len(lengths))]
    tip = {"name": "tip", "body": above, "frame": {"at": [last, 0, 0]}, "controlled": ["x", "z"]}
    file = {"kind": "mechanism", "name": "arm", "gravity": [0, 0, -9.81], "bodies": bodies, "joints": joints}
    return parse_robot(yaml.safe_dump({**file, "actuators": motors, "outputs": [tip]}), "arm.yaml")


@pytest.mark.filterwarnings("ignore")
def test_an_arm_of_more_links_than_its_output_needs_comes_home_as_it_was(monkeypatch):
    robot = folding_arm((0.3, 0.4, 0.2, 0.25, 0.12), (0.6, -0.9, 0.8, -0.5, 0.7))
    monkeypatch.setattr(qp_loop, "robot_named", lambda name: robot)
    made = qp_loop.loop("arm", period=0.01)
    made.run(1.5)
    home, q, moved = made.look().pose[0], np.array(made.look().q), 0.0
    for goal in (home + np.array([0.06, 0.0, 0.05]), home):
        made.run(made.control.set_goal(made.time, goal).duration + 1.0)
        assert np.linalg.norm(made.look().pose[0] - goal) < 1e-4
        moved = max(moved, float(np.max(np.abs(made.look().q - q))))
    assert 0.05 < moved < 0.5
    assert np.max(np.abs(made.look().q - q)) < 2e-3


def test_the_speed_of_an_output_is_that_of_joints_that_move_as_little_as_they_can(monkeypatch):
    robot = folding_arm((0.3, 0.4, 0.05), (0.6, -0.9, 0.8))
    monkeypatch.setattr(qp_loop, "robot_named", lambda name: robot)
    equations = qp_loop.loop("arm", period=0.01).control.equations
    equations.update(np.array(robot.model.initial_configuration), np.zeros(3))
    jacobian = equations.arrays.jacobian @ np.linalg.inv(equations.arrays.inputs)
    control = qp_loop.loop("arm", period=0.01).control
    control.equations.update(np.array(robot.model.initial_configuration), np.zeros(3))
    efforts = control.limits.efforts_for(control.equations.arrays.output_1)
    assert control.equations.arrays.joint_1 @ efforts == pytest.approx(np.linalg.pinv(jacobian), rel=1e-6, abs=1e-9)
