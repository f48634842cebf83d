"""A mechanism in independent coordinates w with the pose of its output, p = f(w): the model of output plans.

For outputs with rotations, p contains the position and the rotation vector from the orientation at the start, R =
exp(r) R_0. The error from a path is the rotation vector of R R_d', about world axes like the Jacobian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.body_frame import BodyFrame
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import MovingStates, ReducedModel, named_coordinates
from tensegrity_dynamics.mechanisms.kinematics.independent_coordinates import wrench_jacobian
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    quaternions_from_matrices,
    rotation_vector,
    turned_by,
    vectors_between,
)
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose, pose_error
from tensegrity_dynamics.robots.robot import Robot

MOST_TURN = 3.0
"""rad, largest rotation from the start; at half a turn the rotation vector changes its sign."""


class OutputModel(ReducedModel):
    """Reduced model with the output, see `ReducedModel`.

    Args:
        robot: a mechanism with actuators and an output that controls positions, all rotations, or both; some rotations
            only if it turns about no other axes.
        coordinates: names of all independent coordinates, of joints with quaternions all or none. None: the driven
            joints, and of the others those with the largest inertia, as far as they are independent at the start.

    Raises:
        TensegrityError: a name is unknown, coordinates are dependent or missing, or the output controls some rotations
            but turns about other axes as well.
    """

    def __init__(self, robot: Robot, coordinates: Sequence[str] | None = None) -> None:
        self.output: BodyFrame = robot.output  # type: ignore[assignment]
        robot = replace(robot, model=robot.model_as(MechanismModel).holding_cables())
        self.rows = self.output.rows
        self.turning = np.flatnonzero(self.rows >= 3)
        super().__init__(robot, None if coordinates is None else named_coordinates(robot.mechanism, coordinates))
        self._poses = BodyPoses(robot.model_as(MechanismModel))
        start = np.array(robot.model_as(MechanismModel).start)
        self._origin = matrix_from_quaternion(self._poses.update(start).output(self.output)[0][1])
        if 0 < self.turning.size < 3:
            self._check_plane(start)

    def _check_plane(self, q: Array) -> None:
        """Raise TensegrityError if the output turns about axes that it does not control."""
        free = np.setdiff1d(np.arange(3), self.rows[self.turning] - 3)
        basis = self._basis(q, np.zeros(self._held.size))
        moves = wrench_jacobian(self.mechanism, q, self.output.body)[free] @ basis
        if np.max(np.abs(moves)) > 1e-9:
            raise TensegrityError(
                f"output {self.output.name} controls {', '.join(self.output.controlled)} and turns about other axes, "
                "too; name all of rx, ry, rz, or none. The controller qp takes it as it is."
            )

    def coordinates(self, pose: Pose) -> Array:
        """(k,) m and rad of a pose of the output. Raises TensegrityError if its rotation from the start exceeds
        `MOST_TURN`."""
        if not self.turning.size:
            return np.asarray(pose[0])[self.rows]
        turn = rotation_vector(matrix_from_quaternion(pose[1]) @ self._origin.T)
        angle = float(np.linalg.norm(turn))
        if angle > MOST_TURN:
            raise TensegrityError(
                f"the output would be turned by {np.degrees(angle):.0f} deg from its start; this controller plans up "
                f"to {np.degrees(MOST_TURN):.0f} deg, qp further."
            )
        return np.asarray(np.concatenate((pose[0], turn))[self.rows])

    def pose_at(self, values: Array, near: Pose) -> Pose:
        """Pose with coordinates (k,); components that are not controlled are those of `near`."""
        both = np.concatenate((near[0], np.zeros(3)))
        both[self.rows] = values
        if not self.turning.size:
            return both[:3], near[1]
        return both[:3], quaternion_from_matrix(matrix_from_vector(both[3:]) @ self._origin)

    def outputs_along(self, start: Array, states: Array, efforts: Array) -> MovingStates:
        """`states_along` for states (k, 2n) under efforts (k, u), with the controlled axes of the output."""
        count = self.index.size
        body = int(self.mechanism.body_index[self.output.body])
        return self.states_along(
            start, states[:, :count], states[:, count:], efforts, body, np.array(self.output.frame.origin), self.rows
        )

    def errors_along(self, moved: MovingStates, values: Array) -> Array:
        """`output_error` (k, p) of states relative to outputs with coordinates (k, p)."""
        if not self.turning.size:
            return np.asarray(moved.points[:, self.rows] - values)
        desired = np.hstack((moved.points, np.zeros_like(moved.points)))
        desired[:, self.rows] = values
        # vector of exp(r) (R R_0')', the rotation from R to exp(r) R_0
        turned = quaternions_from_matrices(moved.turns @ (self.output.frame.axes @ self._origin.T))
        left = vectors_between(turned_by((1.0, 0.0, 0.0, 0.0), -desired[:, 3:]), turned * (1.0, -1.0, -1.0, -1.0))
        off = np.hstack((moved.points - desired[:, :3], -left))
        return np.asarray(off[:, self.rows])

    def output_position(self, q: Array) -> Array:
        """(k,) m and rad, the controlled coordinates of the output."""
        return self.coordinates(self._poses.update(q).output(self.output)[0])

    def output_error(self, q: Array, values: Array) -> Array:
        """(k,) m and rad about world axes, error of the output relative to the pose with coordinates (k,)."""
        pose = self._poses.update(q).output(self.output)[0]
        if not self.turning.size:
            return np.asarray(pose[0][self.rows] - values)
        return -np.asarray(pose_error(self.pose_at(values, pose), pose)[self.rows])

    def output_jacobian(self, q: Array) -> Array:
        """J (k, n): velocities and angular velocities of the controlled axes are J w'."""
        basis = self._basis(q, np.zeros(self._held.size))
        wrench = wrench_jacobian(self.mechanism, q, self.output.body, self.output.frame.origin)
        return np.asarray(wrench[[3, 4, 5, 0, 1, 2]][self.rows] @ basis)
