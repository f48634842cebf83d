"""Conversion of state records to StructureState messages; the counterpart of `state_decoding`.

Values are in flat arrays for all nodes or all bodies. A message for every vector would take more time than the
simulation. For the bus, a buffer is serialised once and only its numbers are replaced. Names are not included: they are
on the latched topic `robot_layout`, and messages contain its hash.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import replace
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message, serialize_message
from tensegrity.msg import StructureState

from ..numerics.types import Array
from ..robots.state_record import FIGURES, StateRecord
from .geometry_messages import fill_pose, fill_twist
from .quick_messages import header

WORLD = "world"
TO_MESSAGE = [0, 1, 2, 4, 5, 6, 3]
"""Columns of position and quaternion wxyz in the order of ROS, which has w last."""


def numbers(values: Array) -> array[float]:
    """All values of an array in row order, in the form of message fields."""
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def state_message(record: StateRecord, stamp: Time, source: str) -> StructureState:
    """Message of a record; source: "simulator" or "estimator"."""
    figures = {name: float(getattr(record, name)) for name in FIGURES}
    message = StructureState(source=source, converged=bool(record.converged), **figures)
    message.header.stamp, message.header.frame_id = stamp, WORLD
    message.layout, named = record.layout, not record.layout
    if record.node_name:
        if named:
            message.node_name = list(record.node_name)
        message.node_position, message.node_velocity = numbers(record.node_position), numbers(record.node_velocity)
    if record.body_name:
        if named:
            message.body_name = list(record.body_name)
        message.body_pose = numbers(np.hstack((record.body_position, record.body_quaternion))[:, TO_MESSAGE])
        message.body_twist = numbers(record.body_twist)
    if record.coordinate_name:
        if named:
            message.coordinate_name = list(record.coordinate_name)
        message.q, message.v = numbers(record.q), numbers(record.v)
    message.output_name = record.output_name
    message.output_pose.orientation.w = 0.0  # no pose, in contrast to the world frame
    if record.output_pose is not None:
        fill_pose(message.output_pose, *record.output_pose)
    if record.output_twist is not None:
        fill_twist(message.output_twist, record.output_twist)
    return message


FILLED = frozenset(StructureState.__slots__)


class InsideState(StructureState):
    """Message of a record for nodes of the same process, whose fields are filled when one of them is read.

    Controllers use the record (`state_decoding.record_of`), because filling and reading the message would take as long
    as the control law.

    Args:
        record, stamp, source: as for `state_message`.
    """

    def __init__(self, record: StateRecord, stamp: Time, source: str) -> None:
        self.record = record
        self._check_fields = False
        self._header = header(stamp, WORLD)
        self._source, self._layout, self._converged = source, record.layout, bool(record.converged)

    def __getattr__(self, name: str) -> Any:
        """Value of a field that is not filled yet."""
        if name not in FILLED:
            raise AttributeError(name)
        whole = state_message(self.record, self._header.stamp, self._source)
        for each in FILLED - {"_header"}:
            setattr(self, each, getattr(whole, each))
        return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructureState) and state_message(self.record, self.header.stamp, self.source) == other


HEADER = 4
"""Number of bytes before the first field, from which the middleware format (CDR) measures alignment."""
STAMP = "=iI"
FIELDS = ("node_position", "node_velocity", "body_pose", "body_twist", "q", "v")
MARKED = Time(sec=0x5A17B3C1, nanosec=0x1C3B71A5)
"""Marker stamp for finding its position in the bytes."""


class StateBuffer:
    """Serialisation of records of one robot; the bytes are equivalent to those of `state_message`."""

    def __init__(self) -> None:
        self._made_for: tuple[Any, ...] | None = None
        self._buffer = bytearray()
        self._numbers: dict[str, Array] = {}

    def __call__(self, record: StateRecord, stamp: Time, source: str) -> bytes:
        """Bytes of a record; source as in `state_message`."""
        made_for = (
            source, record.converged, record.output_name, record.node_name, record.body_name, record.coordinate_name,
            record.output_pose is None, record.output_twist is None, len(record.node_position), len(record.body_twist),
            len(record.q), len(record.v), len(record.node_velocity), len(record.body_position), record.layout,
        )  # fmt: skip
        if made_for != self._made_for:
            self._lay_out(record, source)
            self._made_for = made_for
        struct.pack_into(STAMP, self._buffer, HEADER, stamp.sec, stamp.nanosec)
        numbers = self._numbers
        for name in FIGURES:
            numbers[name][0] = getattr(record, name)
        if "node_position" in numbers:
            numbers["node_position"][:] = record.node_position.ravel()
            numbers["node_velocity"][:] = record.node_velocity.ravel()
        if "body_pose" in numbers:
            poses, quaternions = numbers["body_pose"].reshape(-1, 7), record.body_quaternion
            poses[:, :3], poses[:, 3:6], poses[:, 6] = record.body_position, quaternions[:, 1:], quaternions[:, 0]
            numbers["body_twist"][:] = record.body_twist.ravel()
        if "q" in numbers:
            numbers["q"][:], numbers["v"][:] = record.q, record.v
        if record.output_pose is not None:
            position, quaternion = record.output_pose
            pose = numbers["output_pose"]
            pose[:3], pose[3:6], pose[6] = position, quaternion[1:], quaternion[0]
        if record.output_twist is not None:
            numbers["output_twist"][:] = record.output_twist
        return bytes(self._buffer)

    def _lay_out(self, record: StateRecord, source: str) -> None:
        """Serialise a message of this form and find the positions of its values with unique marker values."""
        none: dict[str, Any] = dict.fromkeys(FIGURES, 0.0)
        message = state_message(replace(record, **none), MARKED, source)
        count = 0

        def marks(size: int) -> list[float]:
            nonlocal count
            count += size
            return [np.pi * (count - size + k + 1) for k in range(size)]

        desired: dict[str, list[float]] = {}
        for field in FIELDS:
            if size := len(getattr(message, field)):
                desired[field] = marks(size)
                setattr(message, field, array("d", desired[field]))
        x, y, z, a, b, c, w = desired["output_pose"] = marks(7)
        fill_pose(message.output_pose, (x, y, z), (w, a, b, c))
        desired["output_twist"] = marks(6)
        fill_twist(message.output_twist, np.array(desired["output_twist"]))
        for name in FIGURES:
            desired[name] = marks(1)
            setattr(message, name, desired[name][0])
        made = serialize_message(message)
        # bytes after the message are undefined memory; `converged` is the last field
        end = made.rindex(struct.pack("=d", desired[FIGURES[-1]][0])) + 8 + 1
        self._buffer = bytearray(made[:end])
        assert deserialize_message(bytes(self._buffer), StructureState) == message
        assert struct.unpack_from(STAMP, self._buffer, HEADER) == (MARKED.sec, MARKED.nanosec)
        numbers = np.frombuffer(self._buffer, np.float64, (len(self._buffer) - HEADER) // 8, HEADER)
        self._numbers = {}
        for field, values in desired.items():
            (begin,) = np.flatnonzero(numbers == values[0])
            self._numbers[field] = numbers[begin : begin + len(values)]
            assert self._numbers[field].tolist() == values
        if record.output_pose is None:
            self._numbers["output_pose"][:] = 0.0
        if record.output_twist is None:
            self._numbers["output_twist"][:] = 0.0


def publish_state(publisher: Any, buffer: StateBuffer, record: StateRecord, stamp: Time, source: str) -> None:
    """Publish a record as bytes, and as a message to subscribers in this process."""
    if getattr(publisher, "heard_by", ()):
        publisher.publish(InsideState(record, stamp, source), lambda: buffer(record, stamp, source))
    else:
        publisher.publish(buffer(record, stamp, source))
