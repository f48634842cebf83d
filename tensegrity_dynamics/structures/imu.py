"""IMUs on rods: direction of gravity in the axes of a rod.

A model of pin-jointed nodes contains the positions of the rod ends, but not the rotation of the rod about its own axis.
So only the elevation of the rod is used from an IMU: the angle of its axis above the horizontal. The frame of the rod
is that of the robot description: z points from the first node of the member to the second one. A simulated reading has
x in the vertical plane of the rod, upwards, and y = 0. A real IMU can have any rotation about the rod.

The reading is the output of an attitude filter: the specific force of a rod at rest, with the magnitude of gravity,
without the accelerations of the motion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.types import Array


@dataclass(frozen=True)
class Imu:
    """IMU of a robot file.

    Attributes:
        bar: bar that carries it. noise: standard deviation of the direction about each of two perpendicular axes [rad].
        rate: rate of its messages [1/s], 0 for one message in every control period. seed: seed of the noise.
    """

    bar: str
    noise: float = 0.0
    rate: float = 0.0
    seed: int = 0


def read_imu(imu: Imu, axis: Array, gravity: Array, count: int) -> Array:
    """(3,) reading in the axes of the rod [m/s^2].

    Args:
        axis: (3,) unit vector along the rod. gravity: (3,) m/s^2.
        count: number of the reading; repeated calls with the same number have the same noise.
    """
    (x, y, z), (g_x, g_y, g_z) = axis.tolist(), gravity.tolist()
    along = -(g_x * x + g_y * y + g_z * z)
    across = math.hypot(g_x + along * x, g_y + along * y, g_z + along * z)
    reading = np.array([across, 0.0, along])
    if imu.noise > 0.0 and (size := math.hypot(across, along)) > 0.0:
        first, second = imu.noise * np.random.default_rng((imu.seed, count)).normal(size=2)
        up = reading / size
        aside = np.array([0.0, 1.0, 0.0])
        turned = up + np.tan(first) * aside + np.tan(second) * np.cross(up, aside)
        reading = size * turned / np.linalg.norm(turned)
    return reading


def elevation(reading: ArrayLike) -> float:
    """Elevation of the z axis of the rod above the horizontal [rad], from a reading (3,) [m/s^2].

    It does not depend on the rotation of the IMU about the rod."""
    x, y, z = np.asarray(reading, dtype=np.float64).tolist()
    return float(np.arctan2(z, np.hypot(x, y)))


def elevations(nodes: Array, ends: NDArray[np.int64], up: Array) -> Array:
    """(k,) elevations of rods with ends (k, 2) above the horizontal [rad], at nodes (n, 3) [m]; up: (3,) unit
    vector."""
    axes = nodes[ends[:, 1]] - nodes[ends[:, 0]]
    return np.asarray(np.arcsin(np.clip(axes @ up / np.linalg.norm(axes, axis=1), -1.0, 1.0)))
