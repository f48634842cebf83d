"""Readings of IMUs between plain values and sensor_msgs/Imu; needs no rclpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from sensor_msgs.msg import Imu

from .geometry_messages import nanoseconds


def imu_message(rod: str, reading: NDArray[np.float64], stamp: Time, noise: float) -> Imu:
    """A reading (3,) m/s^2 in the rod's axes; orientation and angular velocity are marked as not measured.

    Args:
        rod: the frame. noise: rad, of the direction.
    """
    message = Imu()
    message.header.stamp, message.header.frame_id = stamp, rod
    force = message.linear_acceleration
    force.x, force.y, force.z = reading.tolist()
    message.orientation_covariance[0] = message.angular_velocity_covariance[0] = -1.0
    message.linear_acceleration_covariance = ((noise * np.linalg.norm(reading)) ** 2 * np.eye(3)).ravel()
    return message


def imu_from_message(message: Any) -> tuple[str, tuple[float, float, float], float]:
    """Rod, specific force [m/s^2] and time [s] of a sensor_msgs/Imu, as `ImuReadings.take` has them.

    What says that it has no acceleration (a covariance that begins with -1) has none that is finite.
    """
    force = message.linear_acceleration
    is_given = message.linear_acceleration_covariance[0] != -1.0
    value = (force.x, force.y, force.z) if is_given else (np.nan, np.nan, np.nan)
    return message.header.frame_id, value, 1e-9 * nanoseconds(message.header.stamp)


def is_due(rate: float, stamp: int, period: int) -> bool:
    """Whether a sensor of so many readings a second tells at a time [ns] of control periods [ns]; rate 0: always."""
    return rate == 0.0 or int(1e-9 * rate * stamp + 1e-6) > int(1e-9 * rate * (stamp - period) + 1e-6) or stamp == 0
