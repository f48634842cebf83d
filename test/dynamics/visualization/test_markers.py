"""What RViz gets: drawings as arrays, the robot description, and the markers node on real DDS."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from view_robots import MECHANISMS, prism_robot

from tensegrity_dynamics.robots.load_robot import load_robot, shipped_robots
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.ros.geometry_messages import fill_pose, pose_from_message, seconds
from tensegrity_dynamics.structures.structure import Structure
from tensegrity_dynamics.visualization.markers import StructureDrawing
from tensegrity_dynamics.visualization.urdf import link_names, make_urdf

SHIPPED = [name for name in shipped_robots() if isinstance(load_robot(name).model, Structure)]


@pytest.fixture
def prism() -> Robot:
    return prism_robot()


def by_name(drawings):
    return {(each.namespace, each.number): each for each in drawings}


def state_message(robot: Robot, order=None) -> SimpleNamespace:
    structure = robot.structure
    order = range(len(structure.node_names)) if order is None else order
    return SimpleNamespace(
        node_name=[structure.node_names[k] for k in order],
        node_position=[SimpleNamespace(x=p[0], y=p[1], z=p[2]) for p in structure.nodes[list(order)]],
    )


# -- robot description --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHIPPED)
def test_description_is_a_tree_with_a_link_for_every_bar(name):
    robot = load_robot(name)
    root = ET.fromstring(make_urdf(robot))
    links = [link.get("name") for link in root.findall("link")]
    children = [joint.find("child").get("link") for joint in root.findall("joint")]
    parents = [joint.find("parent").get("link") for joint in root.findall("joint")]
    assert root.tag == "robot"
    assert len(set(links)) == len(links)
    assert sorted([*children, "world"]) == sorted(links)
    assert set(parents) == {"world"}
    lengths = [float(each.get("length")) for each in root.iterfind("link/visual/geometry/cylinder")]
    bars = robot.structure.rest_lengths[~robot.structure.unilateral]
    np.testing.assert_allclose(lengths, bars, rtol=1e-8)


def test_description_carries_the_mass_of_each_bar(prism):
    root = ET.fromstring(make_urdf(prism))
    masses = [float(each.get("value")) for each in root.iterfind("link/inertial/mass")]
    assert sum(masses) == pytest.approx(prism.structure.masses.sum())


def test_taken_and_forbidden_names_are_changed(prism):
    structure = prism.structure
    names = tuple({"bar_0": "flange", "bar_1": "my bar/1", "bar_2": "world"}.get(n, n) for n in structure.member_names)
    robot = replace(prism, model=replace(structure, member_names=names))
    links = link_names(robot)
    assert len(set(links)) == len(links)
    assert "my_bar_1" in links
    assert "world_2" in links
    assert {"flange", "flange_2"} <= set(links)
    assert not any(letter in "".join(links) for letter in " /<>")


# -- drawings -----------------------------------------------------------------------------------------------------


def test_slack_tendon_leaves_the_tendons_and_is_dashed(prism):
    structure = prism.structure
    drawing = StructureDrawing(prism)
    tensions = np.where(structure.unilateral, 4.0, np.nan)
    tight = by_name(drawing.draw(structure.nodes, tensions))
    tensions[structure.member("side_0")] = 0.0
    loose = by_name(drawing.draw(structure.nodes, tensions))
    assert len(tight["tendons", 0].points) == 12
    assert len(tight["slack", 0].points) == 0
    assert len(loose["tendons", 0].points) == 10
    ends = structure.nodes[structure.members[structure.member("side_0")]]
    np.testing.assert_allclose(loose["slack", 0].points[[0, -1]], ends, atol=1e-12)


def test_bars_are_cylinders_of_their_present_length(prism):
    structure = prism.structure
    tensions = np.full(len(structure.member_names), np.nan)
    drawings = [each for each in StructureDrawing(prism).draw(structure.nodes, tensions) if each.namespace == "bars"]
    assert len(drawings) == 6
    ends = structure.members[~structure.unilateral]
    lengths = np.linalg.norm(structure.nodes[ends[:, 0]] - structure.nodes[ends[:, 1]], axis=1)
    np.testing.assert_allclose([each.scale[2] for each in drawings], lengths)


def test_goal_patch_lies_where_the_output_nodes_will_be(prism):
    structure = prism.structure
    tensions = np.full(len(structure.member_names), np.nan)
    drawing = StructureDrawing(prism)
    assert len(by_name(drawing.draw(structure.nodes, tensions))["goal", 1].points) == 0
    goal = prism.output.pose(structure.nodes)
    corners = by_name(drawing.draw(structure.nodes, tensions, goal))["goal", 1].points
    for node in prism.output.nodes:
        assert np.linalg.norm(corners - structure.nodes[node], axis=1).min() < 1e-9


# -- messages -----------------------------------------------------------------------------------------------------


def test_unset_pose_is_no_goal():
    def message(w: float, x: float = 0.0):
        return SimpleNamespace(
            position=SimpleNamespace(x=x, y=0.0, z=0.0), orientation=SimpleNamespace(w=w, x=0.0, y=0.0, z=0.0)
        )

    assert pose_from_message(message(0.0)) is None
    assert pose_from_message(message(1.0)) is None  # as the message is made
    assert pose_from_message(message(1.0, 0.1)) is not None
    assert pose_from_message(message(1.0, np.nan)) is None
    position, quaternion = pose_from_message(fill_pose(message(0.0), [1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 0.0]))
    np.testing.assert_array_equal(position, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(quaternion, [0.0, 0.0, 1.0, 0.0])
    assert seconds(SimpleNamespace(sec=3, nanosec=500_000_000)) == 3.5


# -- nodes on DDS -------------------------------------------------------------------------------------------------


@pytest.mark.system
@pytest.mark.parametrize("name", [SHIPPED[0], MECHANISMS[0]])
def test_markers_and_view_follow_a_robot_on_dds(name):
    rclpy = pytest.importorskip("rclpy")
    interfaces = pytest.importorskip("tensegrity.msg")
    from diagnostic_msgs.msg import DiagnosticArray
    from geometry_msgs.msg import Point
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String
    from visualization_msgs.msg import MarkerArray

    robot = load_robot(name)
    is_structure = isinstance(robot.model, Structure)
    programs = [
        subprocess.Popen(
            [sys.executable, "-m", module, "--ros-args", "-p", f"robot:={robot.name}", *more], env=os.environ
        )
        for module, *more in (
            ("tensegrity_dynamics.ros.markers_node",),
            ("tensegrity_tools.ros.view_node", "-p", "port:=18080"),
        )
    ]
    heard = {"markers": None, "description": None, "diagnostics": {}}
    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        node = rclpy.create_node("listener", context=context)
        executor = rclpy.executors.SingleThreadedExecutor(context=context)
        executor.add_node(node)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        node.create_subscription(MarkerArray, "markers", lambda m: heard.update(markers=m), 1)
        node.create_subscription(String, "robot_description", lambda m: heard.update(description=m), latched)
        node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda m: heard["diagnostics"].update({s.name: s for s in m.status}), 10
        )
        states = node.create_publisher(interfaces.StructureState, "structure_state", 1)
        message = interfaces.StructureState(source="test", converged=True)
        if is_structure:
            message.node_name = list(robot.structure.node_names)
            message.node_position = [Point(x=x, y=y, z=z) for x, y, z in robot.structure.nodes.tolist()]
        else:
            message.coordinate_name = list(robot.mechanism.coordinate_names())
            message.q = robot.model.start.tolist()
        message.header.frame_id = "world"

        def complete() -> bool:
            states.publish(message)
            executor.spin_once(timeout_sec=0.05)
            seen = heard["diagnostics"]
            return (
                heard["markers"] is not None and heard["description"] is not None
                and "view" in seen and seen["view"].message == "showing the robot"
                and "markers" in seen and seen["markers"].message == "drawing"
            )  # fmt: skip

        end = time.monotonic() + 90.0
        while not complete() and time.monotonic() < end:
            pass
        assert complete(), heard
        seen = [each.ns for each in heard["markers"].markers]
        if is_structure:
            assert seen.count("bars") == int(np.count_nonzero(~robot.structure.unilateral))
        else:
            shapes = sum(len(body.shapes) for body in robot.mechanism.bodies)
            assert sum(seen.count(role) for role in ("bodies", "blocks", "pulleys", "points")) == shapes
        assert {each.header.frame_id for each in heard["markers"].markers} == {"world"}
        assert heard["description"].data == make_urdf(robot)
        values = {pair.key: pair.value for pair in heard["diagnostics"]["view"].values}
        assert values["url"].startswith("http://localhost:")
        assert "tf" in {pair.key for pair in heard["diagnostics"]["markers"].values}

        if is_structure:
            message.node_position[0].x = float("nan")
        else:
            message.q[0] = float("nan")
        bad = time.monotonic() + 30.0
        while "finite" not in heard["diagnostics"]["markers"].message and time.monotonic() < bad:
            states.publish(message)
            executor.spin_once(timeout_sec=0.05)
        assert "finite" in heard["diagnostics"]["markers"].message
        executor.shutdown()
    finally:
        for program in programs:
            program.send_signal(2)
        codes = [program.wait(timeout=30) for program in programs]
        rclpy.shutdown(context=context)
    assert codes == [0, 0]


@pytest.mark.system
@pytest.mark.parametrize("module", ["tensegrity_dynamics.ros.markers_node", "tensegrity_tools.ros.view_node"])
def test_node_with_an_unknown_robot_says_so_and_ends(module):
    pytest.importorskip("rclpy")
    pytest.importorskip("tensegrity.msg")
    command = [sys.executable, "-m", module, "--ros-args", "-p", "robot:=tensebott"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert "tensebott" in result.stderr
    assert "Traceback" not in result.stderr
