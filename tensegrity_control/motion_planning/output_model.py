"""A mechanism in independent coordinates w with the position of its output, p = f(w): what output plans rest on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.body_frame import BodyFrame
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import MovingStates, ReducedModel, single_coordinates
from tensegrity_dynamics.mechanisms.kinematics.independent_coordinates import wrench_jacobian
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot


class OutputModel(ReducedModel):
    """See `ReducedModel`.

    Args:
        robot: a mechanism with actuators and an output of which positions alone are controlled.
        coordinates: names of all independent coordinates, of joints with one coordinate each. Without it: the driven
            joints, and of the others those that carry the most mass, as far as they are independent at the start.

    Raises:
        TensegrityError: a name is unknown or belongs to a joint with several coordinates, the coordinates are not
            independent or not all, or the output controls rotations.
    """

    def __init__(self, robot: Robot, coordinates: Sequence[str] | None = None) -> None:
        self.output: BodyFrame = robot.output  # type: ignore[assignment]
        if any(axis.startswith("r") for axis in self.output.controlled):
            raise TensegrityError(f"output {self.output.name} controls rotations; paths are positions, name x, y, z.")
        robot.model_as(MechanismModel).need_elastic_cables("this control")
        self.rows = self.output.rows
        chosen = (None, None) if coordinates is None else single_coordinates(robot.mechanism, coordinates)
        super().__init__(robot, *chosen)
        self._poses = BodyPoses(robot.model_as(MechanismModel))

    def outputs_along(self, start: Array, states: Array, efforts: Array) -> MovingStates:
        """`states_along` for states (k, 2n) under efforts (k, u), with the output's controlled coordinates."""
        count = self.index.size
        body = int(self.mechanism.body_index[self.output.body])
        return self.states_along(
            start, states[:, :count], states[:, count:], efforts, body, np.array(self.output.frame.origin), self.rows
        )

    def output_position(self, q: Array) -> Array:
        """(k,) m, the controlled coordinates of the output."""
        return np.asarray(self._poses.update(q).output(self.output)[0][0][self.rows])

    def output_jacobian(self, q: Array) -> Array:
        """J (k, n) with p' = J w'."""
        basis = self._basis(q, np.zeros(self._held.size))
        return np.asarray(
            wrench_jacobian(self.mechanism, q, self.output.body, self.output.frame.origin)[3:][self.rows] @ basis
        )
