"""Picture of a mechanism: solids, cables, links and names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from view_robots import MECHANISMS, WITH_CABLES, moved

from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector
from tensegrity_dynamics.robots.load_robot import load_robot, parse_robot
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.mechanism_picture import ARC_STEPS, FULL_TURN, MechanismPicture


@pytest.fixture(scope="module", params=MECHANISMS)
def robot(request) -> Robot:
    return load_robot(request.param)


@pytest.fixture(scope="module", params=WITH_CABLES)
def winch(request) -> Robot:
    return load_robot(request.param)


def test_solids_move_with_their_bodies(robot):
    q = moved(robot)
    picture, poses = MechanismPicture(robot), BodyPoses(robot.model).update(q)
    snapshot = picture.at(q)
    for solid, centre, quaternion in zip(
        picture.solids, snapshot.solid_positions, snapshot.solid_quaternions, strict=True
    ):
        fixed = solid.link < 0
        origin = np.zeros(3) if fixed else poses.positions[solid.link]
        axes = np.eye(3) if fixed else poses.rotations[solid.link]
        np.testing.assert_allclose(centre, origin + axes @ solid.position, atol=1e-12)
        np.testing.assert_allclose(matrix_from_quaternion(quaternion), axes @ solid.axes, atol=1e-12)


def test_every_primitive_is_drawn_once_and_helper_bodies_are_not(robot):
    model, picture = robot.model, MechanismPicture(robot)
    shapes = sum(len(body.shapes) for body in model.mechanism.bodies)
    assert sum(solid.role in ("bodies", "blocks", "pulleys", "points") for solid in picture.solids) == shapes
    drawn = {model.body_names[solid.link] for solid in picture.solids if solid.link >= 0 and solid.role != "joints"}
    helpers = {f"{name}-cable" for name in model.cable_names}
    assert not drawn & helpers
    attached = {loop.predecessor for loop in model.mechanism.loops} | {loop.successor for loop in model.mechanism.loops}
    assert attached - helpers <= drawn | {"world"}


def test_leg_without_extent_is_a_rod_from_its_joint_to_where_the_next_is_attached():
    robot = load_robot("biglide")
    q = moved(robot)
    picture, poses = MechanismPicture(robot), BodyPoses(robot.model).update(q)
    snapshot = picture.at(q)
    centres, quaternions = snapshot.solid_positions, snapshot.solid_quaternions
    rods = [row for row, solid in enumerate(picture.solids) if solid.role == "rods"]
    assert [robot.model.body_names[picture.solids[row].link] for row in rods] == ["leg_1", "leg_2"]
    for row in rods:
        half = 0.5 * picture.solids[row].size[2] * matrix_from_quaternion(quaternions[row])[:, 2]
        body = picture.solids[row].link
        tip = poses.positions[body] + poses.rotations[body] @ [0.3606, 0.0, 0.0]
        np.testing.assert_allclose([centres[row] - half, centres[row] + half], [poses.positions[body], tip], atol=1e-9)


def test_cable_leaves_its_pulley_at_the_rim_and_along_the_tangent(winch):
    model, q = winch.model, moved(winch)
    poses = BodyPoses(model).update(q)
    cables, wound = MechanismPicture(winch).at(q).lines
    wound = wound.reshape(len(cables), ARC_STEPS, 2, 3)
    for entry, (leaves, ends), lines in zip(model.entries, cables, wound, strict=True):
        body = model.body_names.index(f"{entry.name}-pulley")
        centre, axis = poses.positions[body], poses.rotations[body][:, 2]
        arm, along = leaves - centre, (ends - leaves) / np.linalg.norm(ends - leaves)
        assert np.linalg.norm(arm) == pytest.approx(entry.radius, rel=1e-9)
        assert abs(arm @ along) < 1e-12
        assert abs(arm @ axis) < 1e-12
        middles = lines.mean(axis=1)
        np.testing.assert_allclose(np.linalg.norm(middles - centre, axis=1), entry.radius, rtol=0.01)
        assert np.abs((lines - centre) @ axis).max() < 1e-9
        # It winds on from where the cable leaves, backwards along the cable.
        assert np.linalg.norm(lines[0, 0] - leaves) < 0.1 * entry.radius
        assert (lines[0, 1] - lines[0, 0]) @ along < 0.0


def test_wound_cable_is_as_long_as_what_is_left_of_it(winch):
    entries = tuple(replace(entry, longest=1.02 * entry.longest) for entry in winch.model.entries)
    q = np.array(winch.model.start)
    rests = BodyPoses(winch.model).update(q).rest_lengths()
    short = tuple(replace(entry, longest=rest + 0.5 * entry.radius) for entry, rest in zip(entries, rests, strict=True))
    for left, angle in ((entries, FULL_TURN), (short, 0.5)):
        robot = replace(winch, model=replace(winch.model, entries=left))
        lines = MechanismPicture(robot).at(q).lines[1].reshape(-1, ARC_STEPS, 2, 3)
        chords = np.linalg.norm(np.diff(lines.mean(axis=2), axis=1), axis=2).sum(axis=1) * ARC_STEPS / (ARC_STEPS - 1)
        np.testing.assert_allclose(chords, angle * np.array([each.radius for each in left]), rtol=0.01)


def test_pulley_is_seen_to_turn(winch):
    model, picture = winch.model, MechanismPicture(winch)
    marks = [row for row, solid in enumerate(picture.solids) if solid.role == "marks"]
    assert len(marks) == len(model.entries)
    q = np.array(model.start)
    before = picture.at(q).solid_positions
    entry = model.entries[0]
    q[model.mechanism.positions_of(entry.joints[1])] += 0.7
    snapshot = picture.at(q)
    after = snapshot.solid_positions
    body = model.body_names.index(f"{entry.name}-pulley")
    pose = snapshot.link_poses[body]
    turn = matrix_from_vector(0.7 * matrix_from_quaternion(pose[1])[:, 2])
    np.testing.assert_allclose(after[marks[0]] - pose[0], turn @ (before[marks[0]] - pose[0]), atol=1e-12)
    assert np.linalg.norm(after[marks[0]] - before[marks[0]]) > 0.1 * entry.radius
    np.testing.assert_array_equal(after[marks[1:]], before[marks[1:]])


CRANE = """
name: crane
kind: mechanism
bodies:
  drum: {mass: 1, inertia: [0.01, 0.01, 0.01]SHAPES}
  load: {mass: 1, inertia: [0.01, 0.01, 0.01]}
