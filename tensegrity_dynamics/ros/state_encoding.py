"""From state records to StructureState messages; the counterpart of `state_decoding`.

Numbers go in one piece: an array for all nodes, all bodies. A message for every vector in it would cost more time than
the physics that it tells of.
"""

from __future__ import annotations

from array import array

import numpy as np
from builtin_interfaces.msg import Time
from tensegrity.msg import StructureState

from ..numerics.types import Array
from ..robots.state_record import StateRecord
from .geometry_messages import fill_pose, fill_twist

WORLD = "world"
TO_MESSAGE = [0, 1, 2, 4, 5, 6, 3]
"""Columns of position and quaternion wxyz in the order of ROS, which has w last."""


def numbers(values: Array) -> array[float]:
    """All numbers of an array one row after the other, as messages hold them."""
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def state_message(record: StateRecord, stamp: Time, source: str) -> StructureState:
    """The message of a record; source: "simulator" or "estimator"."""
    message = StructureState(source=source, residual=float(record.residual), converged=bool(record.converged))
    message.header.stamp, message.header.frame_id = stamp, WORLD
    if record.node_name:
        message.node_name = list(record.node_name)
        message.node_position, message.node_velocity = numbers(record.node_position), numbers(record.node_velocity)
    if record.body_name:
        message.body_name = list(record.body_name)
        message.body_pose = numbers(np.hstack((record.body_position, record.body_quaternion))[:, TO_MESSAGE])
        message.body_twist = numbers(record.body_twist)
    if record.coordinate_name:
        message.coordinate_name = list(record.coordinate_name)
        message.q, message.v = numbers(record.q), numbers(record.v)
    message.output_name = record.output_name
    if record.output_pose is not None:
        fill_pose(message.output_pose, *record.output_pose)
    if record.output_twist is not None:
        fill_twist(message.output_twist, record.output_twist)
    return message
