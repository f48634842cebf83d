"""Wrenches that cables hold: against the statics of a body on straight cables, and limits that are just reached."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.kinematics.loop_closure import assemble
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.statics.hanging_body import hanging_position, hangs_on_cables
from tensegrity_dynamics.mechanisms.statics.wrench_feasibility import (
    cable_statics,
    tension_distribution,
    wrench_margin,
    wrench_margins,
)
from tensegrity_dynamics.numerics.rotations import matrix_from_vector, quaternion_from_matrix
from tensegrity_dynamics.robots.output_frame import pose_error

ROBOT = load_robot("cable_robot")
POSE = (np.array([0.2, -0.1, 1.15]), quaternion_from_matrix(matrix_from_vector([0.1, -0.05, 0.2])))
SPRINGS = np.array([cable.young * cable.area for cable in ROBOT.mechanism.cables])


def test_a_hanging_body_is_at_its_pose_with_its_loops_closed_and_its_strains():
    strains = np.linspace(3e-4, 9e-4, 8)
    q = hanging_position(ROBOT.model, ROBOT.output, *POSE, strains)
    body_poses = BodyPoses(ROBOT.model).update(q)
    np.testing.assert_allclose(pose_error(POSE, body_poses.output(ROBOT.output)[0]), 0.0, atol=1e-12)
    np.testing.assert_allclose(body_poses.strains(), strains, atol=1e-12)
    np.testing.assert_allclose(assemble(ROBOT.mechanism, q), q, atol=1e-10)
    assert not hangs_on_cables(load_robot("manipulator").model, load_robot("manipulator").output)


def test_tensions_balance_the_forces_of_straight_cables_on_the_body():
    q = hanging_position(ROBOT.model, ROBOT.output, *POSE)
    wrench = np.array([5.0, -3.0, -10.0, 0.5, 1.0, -0.5])
    statics = cable_statics(ROBOT, q)
    tensions = tension_distribution(statics, wrench, 20.0)
    body_poses = BodyPoses(ROBOT.model).update(q)
    total = wrench + [0.0, 0.0, -10.0 * 9.80665, 0.0, 0.0, 0.0]
    turn = matrix_from_vector([0.1, -0.05, 0.2])
    for entry, tension in zip(ROBOT.model.entries, tensions, strict=True):
        # towards the point where the cable leaves its pulley
        pull = -tension * body_poses.rotations[ROBOT.mechanism.body_index[f"{entry.name}-cable"]][:, 0]
        total += np.concatenate((pull, np.cross(turn @ entry.anchor, pull)))
    np.testing.assert_allclose(total, 0.0, atol=1e-6)
    assert np.all(tensions >= statics.tension_low - 1e-9)
    assert statics.self_stress_count == 2


def test_a_wrench_is_held_up_to_its_margin_and_not_beyond():
    q = hanging_position(ROBOT.model, ROBOT.output, *POSE)
    statics = cable_statics(ROBOT, q, floor=5.0, ceiling=100.0)
    direction = np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0])
    factor, tensions = wrench_margin(statics, direction)
    assert tensions.max() == pytest.approx(100.0)
    assert tension_distribution(statics, 0.999 * factor * direction) is not None
    assert tension_distribution(statics, 1.001 * factor * direction) is None
    assert wrench_margins(statics)["z"][0] == pytest.approx(-factor)


def test_no_tensions_hold_the_body_beside_its_frame():
    q = hanging_position(ROBOT.model, ROBOT.output, [1.6, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0])
    assert tension_distribution(cable_statics(ROBOT, q)) is None


def test_distributed_tensions_are_nearest_to_the_preferred_ones():
    q = hanging_position(ROBOT.model, ROBOT.output, *POSE)
    statics = cable_statics(ROBOT, q)
    tensions = tension_distribution(statics, desired=20.0)
    inputs = np.linalg.lstsq(statics.drive, statics.pull.T @ tensions - statics.passive, rcond=None)[0]
    free = np.linalg.svd(statics.balance)[2][-2:, :8]  # self-stresses
    assert np.max(np.abs(inputs)) < statics.effort.min()
    np.testing.assert_allclose(free @ (tensions - 20.0), 0.0, atol=1e-5)


def test_angles_with_pulleys_lead_to_the_pose_and_those_of_point_anchors_do_not():
    q = hanging_position(ROBOT.model, ROBOT.output, *POSE)
    for _ in range(2):
        tensions = tension_distribution(cable_statics(ROBOT, q), desired=20.0)
        q = hanging_position(ROBOT.model, ROBOT.output, *POSE, tensions / SPRINGS)
    joints = ROBOT.model.driven_joints(ROBOT.actuators)
    solver = MechanismEquilibriumSolver(ROBOT.mechanism, joints)
    angles = {name: float(q[ROBOT.mechanism.positions_of(name)][0]) for name in joints}
    shape = solver.solve(ROBOT.model.start, angles)  # from the start, not from the answer
    error = pose_error(POSE, BodyPoses(ROBOT.model).update(shape.q).output(ROBOT.output)[0])
    assert np.abs(error).max() < 1e-8
    np.testing.assert_allclose(shape.tension, tensions, rtol=1e-5)
    for entry in ROBOT.model.entries:  # fixed points at the pulleys' centres instead
        ends = [position + turn @ entry.anchor for position, turn in
                ((np.array([0.0, 0.0, 1.0]), np.eye(3)), (POSE[0], matrix_from_vector([0.1, -0.05, 0.2])))]  # fmt: skip
        before, after = (float(np.linalg.norm(end - entry.at)) for end in ends)
        angles[entry.joints[1]] = -(after - before) / entry.radius
    shape = solver.solve(ROBOT.model.start, angles)
    error = pose_error(POSE, BodyPoses(ROBOT.model).update(shape.q).output(ROBOT.output)[0])
    assert np.linalg.norm(error[:3]) > 5e-4


def test_floors_above_ceilings_and_robots_without_cables_are_refused():
    with pytest.raises(TensegrityError, match="below the ceiling"):
        cable_statics(ROBOT, ROBOT.model.start, floor=10.0, ceiling=5.0)
    with pytest.raises(TensegrityError, match="no driven cables"):
        cable_statics(load_robot("stewart"), load_robot("stewart").model.start)
    hand = load_robot(str(Path(__file__).parents[3] / "examples/tendon_hand.yaml"))
    with pytest.raises(TensegrityError, match="no driven cables but routed or rigid ones"):
        cable_statics(hand, hand.model.start)
    statics = cable_statics(ROBOT, ROBOT.model.start)
    with pytest.raises(TensegrityError, match="six finite numbers"):
        wrench_margin(statics, [1.0, 2.0, 3.0])
