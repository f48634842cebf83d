"""Exports to MuJoCo, read back by it: shape, frequencies and accelerations, computed there from its own physics."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tensegrity_dynamics import load_robot, parse_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms import forward_dynamics
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.joint_coordinates import JOINT_COORDINATES
from tensegrity_dynamics.mechanisms.joints import JOINT_KINDS
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import StructureEquilibriumSolver
from tensegrity_tools.experiments.mjcf import compare, mechanism_at_rest
from tensegrity_tools.mujoco_judge import Judge


def exported(robot):
    return type_of(robot).exports["mjcf"](robot)


def held_joints(robot):
    return robot.model.driven_joints(robot.actuators)


@pytest.mark.parametrize(
    "name",
    ["single_strut", "manipulator", "three_prism", "tensebot", *(
        pytest.param(each, marks=pytest.mark.long)
        for each in ("biglide", "cable_robot", "four_prism", "six_bar", "stewart", "three_rrr")
    )],
)  # fmt: skip
def test_a_shipped_robot_has_its_shape_and_frequencies_in_mujoco(name):
    row = compare(load_robot(name))
    assert row["distance_m"] <= 1e-6
    assert row.get("frequency_error", 0.0) <= 1e-3
    assert row["passes"]


def test_the_judge_sees_another_shape():
    robot = load_robot("three_prism")
    nodes = StructureEquilibriumSolver(robot.structure).solve().nodes
    text = exported(robot).text
    top = robot.structure.node_names.index("top_1")
    own, longer = (Judge(each).judge(1e-4) for each in (text, re.sub(r'springlength="0 ([0-9.]+)"', stretched, text)))
    assert np.linalg.norm(own.positions["top_1"] - nodes[top]) < 1e-9
    assert np.linalg.norm(longer.positions["top_1"] - nodes[top]) > 1e-5


def stretched(found):
    return f'springlength="0 {1.001 * float(found[1])}"'


def test_a_robot_of_rigid_links_accelerates_alike_in_mujoco():
    robot = load_robot("biglide")
    mechanism, q = robot.mechanism, robot.model.start
    effort, by_joint = np.zeros(mechanism.velocity_count), {}
    for k, joint in enumerate(held_joints(robot)):
        effort[mechanism.velocities_of(joint)] = by_joint[joint] = 1.0 + k
    ours = forward_dynamics(mechanism, q, np.zeros(effort.size), effort).acceleration
    judged = Judge(exported(robot).text).accelerations(by_joint)
    for joint in mechanism.joints:
        if joint.kind in ("revolute", "prismatic"):
            mine = ours[mechanism.velocities_of(joint.name)][0]
            assert judged[joint.name] == pytest.approx(mine, rel=1e-3, abs=1e-3 * np.abs(ours).max())


CHAIN = """
name: chain
kind: mechanism
bodies:
  a: {mass: 1, centre: [0.1, 0.02, 0], inertia: [0.02, 0.03, 0.04, 0.005, 0, 0.002]}
  b: {mass: 0.5, centre: [0, 0, 0.1], inertia: [0.01, 0.01, 0.01]}
  c: {mass: 0.3, inertia: [0.01, 0.02, 0.015], centre: [0.05, 0, 0]}
  d: {mass: 0.4, inertia: [0.01, 0.02, 0.015]}
joints:
  - {name: j1, kind: universal, parent: world, body: a, frame: {turn: [0.2, 0.1, 0]}, start: [0.3, -0.5],
     resistance: [{stiffness: 3, damping: 0.1}, {stiffness: 5, rest: 0.2}]}
  - {name: j2, kind: revolute, parent: a, body: b, frame: {at: [0.3, 0, 0]}, axis: [0, 1, 1], start: [0.4],
     resistance: {stiffness: 2, rest: 0.1}}
  - {name: j3, kind: prismatic, parent: b, body: c, frame: {at: [0, 0, 0.2]}, axis: [1, 0, 2], start: [0.05],
     resistance: {stiffness: 200}}
  - {name: j4, kind: spherical, parent: world, body: d, frame: {at: [0.9, 0.3, 0]}}
loops:
  - {name: rod, kind: cylindrical, before: d, after: c, frame_before: {at: [0, 0, 0.2]},
     frame_after: {at: [0.1, 0, 0]}, turning: {stiffness: 1.5}, sliding: {stiffness: 30, rest: 0.01}}
actuators: [{drives: j2, position: [-2, 2], rate: 5, effort: 2, gear: 10, rotor_inertia: 0.0002}]
loads:
  - {name: box, body: b, at: [0.1, 0, 0], mass: 0.2}
  - {name: pull, body: c, at: [0, 0.1, 0], force: [1, 2, -0.5], moment: [0.05, 0, 0.1]}
