"""Bags whose numbers belong to other names are refused in one sentence; those of before layouts are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces are not built")

from rclpy.serialization import serialize_message
from std_msgs.msg import String

from tensegrity_dynamics import Robot, Simulation, TensegrityError, load_robot
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.ros.geometry_messages import time_message
from tensegrity_dynamics.ros.robot_description import layout_message
from tensegrity_dynamics.ros.state_encoding import state_message
from tensegrity_tools.bags.comparison import compare_bags
from tensegrity_tools.bags.contents import read_contents
from tensegrity_tools.bags.decoding import without_surplus
from tensegrity_tools.bags.message_types import MessageTypes
from tensegrity_tools.bags.reader import Bag
from tensegrity_tools.bags.report import write_report
from tensegrity_tools.bags.writer import BagWriter
from tensegrity_tools.ros.player_node import changed_types

TYPES = MessageTypes()
PRISM, OTHER = load_robot("three_prism"), load_robot("four_prism")


def record(path: Path, robot: Robot, *, named: Robot = PRISM, layout: bool = True, digest: str = "") -> Path:
    """A bag with the file of `named` and two states of a robot, with its layout, or with names as before."""
    codec = type_of(robot).codec(robot)
    assert codec.layout is not None and named.path is not None
    with BagWriter(path) as writer:

        def write(topic: str, kind: str, time: int, message: object, digest: str = "") -> None:
            definition = TYPES[kind]
            if topic not in writer:
                writer.add_topic(topic, replace(definition, digest=digest or definition.digest))
            writer.write(topic, time, without_surplus(definition, serialize_message(message)))

        write("/robot_file", "std_msgs/msg/String", 0, String(data=named.path.read_text("utf-8")))
        if layout:
            write("/robot_layout", "tensegrity/msg/RobotLayout", 0, layout_message(codec.layout, robot.name))
        state = codec.encode(Simulation(robot).state)
        state = state if layout else replace(state, layout="")
        for k in range(2):
            message = state_message(state, time_message(k * 10**7), "simulator")
            write("/structure_state", "tensegrity/msg/StructureState", k, message, digest)
    return path


def test_the_layout_of_a_bag_is_known(tmp_path: Path) -> None:
    with Bag(record(tmp_path / "bag", PRISM)) as bag:
        assert read_contents(bag).layout == type_of(PRISM).codec(PRISM).layout.hash  # type: ignore[union-attr]
        assert changed_types(bag) == set()
    write_report(tmp_path / "bag", tmp_path / "page.html")


def test_states_of_another_robot_than_the_bag_names_make_no_report(tmp_path: Path) -> None:
    bag = record(tmp_path / "bag", OTHER, named=PRISM)
    with pytest.raises(TensegrityError, match="belong to other names"):
        write_report(bag, tmp_path / "page.html")


def test_bags_of_two_layouts_are_not_compared(tmp_path: Path) -> None:
    with Bag(record(tmp_path / "one", PRISM)) as one, Bag(record(tmp_path / "two", OTHER)) as two:
        assert all(each.largest == 0.0 for each in compare_bags(one, one).errors)
        with pytest.raises(TensegrityError, match="belong to different names"):
            compare_bags(one, two)


def test_a_bag_of_before_is_read_by_its_names_and_known_as_such(tmp_path: Path) -> None:
    path = record(tmp_path / "old", PRISM, layout=False, digest="RIHS01_" + "0" * 64)
    with Bag(path) as bag:
        assert read_contents(bag).layout == ""
        assert changed_types(bag) == {"/structure_state"}
    write_report(path, tmp_path / "page.html")
