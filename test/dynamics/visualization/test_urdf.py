"""The robot description (URDF): its tree, its masses, other readers, and the files at the top level."""

from __future__ import annotations

import io
import logging
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import lxml.etree
import numpy as np
import pytest
import yourdfpy
from view_robots import MECHANISMS, prism_robot

from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_roll_pitch_yaw
from tensegrity_dynamics.robots.load_robot import load_robot, shipped_robots
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import Structure
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_dynamics.visualization.urdf import make_urdf

FILES = Path(__file__).resolve().parents[3] / "urdf"
STRUCTURES = [name for name in shipped_robots() if isinstance(load_robot(name).model, Structure)]


@pytest.fixture
def prism() -> Robot:
    return prism_robot()


def urdf(robot: Robot) -> str:
    return make_urdf(make_picture(robot), robot.actuators)


# -- the files at the top level -----------------------------------------------------------------------------------


def test_every_shipped_robot_has_a_file_and_no_file_is_left_over():
    assert {path.name for path in FILES.iterdir()} == {f"{name}.urdf" for name in shipped_robots()}


@pytest.mark.parametrize("name", shipped_robots())
def test_file_equals_what_the_robot_file_yields(name):
    text = (FILES / f"{name}.urdf").read_text(encoding="utf-8")
    assert text == urdf(load_robot(name)), f"run `tensegrity urdf {name} --out urdf/{name}.urdf`"


@pytest.mark.parametrize("name", shipped_robots())
def test_yourdfpy_reads_file_and_string_without_complaint(name, caplog):
    path = FILES / f"{name}.urdf"
    with caplog.at_level(logging.WARNING):
        models = [yourdfpy.URDF.load(source) for source in (str(path), io.StringIO(path.read_text(encoding="utf-8")))]
        for model in models:
            assert model.validate(), model.errors
    assert caplog.records == []
    robot = load_robot(name)
    picture, drives = make_picture(robot), {each.name for each in robot.actuators}
    link_names = [link.name for link in picture.links]
    for model in models:
        assert set(model.link_map) == {"base_link", *link_names, *(f"{drive}_drive" for drive in drives)}
        assert set(model.joint_map) == {f"base_link_to_{link}" for link in link_names} | drives
        masses = [link.inertial.mass for link in model.robot.links if link.inertial is not None]
        assert sum(masses) == pytest.approx(sum(link.mass for link in picture.links))


@pytest.mark.parametrize("name", shipped_robots())
def test_lxml_reads_file_and_string(name):
    path = FILES / f"{name}.urdf"
    root = lxml.etree.fromstring(path.read_text(encoding="utf-8"))  # refused with an encoding declaration
    assert lxml.etree.tostring(root) == lxml.etree.tostring(lxml.etree.parse(str(path)).getroot())
    assert root.tag == "robot"
    assert root.get("name") == name


# -- every robot --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", shipped_robots())
def test_description_is_a_tree_of_floating_links(name):
    root = ET.fromstring(urdf(load_robot(name)))
    links = [link.get("name") for link in root.findall("link")]
    children = [joint.find("child").get("link") for joint in root.findall("joint")]
    assert len(set(links)) == len(links)
    assert sorted([*children, "base_link"]) == sorted(links)
    assert {joint.find("parent").get("link") for joint in root.findall("joint")} == {"base_link"}
    hung = {joint.get("name") for joint in root.findall("joint") if joint.get("type") in ("floating", "fixed")}
    assert hung == {f"base_link_to_{link}" for link in links if link != "base_link" and not link.endswith("_drive")}


@pytest.mark.parametrize("name", shipped_robots())
def test_every_actuator_is_a_joint_of_its_name_with_its_limits(name):
    robot = load_robot(name)
    joints = {joint.get("name"): joint for joint in ET.fromstring(urdf(robot)).findall("joint")}
    for actuator in robot.actuators:
        joint = joints[actuator.name]
        assert joint.get("type") == ("prismatic" if actuator.motion == "tendon" else actuator.motion)
        limit = joint.find("limit")
        found = [float(limit.get(key)) for key in ("lower", "upper", "velocity", "effort")]
        np.testing.assert_allclose(found, [*actuator.position, actuator.rate, actuator.effort], rtol=1e-8)


@pytest.mark.parametrize("name", shipped_robots())
def test_no_two_frames_differ_by_a_dash_alone(name):
    links = [link.get("name").replace("-", "_") for link in ET.fromstring(urdf(load_robot(name))).findall("link")]
    assert len(set(links)) == len(links)


@pytest.mark.parametrize("name", shipped_robots())
def test_every_material_is_defined_and_used(name):
    root = ET.fromstring(urdf(load_robot(name)))
    defined = [material.get("name") for material in root.findall("material")]
    assert set(defined) == {material.get("name") for material in root.iterfind("link/visual/material")}