"""


def test_joints_springs_loops_payloads_and_wrenches_are_said_to_mujoco():
    robot = parse_robot(CHAIN, "here")
    shape = MechanismEquilibriumSolver(robot.mechanism, ("j2",)).solve(robot.model.start)
    judged = Judge(exported(robot).text, ("j2",)).judge(1e-4)
    positions = BodyPoses(robot.model).update(shape.q).positions
    for body, row in robot.mechanism.body_index.items():
        if row >= 0:
            np.testing.assert_allclose(judged.positions[body], positions[row], atol=1e-6)
    np.testing.assert_allclose(judged.frequencies, mechanism_at_rest(robot.model, ("j2",))[1], rtol=1e-3)


def test_a_joint_that_mujoco_does_not_have_is_refused_by_name_not_welded(monkeypatch):
    robot = parse_robot(CHAIN, "here")
    monkeypatch.setitem(JOINT_COORDINATES, "screw", JOINT_COORDINATES["universal"])
    monkeypatch.setitem(JOINT_KINDS, "screw", JOINT_KINDS["universal"])
    object.__setattr__(robot.mechanism.joint("j1"), "kind", "screw")
    with pytest.raises(TensegrityError, match="joint j1: screw joints cannot be exported"):
        exported(robot)


@pytest.mark.parametrize("name", ["finger", pytest.param("tendon_hand", marks=pytest.mark.long), "torque_finger"])
def test_tendons_over_pulleys_in_the_joints_of_fingers_pull_alike_in_mujoco(name):
    row = compare(load_robot(str(Path(__file__).parents[2] / "examples" / f"{name}.yaml")))
    assert row["distance_m"] <= 1e-9
    assert row["frequency_error"] <= 1e-6
    assert len(row["frequencies_Hz"]) == (9 if name == "tendon_hand" else 3)


ROPE = """
name: rope
kind: mechanism
bodies:
  drum: {mass: 1, inertia: [0.01, 0.01, 0.01]}
  wheel: {mass: 1, inertia: [0.01, 0.01, 0.01]}
  load: {mass: 3, inertia: [1, 1, 1]}
joints:
  - {name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {at: [-0.15, 0, -1]}}
  - {name: wheelJt, kind: revolute, parent: world, body: wheel, axis: [0, 1, 0], frame: {at: [-0.1, 0, 0]},
     resistance: {stiffness: 0.5}}
  - {name: rail, kind: prismatic, parent: world, body: load, frame: {at: [0.4, 0, -1]}}
routed_cables:
  - {name: rope, young: 2e9, cable_radius: 0.002, damping: 1e5, tension: 5, route: [
      {joint: drumJt, radius: 0.05, side: 1, wound: 3}, {joint: wheelJt, radius: 0.1, side: 1},
      {body: world, at: [0.1, 0, -0.5], axis: [0, 1, 0], radius: 0.1, side: -1, turns: 1},
      {body: world, at: [0.3, 0, 0], axis: [0, 1, 0], radius: 0.1, side: 1, friction: 1.5},
      {body: load, at: [0, 0, 0]}]}
actuators: [{drives: drumJt, position: [-20, 20], rate: 5, effort: 50}]
"""


def test_a_rope_over_wheel_pulley_and_guide_has_its_shape_and_frequencies_in_mujoco():
    row = compare(parse_robot(ROPE, "here"))
    assert row["distance_m"] <= 1e-6
    assert row["frequency_error"] <= 1e-3
    assert row["frequencies_Hz"].size == 2
    said = " ".join(row["not_said"])
    assert "no slip on guides and pulleys with friction" in said and "within a quarter turn" in said


ARM = """
name: arm
kind: mechanism
bodies:
  upper: {mass: 0.3, centre: [0.15, 0, 0], inertia: [1.0e-4, 3.0e-3, 3.0e-3]}
  lower: {mass: 0.2, centre: [0.12, 0, 0], inertia: [1.0e-4, 2.0e-3, 2.0e-3]}
  idle: {mass: 0.1, inertia: [1.0e-4, 1.0e-4, 1.0e-4]}
  drum: {mass: 0.1, inertia: [1.0e-5, 1.0e-5, 1.0e-5]}
  other: {mass: 0.1, inertia: [1.0e-5, 1.0e-5, 1.0e-5]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, axis: [0, 1, 0]}
  - {name: elbow, kind: revolute, parent: upper, body: lower, axis: [0, 1, 0], frame: {at: [0.3, 0, 0]}, start: [0.4],
     resistance: {stiffness: 0.5}}
  - {name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {at: [-0.2, 0, 0.06]}}
  - {name: otherJt, kind: revolute, parent: world, body: other, axis: [0, 1, 0], frame: {at: [-0.2, 0, -0.06]}}
  - {name: idleJt, kind: revolute, parent: upper, body: idle, axis: [0, 1, 0], frame: {at: [0.15, 0, 0.02]}}
routed_cables:
  - {name: up, young: 5e+8, cable_radius: 0.0004, damping: 1e+5, tension: 6, route: [
      {joint: drumJt, radius: 0.01}, {joint: shoulder, radius: 0.04}]}
  - {name: over, young: 5e+8, cable_radius: 0.0004, tension: 5, route: [
      {body: world, at: [-0.2, 0, 0.2]}, {body: upper, at: [0.05, 0, 0.05]}, {joint: idleJt, radius: 0.03},
      {joint: elbow, radius: 0.02}]}
  - {name: down, young: 5e+8, cable_radius: 0.0004, tension: 1, route: [
      {joint: otherJt, radius: 0.01, side: -1}, {joint: shoulder, radius: 0.03, side: -1}]}
actuators:
  - {drives: drumJt, position: [-5, 5], rate: 5, effort: 3}
  - {drives: otherJt, position: [-5, 5], rate: 5, effort: 3}
"""


def test_drums_in_moving_joints_wind_strained_cables_alike_in_mujoco():
    # strains of 2 %, which winding takes along: 1e-4 m and 2 % of the frequencies if MuJoCo's tendons leave it out
    row = compare(parse_robot(ARM, "here"))
    assert row["distance_m"] <= 1e-8
    assert row["frequency_error"] <= 1e-7
    assert row["frequencies_Hz"].size == 3


def test_what_cannot_be_said_is_listed():
    made = exported(load_robot("six_bar"))
    said = " ".join(made.differences)
    assert "without damping, friction" in said and "cannot wind the rest length" in said
    assert all(each in made.text for each in made.differences)
