"""What acts on a mechanism and stands in no model: a wrench at its output, what gears take of efforts, and cables that
are stiffer than was stated.

They are states of the observer, d = (f, r, s): f the wrench along the axes that the output controls (W f of 000,
1.2.31), r what reaches each joint beside the effort that its actuator tells, s by how much each cable is stiffer than
its Young's modulus and area say, T = (1 + s) E A strain. They change slowly,

    d' = -d / t + noise,   so that without readings   cov d = prior

and w'' follows them linearly, as efforts: w'' = w''(d = 0) + D d.

What can be distinguished follows from what is read. Positions and efforts of the actuators give the tensions at rest,
as many numbers as there are driven cables; n - a of them belong to the motions that no actuator holds. A force at the
output shifts tensions among cables; stiffer cables raise them all alike, so both are seen. A mass that is heavier than
stated looks like a force at the output, friction of an actuator like a force, too; a push on another body is put where
it changes the same tensions. Single cables that differ are separated from forces by the prior alone: by little. So r is
looked for in place of f, where efforts are currents of geared servos: taken for noise, friction that goes on in one
direction would be seen as a motion in it, of 8 mm/s at the output of a manipulator that stood still.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...numerics.rotations import matrix_from_quaternion
from ...numerics.types import Array
from ...robots.output_frame import AXES, Pose
from ...robots.robot import Robot
from ...robots.units import STANDARD_GRAVITY
from ..dynamics.reduced_model import ReducedModel
from ..mechanism_model import MechanismModel

LOAD_MEMORY, CABLE_MEMORY = 3.0, 100000.0
"""t [s] of d: loads come and go, cables stay what they are."""
ALIKE = 0.9
"""Part of the cables' variance that they share: they are cut from one drum."""
DRIVE_MEMORY = 0.5
"""The same of what gears take: friction stays the same as long as a gear turns one way."""
LARGEST_LOAD = 1.0
"""Of the robot's weight: a larger wrench is not believed."""
LARGEST_EFFORT = 3.0
"""The same of what gears take, in parts of its prior deviation."""
LARGEST_STIFFNESS = 1.0
"""The same of s upwards; downwards its half."""
TRIAL = 0.1
"""Part of the prior by which D is read off; w'' is linear, so its size does not matter."""


