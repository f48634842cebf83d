"""A replay sends what the nodes got, in the order in which they answered it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensegrity.msg", reason="the ROS interfaces are not built")

from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState, TimeReference
from tensegrity.msg import ActuatorCommand, Goal, StructureState

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.ros.geometry_messages import time_message
from tensegrity_tools.bags.contents import read_contents
from tensegrity_tools.bags.decoding import stamp_of, type_store, without_surplus
from tensegrity_tools.bags.message_types import MessageTypes
from tensegrity_tools.bags.reader import Bag
from tensegrity_tools.bags.replay_plan import READING, TAKEN, compared_pair, gaps_between, make_plan
from tensegrity_tools.bags.timeline import along_robot_time
from tensegrity_tools.bags.writer import BagWriter

TYPES = MessageTypes()
KINDS = {
    "/clock": (Clock, "rosgraph_msgs/msg/Clock"),
    "joint_states": (JointState, "sensor_msgs/msg/JointState"),
    "command_timing": (TimeReference, "sensor_msgs/msg/TimeReference"),
    "imu": (Imu, "sensor_msgs/msg/Imu"),
    "structure_state": (StructureState, "tensegrity/msg/StructureState"),
    "actuator_command": (ActuatorCommand, "tensegrity/msg/ActuatorCommand"),
    "goal": (Goal, "tensegrity/msg/Goal"),
    "external_wrench": (WrenchStamped, "geometry_msgs/msg/WrenchStamped"),
    "payload": (InertiaStamped, "geometry_msgs/msg/InertiaStamped"),
    "estimator/external_wrench": (WrenchStamped, "geometry_msgs/msg/WrenchStamped"),
    "estimator/payload": (InertiaStamped, "geometry_msgs/msg/InertiaStamped"),
    "controller/external_wrench": (WrenchStamped, "geometry_msgs/msg/WrenchStamped"),
    "controller/payload": (InertiaStamped, "geometry_msgs/msg/InertiaStamped"),
}
FRAME = ("/clock", "joint_states", "structure_state", "actuator_command")


def with_other_padding(kind: str, data: bytes, value: int) -> bytes:
    """A serialised message whose bytes between fields, which nobody sets, hold a value."""
    decode, changed = type_store(TYPES[kind]).deserialize_cdr, bytearray(data)
    for k in range(4, len(data)):
        other = bytearray(data)
        other[k] ^= 1
        try:
            if repr(decode(bytes(other), kind)) == repr(decode(data, kind)):
                changed[k] = value
        except Exception:  # a length or a text that cannot be
            continue
    return bytes(changed)


def stamp_of_joints(data: bytes) -> int:
    kind = KINDS["joint_states"][1]
    stamp = stamp_of(type_store(TYPES[kind]).deserialize_cdr(data, kind))
    assert stamp is not None
    return stamp


def planned(
    path: Path,
    events: Sequence[tuple[str, int] | tuple[str, int, float]],
    namespace: str = "",
    newest: Mapping[int, int] | None = None,
) -> Any:
    """The plan of a bag of (topic, stamp[, a number in it]); the newest readings of commands by stamp."""
    with BagWriter(path) as writer:
        for k, (name, stamp, *number) in enumerate(events):
            cls, kind = KINDS[name]
            topic = name if name.startswith("/") else f"{namespace}/{name}"
            if topic not in writer:
                writer.add_topic(topic, TYPES[kind])
            message = cls()
            if name == "/clock":
                message.clock = time_message(stamp)
            else:
                message.header.stamp = time_message(stamp)
            if name == "imu":
                message.header.frame_id = f"rod_{number[0]:.0f}"
            if name == "structure_state":
                message.source, message.residual = "estimator", float(*(number or [0.0]))
            if name == "actuator_command":
                message.name, message.value = ["draw"], [float(each) for each in number]
                message.newest_reading = time_message((newest or {}).get(stamp, 0))
            data = without_surplus(TYPES[kind], serialize_message(message))
            writer.write(topic, k, data if name == "imu" else with_other_padding(kind, data, k))
    with Bag(path) as bag:
        return make_plan(bag, read_contents(bag))


def order(plan: Any) -> list[tuple[str, int]]:
    return [(step.answers or "goal", step.stamp) for step in plan.steps]


@pytest.mark.parametrize("namespace", ["", "/left"])
def test_each_state_is_sent_once_although_it_was_published_again_and_again(tmp_path: Path, namespace: str) -> None:
    plan = planned(tmp_path / "bag", [(name, stamp) for stamp in (0, 0, 20, 20, 20) for name in FRAME], namespace)
    assert order(plan) == [("structure_state", 0), ("actuator_command", 0), ("structure_state", 20),
                           ("actuator_command", 20)]  # fmt: skip
    assert [topic for topic, _ in plan.steps[0].sends] == ["/clock", "joint_states"]
    assert [topic for topic, _ in plan.steps[1].sends] == [READING, "structure_state"]


def test_what_a_recording_lacks_is_known(tmp_path: Path) -> None:
    plan = planned(tmp_path / "bag", [(name, stamp) for stamp in (0, 20, 20, 40, 100, 120) for name in FRAME])
    assert plan.gaps == [(40, 100)]
    assert gaps_between([]) == gaps_between([7]) == gaps_between([0, 20, 40]) == []


def test_a_state_is_sent_again_after_a_goal_that_changed_its_answer(tmp_path: Path) -> None:
    events = [*((name, 0) for name in FRAME), ("goal", 0), *((name, 0, 1.0) for name in FRAME)]
    plan = planned(tmp_path / "bag", [(name, stamp, *([] if name == "structure_state" else number))
                                      for name, stamp, *number in events])  # fmt: skip
    assert order(plan) == [("structure_state", 0), ("actuator_command", 0), ("goal", 0), ("actuator_command", 0)]


def test_a_state_that_the_controller_answers_late_again_does_not_turn_the_estimators_time_back(tmp_path: Path) -> None:
    events = [*((name, 0, 1.0) for name in FRAME[2:]), *((name, 20, 2.0) for name in FRAME[2:])]
    sensors = [(name, stamp) for stamp in (0, 20) for name in FRAME[:2]]
    plan = planned(tmp_path / "bag", [*sensors, *events, ("actuator_command", 0, 1.0), *sensors[2:]])
    assert {topic for topic, _ in plan.steps[-1].sends} == {READING, "structure_state"} and plan.steps[-1].stamp == 0


def test_a_goal_comes_between_the_commands_between_which_it_was_taken(tmp_path: Path) -> None:
    events = [(name, 0) for name in FRAME] + [("goal", 0)] + [(name, 20) for name in FRAME]
    assert [each for each, _ in order(planned(tmp_path / "bag", events))] == [
        "structure_state", "actuator_command", "goal", "structure_state", "actuator_command",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["external_wrench", "payload"])
def test_a_load_of_an_old_bag_is_sent_to_all_between_the_states_between_which_it_came(
    tmp_path: Path, name: str
) -> None:
    events = [*((each, 0) for each in FRAME), (name, 0), *((each, 20) for each in FRAME)]
    plan = planned(tmp_path / "bag", events, "/left")
    assert [step.answers for step in plan.steps] == [*FRAME[2:], "", *FRAME[2:]]
    assert {topic for topic, _ in plan.steps[2].sends} == {each for each in TAKEN if each.endswith(name)}


def test_a_load_is_sent_to_each_node_before_the_first_answer_that_knows_of_it(tmp_path: Path) -> None:
    # the estimator took both before the state of 20, the controller after its answer to that
    frame = [(each, 20) for each in FRAME]
    loads = [("estimator/external_wrench", 7), ("estimator/payload", 8), ("external_wrench", 7)]
    events = [
        *((each, 0) for each in FRAME),
        *loads,
        *frame,
        ("controller/external_wrench", 7),
        ("controller/payload", 8),
    ]
    plan = planned(tmp_path / "bag", events, "/left")
    assert order(plan) == [
        ("structure_state", 0), ("actuator_command", 0), ("estimator/external_wrench", 7), ("estimator/payload", 8),
        ("structure_state", 20), ("actuator_command", 20), ("controller/external_wrench", 7),
        ("controller/payload", 8),
    ]  # fmt: skip
    assert all(step.sends[-1][0] == step.answers for step in plan.steps if step.answers in TAKEN)


def test_the_controller_hears_when_its_commands_acted_before_the_next_state_that_it_answers(tmp_path: Path) -> None:
    # that of 0 was told late: after the answer to 20
    events = [(each, stamp) for stamp in (0, 20, 40) for each in (*FRAME, *(("command_timing",) * (stamp == 20)))]
    plan = planned(tmp_path / "bag", events, "/left")
    sends = {
        step.stamp: [topic for topic, _ in step.sends] for step in plan.steps if step.answers == "actuator_command"
    }
    state = [READING, "structure_state"]
    assert sends == {0: state, 20: state, 40: [READING, "command_timing", "structure_state"]}


def test_the_controller_has_the_same_readings_as_when_it_answered(tmp_path: Path) -> None:
    # in real time: the reading of 20 was there before the answer to 0, that of 60 after the answer to 40
    readings = [("/clock", 0), *(("joint_states", stamp) for stamp in (0, 20, 40, 60))]
    answers = [(name, stamp, stamp) for stamp in (0, 20, 40) for name in FRAME[2:]]
    plan = planned(tmp_path / "bag", [*readings, *answers], newest={0: 20, 20: 20, 40: 40})
    sent = [
        [stamp_of_joints(data) for topic, data in step.sends if topic == READING]
        for step in plan.steps if step.answers == "actuator_command"
    ]  # fmt: skip
    assert sent == [[0, 20], [], [40]]
    estimated = [step for step in plan.steps if step.answers == "structure_state"]
    assert [topic for step in estimated for topic, _ in step.sends].count("joint_states") == 3


def test_a_state_that_came_again_after_a_load_is_answered_again(tmp_path: Path) -> None:
    events = [*((each, 0) for each in FRAME), ("estimator/payload", 0), *((each, 0) for each in FRAME)]
    assert [each for each, _ in order(planned(tmp_path / "bag", events))] == [
        "structure_state", "actuator_command", "estimator/payload", "structure_state",
    ]  # fmt: skip


def test_a_state_that_the_controller_never_answered_is_not_sent_to_it(tmp_path: Path) -> None:
    events = [("joint_states", 0), ("structure_state", 0), *((name, 20) for name in FRAME)]
    assert order(planned(tmp_path / "bag", events)) == [
        ("structure_state", 0), ("structure_state", 20), ("actuator_command", 20),
    ]  # fmt: skip


def test_a_reset_is_replayed_with_its_own_messages(tmp_path: Path) -> None:
    events = [(name, stamp, number) if name not in ("/clock", "joint_states") else (name, stamp)
              for stamp, number in ((0, 1.0), (20, 2.0), (0, 3.0)) for name in FRAME]  # fmt: skip
    plan = planned(tmp_path / "bag", events)
    commands = [step for step in plan.steps if step.answers == "actuator_command"]
    assert [step.stamp for step in commands] == [0, 20, 0]
    assert commands[0].sends[-1][1] != commands[2].sends[-1][1]
    assert commands[0].recorded != commands[2].recorded


def test_readings_of_imus_go_before_what_the_estimator_answers_also_those_of_states_that_were_left_out(
    tmp_path: Path,
) -> None:
    two = [("imu", 1.0), ("imu", 2.0)]
    events = [
        (name, stamp, *number) for stamp in (0, 0, 20, 40) for name, *number in [("/clock",), *two, ("joint_states",),
        *([] if stamp == 20 else [("structure_state", 0.0), ("actuator_command", 0.0)])]
    ]  # fmt: skip
    plan = planned(tmp_path / "bag", events)
    sent = [[topic for topic, _ in step.sends] for step in plan.steps if step.answers == "structure_state"]
    assert plan.imus and sent == [["/clock", "imu", "imu", "joint_states"], ["/clock", *4 * ["imu"], "joint_states"]]


@pytest.mark.parametrize("events", [[("/clock", 0)], [("joint_states", 0)]])
def test_a_bag_without_sensors_or_answers_is_refused(tmp_path: Path, events: Any) -> None:
    with pytest.raises(TensegrityError, match="nothing"):
        planned(tmp_path / "bag", events)


def test_the_robots_time_stands_still_while_the_clock_does_and_never_goes_back(tmp_path: Path) -> None:
    stamps = [0, 0, 0, 10**9, 2 * 10**9, 0, 10**9]
    planned(tmp_path / "bag", [(name, stamp) for stamp in stamps for name in FRAME])
    with Bag(tmp_path / "bag") as bag:
        times = [at for at, message in along_robot_time(bag, read_contents(bag)) if message.topic == "/clock"]
    assert times == [0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 3.0]


def test_of_several_references_of_one_stamp_two_that_are_equal_are_compared() -> None:
    assert compared_pair([b"holding", b"moving"], [b"holding"]) == (b"holding", b"holding")  # the second was missed
    assert compared_pair([b"moving"], [b"holding", b"moving"]) == (b"moving", b"moving")
    assert compared_pair([b"holding", b"moving"], [b"stopped", b"idle"]) == (b"moving", b"idle")