@pytest.mark.parametrize("name", shipped_robots())
def test_solids_of_the_description_stand_where_the_picture_shows_them(name):
    picture = make_picture(load_robot(name))
    snapshot = picture.at(picture.start)
    links = {link.get("name"): link for link in ET.fromstring(make_urdf(picture)).findall("link")}
    drawn: dict[int, list] = {}
    for row, solid in enumerate(picture.solids):
        drawn.setdefault(solid.link, []).append(row)
    for index, rows in drawn.items():
        link = links["base_link" if index < 0 else picture.links[index].name]
        position, quaternion = (np.zeros(3), [1.0, 0.0, 0.0, 0.0]) if index < 0 else snapshot.link_poses[index]
        axes = matrix_from_quaternion(quaternion)
        for row, visual in zip(rows, link.findall("visual"), strict=True):
            origin = visual.find("origin")
            centre = position + axes @ numbers(origin, "xyz")
            np.testing.assert_allclose(centre, snapshot.solid_positions[row], atol=1e-7)
            turned = axes @ matrix_from_roll_pitch_yaw(numbers(origin, "rpy"))
            np.testing.assert_allclose(turned, matrix_from_quaternion(snapshot.solid_quaternions[row]), atol=1e-7)


# -- structures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STRUCTURES)
def test_description_has_a_cylinder_of_every_bar(name):
    structure = load_robot(name).structure
    root = ET.fromstring(urdf(load_robot(name)))
    lengths = [float(each.get("length")) for each in root.iterfind("link/visual/geometry/cylinder")]
    np.testing.assert_allclose(lengths, structure.rest_lengths[~structure.unilateral], rtol=1e-8)


def test_description_carries_the_mass_of_each_bar(prism):
    root = ET.fromstring(urdf(prism))
    masses = [float(each.get("value")) for each in root.iterfind("link/inertial/mass")]
    assert sum(masses) == pytest.approx(prism.structure.masses.sum())


def test_taken_and_forbidden_names_are_changed(prism):
    structure = prism.structure
    names = tuple({"bar_0": "flange", "bar_1": "my bar/1", "bar_2": "world"}.get(n, n) for n in structure.member_names)
    picture = make_picture(replace(prism, model=replace(structure, member_names=names)))
    links = [link.name for link in picture.links]
    assert len(set(links)) == len(links)
    assert "my_bar_1" in links
    assert "world_2" in links
    assert {"flange", "flange_2"} <= set(links)
    assert not any(letter in "".join(links) for letter in " /<>")


# -- mechanisms ---------------------------------------------------------------------------------------------------


def numbers(element: ET.Element, name: str) -> np.ndarray:
    return np.array([float(value) for value in element.get(name).split()])


def inertial(link: ET.Element) -> tuple[float, np.ndarray, np.ndarray]:
    element = link.find("inertial")
    moments = {name: float(value) for name, value in element.find("inertia").items()}
    inertia = np.array([[moments["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
    return float(element.find("mass").get("value")), numbers(element.find("origin"), "xyz"), inertia


@pytest.mark.parametrize("name", MECHANISMS)
def test_description_has_the_inertia_of_every_body(name):
    robot = load_robot(name)
    links = {link.get("name"): link for link in ET.fromstring(urdf(robot)).findall("link")}
    model = robot.model
    bodies = {body.name: body for body in model.mechanism.bodies}
    for name, link in zip(model.body_names, (link.name for link in make_picture(robot).links), strict=False):
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
    for link in ET.fromstring(urdf(robot)).iterfind("link"):
        if link.find("inertial") is None:
            continue
        mass, centre, inertia = inertial(link)
        (part,) = link.findall("collision")
        cylinder, box = part.find("geometry/cylinder"), part.find("geometry/box")
        if box is not None:
            x, y, z = numbers(box, "size")
            expected, moments = 2700.0 * x * y * z, np.array([y * y + z * z, x * x + z * z, x * x + y * y]) / 12.0
        else:
            radius, length = float(cylinder.get("radius")), float(cylinder.get("length"))
            expected = 2700.0 * np.pi * radius**2 * length
            moments = np.array([3 * radius**2 + length**2, 3 * radius**2 + length**2, 6 * radius**2]) / 12.0
        assert mass == pytest.approx(expected, rel=1e-6)
        np.testing.assert_allclose(centre, numbers(part.find("origin"), "xyz"), atol=1e-9)
        assert np.all(numbers(part.find("origin"), "rpy") == 0.0)
        np.testing.assert_allclose(inertia, np.diag(expected * moments), rtol=1e-6, atol=1e-12)
        checked += 1
    assert checked == 7
