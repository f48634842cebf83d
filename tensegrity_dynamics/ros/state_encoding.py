"""From state records to StructureState messages; the counterpart of `state_decoding`."""

from __future__ import annotations

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Twist, Vector3
from tensegrity.msg import StructureState

from ..robots.state_record import StateRecord
from .geometry_messages import fill_pose, fill_twist

WORLD = "world"


def state_message(record: StateRecord, stamp: Time, source: str) -> StructureState:
    """The message of a record; source: "simulator" or "estimator"."""
    message = StructureState(source=source, residual=float(record.residual), converged=bool(record.converged))
    message.header.stamp, message.header.frame_id = stamp, WORLD
    if record.node_name:
        message.node_name = list(record.node_name)
        message.node_position = [Point(x=x, y=y, z=z) for x, y, z in record.node_position.tolist()]
        message.node_velocity = [Vector3(x=x, y=y, z=z) for x, y, z in record.node_velocity.tolist()]
    if record.body_name:
        message.body_name = list(record.body_name)
        message.body_pose = [
            fill_pose(Pose(), position, quaternion)
            for position, quaternion in zip(record.body_position, record.body_quaternion, strict=True)
        ]
        message.body_twist = [fill_twist(Twist(), each) for each in record.body_twist]
    if record.coordinate_name:
        message.coordinate_name = list(record.coordinate_name)
        message.q, message.v = record.q.tolist(), record.v.tolist()
    message.output_name = record.output_name
    if record.output_pose is not None:
        fill_pose(message.output_pose, *record.output_pose)
    if record.output_twist is not None:
        fill_twist(message.output_twist, record.output_twist)
    return message
