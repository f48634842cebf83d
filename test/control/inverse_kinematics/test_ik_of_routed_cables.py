"""Inverse kinematics of redundant robots on routed cables: tensions are kept, and large robots go far."""

from dataclasses import replace

import numpy as np
import pytest

from tensegrity_control import inverse_kinematics
from tensegrity_control.inverse_kinematics import mechanism_ik
from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_dynamics import TensegrityError, make_estimator, parse_robot
from tensegrity_dynamics.errors import UnreachableGoalError
from tensegrity_dynamics.robots.robot_types import type_of

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


HOIST = """
kind: mechanism
name: hoist
gravity: [0, 0, -9.81]
bodies:
  load: {mass: 2.0, inertia: [0.01, 0.01, 0.01]}
  sledge: {mass: 0.1}
  drum: {shapes: [{kind: cylinder, size: [0.05, 0.02], mass: 0.1, frame: {z: [0, 1, 0]}}]}
joints:
  - {name: aside, kind: prismatic, parent: world, body: sledge, axis: [0, 1, 0], frame: {at: [0.05, 0, -1]}}
  - {name: rail, kind: prismatic, parent: sledge, body: load, axis: [0, 0, 1]}
  - {name: winch, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {at: [-1, 0, 0]}}
routed_cables:
  - {name: rope, young: "1 GPa", cable_radius: "1 mm", tension: "19.62 N",
     route: [{joint: winch, radius: 0.05, side: 1},
             {body: world, at: [0, 0, 0], axis: [0, 1, 0], radius: 0.05, side: 1},
             {body: load, at: [0, 0, 0]}]}
actuators:
  - {drives: winch, position: [-9, 9], rate: 1, effort: 9}
  - {drives: aside, position: [-1, 1], rate: 1, effort: 90}
outputs: [{name: load, body: load, controlled: [y, z]}]
"""


def test_a_goal_for_which_a_cable_leaves_the_plane_of_its_pulley_is_refused_with_this_reason():
    robot = parse_robot(HOIST, "hoist.yaml")
    assert inverse_kinematics(robot, position=[0.05, 0.0, -0.9]).positions["winch"] != 0.0
    with pytest.raises(UnreachableGoalError, match=r"cable rope .* leaves the plane of a pulley"):
        inverse_kinematics(robot, position=[0.05, 0.1, -1.0])
    with pytest.raises(TensegrityError, match=r"cable rope .* leaves the plane of a pulley"):
        make_estimator(robot).solve({"aside": 0.1})


def test_the_report_of_a_goal_gives_the_tension_at_the_drum():
    text = HOIST.replace("side: 1},\n             {body: load", "side: 1, friction: 0.1},\n             {body: load")
    robot = parse_robot(text.replace("controlled: [y, z]", "controlled: [z]"), "hoist.yaml")
    report = type_of(robot).report(robot).inverse_kinematics(inverse_kinematics(robot, position=[0.05, 0.0, -0.9]))
    [section] = [each for each in report.parts if getattr(each, "title", "") == "actuators"]
    assert [row[-1] for row in section.rows] == ["19.62 N", "-"]


LEGS = """
kind: mechanism
name: legs
parameters: {upper: "18 cm", lower: "20 cm"}
gravity: [0, 0, -9.81]
bodies: {trunk: {shapes: [{kind: box, size: [0.24, 0.2, 0.06], mass: 2.5}]}}
joints:
  - {name: base, kind: floating, parent: world, body: trunk, start: [0, 0, 0.367]}
repeat:
  count: 3
  about: z
  bodies:
    thigh_$: {shapes: [{kind: cylinder, size: [0.01, upper], mass: 0.3, frame: {at: [0, 0, -upper / 2]}}]}
    shank_$: {shapes: [{kind: cylinder, size: [0.008, lower], mass: 0.2, frame: {at: [0, 0, -lower / 2]}}]}
  joints:
    - {name: hip_$, kind: revolute, parent: trunk, body: thigh_$, axis: [0, 1, 0],
       frame: {at: ["12 cm", 0, 0]}, start: ["-20 deg"]}
    - {name: knee_$, kind: revolute, parent: thigh_$, body: shank_$, axis: [0, 1, 0],
       frame: {at: [0, 0, -upper]}, start: ["40 deg"]}
  contact_parts: [{name: foot_$, body: shank_$, kind: sphere, size: ["1 cm"], at: [0, 0, -lower]}]
  actuators:
    - {drives: hip_$, position: [-2, 2], rate: 1, effort: 20}
    - {drives: knee_$, position: [0, 2], rate: 1, effort: 20}
contact: {stiffness: "20 kN/m", damping: 150, friction: 0.7}
outputs: [{name: trunk, body: trunk, controlled: [z]}]
"""


def test_a_redundant_robot_on_legs_reaches_its_goal_and_stays_above_its_ground():
    robot = parse_robot(LEGS, "legs.yaml")
    result = inverse_kinematics(robot, position=[0.0, 0.0, 0.3365])
    heights = np.array([each.pose[0][2] for each in result.path])
    assert heights[-1] == pytest.approx(0.3365, abs=1e-6) and np.all(heights > 0.33)


def test_a_motion_on_which_a_robot_on_legs_falls_is_refused():
    equilibria = MechanismEquilibriumMap(parse_robot(LEGS, "legs.yaml"))
    change = np.random.default_rng(0).uniform(-0.4, 0.4, len(equilibria.joints))
    with pytest.raises(TensegrityError, match="falls on the way"):
        equilibria.solve(equilibria.home.positions + change, equilibria.home)


def test_a_goal_that_is_met_as_well_as_equilibria_are_solved_is_not_out_of_reach(monkeypatch):
    settings = replace(mechanism_ik.SETTINGS, tolerance_arrival=0.0)  # below what any solver of equilibria gives
    monkeypatch.setattr(mechanism_ik, "SETTINGS", settings)
    robot = carriage(2.0, LAWS["straight"])
    found = inverse_kinematics(robot, [0.3, 0.0, 0.0])
    assert np.linalg.norm(found.pose_error) < settings.tolerance_stalled
    with pytest.raises(UnreachableGoalError):
        inverse_kinematics(robot, [5.0, 0.0, 0.0])
