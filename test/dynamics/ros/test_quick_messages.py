"""Messages that are made without their constructors are the same messages."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("rclpy", reason="messages come with ROS")

from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message, serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, TimeReference
from std_msgs.msg import Header
from tensegrity.msg import ActuatorCommand, TendonState

from tensegrity_dynamics.ros.quick_messages import header, quick_message

AT = Time(sec=3, nanosec=5)
NAMES = ["a", "b"]
MESSAGES: list[tuple[type, dict[str, Any]]] = [
    (Time, {"sec": 3, "nanosec": 5}),
    (Header, {"stamp": AT, "frame_id": "world"}),
    (Clock, {"clock": AT}),
    (JointState, {"header": Header(stamp=AT), "name": NAMES, "position": [1.0, 2.0], "effort": [3.0, 4.0]}),
    (TimeReference, {"header": Header(stamp=AT), "time_ref": AT, "source": "controller"}),
    (TendonState, {"header": Header(stamp=AT), "layout": "x", "name": NAMES, "tension": [5.0, 6.0]}),
    (ActuatorCommand, {"header": Header(stamp=AT), "newest_reading": AT, "mode": 3, "name": NAMES, "damping": [8.0]}),
]


@pytest.mark.parametrize(("kind", "fields"), MESSAGES, ids=[kind.__name__ for kind, _ in MESSAGES])
def test_a_message_made_quickly_arrives_as_the_same_message(kind: type, fields: dict[str, Any]) -> None:
    made, usual = (serialize_message(each) for each in (quick_message(kind, **fields), kind(**fields)))
    assert len(made) == len(usual)  # what fills the gaps between fields is left open
    assert deserialize_message(made, kind) == deserialize_message(usual, kind) == kind(**fields)


def test_a_header_has_its_frame() -> None:
    assert header(AT, "world") == Header(stamp=AT, frame_id="world")


def test_no_two_messages_share_a_list() -> None:
    first, second = (quick_message(JointState, header=Header()) for _ in range(2))
    first.name.append("a")
    first.position.append(1.0)
    assert len(second.name) == len(second.position) == len(quick_message(JointState, header=Header()).name) == 0


def test_a_field_that_does_not_exist_or_is_missing_is_refused() -> None:
    with pytest.raises(TypeError, match="positions"):
        quick_message(JointState, header=Header(), positions=[1.0])
    with pytest.raises(TypeError, match="needs header"):
        quick_message(JointState, name=NAMES)
