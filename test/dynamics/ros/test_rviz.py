"""What RViz is told to show is what the markers node publishes, and what it shows is the robot as it is, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces are not built")

from node_messages import ask, give, published_by  # noqa: E402
from patience import until  # noqa: E402
from rclpy.qos import (  # noqa: E402
    DurabilityPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)
from tensegrity.msg import CarriedPayloads, Goal, StructureState  # noqa: E402
from visualization_msgs.msg import InteractiveMarkerFeedback, Marker  # noqa: E402

from tensegrity_dynamics.errors import TensegrityError  # noqa: E402
from tensegrity_dynamics.robots.load_robot import load_robot  # noqa: E402
from tensegrity_dynamics.ros.markers_node import STATIC, MarkersNode  # noqa: E402
from tensegrity_dynamics.ros.robot_node import CARRIED  # noqa: E402
from tensegrity_dynamics.visualization.mount import Mount, parse_mount  # noqa: E402
from tensegrity_dynamics.visualization.trace import Trace  # noqa: E402

FILES = sorted((Path(__file__).resolve().parents[3] / "rviz").glob("*.rviz"))
TYPES = {"MarkerArray": "visualization_msgs/msg/MarkerArray", "Pose": "geometry_msgs/msg/PoseStamped",
         "RobotModel": "std_msgs/msg/String"}  # fmt: skip
WITHOUT_TOPIC = {"Grid", "TF", "InteractiveMarkers"}
RELIABLE = {"Reliable": ReliabilityPolicy.RELIABLE, "Best Effort": ReliabilityPolicy.BEST_EFFORT}
DURABLE = {"Volatile": DurabilityPolicy.VOLATILE, "Transient Local": DurabilityPolicy.TRANSIENT_LOCAL}


@pytest.fixture(scope="module")
def node() -> Iterator[Any]:
    words = ["-r", "__ns:=/left", "-p", "robot:=tensebot", "-p", "mount:=1 0 0 0 0 90", "-p", "frame_prefix:=left/"]
    rclpy.init(args=["--ros-args", "--log-level", "FATAL", *words])
    made = MarkersNode()
    yield made
    made.destroy_node()
    rclpy.shutdown()


@pytest.fixture
def bus(node: Any) -> dict[str, list[Any]]:
    """What the node publishes from now on, by topic."""
    return {topic: published_by(node, topic) for topic in ("markers", "goal_marker/update", "goal_pose")}


def show(node: Any, stamp: int = 1) -> None:
    """Let the node draw the robot as its file has it."""
    structure = load_robot("tensebot").structure
    message = StructureState(node_name=list(structure.node_names), node_position=structure.nodes.ravel().tolist())
    message.header.stamp.sec = stamp
    give(node, "structure_state", message)
    node.work()


def topics_of(display: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key in ("Topic", "Description Topic"):
        if key in display:
            yield display["Class"].rsplit("/", 1)[1], display[key]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_topic_of_a_display_is_published_in_its_type_and_quality(path: Path, node: Any) -> None:
    published = {each.topic_name: each for each in node.publishers}
    displays = yaml.safe_load(path.read_text(encoding="utf-8"))["Visualization Manager"]["Displays"]
    shown = {each["Class"].rsplit("/", 1)[1] for each in displays}
    assert shown <= {*TYPES, *WITHOUT_TOPIC} and {"MarkerArray", "RobotModel"} <= shown
    for display in displays:
        kind = display["Class"].rsplit("/", 1)[1]
        assert list(topics_of(display)) or kind in WITHOUT_TOPIC
        for _, topic in topics_of(display):
            publisher = published[f"/left/{topic['Value']}"]  # relative, so that RViz finds it in its namespace
            message = publisher.msg_type
            assert f"{message.__module__.split('.')[0]}/msg/{message.__name__}" == TYPES[kind]
            desired = QoSProfile(
                depth=topic["Depth"], reliability=RELIABLE[topic["Reliability Policy"]],
                durability=DURABLE[topic["Durability Policy"]],
            )  # fmt: skip
            assert qos_check_compatible(publisher.qos_profile, desired)[0] != QoSCompatibility.ERROR
        if kind == "InteractiveMarkers":
            name = f"/left/{display['Interactive Markers Namespace']}"
            assert f"{name}/update" in published
            assert f"{name}/feedback" in {each.topic_name for each in node.subscriptions}
            assert f"{name}/get_interactive_markers" in {each.srv_name for each in node.services} | {
                node.resolve_service_name(each.srv_name) for each in node.services
            }


def test_every_use_has_a_display_and_only_a_replay_has_no_goal_to_drag() -> None:
    with_goal = {path.stem for path in FILES if "InteractiveMarkers" in path.read_text(encoding="utf-8")}
    assert {path.stem for path in FILES} == {"sim", "hardware", "replay"} and with_goal == {"sim", "hardware"}


def test_markers_stand_in_the_world_where_the_mount_says(node: Any, bus: dict[str, list[Any]]) -> None:
    show(node)
    markers = bus["markers"][-1].markers
    nodes = load_robot("tensebot").structure.nodes
    (balls,) = [each for each in markers if each.ns == "nodes"]
    turn, moved = balls.pose.orientation, balls.pose.position
    assert (moved.x, moved.y, moved.z) == (1.0, 0.0, 0.0)
    assert (turn.w, turn.z) == pytest.approx((np.sqrt(0.5), np.sqrt(0.5)))
    np.testing.assert_allclose([[p.x, p.y, p.z] for p in balls.points], nodes)
    bars = load_robot("tensebot").structure
    first = bars.members[bars.kinds.index("bar")]
    middle = nodes[first].mean(axis=0)
    at = next(each for each in markers if each.ns == "bars" and each.id == 0).pose.position
    np.testing.assert_allclose([at.x, at.y, at.z], [1.0 - middle[1], middle[0], middle[2]], atol=1e-9)


def test_markers_fade_without_their_node_and_go_with_it(node: Any, bus: dict[str, list[Any]]) -> None:
    show(node)
    drawn = bus["markers"][-1].markers
    assert all(each.lifetime.sec >= 3 for each in drawn if each.action == Marker.ADD)
    node.last = (node.last[0] - 1.0, node.last[1])
    node.work()  # nothing new: the same picture again, so that it does not fade while the robot stands still
    assert len(bus["markers"]) == 2 and bus["markers"][-1].markers[0].ns == drawn[0].ns
    node.close()
    (last,) = bus["markers"][-1].markers
    assert last.action == Marker.DELETEALL and bus["goal_marker/update"][-1].erases == ["goal"]


def test_a_goal_that_is_dragged_is_asked_for_only_by_a_click(node: Any, bus: dict[str, list[Any]]) -> None:
    show(node)
    feedback = InteractiveMarkerFeedback(marker_name="goal", event_type=InteractiveMarkerFeedback.POSE_UPDATE)
    feedback.header.frame_id = "world"
    feedback.pose.position.x, feedback.pose.position.y, feedback.pose.position.z = 1.1, 0.2, 0.3
    feedback.pose.orientation.w = feedback.pose.orientation.z = float(np.sqrt(0.5))
    give(node, "goal_marker/feedback", feedback)
    assert not bus["goal_pose"]
    feedback.event_type = InteractiveMarkerFeedback.BUTTON_CLICK
    give(node, "goal_marker/feedback", feedback)
    (goal,) = bus["goal_pose"]  # in base_link, which stands at (1, 0, 0), turned by 90 degrees
    at, turn = goal.pose.position, goal.pose.orientation
    np.testing.assert_allclose([at.x, at.y, at.z], [0.2, -0.1, 0.3], atol=1e-9)
    np.testing.assert_allclose([turn.w, turn.x, turn.y, turn.z], [1.0, 0.0, 0.0, 0.0], atol=1e-9)
    (given,) = ask(node, "goal_marker/get_interactive_markers").markers
    assert given.pose.position.x == pytest.approx(1.1)
    feedback.header.frame_id = "camera"
    give(node, "goal_marker/feedback", feedback)
    assert len(bus["goal_pose"]) == 1


def test_a_refused_goal_is_red_with_its_reason(node: Any, bus: dict[str, list[Any]]) -> None:
    answer = Goal(request=Goal.POSE, accepted=False, reason="draw_3 would go slack", waypoint=[Goal().nearest])
    answer.waypoint[0].position.z = 2.0
    give(node, "goal", answer)
    show(node)
    markers = {(each.ns, each.id): each for each in bus["markers"][-1].markers}
    assert "draw_3 would go slack" in markers["text", 0].text
    colour = markers["refused", 1].color
    assert markers["refused", 1].action == Marker.ADD and colour.r > 2.0 * colour.g
    (handle,) = ask(node, "goal_marker/get_interactive_markers").markers
    assert handle.controls[0].markers[0].color.r > 0.7
    give(node, "goal", Goal(request=Goal.POSE, accepted=True))
    show(node)
    markers = {(each.ns, each.id): each for each in bus["markers"][-1].markers}
    assert markers["refused", 1].action == Marker.DELETE


def test_what_is_put_on_is_drawn_until_it_is_taken_off(node: Any, bus: dict[str, list[Any]]) -> None:
    message = CarriedPayloads(name=["top_1", "nobody"], mass=[0.2, 1.0], centre=[0.0] * 6)
    for carried, action in ((message, Marker.ADD), (CarriedPayloads(), Marker.DELETE), (message, Marker.ADD)):
        give(node, CARRIED, carried)
        show(node)
        (ball,) = [each for each in bus["markers"][-1].markers if each.ns == "payloads"]
        assert ball.action == action
    at = load_robot("tensebot").structure.nodes[load_robot("tensebot").structure.node("top_1")]
    np.testing.assert_allclose([ball.pose.position.x, ball.pose.position.z], [1.0 - at[1], at[2]], atol=1e-9)
    for bad in ({"mass": [np.nan]}, {"mass": [0.1, 0.1]}, {"mass": [0.1], "centre": [np.inf, 0.0, 0.0]}):
        give(node, CARRIED, CarriedPayloads(**{"name": ["top_1"], "centre": [0.0] * 3, **bad}))
        show(node)
        (ball,) = [each for each in bus["markers"][-1].markers if each.ns == "payloads"]
        assert ball.action == Marker.DELETE


def test_frames_on_the_bus_are_those_of_the_description_below_the_prefix(node: Any) -> None:
    messages = pytest.importorskip("tf2_msgs.msg", reason="set-up builds it where ROS lacks it")
    listener, heard = rclpy.create_node("listener", namespace="/"), {}
    for topic, quality in (("/tf", 100), ("/tf_static", STATIC)):
        listener.create_subscription(
            messages.TFMessage, topic, lambda each, topic=topic: heard.setdefault(topic, each.transforms), quality
        )

    def both() -> bool:
        show(node)
        rclpy.spin_once(listener, timeout_sec=0.1)
        return len(heard) == 2

    until(both)
    listener.destroy_node()
    moving, (base, *still) = heard["/tf"], heard["/tf_static"]
    assert (base.header.frame_id, base.child_frame_id) == ("world", "left/base_link")
    assert (base.transform.translation.x, base.transform.rotation.z) == (1.0, pytest.approx(np.sqrt(0.5)))
    assert {each.header.frame_id for each in (*moving, *still)} == {"left/base_link"}
    names = [each.child_frame_id for each in (*moving, *still)]  # nothing but base_link hangs in the world
    assert moving and sorted(names) == sorted(f"left/{link.name}" for link in node.picture.links)


@pytest.mark.parametrize("text", ["1 2", "a b c", "nan 0 0", "1 2 3 4 5 6 7"])
def test_a_mount_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(TensegrityError, match="give x y z in m"):
        parse_mount(text)


def test_a_mount_and_its_inverse_give_the_pose_back() -> None:
    mount = parse_mount("0.3, -0.2, 1 20 -30 140")
    pose = (np.array([0.1, 0.2, 0.3]), np.array([0.5, -0.5, 0.5, 0.5]))
    back = mount.from_world(mount.to_world(pose))
    np.testing.assert_allclose(back[0], pose[0], atol=1e-12)
    assert abs(float(back[1] @ pose[1])) == pytest.approx(1.0)
    assert Mount().is_identity and parse_mount("").is_identity and not mount.is_identity


def test_a_trace_keeps_the_last_points_and_begins_anew_with_the_time() -> None:
    trace = Trace(spacing=0.1, length=3)
    for k in range(10):
        trace.add(float(k), np.array([0.06 * k, 0.0, 0.0]))
    np.testing.assert_allclose(trace.points[:, 0], [0.24, 0.36, 0.48])
    trace.add(0.0, np.zeros(3))
    assert len(trace.points) == 1
