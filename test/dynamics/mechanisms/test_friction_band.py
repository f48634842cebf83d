"""How far friction of routed cables holds an output off its pose, beside simulations that come to rest within it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from tensegrity_control.controller import RobotState
from tensegrity_control.registry import make_controller
from tensegrity_dynamics import Simulation, make_estimator, parse_robot
from tensegrity_dynamics.mechanisms.statics.friction_band import FrictionBand

LEVER = """
kind: mechanism
name: lever
bodies:
  drum: {{mass: 0.05, inertia: [2.0e-5, 2.0e-5, 2.0e-5]}}
  slide: {{mass: 0.2, inertia: [1.0e-4, 1.0e-4, 1.0e-4]}}
joints:
  - {{name: turns, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], resistance: {{damping: 0.001}}}}
  - {{name: rail, kind: prismatic, parent: world, body: slide, axis: [1, 0, 0], frame: {{at: [0.3, 0, -0.3]}},
     resistance: {{stiffness: 400, rest: 0.02, damping: 20}}}}
routed_cables:
  - name: rope
    young: 1.0e+9
    cable_radius: 0.0005
    damping: {damping}
    strain: 0.01
    route:
      - {{joint: turns, radius: 0.02, side: 1}}
      - {{body: world, at: [0.15, 0, -0.01], axis: [0, 1, 0], radius: 0.01, side: 1, friction: {friction}}}
      - {{body: world, at: [0.15, 0, -0.29], axis: [0, 1, 0], radius: 0.01, side: -1, friction: {friction}}}
      - {{body: slide, at: [0, 0, 0]}}
actuators: [{{name: winch, drives: turns, position: [-3, 3], rate: 5.0, effort: 5.0}}]
outputs: [{{name: slide, body: slide, controlled: [x]}}]
"""


def lever(friction=0.3, damping=0):
    return parse_robot(LEVER.format(friction=friction, damping=damping), "here")


def test_ends_of_the_band_are_those_of_euler_and_eytelwein():
    robot = lever()
    model = robot.model
    pose, ends = FrictionBand(model, ["turns"]).bounds(model.start, robot.output)
    wraps = np.array(Simulation(robot).observe().routes["rope"].wraps[1:-1])
    arcs, strength = 0.01 * wraps, 1e9 * np.pi * 0.0005**2
    fixed = np.array([0.15 + arcs[0] / 2, np.sqrt(0.28**2 - 0.02**2) + arcs.sum() / 2, 0.15 + arcs[1] / 2])

    def surplus(shift, sense):
        """m of rest length too much with the slide at a shift, the tension at it that of its spring."""
        tensions = 400 * (0.02 - shift) * np.exp(sense * 0.3 * np.array([wraps.sum(), wraps[1], 0.0]))
        return ((fixed + [0, 0, shift]) / (1.0 + tensions / strength)).sum() - fixed.sum() / 1.01

    middle, *found = (brentq(surplus, -0.02, 0.02, args=(sense,), xtol=1e-14) for sense in (0.0, -1.0, 1.0))
    assert pose[0][0] == pytest.approx(0.3 + middle, abs=1e-10)
    assert ends[:, 0] == pytest.approx(np.sort(found) - middle, abs=1e-10)
    assert ends[1, 0] - ends[0, 0] > 5e-4


def drive(control, robot, goals, wait):
    """The simulation and what the estimator says at rest after each goal."""
    simulation, estimator = Simulation(robot, 1e-3, "implicit"), make_estimator(robot)

    def seen():
        shape = estimator.update(simulation.time, simulation.observe().positions)
        return RobotState(positions=np.array([simulation.observe().positions["winch"]]), pose=shape.pose, q=shape.q)

    control.reset(0.0, seen())
    for goal in goals:
        end = control.set_goal(simulation.time, goal).arrival + wait
        while simulation.time < end:
            simulation.command("position", {"winch": control.command(simulation.time, seen()).values[0]})
            simulation.advance(20)
        yield goal, simulation, seen()


def test_goals_of_a_cable_that_rubs_are_reached_within_the_band():
    robot = lever()
    control = make_controller("joint_position", robot, feedback_gain=0.0)
    band = FrictionBand(robot.model, ["turns"])
    off = []
    goals = [control.home.pose[0] + [shift, 0.0, 0.0] for shift in (0.004, -0.003)]
    for goal, simulation, seen in drive(control, robot, goals, 0.5):
        pose, ends = band.bounds(simulation.state.q, robot.output)
        assert pose[0][0] == pytest.approx(goal[0], abs=1e-7)
        off.append(simulation.observe().pose[0][0] - goal[0])
        slack = 1e-3 * (ends[1, 0] - ends[0, 0])
        assert ends[0, 0] - slack <= off[-1] <= ends[1, 0] + slack
        # the estimator knows the way by which it came
        assert seen.pose[0][0] - goal[0] == pytest.approx(off[-1], abs=1e-2 * (ends[1, 0] - ends[0, 0]))
    assert min(map(abs, off)) > 1e-4 and off[0] * off[1] < 0.0  # it stays behind, whichever way it comes


def test_what_friction_leaves_is_taken_away_by_the_estimated_pose():
    robot = lever()
    control = make_controller("joint_position", robot, feedback_gain=10.0)
    still = control.home.pose[0]
    for goal, simulation, seen in drive(control, robot, [still + [0.004, 0, 0], still + [-0.003, 0, 0]], 1.5):
        assert seen.pose[0][0] == pytest.approx(goal[0], abs=1e-6)
        assert simulation.observe().pose[0][0] == pytest.approx(goal[0], abs=1e-5)


def test_a_pulley_that_turns_freely_bears_no_difference():
    text = LEVER.format(friction=0.3, damping=0)
    guide = "{body: world, at: [0.15, 0, -0.29], axis: [0, 1, 0], radius: 0.01, side: -1, friction: 0.3}"
    wheel = """
  - {name: wheelJt, kind: revolute, parent: world, body: wheel, axis: [0, 1, 0], frame: {at: [0.15, 0, -0.29]}}
routed_cables:"""
    text = text.replace(guide, "{joint: wheelJt, radius: 0.01, side: -1, friction: 0.3}")
    text = text.replace("bodies:\n", "bodies:\n  wheel: {mass: 0.01, inertia: [1.0e-6, 1.0e-6, 1.0e-6]}\n")
    robot = parse_robot(text.replace("\nrouted_cables:", wheel), "here")
    ends = FrictionBand(robot.model, ["turns"]).bounds(robot.model.start, robot.output)[1][:, 0]
    smooth = parse_robot(LEVER.format(friction=0.3, damping=0).replace(guide, guide.replace("0.3}", "0}")), "here")
    other = FrictionBand(smooth.model, ["turns"]).bounds(smooth.model.start, smooth.output)[1][:, 0]
    assert ends == pytest.approx(other, rel=1e-3)  # that of the other guide alone
    assert ends[1] - ends[0] > 1e-4


def test_without_friction_there_is_no_band():
    robot = lever(friction=0)
    assert not FrictionBand(robot.model, ["turns"]).bounds(robot.model.start, robot.output)[1].any()
