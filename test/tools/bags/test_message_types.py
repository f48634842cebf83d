"""Definitions and hashes are those of the compiled types, and bags with them are read by programs that know none."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensegrity.msg", reason="the ROS interfaces are not built")

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.bags.decoding import type_store, without_surplus
from tensegrity_tools.bags.message_types import MessageTypes
from tensegrity_tools.bags.writer import BagWriter
from tensegrity_tools.ros.recorder_node import message_class

TYPES = MessageTypes()
STANDARD = [
    "sensor_msgs/msg/JointState", "rosgraph_msgs/msg/Clock", "diagnostic_msgs/msg/DiagnosticArray",
    "rcl_interfaces/msg/ParameterEvent", "rcl_interfaces/msg/Log", "std_msgs/msg/String",
    "visualization_msgs/msg/MarkerArray", "action_msgs/msg/GoalStatusArray", "lifecycle_msgs/msg/TransitionEvent",
    *(["tf2_msgs/msg/TFMessage"] if find_spec("tf2_msgs") else []),
]  # fmt: skip
ROOT = Path(__file__).parents[3]
NAMES = [
    *(f"tensegrity/msg/{path.stem}" for path in sorted(ROOT.glob("msg/*.msg"))),
    *(f"tensegrity/action/{path.stem}_FeedbackMessage" for path in sorted(ROOT.glob("action/*.action"))),
    *STANDARD,
]


def filled(message: Any, number: int = 1) -> Any:
    """A message with something in every field."""
    for name, kind in message.get_fields_and_field_types().items():
        inner = kind[kind.index("<") + 1 : -1] if kind.startswith("sequence") else kind.split("[")[0]
        if "/" in inner:
            package, short = inner.split("/")
            folder = "action" if package == "tensegrity" and "_" in short else "msg"
            cls = message_class(f"{package}/{folder}/{short}")
            value = [filled(cls(), k) for k in (number, number + 1)] if kind != inner else filled(cls(), number)
        elif kind.endswith("]"):
            value = [number % 200] * int(kind[kind.index("[") + 1 : -1])
        else:
            one: Any = {"string": f"word {number}", "boolean": True, "octet": bytes([number % 200])}.get(inner)
            if inner.startswith("float") or inner == "double":
                one = 0.5 + number
            elif one is None:
                one = number % 100
            value = [one, one] if kind.startswith("sequence") else one
        setattr(message, name, value)
    return message


def test_all_types_of_the_project_are_found() -> None:
    for name in ("tensegrity/msg/Goal", "tensegrity/msg/StructureState",
                 "tensegrity/action/FollowTrajectory_FeedbackMessage"):  # fmt: skip
        assert name in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_hash_of_the_definition_is_that_of_the_compiled_type(name: str) -> None:
    definition = TYPES[name]  # its digest is what rosidl has written; the store computes it from the text
    assert definition.digest.startswith("RIHS01_")
    assert type_store(definition).hash_rihs01(name) == definition.digest


def test_hashes_of_standard_types_are_those_that_others_know() -> None:
    store = get_typestore(Stores.ROS2_JAZZY)
    for name in STANDARD:
        if name in store.fielddefs:
            assert TYPES[name].digest == store.hash_rihs01(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_message_survives_decoding_by_its_definition(name: str) -> None:
    message = filled(message_class(name)())
    store = type_store(TYPES[name])
    data = without_surplus(TYPES[name], serialize_message(message))
    again = bytes(store.serialize_cdr(store.deserialize_cdr(data, name), name))
    assert deserialize_message(again, type(message)) == message


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("bags") / "all"
    with BagWriter(path) as writer:
        for k, name in enumerate(NAMES):
            writer.add_topic(f"/topic_{k}", TYPES[name])
            writer.write(
                f"/topic_{k}", k, without_surplus(TYPES[name], serialize_message(filled(message_class(name)())))
            )
    return path


def test_rosbags_reads_every_type_without_our_package(bag: Path) -> None:
    with AnyReader([bag]) as reader:
        read = {each.msgtype: reader.deserialize(data, each.msgtype) for each, _, data in reader.messages()}
    assert set(read) == set(NAMES)
    assert read["tensegrity/msg/TendonState"].tension.tolist() == [1.5, 1.5]
    assert read["tensegrity/action/FollowTrajectory_FeedbackMessage"].feedback.progress == 1.5


def test_mcap_ros2_reads_every_type_without_our_package(bag: Path) -> None:
    read, factory = {}, DecoderFactory()
    with (bag / "all.mcap").open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            if schema.name.endswith("_FeedbackMessage"):
                continue  # this library refuses the name of any type of an action
            decode = factory.decoder_for(channel.message_encoding, schema)
            read[schema.name] = decode(message.data)
    assert set(read) == {name for name in NAMES if "/action/" not in name}
    assert list(read["tensegrity/msg/TendonState"].tension) == [1.5, 1.5]
    assert read["tensegrity/msg/Goal"].waypoint[1].position.y == 2.5


@pytest.mark.parametrize("name", ["tensegrity/msg/Nothing", "nowhere/msg/Header", "Header", "std_srvs/srv/Trigger"])
def test_a_type_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(TensegrityError, match=name):
        TYPES[name]