joints:
  - {name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {at: [0, 0, 0.9]}}
  - {name: loadJt, kind: prismatic, parent: world, body: load, axis: [0, 0, 1], frame: {at: [0.058, 0, 0.3]}}
routed_cables:
  - {name: rope, young: 1e9, cable_radius: 0.002, strain: 1e-4, route: [ROUTE]}
"""
DRUM = "{joint: drumJt, radius: 0.05, side: SIDE, wound: 12, layers: {turns: 5, pitch: 0.004, count: 4, ramp: 0.5}}"
LOAD = "{body: load, at: [0, 0, 0]}"
DRUM_WITH_SHAPE = ", shapes: [{kind: cylinder, size: [0.05, 0.03]}]"


@pytest.mark.parametrize("shapes", ["", DRUM_WITH_SHAPE], ids=["no shape", "a cylinder"])
@pytest.mark.parametrize(("side", "first"), [("1", True), ("-1", False)])
def test_cable_lies_on_its_drum_where_the_layers_are_and_the_drum_is_seen_to_turn(side, first, shapes):
    drum = DRUM.replace("SIDE", side)
    route = ", ".join((drum, LOAD) if first else (LOAD, drum))
    robot = parse_robot(CRANE.replace("ROUTE", route).replace("SHAPES", shapes), "crane.yaml")
    picture, centre = MechanismPicture(robot), np.array([0.0, 0.0, 0.9])
    (mark,) = [row for row, solid in enumerate(picture.solids) if solid.role == "marks"]
    q = np.array(robot.model.start)
    # twelve turns are two layers of five and two turns of the third; eleven of them off leave one turn of the first
    for turns, radius in ((0.0, 0.058), (11.0, 0.05)):
        q[0] = robot.model.start[0] + 2.0 * np.pi * turns
        snapshot = picture.at(q)
        (routed, wound) = snapshot.lines
        assert [each.name for each in picture.line_sets] == ["routed", "drums"]
        leaves, ahead = (routed[0, 0], routed[0, 1]) if first else (routed[-1, 1], routed[-1, 0])
        arms = wound.reshape(-1, 3) - centre
        np.testing.assert_allclose(np.linalg.norm(arms, axis=1), radius, rtol=1e-9)
        np.testing.assert_allclose(arms[:, 1], 0.0, atol=1e-12)
        np.testing.assert_allclose(wound[0, 0], leaves, atol=1e-12)
        assert (wound[0, 1] - wound[0, 0]) @ (ahead - leaves) < 0.0  # away from where it hangs
        discs = [row for row, solid in enumerate(picture.solids) if solid.role == "pulleys"]
        assert len(discs) == (0 if shapes else 1)
        for row in discs:
            assert snapshot.solid_sizes[row][0] == pytest.approx(2.0 * (radius - picture.sizes.tendon))
    before = picture.at(q).solid_positions[mark]
    q[0] += 0.7
    after = picture.at(q).solid_positions[mark]
    np.testing.assert_allclose(after - centre, matrix_from_vector([0.0, 0.7, 0.0]) @ (before - centre), atol=1e-12)
    assert np.linalg.norm(after - before) > 0.005


def test_a_drum_shows_no_more_cable_than_it_has():
    text = CRANE.replace("ROUTE", f"{DRUM.replace('SIDE', '1')}, {LOAD}").replace("SHAPES", "")
    robot = parse_robot(text, "crane.yaml")
    q = np.array(robot.model.start)
    q[0] += 2.0 * np.pi * 11.75
    wound = MechanismPicture(robot).at(q).lines[-1]
    assert np.linalg.norm(wound[:, 1] - wound[:, 0], axis=1).sum() == pytest.approx(0.25 * 2.0 * np.pi * 0.05, rel=1e-3)


def test_links_are_the_bodies_and_the_output(robot):
    q = moved(robot)
    picture, poses = MechanismPicture(robot), BodyPoses(robot.model).update(q)
    snapshot = picture.at(q)
    assert len(picture.links) == len(snapshot.link_poses) == len(poses.positions) + len(robot.outputs)
    for (position, quaternion), origin, axes in zip(
        snapshot.link_poses, poses.positions, poses.rotations, strict=False
    ):
        np.testing.assert_array_equal(position, origin)
        np.testing.assert_allclose(matrix_from_quaternion(quaternion), axes, atol=1e-12)
    np.testing.assert_array_equal(snapshot.link_poses[-1][0], poses.output(robot.output)[0][0])
    np.testing.assert_array_equal(snapshot.output[0], snapshot.link_poses[-1][0])


def test_names_are_written_at_bodies_and_cables(winch):
    picture = MechanismPicture(winch)
    snapshot = picture.at(moved(winch))
    labels = dict(zip(picture.label_names, snapshot.label_positions, strict=True))
    for name, (first, second) in zip(winch.model.cable_names, snapshot.lines[0], strict=True):
        np.testing.assert_allclose(labels[name], 0.5 * (first + second))
    assert set(labels) - set(winch.model.cable_names) <= set(winch.model.body_names)


def test_position_that_cannot_be_drawn_is_named(robot):
    picture = MechanismPicture(robot)
    assert picture.problem(picture.start) is None
    assert str(picture.start.shape) in picture.problem(picture.start[:-1])
    q = np.array(picture.start)
    q[1] = np.inf
    assert "q[1]" in picture.problem(q)
