"""A goal pose, and the error that remains to it on the axes that the robot controls.

The rotation error is the rotation vector e of R_goal R'. Under a rotation w of the body it changes by -J(e) w with the
inverse right Jacobian of the rotation group,

    J(e) = I + 1/2 [e]x + (1/|e|^2 - cot(|e|/2) / (2 |e|)) [e]x^2

which matters where some axes are free, since their error stays large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.rotations import cross_matrix, matrix_from_quaternion, quaternion_from_matrix
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import AXES, Pose, pose_error

IGNORED = 1e-3
"""m by which a goal may differ along an axis that is not controlled before its sender hears of it."""


@dataclass(frozen=True, eq=False)
class PoseGoal:
    """Goal pose of the output frame.

    Args:
        position: (3,) m in the world frame.
        quaternion: (4,) w, x, y, z of unit norm.
        output: the `OutputFrame` that is meant; only its controlled axes count.
    """

    position: Array
    quaternion: Array
    output: Any

    @property
    def pose(self) -> Pose:
        """Position (3,) m and quaternion wxyz (4,)."""
        return self.position, self.quaternion

    def error(self, pose: Pose) -> Array:
        """(p,) m and rad from a pose of the output to the goal, on the controlled axes."""
        return np.asarray(pose_error(self.pose, pose)[self.output.rows])

    def note(self, pose: Pose) -> str:
        """A sentence where the position differs from that of a pose along axes that the output does not control."""
        differs = np.abs(np.append(np.subtract(self.position, pose[0]), np.zeros(3))) > IGNORED
        differs[self.output.rows] = False
        axes = ", ".join(AXES[row] for row in np.flatnonzero(differs))
        return f"{axes} of {self.output.name} are not controlled; they follow from the others." if axes else ""

    def jacobian(self, pose: Pose, pose_jacobian: Array) -> Array:
        """(p, a): how fast the error shrinks at a pose, for the Jacobian (6, a) of the pose there."""
        turned = np.array(pose_jacobian)
        turned[3:] = rotation_error_rate(pose_error(self.pose, pose)[3:]) @ pose_jacobian[3:]
        return turned[self.output.rows]

    def weights(self) -> Array:
        """(p,) that turn m and rad into comparable errors: rotations count with the frame's radius [m]."""
        spread = self.output.points - self.output.points.mean(axis=0)
        radius = float(np.sqrt(np.mean(np.sum(spread**2, axis=1)))) if self.output.nodes.size > 1 else 1.0
        return np.array([1.0, 1.0, 1.0, radius, radius, radius])[self.output.rows]


def make_goal(
    output: Any, position: ArrayLike | None, quaternion: ArrayLike | None, present: Pose | None = None
) -> PoseGoal:
    """Check a goal; a position (3,) m or quaternion (4,) w, x, y, z that is None stays as at the `present` pose.

    Raises:
        TensegrityError: both are None, or a number is missing, not finite, or the quaternion is zero.
    """
    if position is None and quaternion is None:
        raise TensegrityError("a goal needs a position, a quaternion or both; there is neither.")
    location, orientation = (None, None) if present is None else present
    if position is not None:
        location = _vector(position, 3, "position", "x, y, z in m")
    if quaternion is not None:
        orientation = _vector(quaternion, 4, "quaternion", "w, x, y, z")
        if float(np.linalg.norm(orientation)) < 1e-6:
            raise TensegrityError("the goal's quaternion is zero and means no orientation; give w, x, y, z, unit norm.")
        orientation = quaternion_from_matrix(matrix_from_quaternion(orientation))
    if location is None or orientation is None:
        raise TensegrityError("a goal with only a position or only a quaternion needs a present pose to keep the rest.")
    return PoseGoal(np.asarray(location), np.asarray(orientation), output)


def _vector(values: ArrayLike, size: int, what: str, meaning: str) -> Array:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TensegrityError(f"the goal's {what} is {values!r}; give {size} numbers {meaning}.") from None
    if array.shape != (size,):
        raise TensegrityError(f"the goal's {what} has shape {array.shape}; give {size} numbers {meaning}.")
    if not np.all(np.isfinite(array)):
        raise TensegrityError(f"the goal's {what} {array.tolist()} is not finite; give {size} numbers {meaning}.")
    return array


def rotation_error_rate(error: Array) -> Array:
    """(3, 3) matrix J(e) of this module for a rotation vector (3,) rad."""
    angle = float(np.linalg.norm(error))
    cross = cross_matrix(error)
    if angle < 1e-4:
        curve = 1.0 / 12.0
    else:
        curve = 1.0 / angle**2 - 1.0 / (2.0 * angle * np.tan(0.5 * angle))
    return np.eye(3) + 0.5 * cross + curve * cross @ cross
