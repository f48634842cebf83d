"""A run in lock-step is recorded from its first state on, and estimator and controller answer the recording alike."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE_S

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from builtin_interfaces.msg import Duration  # noqa: E402
from geometry_msgs.msg import Pose  # noqa: E402
from patient_watcher import PatientWatcher  # noqa: E402
from rclpy.action import ActionClient  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402
from tensegrity.action import FollowTrajectory  # noqa: E402
from tensegrity.msg import ActuatorCommand, Goal  # noqa: E402

from tensegrity_dynamics import load_robot  # noqa: E402
from tensegrity_dynamics.ros.geometry_messages import fill_pose  # noqa: E402
from tensegrity_tools.bags.contents import read_contents  # noqa: E402
from tensegrity_tools.bags.decoding import stamp_of  # noqa: E402
from tensegrity_tools.bags.message_types import Definition  # noqa: E402
from tensegrity_tools.bags.reader import Bag  # noqa: E402
from tensegrity_tools.bags.repair import repair_bag  # noqa: E402
from tensegrity_tools.bags.writer import BagWriter  # noqa: E402
from tensegrity_tools.runtime.node_graph import Watching, simulation_graph  # noqa: E402
from tensegrity_tools.runtime.processes import NodeProcesses  # noqa: E402
from tensegrity_tools.runtime.replay_graph import replay_graph  # noqa: E402
from tensegrity_tools.runtime.replay_run import run_replay  # noqa: E402

pytestmark = pytest.mark.system

NOTHING = Watching(markers=False, view=False)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bag of a goal, a hold in the middle of it, a trajectory and a refused goal; its recorder was killed.

    On a busy machine messages may be lost on the way to a recorder, which says so: then the next one is looked at.
    """
    for _ in range(5):
        path: Path = tmp_path_factory.mktemp("bags") / "run"
        if record(path) == 0:
            break
    return path


def record(path: Path) -> int:
    """Messages that were lost on the way to the recorder."""
    graph = simulation_graph("three_prism", lockstep=True, watching=NOTHING, bag=str(path)).as_composed()
    nodes = NodeProcesses()
    nodes.start_all(graph)
    watcher = PatientWatcher("bag_test")
    try:
        wait(watcher, lambda: watcher.time > 0.1)
        wait(watcher, lambda: "recorder" in watcher.diagnostics)
        wait(watcher, lambda: watcher.diagnostics["recorder"].message == "recording" or lost(watcher))
        position, quaternion = watcher.pose
        assert watcher.send_goal(position + [0.0, 0.0, 0.004], quaternion).accepted
        began = watcher.time
        wait(watcher, lambda: watcher.time > began + 0.1)
        assert watcher.call("hold").success
        began = watcher.time
        wait(watcher, lambda: watcher.time > began + 0.5)
        follow(watcher, position, quaternion)
        assert not watcher.send_goal(position, quaternion, frame="elsewhere").accepted
        began = watcher.time
        wait(watcher, lambda: watcher.time > began + 0.5)
        assert watcher.call("simulator/set_paused", SetBool.Request(data=True)).success  # more would only be replayed
        for _ in range(4):  # it reports every second: longer than what it keeps back
            last = watcher.diagnostics["recorder"]
            wait(watcher, lambda last=last: watcher.diagnostics["recorder"] is not last)
        missing = lost(watcher)
        os.kill(nodes.running["recorder"].pid, signal.SIGKILL)
        assert watcher.call("simulator/set_paused", SetBool.Request(data=False)).success
        began = watcher.time
        wait(watcher, lambda: watcher.time > began + 0.1)  # the robot goes on
    finally:
        watcher.close()
        nodes.stop()
    return missing


def lost(watcher: PatientWatcher) -> int:
    """Messages that the recorder has reported as lost."""
    return next((int(each.value) for each in watcher.diagnostics["recorder"].values if each.key == "lost"), 0)


def wait(watcher: PatientWatcher, condition: Any) -> None:
    assert watcher.wait_until(condition, PATIENCE_S), {k: v.message for k, v in watcher.diagnostics.items()}


