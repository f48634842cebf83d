"""Markers for RViz: as arrays, and from the markers node on real DDS."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from patience import PATIENCE_S, until
from scipy.spatial.transform import Rotation
from view_robots import MECHANISMS, WITH_CABLES, prism_robot

from tensegrity_dynamics.robots.carried_payload import CarriedPayload
from tensegrity_dynamics.robots.load_robot import load_robot, shipped_robots
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import Structure
from tensegrity_dynamics.visualization.marker import Marker
from tensegrity_dynamics.visualization.markers import MarkerDrawer
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_dynamics.visualization.urdf import make_urdf

STRUCTURES = [name for name in shipped_robots() if isinstance(load_robot(name).model, Structure)]
GOAL = (np.array([0.1, 0.2, 0.3]), np.array([1.0, 0.0, 0.0, 0.0]))

Markers = dict[tuple[str, int], Marker]


@pytest.fixture
def prism() -> Robot:
    return prism_robot()


@pytest.fixture(scope="module", params=[*STRUCTURES, *MECHANISMS])
def robot(request) -> Robot:
    return load_robot(request.param)


@pytest.fixture(scope="module", params=WITH_CABLES)
def winch(request) -> Robot:
    return load_robot(request.param)


def draw(robot: Robot, tensions: float | np.ndarray = np.nan, goal: Pose | None = None) -> Markers:
    """The markers of a robot at its start, by namespace and number."""
    picture = make_picture(robot)
    tensions = np.broadcast_to(tensions, len(picture.tension_names))
    markers = MarkerDrawer(picture).draw(picture.at(picture.start), tensions, goal)
    by_name = {(each.namespace, each.number): each for each in markers}
    assert len(by_name) == len(markers), "two markers of one namespace with the same number"
    return by_name


# -- every robot --------------------------------------------------------------------------------------------------


def test_markers_have_either_a_pose_or_points(robot):
    markers = draw(robot)
    assert all((each.position is None) == (each.kind in ("lines", "triangles", "spheres")) for each in markers.values())
    assert all((each.position is None) == (each.quaternion is None) for each in markers.values())
    assert all(each.colours.shape in ((3,), each.points.shape) for each in markers.values())


def test_goal_is_drawn_at_its_pose_and_deleted_without_one(robot):
    without, with_goal = draw(robot), draw(robot, goal=GOAL)
    assert len(without["goal", 0].points) == len(without["goal", 1].points) == 0
    np.testing.assert_array_equal(with_goal["goal", 0].points[::2], [GOAL[0]] * 3)
    points = with_goal["goal", 1].points
    assert points.min(axis=0) == pytest.approx(GOAL[0], abs=make_picture(robot).sizes.span)
    assert len(points) > 0


def test_payloads_are_balls_of_steel_that_turn_with_their_bodies():
    robot = load_robot("manipulator")
    picture, body = make_picture(robot), robot.model.load_names.index("end-effector")
    q = robot.model.start + 0.1
    snapshot = picture.at(q)
    centre, turn = (0.03, -0.02, 0.05), snapshot.link_poses[body][1]
    heavy, light = (CarriedPayload("end-effector", mass, centre) for mass in (7.85, 1e-9))
    (_, at, radius), (_, _, small) = picture.payload_balls(snapshot, (heavy, CarriedPayload("?", 1.0, centre), light))
    rotated = Rotation.from_quat(turn[[1, 2, 3, 0]]).apply(centre)
    assert np.linalg.norm(rotated - centre) > 1e-3
    np.testing.assert_allclose(at, snapshot.link_poses[body][0] + rotated, atol=1e-12)
    assert 4.0 / 3.0 * np.pi * radius**3 == pytest.approx(1e-3) and small == 1.5 * picture.sizes.node


# -- structures ---------------------------------------------------------------------------------------------------


def test_slack_tendon_leaves_the_tendons_and_is_dashed(prism):
    structure = prism.structure
    tensions = np.where(structure.unilateral, 4.0, np.nan)
    tight = draw(prism, tensions)
    tensions[structure.member("side_0")] = 0.0
    loose = draw(prism, tensions)
    assert len(tight["tendons", 0].points) == 12
    assert len(tight["slack", 0].points) == 0
    assert len(loose["tendons", 0].points) == 10
    ends = structure.nodes[structure.members[structure.member("side_0")]]
    np.testing.assert_allclose(loose["slack", 0].points[[0, -1]], ends, atol=1e-12)


def test_bars_are_cylinders_of_their_present_length(prism):
    structure = prism.structure
    bars = [each for (namespace, _), each in draw(prism).items() if namespace == "bars"]
    ends = structure.members[~structure.unilateral]
    lengths = np.linalg.norm(structure.nodes[ends[:, 0]] - structure.nodes[ends[:, 1]], axis=1)
    np.testing.assert_allclose([each.scale[2] for each in bars], lengths)


def test_goal_patch_lies_where_the_output_nodes_will_be(prism):
    structure = prism.structure
    corners = draw(prism, goal=prism.output.pose(structure.nodes))["goal", 1].points
    for node in prism.output.nodes:
        assert np.linalg.norm(corners - structure.nodes[node], axis=1).min() < 1e-9


def test_nodes_are_balls_and_fixed_ones_are_darker(prism):
    nodes = draw(prism)["nodes", 0]
    np.testing.assert_array_equal(nodes.points, prism.structure.nodes)
    fixed = prism.structure.fixed
    assert nodes.colours[fixed].max() < nodes.colours[~fixed].max()


# -- mechanisms ---------------------------------------------------------------------------------------------------


def test_slack_cable_leaves_the_cables_and_is_dashed(winch):
    picture = make_picture(winch)
    tensions = np.full(len(picture.tension_names), 4.0)
    tight = draw(winch, tensions)
    tensions[1] = 0.0
    loose = draw(winch, tensions)
    assert len(tight["cables", 0].points) == 2 * len(tensions)
    assert len(tight["slack", 0].points) == 0
    assert len(loose["cables", 0].points) == 2 * len(tensions) - 2
    cables = picture.at(picture.start).lines[0]
    np.testing.assert_allclose(loose["slack", 0].points[[0, -1]], cables[1], atol=1e-12)
    for drawn in (tight, loose):  # the wound part of a slack cable stays on its pulley
        assert len(drawn["wound", 0].colours) == len(drawn["wound", 0].points) == len(tight["wound", 0].points)


@pytest.mark.parametrize("name", MECHANISMS)
def test_ground_lies_beneath_a_mechanism(name):
    robot = load_robot(name)
    picture, ground = make_picture(robot), draw(robot)["ground", 0]
    assert ground.points[:, 2].max() <= picture.outline[:, 2].min()


# -- nodes on DDS -------------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.system
@pytest.mark.parametrize("name", [STRUCTURES[0], MECHANISMS[0]])
def test_markers_and_view_follow_a_robot_on_dds(name):
    rclpy = pytest.importorskip("rclpy")
    interfaces = pytest.importorskip("tensegrity.msg")
    from diagnostic_msgs.msg import DiagnosticArray
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
            message.node_position = robot.structure.nodes.ravel().tolist()
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

        until(complete, lambda: heard)
        seen = [each.ns for each in heard["markers"].markers]
        if is_structure:
            assert seen.count("bars") == int(np.count_nonzero(~robot.structure.unilateral))
        else:
            shapes = sum(len(body.shapes) for body in robot.mechanism.bodies)
            assert sum(seen.count(role) for role in ("bodies", "blocks", "pulleys", "points")) == shapes
        assert {each.header.frame_id for each in heard["markers"].markers} == {"world"}
        assert heard["description"].data == make_urdf(make_picture(robot), robot.actuators)
        values = {pair.key: pair.value for pair in heard["diagnostics"]["view"].values}
        assert values["url"].startswith("http://localhost:")
        assert "tf" in {pair.key for pair in heard["diagnostics"]["markers"].values}

        if is_structure:
            message.node_position[0] = float("nan")
        else:
            message.q[0] = float("nan")
        until(lambda: (complete(), "finite" in heard["diagnostics"]["markers"].message)[1])
        executor.shutdown()
    finally:
        for program in programs:
            program.send_signal(2)
        codes = [program.wait(PATIENCE_S) for program in programs]
        rclpy.shutdown(context=context)
    assert codes == [0, 0]


@pytest.mark.system
@pytest.mark.parametrize("module", ["tensegrity_dynamics.ros.markers_node", "tensegrity_tools.ros.view_node"])
def test_node_with_an_unknown_robot_says_so_and_ends(module):
    pytest.importorskip("rclpy")
    pytest.importorskip("tensegrity.msg")
    command = [sys.executable, "-m", module, "--ros-args", "-p", "robot:=tensebott"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert result.returncode == 1
    assert "tensebott" in result.stderr
    assert "Traceback" not in result.stderr
