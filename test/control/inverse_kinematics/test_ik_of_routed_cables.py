"""Inverse kinematics of redundant robots on routed cables: tensions are kept, and large robots go far."""

import numpy as np
import pytest

from tensegrity_control import inverse_kinematics
from tensegrity_dynamics import make_estimator, parse_robot

CARRIAGE = """
kind: mechanism
name: carriage
gravity: [0, 0, -9.81]
bodies:
  carriage: {{shapes: [{{kind: point, size: [], mass: 5}}]}}
  left: {{shapes: [{{kind: point, size: [], mass: 1}}]}}
  right: {{shapes: [{{kind: point, size: [], mass: 1}}]}}
joints:
  - {{name: rail, kind: prismatic, parent: world, body: carriage, axis: [1, 0, 0]}}
  - {{name: pull_left, kind: prismatic, parent: world, body: left, axis: [-1, 0, 0],
     frame: {{at: [{far}, 0, 0]}}}}
  - {{name: pull_right, kind: prismatic, parent: world, body: right, axis: [1, 0, 0],
     frame: {{at: [{near}, 0, 0]}}}}
routed_cables:
  - {{name: rope_left, {law}, route: [{{body: left, at: [0, 0, 0]}}, {{body: carriage, at: [0, 0, 0]}}]}}
  - {{name: rope_right, {law}, route: [{{body: right, at: [0, 0, 0]}}, {{body: carriage, at: [0, 0, 0]}}]}}
actuators:
  - {{drives: pull_left, position: [-{span}, {span}], rate: 1, effort: 5000}}
  - {{drives: pull_right, position: [-{span}, {span}], rate: 1, effort: 5000}}
outputs:
  - {{name: carriage, body: carriage, controlled: [x]}}
"""


def carriage(half: float, law: str):
    return parse_robot(CARRIAGE.format(far=-half, near=half, span=0.8 * half, law=law), "carriage.yaml")


LAWS = {
    "straight": "young: 2.0e+10, cable_radius: 0.002, tension: 400",
    "sagging": "sag: true, density: 4000, young: 2.0e+10, cable_radius: 0.002, length: {length}",
}


@pytest.mark.parametrize("law", LAWS)
def test_the_freedom_that_a_goal_leaves_keeps_the_tensions_of_routed_cables(law: str) -> None:
    robot = carriage(20.0, LAWS[law].format(length=20.0))
    home = make_estimator(robot).solve({})
    plan = inverse_kinematics(robot, position=home.pose[0] + [3.0, 0.0, 0.0])
    before, after = (
        np.array([pull for each in shape.statics.routes.values() for pull in each.tensions])
        for shape in (plan.path[0], plan.equilibrium)
    )
    assert plan.equilibrium.pose[0][0] == pytest.approx(home.pose[0][0] + 3.0, abs=1e-7)
    assert np.max(np.abs(after - before)) < 0.02 * np.max(before)


def test_a_robot_of_forty_metres_reaches_a_goal_of_twelve_metres_in_few_steps() -> None:
    robot = carriage(20.0, LAWS["sagging"].format(length=20.0))
    home = make_estimator(robot).solve({})
    plan = inverse_kinematics(robot, position=home.pose[0] + [12.0, 0.0, 0.0])
    assert plan.equilibrium.pose[0][0] == pytest.approx(home.pose[0][0] + 12.0, abs=1e-7)
    assert plan.iterations < 80