def follow(watcher: PatientWatcher, position: Any, quaternion: Any) -> None:
    client = ActionClient(watcher.node, FollowTrajectory, "follow_trajectory")
    wait(watcher, client.server_is_ready)
    goal = FollowTrajectory.Goal(time_from_start=[Duration(sec=200)])  # lock-step is faster than a busy watcher
    goal.waypoint = [fill_pose(Pose(), position, quaternion)]
    messages: list[Any] = []  # on the way: the plan is made
    sent = client.send_goal_async(goal, feedback_callback=messages.append)
    wait(watcher, lambda: bool(messages))
    cancelled = sent.result().cancel_goal_async()
    wait(watcher, cancelled.done)
    client.destroy()


def replayed(bag: Path, folder: Path, look: Any = lambda: None, rate: float = 0.0) -> tuple[int, str]:
    """Exit status and words of a replay; look() is called again and again while it runs."""
    nodes, said = NodeProcesses(), []
    end = time.monotonic() + PATIENCE_S
    graph = replay_graph(bag, folder, rate=rate, loop=bool(rate), watching=NOTHING)

    def check() -> None:
        look()
        assert time.monotonic() < end, nodes.last_words("player")

    try:
        return run_replay(nodes, graph, check, said.append), "\n".join(said)
    finally:
        nodes.stop()


@contextmanager
def a_node() -> Iterator[Any]:
    """Of a robot, in this process."""
    if not rclpy.ok():
        rclpy.init()
    node = rclpy.create_node("some_robot")
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


SHARED = {"/rosout", "/parameter_events", "/diagnostics"}
"""Topics of all nodes in a domain; nothing moves by them."""


def test_a_recording_whose_recorder_was_killed_is_repaired_and_answered_alike_to_the_last_bit(
    recorded: Path, tmp_path: Path
) -> None:
    with Bag(recorded) as bag:
        assert not bag.whole
    repair_bag(recorded)
    with Bag(recorded) as bag:
        contents = read_contents(bag)
        assert "three_prism" in contents.robot_text
        assert set(contents.parameters) >= {"/simulator", "/estimator", "/controller"}
        decode = bag.decoder("/goal")
        goals = [decode(each.data) for each in bag.messages(["/goal"])]
        assert [each.request for each in goals] == [Goal.POSE, Goal.HOLD, Goal.TRAJECTORY, Goal.CANCEL, Goal.POSE]
        assert [each.accepted for each in goals] == [True, True, True, True, False]
        decode = bag.decoder("/structure_state")
        states = [stamp_of(decode(each.data)) for each in bag.messages(["/structure_state"])]
        assert states[0] == 0
        assert sorted(set(states)) == list(range(0, max(states) + 1, 20_000_000))
    used: set[str] = set()
    with a_node() as node:
        status, words = replayed(
            recorded, tmp_path, lambda: used.update(name for name, _ in node.get_topic_names_and_types())
        )
    assert status == 0, words
    assert {"/replay/joint_states", "/replay/clock", "/replay/recorded/structure_state"} <= used
    assert {each for each in used if not each.startswith("/replay/")} <= SHARED
    for who in ("estimator", "controller", "references"):
        line = next(each for each in words.splitlines() if each.startswith(who))
        equal, _, count = line.split(":")[1].split()[:3]
        assert int(equal) == int(count) > 50
    assert "goals: 5 of 5 equal" in words


