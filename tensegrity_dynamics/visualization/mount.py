"""Pose of the `base_link` of a robot in a world shared by several robots.

All data of a robot (states, goals, robot file) are in the axes of its `base_link`; the mount transforms pictures to the
common world.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..numerics.rotations import matrix_from_quaternion, matrix_from_roll_pitch_yaw, quaternion_from_matrix
from ..robots.output_frame import Pose

BASE_LINK = "base_link"


@dataclass(frozen=True, eq=False)
class Mount:
    """Fixed transform from the world to `base_link`.

    Args:
        position: (3,) position of base_link in the world [m].
        rotation: (3, 3) axes of base_link as columns.
    """

    position: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    rotation: NDArray[np.float64] = field(default_factory=lambda: np.eye(3))

    @property
    def pose(self) -> Pose:
        """Pose of base_link in the world."""
        return self.position, quaternion_from_matrix(self.rotation)

    @property
    def is_identity(self) -> bool:
        """Whether base_link is equal to the world frame."""
        return not self.position.any() and bool(np.array_equal(self.rotation, np.eye(3)))

    def to_world(self, pose: Pose) -> Pose:
        """Convert a pose from base_link to the world."""
        turned = self.rotation @ matrix_from_quaternion(pose[1])
        return self.position + self.rotation @ pose[0], quaternion_from_matrix(turned)

    def from_world(self, pose: Pose) -> Pose:
        """Convert a pose from the world to base_link."""
        turned = self.rotation.T @ matrix_from_quaternion(pose[1])
        return self.rotation.T @ (pose[0] - self.position), quaternion_from_matrix(turned)


def parse_mount(text: str) -> Mount:
    """Mount from a text: x y z [m], then roll pitch yaw [degrees] about x, y and z of the world; "" for the identity.

    Raises:
        TensegrityError: the text does not consist of three or six finite numbers.
    """
    words = text.replace(",", " ").split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = [np.nan]
    if len(numbers) not in (0, 3, 6) or not np.all(np.isfinite(numbers)):
        raise TensegrityError(
            f"the mount {text!r} is none: give x y z in m, and roll pitch yaw in degrees where it is turned."
        )
    if not numbers:
        return Mount()
    turn = np.eye(3) if len(numbers) == 3 else matrix_from_roll_pitch_yaw(np.radians(numbers[3:]))
    return Mount(np.array(numbers[:3]), turn)
