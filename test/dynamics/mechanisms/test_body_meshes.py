"""Meshes of bodies in robot files: weight, looks, and how others are told of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import pytest
from solids import box, stl_of

from tensegrity_dynamics import RobotFileError, load_robot
from tensegrity_dynamics.mechanisms.body_mesh import BodyMesh
from tensegrity_dynamics.meshes.mesh import Mesh
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.visualization.markers import MarkerDrawer
from tensegrity_dynamics.visualization.mechanism_picture import solid_of_mesh
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_dynamics.visualization.urdf import make_urdf

SIDES, OFF = (40.0, 20.0, 10.0), (15.0, 0.0, 5.0)  # mm
TEXT = """
name: arm
kind: mechanism
gravity: [0, 0, 0]
bodies:
  link:
    mesh: {{file: {file}, scale: 0.001, frame: {{at: [0.1, 0, 0], turn: [0.3, -0.2, 0.5]}}{more}}}
{body}
joints: [{{name: j, kind: revolute, parent: world, body: link, axis: [0, 1, 0]}}]
outputs: [{{name: tip, body: link}}]
"""


@pytest.fixture
def robot_of(tmp_path):
    """The robot of a file with one mesh."""
    (tmp_path / "link.stl").write_bytes(stl_of(box(SIDES, OFF)))
    (tmp_path / "open.stl").write_bytes(stl_of(Mesh(box().vertices, box().triangles[1:])))

    def make(more="", body="", file="link.stl"):
        path = tmp_path / "arm.yaml"
        path.write_text(TEXT.format(more=more, body=body, file=file))
        return load_robot(path)

    return make


def body_of(robot):
    return next(each for each in robot.mechanism.bodies if each.name == "link")


def test_a_mesh_weighs_what_the_same_box_weighs(robot_of, tmp_path):
    found = body_of(robot_of(", density: 1200"))
    plain = TEXT.replace("    mesh:", "    #").format(
        more="",
        file="",
        body="""
    shapes:
      - {kind: box, size: [0.04, 0.02, 0.01], density: 1200, frame: {at: [AT], turn: [0.3, -0.2, 0.5]}}""",
    )
    mesh = found.meshes[0]
    at = mesh.placement.origin + mesh.placement.axes @ (1e-3 * np.array(OFF))
    (tmp_path / "plain.yaml").write_text(plain.replace("AT", ", ".join(map(repr, at.tolist()))))
    formula = body_of(load_robot(tmp_path / "plain.yaml"))
    assert found.mass == pytest.approx(formula.mass, rel=1e-6)
    np.testing.assert_allclose(found.centre, formula.centre, atol=1e-9)
    np.testing.assert_allclose(found.inertia, formula.inertia, atol=1e-6 * formula.inertia.max())


def test_a_mesh_with_a_mass_spreads_it_and_one_without_either_only_looks(robot_of):
    assert body_of(robot_of(", mass: 0.5")).mass == pytest.approx(0.5)
    extra = "    shapes: [{kind: box, size: [0.1, 0.1, 0.1], mass: 2}]"
    looks = robot_of(body=extra, file="open.stl")  # which needs not be closed for that
    assert body_of(looks).mass == 2.0
    np.testing.assert_array_equal(body_of(looks).centre, 0.0)
    assert [solid.kind for solid in make_picture(looks).solids if solid.role == "bodies"] == ["mesh"]


def test_markers_urdf_and_mujoco_see_the_mesh_where_it_is(robot_of, tmp_path):
    robot = robot_of(", density: 1200")
    picture = make_picture(robot)
    snapshot = picture.at(np.array([0.4]))
    row = next(k for k, solid in enumerate(picture.solids) if solid.kind == "mesh")
    surface, mesh = picture.solids[row].surface, body_of(robot).meshes[0]
    np.testing.assert_allclose(snapshot.solid_sizes[row], 1e-3 * np.array(SIDES), rtol=1e-6)

    turn = np.array([[np.cos(0.4), 0.0, np.sin(0.4)], [0.0, 1.0, 0.0], [-np.sin(0.4), 0.0, np.cos(0.4)]])
    marker = next(each for each in MarkerDrawer(picture).draw(snapshot, np.zeros(0)) if each.kind == "mesh")
    assert (marker.resource, marker.scale) == ((tmp_path / "link.stl").as_uri(), (1e-3,) * 3)
    np.testing.assert_allclose(marker.position, turn @ [0.1, 0.0, 0.0], atol=1e-12)

    link = ET.fromstring(make_urdf(picture)).find("link[@name='link']")
    for part in ("visual", "collision"):
        shape = link.find(f"{part}/geometry/mesh")
        assert shape.attrib == {"filename": marker.resource, "scale": "0.001 0.001 0.001"}
        assert link.find(f"{part}/origin").get("xyz") == "0.1 0 0"

    model = mujoco.MjModel.from_xml_string(type_of(robot).exports["mjcf"](robot).text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = data.geom_xpos[0] + model.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T
    start = picture.at(robot.model.start)
    axes = picture.solids[row].axes  # at the start the joint does not turn it
    ours = start.solid_positions[row] + surface.vertices @ axes.T
    np.testing.assert_allclose(sorted(theirs.tolist()), sorted(ours.tolist()), atol=1e-7)
    assert model.body_mass[1] == pytest.approx(mesh.weight)


def test_a_mesh_without_a_file_is_drawn_by_its_triangles():
    solid = solid_of_mesh(BodyMesh(box()), 0, "bodies")
    assert solid.surface.uri == ""
    assert len(solid.surface.triangles) == 12


@pytest.mark.parametrize(
    ("more", "file", "message"),
    [
        (", density: 1200", "open.stl", r"arm.yaml:7: bodies.link.mesh.density: .*open.stl has no volume .*not closed"),
        (", density: 1200, mass: 1", "link.stl", "bodies.link.mesh: give either its density or its mass"),
        ("", "gone.stl", r"bodies.link.mesh.file: .*gone.stl: there is no such file"),
        ("", "package://nobody_has_it/a.stl", r"bodies.link.mesh.file: there is no ROS package 'nobody_has_it'"),
        (", density: -1", "link.stl", r"bodies.link.mesh.density: must be at least 0"),
        (", sclae: 2", "link.stl", r"unknown field. Did you mean 'scale'"),
    ],
)
def test_a_bad_mesh_is_refused_by_its_field(robot_of, more, file, message):
    with pytest.raises(RobotFileError, match=message):
        robot_of(more, file=file)