@pytest.mark.long
@pytest.mark.parametrize(("controller", "state"), [("qp", "observer"), ("joint_position", "rest")])
def test_pushes_and_payloads_are_answered_alike_to_the_last_bit(tmp_path: Path, controller: str, state: str) -> None:
    bag, body = tmp_path / "run", load_robot("manipulator").model.load_names[-1]
    graph = simulation_graph("manipulator", controller=controller, state=state, lockstep=True, watching=NOTHING,
                             bag=str(bag))  # fmt: skip
    nodes, rng = NodeProcesses(), np.random.default_rng(3)
    nodes.start_all(graph)
    watcher = PatientWatcher("load_test")

    def go_on(duration: float, pushes: bool = False) -> None:
        began = watcher.time
        while watcher.time < began + duration:
            if pushes:
                push(body, rng.normal(size=3), np.zeros(3))
            watcher.spin(0.02)

    try:
        wait(watcher, lambda: watcher.time > 0.1 and "recorder" in watcher.diagnostics)
        push, carry = watcher.wrench_sender(), watcher.payload_sender()
        position, _ = watcher.pose
        carry(body, 0.05, (0.0, 0.0, 0.01))
        go_on(0.3)
        assert watcher.send_goal(position + [0.0, 0.0, 0.004], None).accepted
        go_on(0.4, pushes=True)
        carry(body, 0.05, (0.01, 0.0, 0.01))  # moved
        go_on(0.2, pushes=True)
        assert watcher.call("stop").success
        go_on(0.3, pushes=True)
        carry(body, 0.0, (0.0, 0.0, 0.0))  # taken off
        assert watcher.call("hold").success
        go_on(0.3)
    finally:
        watcher.close()
        nodes.stop()
    status, words = replayed(bag, tmp_path)
    assert status == 0, words
    loads = dict(line.split(": ") for line in words.splitlines() if line.startswith(("estimator/", "controller/")))
    taken = {"controller/external_wrench", "controller/payload", "estimator/payload"}
    observed = {"estimator/external_wrench"} if state == "observer" else set()  # pushes bend no shape at rest
    assert loads.keys() == taken | observed, words
    assert all(int(count.split()[0]) > 0 for count in loads.values()), words  # a busy node may refuse one as too old


@pytest.mark.long
def test_a_changed_command_is_found_with_its_time_and_field(recorded: Path, tmp_path: Path) -> None:
    if (recorded.parent / "run.broken").exists() is False:
        repair_bag(recorded)
    changed = None
    with Bag(recorded) as bag, BagWriter(tmp_path / "changed") as writer:
        for each in bag.topics.values():
            writer.add_topic(each.name, Definition(each.type, each.definition.data, each.digest), each.quality)
        for message in bag.messages():
            data = message.data
            if message.topic == "/actuator_command":
                command = bag.decoder(message.topic)(data)
                stamp = stamp_of(command)
                if changed is None and stamp == 1_000_000_000:
                    command.value = command.value * [1.0, 1.0, 1.0 + 2.0**-50, *[1.0] * (len(command.value) - 3)]
                    data, changed = bytes(bag.store.serialize_cdr(command, "tensegrity/msg/ActuatorCommand")), stamp
            writer.write(message.topic, message.time, data)
    assert changed is not None
    status, words = replayed(tmp_path / "changed", tmp_path)
    assert status == 1
    assert "first difference in actuator_command at 1.000 s: value[2]" in words
    assert "estimator" in words and "first difference in structure_state" not in words


@pytest.mark.long
def test_a_replay_is_refused_where_a_robot_runs(recorded: Path, tmp_path: Path) -> None:
    with a_node() as robot:
        robot.create_publisher(JointState, "joint_states", 1)
        status, words = replayed(recorded, tmp_path)
    assert status == 1
    assert "/some_robot publishes joint_states" in words


@pytest.mark.long
def test_a_replay_at_a_rate_ends_when_a_robot_comes(recorded: Path, tmp_path: Path) -> None:
    with a_node() as robot:
        heard: list[Any] = []
        robot.create_subscription(JointState, "joint_states", heard.append, 1)

        def look() -> None:
            rclpy.spin_once(robot, timeout_sec=0.01)
            if len(heard) > 5 and not robot.count_publishers("actuator_command"):
                robot.create_publisher(ActuatorCommand, "actuator_command", 1)

        status, words = replayed(recorded, tmp_path, look, rate=1.0)
    assert status == 1 and len(heard) > 5
    assert "/some_robot publishes actuator_command" in words
