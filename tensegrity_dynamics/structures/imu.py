"""IMUs on rods: the direction of gravity in a rod's own axes.

A model of pin-jointed nodes knows where the ends of a rod are, but not how the rod is turned about itself. So of what
an IMU tells only the rod's elevation counts, the angle of its axis above the horizontal. The rod's frame is that of
the robot description: z from the member's first node to its second. What is simulated has x in the vertical plane of
the rod, upwards, and y = 0; a real IMU may be turned about the rod as it likes.

The reading is what an attitude filter gives: the specific force of a rod at rest, as long as gravity, without the
accelerations of the motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..numerics.types import Array


@dataclass(frozen=True)
class Imu:
    """An IMU of a robot file.

    Attributes:
        bar: that carries it. noise: rad, deviation of the direction in each of two axes across it. rate: 1/s, of its
            messages by the clock, 0 for one in every control period. seed: of the noise.
    """

    bar: str
    noise: float = 0.0
    rate: float = 0.0
    seed: int = 0


def read_imu(imu: Imu, axis: Array, gravity: Array, count: int) -> Array:
    """(3,) m/s^2, what it reads in the rod's axes.

    Args:
        axis: (3,) unit vector along the rod. gravity: (3,) m/s^2. count: of the reading; the same one has the same
            noise, however often it is read.
    """
    force = -gravity
    along = float(force @ axis)
    across = float(np.linalg.norm(force - along * axis))
    reading = np.array([across, 0.0, along])
    size = float(np.linalg.norm(reading))
    if imu.noise > 0.0 and size > 0.0:
        first, second = imu.noise * np.random.default_rng((imu.seed, count)).normal(size=2)
        up = reading / size
        aside = np.array([0.0, 1.0, 0.0])
        turned = up + np.tan(first) * aside + np.tan(second) * np.cross(up, aside)
        reading = size * turned / np.linalg.norm(turned)
    return reading


def elevation(reading: ArrayLike) -> float:
    """rad, of the rod's z axis above the horizontal, by a reading (3,) m/s^2, however it is turned about the rod."""
    x, y, z = np.asarray(reading, dtype=np.float64).tolist()
    return float(np.arctan2(z, np.hypot(x, y)))


def elevations(nodes: Array, ends: NDArray[np.int64], up: Array) -> Array:
    """(k,) rad, of rods with ends (k, 2) above the horizontal, at nodes (n, 3) m; up: (3,) unit vector."""
    axes = nodes[ends[:, 1]] - nodes[ends[:, 0]]
    return np.asarray(np.arcsin(np.clip(axes @ up / np.linalg.norm(axes, axis=1), -1.0, 1.0)))
