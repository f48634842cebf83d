"""Two robots in one ROS domain, each in a namespace: nothing of one is heard as the other's."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces of this project are not built")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402

pytestmark = [pytest.mark.system, pytest.mark.long]

ROBOTS = {"left": "tensebot", "right": "three_prism"}
NODES = ("simulator", "estimator", "controller", "markers")
SHARED = ("/diagnostics", "/parameter_events", "/rosout", "/tf", "/tf_static")
"""Topics of ROS itself, which all nodes of a domain use; what is said there carries the name of its robot."""


def up(namespace: str, robot: str, log: Path) -> subprocess.Popen[bytes]:
    words = ["up", "sim", robot, "--namespace", namespace, "--no-view"]
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tensegrity_tools.cli", *words],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip


def test_topics_services_clock_frames_and_diagnostics_of_two_robots_are_disjoint(tmp_path: Path) -> None:
    messages = pytest.importorskip("tf2_msgs.msg", reason="tf2_msgs is not built")
    logs = {name: tmp_path / f"{name}.log" for name in ROBOTS}
    running = [up(name, robot, logs[name]) for name, robot in ROBOTS.items()]
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("witness", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    told: dict[str, str] = {}
    frames: dict[str, str] = {}
    latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)

    def hear(message: DiagnosticArray) -> None:
        told.update({each.name: each.hardware_id for each in message.status})

    def see(message: object) -> None:
        frames.update({each.child_frame_id: each.header.frame_id for each in message.transforms})  # type: ignore[attr-defined]

    node.create_subscription(DiagnosticArray, "/diagnostics", hear, 100)
    node.create_subscription(messages.TFMessage, "/tf", see, 100)
    node.create_subscription(messages.TFMessage, "/tf_static", see, latched)

    def all_speak() -> bool:
        executor.spin_once(timeout_sec=0.05)
        ready = all("keeps running" in log.read_text(errors="replace") for log in logs.values())
        return ready and {f"{name}/{each}" for name in ROBOTS for each in NODES} <= told.keys() and len(frames) > 8

    try:
        until(all_speak, lambda: f"{sorted(told)} {[log.read_text() for log in logs.values()]}")
        topics = {name for name, _ in node.get_topic_names_and_types()}
        assert {each for each in topics if not each.startswith(("/left/", "/right/"))} <= set(SHARED)
        for each in topics - set(SHARED):
            publishers = {info.node_namespace for info in node.get_publishers_info_by_topic(each)}
            assert publishers <= {each[: each.index("/", 1)]}, each
        for name, robot in ROBOTS.items():
            assert [info.node_name for info in node.get_publishers_info_by_topic(f"/{name}/clock")] == ["simulator"]
            assert {told[each] for each in told if each.startswith(f"{name}/")} == {robot}
        assert all(each.startswith(("left/", "right/")) for each in told)
        assert {name for name in ROBOTS if any(each.startswith(f"{name}/") for each in frames)} == set(ROBOTS)
        for child, parent in frames.items():
            assert child.startswith(("left/", "right/"))
            assert parent == "world" or parent.split("/")[0] == child.split("/")[0]
        services = {name for name, _ in node.get_service_names_and_types()}
        assert all(each.startswith(("/left/", "/right/", "/witness/")) for each in services)
    finally:
        for each in running:
            each.send_signal(signal.SIGINT)
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
        assert [each.wait(PATIENCE_S) for each in running] == [0, 0]
