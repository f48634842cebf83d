"""What RViz gets of a mechanism: solids, cables, markers and frames as arrays, the description, and the messages."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from view_robots import MECHANISMS, WITH_CABLES, moved

from tensegrity_dynamics.mechanisms.mechanism_model import BodyPoses
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.markers import make_drawing
from tensegrity_dynamics.visualization.mechanism_picture import ARC_STEPS, FULL_TURN, MechanismPicture
from tensegrity_dynamics.visualization.mechanism_urdf import roll_pitch_yaw
from tensegrity_dynamics.visualization.urdf import link_names, make_urdf

angles = st.floats(-3.0, 3.0, allow_nan=False)


@pytest.fixture(scope="module", params=MECHANISMS)
def robot(request) -> Robot:
    return load_robot(request.param)


@pytest.fixture(scope="module", params=WITH_CABLES)
def winch(request) -> Robot:
    return load_robot(request.param)


def by_name(drawings):
    return {(each.namespace, each.number): each for each in drawings}


# -- solids and cables --------------------------------------------------------------------------------------------


def test_solids_move_with_their_bodies(robot):
    picture, places, q = MechanismPicture(robot), BodyPoses(robot.model), moved(robot)
    centres, quaternions = picture.move(q).solid_poses()
    places.move(q)
    for solid, centre, quaternion in zip(picture.solids, centres, quaternions, strict=True):
        fixed = solid.body < 0
        origin = np.zeros(3) if fixed else places.positions[solid.body]
        axes = np.eye(3) if fixed else places.rotations[solid.body]
        np.testing.assert_allclose(centre, origin + axes @ solid.placement.origin, atol=1e-12)
        np.testing.assert_allclose(matrix_from_quaternion(quaternion), axes @ solid.placement.axes, atol=1e-12)


def test_every_primitive_is_drawn_once_and_helper_bodies_are_not(robot):
    model, picture = robot.model, MechanismPicture(robot)
    shapes = sum(len(body.shapes) for body in model.mechanism.bodies)
    assert sum(solid.role in ("bodies", "blocks", "pulleys", "points") for solid in picture.solids) == shapes
    drawn = {model.body_names[solid.body] for solid in picture.solids if solid.body >= 0 and solid.role != "joints"}
    helpers = {f"{name}-cable" for name in model.cable_names}
    assert not drawn & helpers
    attached = {loop.before for loop in model.mechanism.loops} | {loop.after for loop in model.mechanism.loops}
    assert attached - helpers <= drawn | {"world"}


def test_leg_without_extent_is_a_rod_from_its_joint_to_where_the_next_is_attached():
    robot = load_robot("biglide")
    picture, places, q = MechanismPicture(robot), BodyPoses(robot.model), moved(robot)
    centres, quaternions = picture.move(q).solid_poses()
    places.move(q)
    rods = [row for row, solid in enumerate(picture.solids) if solid.role == "rods"]
    assert [robot.model.body_names[picture.solids[row].body] for row in rods] == ["leg_1", "leg_2"]
    for row in rods:
        half = 0.5 * picture.solids[row].size[2] * matrix_from_quaternion(quaternions[row])[:, 2]
        body = picture.solids[row].body
        tip = places.positions[body] + places.rotations[body] @ [0.3606, 0.0, 0.0]
        np.testing.assert_allclose([centres[row] - half, centres[row] + half], [places.positions[body], tip], atol=1e-9)


def test_cable_leaves_its_pulley_at_the_rim_and_along_the_tangent(winch):
    model, picture, places, q = winch.model, MechanismPicture(winch), BodyPoses(winch.model), moved(winch)
    picture.move(q)
    places.move(q)
    for entry, (leaves, ends), lines in zip(model.entries, picture.cable_ends(), picture.wound(), strict=True):
        body = model.body_names.index(f"{entry.name}-pulley")
        centre, axis = places.positions[body], places.rotations[body][:, 2]
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
    rests = BodyPoses(winch.model).move(q).rest_lengths()
    short = tuple(replace(entry, longest=rest + 0.5 * entry.radius) for entry, rest in zip(entries, rests, strict=True))
    for left, wanted in ((entries, FULL_TURN), (short, 0.5)):
        robot = replace(winch, model=replace(winch.model, entries=left))
        lines = MechanismPicture(robot).move(q).wound()
        chords = np.linalg.norm(np.diff(lines.mean(axis=2), axis=1), axis=2).sum(axis=1) * ARC_STEPS / (ARC_STEPS - 1)
        np.testing.assert_allclose(chords, wanted * np.array([each.radius for each in left]), rtol=0.01)


def test_pulley_is_seen_to_turn(winch):
    model, picture = winch.model, MechanismPicture(winch)
    marks = [row for row, solid in enumerate(picture.solids) if solid.role == "marks"]
    assert len(marks) == len(model.entries)
    q = np.array(model.start)
    before, _ = picture.move(q).solid_poses()
    entry = model.entries[0]
    q[model.mechanism.positions_of(entry.joints[1])] += 0.7
    after, _ = picture.move(q).solid_poses()
    body = model.body_names.index(f"{entry.name}-pulley")
    pose = picture.body_poses()[body]
    turn = matrix_from_vector(0.7 * matrix_from_quaternion(pose[1])[:, 2])
    np.testing.assert_allclose(after[marks[0]] - pose[0], turn @ (before[marks[0]] - pose[0]), atol=1e-12)
    assert np.linalg.norm(after[marks[0]] - before[marks[0]]) > 0.1 * entry.radius
    np.testing.assert_array_equal(after[marks[1:]], before[marks[1:]])


# -- markers ------------------------------------------------------------------------------------------------------


def test_slack_cable_leaves_the_cables_and_is_dashed(winch):
    drawing, q = make_drawing(winch), np.array(winch.model.start)
    tensions = np.full(len(winch.model.cable_names), 4.0)
    tight = by_name(drawing.draw(q, tensions, None))
    tensions[1] = 0.0
    loose = by_name(drawing.draw(q, tensions, None))
    assert len(tight["cables", 0].points) == 2 * len(tensions)
    assert len(tight["slack", 0].points) == 0
    assert len(loose["cables", 0].points) == 2 * len(tensions) - 2
    np.testing.assert_allclose(
        loose["slack", 0].points[[0, -1]], BodyPoses(winch.model).move(q).cables()[1], atol=1e-12
    )
    for drawn in (tight, loose):
        assert len(drawn["wound", 0].colours) == len(drawn["wound", 0].points)


def test_every_marker_has_its_own_place_in_a_namespace(robot):
    drawing, q = make_drawing(robot), np.array(robot.model.start)
    drawings = drawing.draw(q, np.full(len(robot.model.cable_names), np.nan), None)
    assert len(by_name(drawings)) == len(drawings)
    assert {"ground", "goal"} <= {each.namespace for each in drawings}
    assert all((each.position is None) == (each.kind in ("lines", "triangles", "spheres")) for each in drawings)
    assert len(by_name(drawings)["goal", 0].points) == 0


def test_goal_is_drawn_where_it_is(robot):
    drawing, q = make_drawing(robot), np.array(robot.model.start)
    goal = (np.array([0.1, 0.2, 0.3]), np.array([1.0, 0.0, 0.0, 0.0]))
    drawn = by_name(drawing.draw(q, np.full(len(robot.model.cable_names), np.nan), goal))
    np.testing.assert_array_equal(drawn["goal", 1].points, [goal[0]])
    np.testing.assert_array_equal(drawn["goal", 0].points[0], goal[0])


def test_frames_are_the_bodies_and_the_output(robot):
    q, places = moved(robot), BodyPoses(robot.model)
    frames = make_drawing(robot).frames(q)
    assert tuple(name for name, _ in frames) == link_names(robot)
    places.move(q)
    for (_, (position, quaternion)), place, axes in zip(frames, places.positions, places.rotations, strict=False):
        np.testing.assert_array_equal(position, place)
        np.testing.assert_allclose(matrix_from_quaternion(quaternion), axes, atol=1e-12)
    np.testing.assert_array_equal(frames[-1][1][0], places.output(robot.output)[0][0])


# -- robot description --------------------------------------------------------------------------------------------


@given(angles, angles, angles)
def test_fixed_angles_of_the_description_give_the_rotation_back(x, y, z):
    axes = matrix_from_vector(np.array([x, y, z]))
    roll, pitch, yaw = roll_pitch_yaw(axes)
    again = (
        matrix_from_vector(np.array([0.0, 0.0, yaw]))
        @ matrix_from_vector(np.array([0.0, pitch, 0.0]))
        @ matrix_from_vector(np.array([roll, 0.0, 0.0]))
    )
    np.testing.assert_allclose(again, axes, atol=1e-7)


def test_angles_of_a_link_that_looks_straight_down():
    axes = matrix_from_vector(np.array([0.0, 0.5 * np.pi, 0.0]))
    np.testing.assert_allclose(roll_pitch_yaw(axes), [0.0, 0.5 * np.pi, 0.0], atol=1e-12)


def numbers(element: ET.Element, name: str) -> np.ndarray:
    return np.array([float(value) for value in element.get(name).split()])


def inertial(link: ET.Element) -> tuple[float, np.ndarray, np.ndarray]:
    found = link.find("inertial")
    moments = {name: float(value) for name, value in found.find("inertia").items()}
    inertia = np.array([[moments["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
    return float(found.find("mass").get("value")), numbers(found.find("origin"), "xyz"), inertia


def test_description_is_a_tree_with_the_inertia_of_every_body(robot):
    root = ET.fromstring(make_urdf(robot))
    links = {link.get("name"): link for link in root.findall("link")}
    children = [joint.find("child").get("link") for joint in root.findall("joint")]
    assert sorted([*children, "world"]) == sorted(links)
    assert {joint.get("type") for joint in root.findall("joint")} == {"floating"}
    model = robot.model
    bodies = {body.name: body for body in model.mechanism.bodies}
    for name, link in zip(model.body_names, link_names(robot), strict=False):
        body = bodies[name]
        if body.mass == 0.0:
            assert links[link].find("inertial") is None
            continue
        mass, centre, inertia = inertial(links[link])
        assert mass == pytest.approx(body.mass, rel=1e-9)
        np.testing.assert_allclose(centre, body.centre, atol=1e-9)
        np.testing.assert_allclose(inertia, body.inertia, rtol=1e-9, atol=1e-12)


def test_shapes_of_the_description_weigh_what_its_links_weigh():
    robot = load_robot("single_strut")  # of cylinders and cubes only, all of aluminium
    checked = 0
    for link in ET.fromstring(make_urdf(robot)).iterfind("link"):
        if link.find("inertial") is None:
            continue
        mass, centre, inertia = inertial(link)
        (part,) = link.findall("collision")
        cylinder, box = part.find("geometry/cylinder"), part.find("geometry/box")
        if box is not None:
            x, y, z = numbers(box, "size")
            wanted, moments = 2700.0 * x * y * z, np.array([y * y + z * z, x * x + z * z, x * x + y * y]) / 12.0
        else:
            radius, length = float(cylinder.get("radius")), float(cylinder.get("length"))
            wanted = 2700.0 * np.pi * radius**2 * length
            moments = np.array([3 * radius**2 + length**2, 3 * radius**2 + length**2, 6 * radius**2]) / 12.0
        assert mass == pytest.approx(wanted, rel=1e-6)
        np.testing.assert_allclose(centre, numbers(part.find("origin"), "xyz"), atol=1e-9)
        assert np.all(numbers(part.find("origin"), "rpy") == 0.0)
        np.testing.assert_allclose(inertia, np.diag(wanted * moments), rtol=1e-6, atol=1e-12)
        checked += 1
    assert checked == 7
