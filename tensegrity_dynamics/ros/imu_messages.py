"""Conversion of IMU readings between plain values and sensor_msgs/Imu, without rclpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from sensor_msgs.msg import Imu

from .geometry_messages import nanoseconds


def imu_message(rod: str, reading: NDArray[np.float64], stamp: Time, noise: float) -> Imu:
    """Message of a reading (3,) [m/s^2] in the axes of the rod; orientation and angular velocity are not measured.

    Args:
        rod: name of the frame. noise: standard deviation of the direction [rad].
    """
    message = Imu()
    message.header.stamp, message.header.frame_id = stamp, rod
    force = message.linear_acceleration
    force.x, force.y, force.z = reading.tolist()
    message.orientation_covariance[0] = message.angular_velocity_covariance[0] = -1.0
    message.linear_acceleration_covariance = ((noise * np.linalg.norm(reading)) ** 2 * np.eye(3)).ravel()
    return message


def imu_from_message(message: Any) -> tuple[str, tuple[float, float, float], float]:
    """Rod, specific force [m/s^2] and time [s] of a sensor_msgs/Imu, as arguments of `ImuReadings.take`.

    If the message has no acceleration (covariance beginning with -1), the specific force is not finite.
    """
    force = message.linear_acceleration
    is_given = message.linear_acceleration_covariance[0] != -1.0
    value = (force.x, force.y, force.z) if is_given else (np.nan, np.nan, np.nan)
    return message.header.frame_id, value, 1e-9 * nanoseconds(message.header.stamp)


def is_due(rate: float, stamp: int, period: int) -> bool:
    """Whether a sensor with a rate [1/s] publishes at a time [ns], for a control period [ns]; rate 0: always."""
    return rate == 0.0 or int(1e-9 * rate * stamp + 1e-6) > int(1e-9 * rate * (stamp - period) + 1e-6) or stamp == 0
