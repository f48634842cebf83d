"""Shapes of a mechanism by its actuators' positions, with poses, tensions and how both answer to the actuators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.mechanisms.kinematics.independent_coordinates import wrench_jacobian
from tensegrity_dynamics.mechanisms.kinematics.parallel_kinematics import BodyOutput
from tensegrity_dynamics.mechanisms.mechanism_model import BodyPoses, MechanismModel
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.statics.sensitivity import sensitivity
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PathEquilibrium:
    """An equilibrium with the actuators at `positions` (a,) rad or m; pose of the output, tensions (c,) N of cables."""

    positions: Array
    pose: Pose
    tensions: Array
    shape: MechanismEquilibrium


@dataclass(frozen=True, eq=False)
class PathSlopes:
    """What a shape does per rad or m of the actuators: pose (6, a) m and rad, tensions (c, a) N; slowest period [s]."""

    pose: Array
    tensions: Array
    slowest_period: float


class PathEquilibriumSolver:
    """Finds shapes of one mechanism; keeps its arrays.

    Args:
        robot: a mechanism with actuators and an output.

    Raises:
        TensegrityError: it has none, or no stable shape with its actuators at their start.
    """

    def __init__(self, robot: Robot) -> None:
        if not robot.actuators:
            raise TensegrityError(f"{robot.name} has no actuators; name its driven joints under 'actuators'.")
        self.robot, self.model = robot, robot.model_as(MechanismModel)
        self.output: BodyOutput = robot.output  # type: ignore[assignment]
        self.joints = tuple(self.model.joint_of(each.drives) for each in robot.actuators)
        self._solver = MechanismEquilibriumSolver(self.model.mechanism, self.joints)
        self._places = BodyPoses(self.model)
        starts = [self.model.start[self.model.mechanism.positions_of(name)][0] for name in self.joints]
        self.home = self.solve(np.array(starts), self.model.start)

    def solve(self, positions: Array, start: PathEquilibrium | Array) -> PathEquilibrium:
        """The stable shape near a start for positions (a,) rad or m.

        Raises:
            TensegrityError: there is none.
        """
        q = start.shape.q if isinstance(start, PathEquilibrium) else start
        wanted = dict(zip(self.joints, np.asarray(positions, dtype=np.float64), strict=True))
        try:
            shape = self._solver.solve(q, wanted)
        except NoEquilibriumError as error:
            raise TensegrityError(f"{self.robot.name} has no shape there: {error}") from error
        if not shape.stable:
            raise TensegrityError(f"{self.robot.name} would not stay in its shape there (softest {shape.softest:.3g}).")
        pose, _ = self._places.move(shape.q).output(self.output)
        return PathEquilibrium(np.array(positions, dtype=np.float64), pose, shape.tension, shape)

    def slopes(self, shape: PathEquilibrium) -> PathSlopes:
        """Derivatives at a shape."""
        found = sensitivity(self._solver, shape.shape)
        mechanism = self.model.mechanism
        order = [int(np.flatnonzero(found.held == mechanism.velocities_of(name).start)[0]) for name in self.joints]
        motion = found.motion[:, order]
        jacobian = wrench_jacobian(mechanism, shape.shape.q, self.output.body, self.output.frame.origin)
        twist = np.vstack((jacobian[3:], jacobian[:3])) @ motion
        return PathSlopes(twist, found.tension[:, order], found.slowest_period)

    def cable_of(self, actuator: int) -> int:
        """Index among the elastic cables of the one that an actuator winds; -1 where it drives another joint."""
        names = [cable.name for cable in self.model.mechanism.cables]
        driven = self.robot.actuators[actuator].drives
        return names.index(driven) if driven in names else -1
