"""Conversion of times, poses and twists between plain values and messages, without rclpy (except `time_message`)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from numpy.typing import ArrayLike, NDArray

from ..errors import TensegrityError
from ..robots.carried_payload import CarriedPayload
from ..robots.model import Pose
from .quick_messages import header, quick_message

HUGE = 1e9
"""Upper limit of masses [kg] and positions [m] that can be displayed."""
LATEST = 2.0**31 - 1.0
"""Largest time [s] that a message can represent."""


def time_message(nanoseconds: int) -> Time:
    """Time message from nanoseconds. Raises TensegrityError for negative times, or for times above the message
    range."""
    if not 0 <= nanoseconds < 2**31 * 1_000_000_000:
        raise TensegrityError(f"a stamp of {1e-9 * nanoseconds:.10g} s is not between 0 and 2147483648 s.")
    return quick_message(Time, sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def nanoseconds(stamp: Any) -> int:
    """Nanoseconds of a builtin_interfaces/Time."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def seconds(stamp: Any) -> float:
    """Time of a builtin_interfaces/Time [s]."""
    return stamp.sec + 1e-9 * stamp.nanosec


def pose_from_message(message: Any) -> Pose | None:
    """Position (3,) m and quaternion wxyz (4,) of a geometry_msgs/Pose.

    None if it is not finite, has no orientation, or was never set (a pose equal to the world frame counts as not set).
    """
    position, quaternion = _values(message)
    if quaternion == (1.0, 0.0, 0.0, 0.0) and position == (0.0, 0.0, 0.0):
        return None
    return pose_from_values(position, quaternion)


def stated_pose(message: Any) -> Pose | None:
    """As `pose_from_message`, for messages with a zero orientation if there is no pose; the world frame is then a valid
    pose."""
    return pose_from_values(*_values(message))


def state_pose(state: Any) -> Pose | None:
    """Pose of the output in a StructureState, which can be equal to the world frame; None if there is no pose.

    If an output has a name but no pose, the orientation of the message is zero.
    """
    return (stated_pose if state.output_name else pose_from_message)(state.output_pose)


def _values(message: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    at, turn = message.position, message.orientation
    return (at.x, at.y, at.z), (turn.w, turn.x, turn.y, turn.z)


def pose_from_values(position: tuple[float, ...], quaternion: tuple[float, ...]) -> Pose | None:
    """Pose from x, y, z and w, x, y, z; None if it is not finite or has no orientation."""
    w, x, y, z = quaternion
    norm = math.sqrt(w * w + x * x + y * y + z * z)
    if not all(map(math.isfinite, (*position, norm))) or norm < 1e-6:
        return None
    return np.array(position), np.array(quaternion) / norm


def wrench_from_message(message: Any) -> tuple[str, tuple[float, ...], tuple[float, ...], float]:
    """Body or node, force [N], moment [N m] and time [s] of a geometry_msgs/WrenchStamped, in the order of `take`."""
    force, moment = message.wrench.force, message.wrench.torque
    values = (force.x, force.y, force.z), (moment.x, moment.y, moment.z)
    return (message.header.frame_id, *values, 1e-9 * nanoseconds(message.header.stamp))


def wrench_message(stamp: Time, body: str, wrench: list[float]) -> WrenchStamped:
    """Message of a wrench on a body, six numbers, N and N m."""
    force, torque = (quick_message(Vector3, x=x, y=y, z=z) for x, y, z in (wrench[:3], wrench[3:]))
    return quick_message(
        WrenchStamped, header=header(stamp, body), wrench=quick_message(Wrench, force=force, torque=torque)
    )


def payload_from_message(message: Any) -> tuple[str, float, tuple[float, ...], tuple[tuple[float, ...], ...], float]:
    """Body or node, mass [kg], centre [m], inertia [kg m^2] and time [s] of a geometry_msgs/InertiaStamped."""
    item = message.inertia
    centre = (item.com.x, item.com.y, item.com.z)
    rows = ((item.ixx, item.ixy, item.ixz), (item.ixy, item.iyy, item.iyz), (item.ixz, item.iyz, item.izz))
    return message.header.frame_id, item.m, centre, rows, 1e-9 * nanoseconds(message.header.stamp)


def fill_carried(message: Any, carried: Iterable[CarriedPayload]) -> Any:
    """Write the payloads of a robot to a CarriedPayloads message; returns the message."""
    for name, mass, centre, inertia in carried:
        message.name.append(name)
        message.mass.append(mass)
        message.centre.extend(centre)
        message.inertia.extend(inertia)
    return message


def _rows(numbers: NDArray[np.float64], length: int) -> list[Any]:
    return [tuple(row) for row in numbers.reshape(-1, length).tolist()]


def carried_from_message(message: Any) -> tuple[CarriedPayload, ...]:
    """Payloads of a robot; none if the message is inconsistent or has values that cannot be displayed.

    Without inertias (recordings of earlier versions), all payloads are point masses.
    """
    centres, masses, count = np.array(message.centre), np.array(message.mass), len(message.name)
    inertias = np.array(getattr(message, "inertia", ()), dtype=np.float64)
    inertias = inertias if inertias.size else np.zeros(6 * count)
    if (masses.shape, centres.shape, inertias.shape) != ((count,), (3 * count,), (6 * count,)):
        return ()
    if not np.all(np.abs([*masses, *centres, *inertias]) < HUGE):
        return ()
    rows = zip(message.name, masses.tolist(), _rows(centres, 3), _rows(inertias, 6), strict=True)
    return tuple(CarriedPayload(*row) for row in rows if row[1] > 0.0)


def fill_payload(message: Any, payload: CarriedPayload, stamp: int) -> Any:
    """Write a payload that is valid from a stamp [ns] on to a geometry_msgs/InertiaStamped; returns the message."""
    message.header.stamp, message.header.frame_id = time_message(stamp), payload.name
    item, centre = message.inertia, message.inertia.com
    item.m, (centre.x, centre.y, centre.z) = payload.mass, payload.centre
    item.ixx, item.ixy, item.ixz, item.iyy, item.iyz, item.izz = payload.inertia
    return message


def fill_pose(message: Any, position: ArrayLike, quaternion: ArrayLike) -> Any:
    """Write position (3,) [m] and quaternion wxyz (4,) to a geometry_msgs/Pose; returns the message."""
    message.position.x, message.position.y, message.position.z = np.asarray(position, dtype=np.float64).tolist()
    orientation = message.orientation
    orientation.w, orientation.x, orientation.y, orientation.z = np.asarray(quaternion, dtype=np.float64).tolist()
    return message


def fill_twist(message: Any, twist: NDArray[np.float64]) -> Any:
    """Write a twist (6,), linear then angular, to a geometry_msgs/Twist; returns the message."""
    values = np.asarray(twist, dtype=np.float64).tolist()
    message.linear.x, message.linear.y, message.linear.z = values[:3]
    message.angular.x, message.angular.y, message.angular.z = values[3:]
    return message