@dataclass(frozen=True, eq=False)
class UnknownLoad:
    """What the observer has found.

    Attributes:
        names: of the d entries below, such as "x" (axes of the output), "friction of B1" and "stiffness of B1".
            values: (d,) N and N m in world axes at the output's origin, N m or N at the joints, then parts of the
            stiffness. covariance: (d, d) of these.
        forces: how many of d belong to the wrench. body: that carries the output, or empty without such states.
        wrench: (6,) N and N m at the body's origin, as `Simulation.apply_forces` takes it.
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    forces: int
    body: str
    wrench: Array


class UnknownLoads:
    """The states d of one robot.

    Args:
        robot: a mechanism. load: prior deviation of the force in parts of the robot's weight, and of the moment in
            that times the distance of the farthest body; 0: no such states. elasticity: prior deviation of s; 0: none.
        drives: (a,) N m or N, prior deviations of r; None: none.

    Attributes:
        count: d. forces: how many of d belong to the wrench. efforts: which of d are r. cables: (c,) indices of those
            with a state.
        names: see `UnknownLoad`. prior: (d, d). memory: (d,) s. low, high: (d,) what is believed.
    """

    def __init__(self, robot: Robot, load: float, elasticity: float, drives: Array | None = None) -> None:
        model = robot.model_as(MechanismModel)
        mechanism = model.mechanism
        self._output = robot.outputs[0] if robot.outputs and load > 0.0 else None
        self.body, self._row, self._local = "", -1, np.zeros(3)
        self._axes = np.zeros(0, dtype=np.int64)
        if self._output is not None:
            self.body = self._output.body  # type: ignore[attr-defined]
            self._row = mechanism.body_index[self.body]
            frame = self._output.frame  # type: ignore[attr-defined]
            self._local = frame.axes.T @ frame.origin
            if self._row >= 0:
                self._axes = self._output.rows
        weight = STANDARD_GRAVITY * float(np.sum(mechanism.flat.mass))
        sizes = np.where(self._axes < 3, weight, weight * _size(model))
        soft = elasticity > 0.0
        self.cables = np.array(
            [k for k, cable in enumerate(mechanism.cables) if soft and np.isfinite(cable.young)], dtype=np.int64
        )
        taken = np.zeros(0) if drives is None else drives
        forces, cables = self._axes.size, self.cables.size
        self.forces, self.efforts = forces, slice(forces, forces + taken.size)
        first = self.efforts.stop
        self.count = first + cables
        self.names = (
            *(AXES[axis] for axis in self._axes),
            *(f"friction of {each.name}" for each in robot.actuators[: taken.size]),
            *(f"stiffness of {mechanism.cables[k].name}" for k in self.cables),
        )
        self.prior = np.zeros((self.count, self.count))
        self.prior[:first, :first] = np.diag(np.concatenate((load * sizes, taken)) ** 2)
        shared = ALIKE * np.ones((cables, cables)) + (1.0 - ALIKE) * np.eye(cables)
        self.prior[first:, first:] = elasticity**2 * shared
        self.memory = np.repeat((LOAD_MEMORY, DRIVE_MEMORY, CABLE_MEMORY), (forces, taken.size, cables))
        most = np.concatenate((LARGEST_LOAD * sizes, LARGEST_EFFORT * taken))
        self.high = np.concatenate((most, np.full(cables, LARGEST_STIFFNESS)))
        self.low = np.concatenate((-most, np.full(cables, -0.5 * LARGEST_STIFFNESS)))
        self._stated = np.ones(len(mechanism.cables))
        self._is_aside = bool(self._local.any())  # the output is not at the origin of its body
        self._pose: Pose | None = None
        self._arm = [0.0, 0.0, 0.0]

    def wrench(self, values: Array, pose: Pose | None) -> Array:
        """(6,) N and N m at the origin of the body, for d and the pose of the output."""
        wrench = np.zeros(6)
        wrench[self._axes] = values[: self.forces]
        if pose is not None and self._is_aside:
            if pose is not self._pose:  # asked for several times with the same one
                self._pose, self._arm = pose, (matrix_from_quaternion(pose[1]) @ self._local).tolist()
            x, y, z = self._arm
            a, b, c = wrench[:3].tolist()
            wrench[3:] += (y * c - z * b, z * a - x * c, x * b - y * a)
        return wrench

    def applied(self, values: Array, pose: Pose | None, given: Array) -> tuple[Array, Array]:
        """Loads (b, 6) [moment, force] and stiffness (c,) in parts of what was stated, for d beside known loads."""
        load, stiffness = given.copy(), self._stated.copy()
        if self.forces:
            wrench = self.wrench(values, pose)
            load[self._row, :3] += wrench[3:]
            load[self._row, 3:] += wrench[:3]
        stiffness[self.cables] += values[self.efforts.stop :]
        return load, stiffness

    def given(self, effort: Array, values: Array) -> Array:
        """(a,) efforts that reach the joints, of those that actuators tell."""
        return effort + values[self.efforts] if self.efforts.stop > self.efforts.start else effort

    def columns(
        self, model: ReducedModel, q: Array, effort: Array, values: Array, pose: Pose | None, given: Array
    ) -> Array:
        """D (n, d) at rest in a position (nq,) under efforts (a,)."""
        rate = np.zeros(model.index.size)
        result = np.empty((rate.size, self.count))
        model.take_loads(*self.applied(values, pose, given))
        before = model.accelerations(q, rate, self.given(effort, values))
        for k, step in enumerate((TRIAL * np.sqrt(np.diag(self.prior))).tolist()):
            other = values.copy()
            other[k] += step
            model.take_loads(*self.applied(other, pose, given))
            result[:, k] = (model.accelerations(q, rate, self.given(effort, other)) - before) / step
        model.take_loads(*self.applied(values, pose, given))
        return result


def _size(model: MechanismModel) -> float:
    """m from the output to the farthest body, at the start; makes moments of forces."""
    from ..body_poses import BodyPoses

    positions = BodyPoses(model).update(model.start).positions
    return float(max(np.max(np.linalg.norm(positions - positions.mean(axis=0), axis=1)), 1e-3))
