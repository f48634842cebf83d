"""Output frames, to which goal poses refer. Every kind of robot has its own class, such as `NodeFrame`, `BodyFrame`."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.rotations import matrix_from_quaternion, rotation_vector
from .model import Pose

AXES = ("x", "y", "z", "rx", "ry", "rz")


class OutputFrame(ABC):
    """Output frame of the end effector; `RobotModel.output_pose` gives its pose at a configuration.

    Attributes:
        name: name of the frame in ROS.
        controlled: axes set by a goal pose, out of x, y, z (m, world axes) and rx, ry, rz (rad, about world axes).
    """

    name: str
    controlled: Sequence[str]

    @property
    def rows(self) -> NDArray[np.int64]:
        """(k,) indices of the controlled axes within x, y, z, rx, ry, rz."""
        return np.array([AXES.index(axis) for axis in self.controlled], dtype=np.int64)

    def distance(self, goal: Pose, pose: Pose) -> tuple[float, float]:
        """Distance [m] and angle [rad] from a pose to a goal along the controlled axes."""
        error = np.zeros(6)
        error[self.rows] = pose_error(goal, pose)[self.rows]
        return float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))

    def distance_to_request(self, position: ArrayLike, quaternion: ArrayLike | None, pose: Pose) -> tuple[float, float]:
        """Distance [m] and angle [rad] from a pose to a requested position (3,) m and quaternion (4,), None if open.

        All axes count, because a request for an axis that is not controlled is not fulfilled either. Only a position is
        no request if the output controls rotations alone, since messages always contain one.
        """
        goal = np.asarray(position), np.asarray(pose[1] if quaternion is None else quaternion)
        error = pose_error(goal, pose)
        distance = float(np.linalg.norm(error[:3])) if np.any(self.rows < 3) else 0.0
        return distance, float(np.linalg.norm(error[3:]))

    def _check_controlled(self) -> None:
        for axis in self.controlled:
            if axis not in AXES:
                raise TensegrityError(f"output {self.name}: " + unknown_name("axis", axis, AXES))
        if len(set(self.controlled)) != len(self.controlled) or not self.controlled:
            raise TensegrityError(f"output {self.name}: controlled axes must be named once each, at least one.")


def pose_error(goal: Pose, actual: Pose) -> NDArray[np.float64]:
    """(6,) from actual to goal: position difference [m] and rotation vector about world axes [rad]."""
    turn = matrix_from_quaternion(goal[1]) @ matrix_from_quaternion(actual[1]).T
    return np.concatenate((np.asarray(goal[0]) - np.asarray(actual[0]), rotation_vector(turn)))
