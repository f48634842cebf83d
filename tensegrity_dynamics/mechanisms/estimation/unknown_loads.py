"""Unknown loads on a mechanism: a wrench at its output, friction efforts of gears, and deviations of cable stiffness.

They are states of the observer, d = (f, r, s): f is the wrench along the controlled axes of the output (W f of 000,
1.2.31), r the effort that each joint gets in addition to the reported effort of its actuator, and s the relative
deviation of the stiffness of each cable from its Young's modulus and area, T = (1 + s) E A strain. They change slowly,

    d' = -d / t + noise,   so that without readings   cov d = prior

and w'' depends linearly on them, like on efforts: w'' = w''(d = 0) + D d.

The observability depends on the readings. Positions and efforts of the actuators give the tensions at rest, one number
for each driven cable; n - a of them belong to the motions that no actuator holds. A force at the output shifts tensions
between cables, and a higher stiffness increases all of them, so that both can be distinguished. A mass above its
nominal value has the same effect as a force at the output, and so has friction of an actuator. A force on another body
is estimated as an equivalent load with the same effect on the tensions. Stiffness deviations of single cables are
distinguished from forces by the prior only, that is, poorly. Therefore r is estimated in place of f if the efforts are
currents of geared servos. If friction were treated as noise, a constant friction in one direction would be estimated as
a motion in this direction: 8 mm/s at the output of a manipulator at rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...numerics.rotations import matrix_from_quaternion
from ...numerics.types import Array
from ...robots.output_frame import AXES, Pose
from ...robots.robot import Robot
from ...robots.units import STANDARD_GRAVITY
from ..body_frame import BodyFrame
from ..dynamics.reduced_model import ReducedModel
from ..kinematics.independent_coordinates import wrench_jacobian
from ..mechanism_model import MechanismModel

LOAD_MEMORY, CABLE_MEMORY = 3.0, 100000.0
"""Time constants t of d [s]: of loads, which change, and of cable stiffness, which is nearly constant."""
ALIKE = 0.9
"""Correlated fraction of the variance of the cable stiffness, because the cables are cut from the same drum."""
DRIVE_MEMORY = 0.5
"""Time constant t of the friction of gears [s], which is constant while a gear turns in one direction."""
LARGEST_LOAD = 1.0
"""Limit of the estimated wrench, relative to the weight of the robot."""
LARGEST_EFFORT = 3.0
"""Limit of the estimated friction effort of gears, relative to its prior standard deviation."""
LARGEST_STIFFNESS = 1.0
"""Upper limit of s; the lower limit is minus half of it."""
TURNS = 1e-6
"""Singular value of the rotations of an output by unit rates above which it can turn about one more axis."""
TRIAL = 0.1
"""Difference step for D, relative to the prior; its size is not critical, because w'' is linear in d."""


@dataclass(frozen=True, eq=False)
class UnknownLoad:
    """Estimated unknown loads.

    Attributes:
        names: names of the entries of d, such as "x" (axes of the output), "friction of B1" and "stiffness of B1".
        values: (d,) wrench in world axes at the origin of the output [N and N m], efforts at the joints [N m or N], and
            relative stiffness deviations.
        covariance: (d, d) covariance of the values.
        forces: number of entries of d that belong to the wrench. body: body of the output; empty without wrench.
        wrench: (6,) wrench at the origin of the body [N and N m], in the form of `Simulation.apply_forces`.
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    forces: int
    body: str
    wrench: Array


class UnknownLoads:
    """Unknown load states d of one robot.

    Args:
        robot: robot with a mechanism as its model.
        load: prior standard deviation of the force relative to the weight of the robot, and of the moment relative to
            the weight times the distance of the farthest body; 0: no such states.
        elasticity: prior standard deviation of s; 0: no such states.
        drives: (a,) prior standard deviations of r [N m or N]; None: no such states.

    Attributes:
        count: number of states d. forces: number of states of the wrench. efforts: states that belong to r.
        cables: (c,) indices of the cables with a state.
        names: see `UnknownLoad`. prior: (d, d). memory: (d,) time constants [s]. low, high: (d,) limits of d.
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
                self._axes = _resisted(model, self._output)  # type: ignore[arg-type]
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
        self._is_aside = bool(self._local.any())  # whether the output is not at the origin of its body
        self._pose: Pose | None = None
        self._arm = [0.0, 0.0, 0.0]

    def slowed(self, bandwidth: float, told: Array, interval: float) -> Array:
        """Prior (d, d) with loads that change so slowly that efforts tell them with a bandwidth [1/s], at most.

        For one load that changes with the density q = 2 prior / t and efforts that tell it with the density r, the
        Kalman filter has the bandwidth sqrt(q / r).

        Args:
            told: (a, f) efforts per load of the wrench, relative to their noise. interval: s between two readings.
        """
        result, count = self.prior.copy(), self.forces
        least = 2.0 / (LOAD_MEMORY * bandwidth**2) * (told.T @ told) / interval
        result[:count, :count] = np.linalg.inv(np.linalg.inv(self.prior[:count, :count]) + least)
        return result

    def wrench(self, values: Array, pose: Pose | None) -> Array:
        """(6,) wrench at the origin of the body [N and N m], for d and the pose of the output."""
        wrench = np.zeros(6)
        wrench[self._axes] = values[: self.forces]
        if pose is not None and self._is_aside:
            if pose is not self._pose:  # called several times with the same pose
                self._pose, self._arm = pose, (matrix_from_quaternion(pose[1]) @ self._local).tolist()
            x, y, z = self._arm
            a, b, c = wrench[:3].tolist()
            wrench[3:] += (y * c - z * b, z * a - x * c, x * b - y * a)
        return wrench

    def applied(self, values: Array, pose: Pose | None, given: Array) -> tuple[Array, Array]:
        """Loads (b, 6) [moment, force] and relative stiffness (c,) of the cables, for d in addition to known loads."""
        load, stiffness = given.copy(), self._stated.copy()
        if self.forces:
            wrench = self.wrench(values, pose)
            load[self._row, :3] += wrench[3:]
            load[self._row, 3:] += wrench[:3]
        stiffness[self.cables] += values[self.efforts.stop :]
        return load, stiffness

    def given(self, effort: Array, values: Array) -> Array:
        """(a,) efforts at the joints, from the reported efforts of the actuators and d."""
        return effort + values[self.efforts] if self.efforts.stop > self.efforts.start else effort

    def columns(
        self, model: ReducedModel, q: Array, effort: Array, values: Array, pose: Pose | None, given: Array
    ) -> Array:
        """D (n, d) at rest at a configuration (nq,) under efforts (a,)."""
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


def _resisted(model: MechanismModel, output: BodyFrame) -> NDArray[np.int64]:
    """Controlled axes of an output along which a load is estimated: without its moments, if it may also turn about axes
    that it does not control. As soon as it has turned, a moment about part of the axes would spin it about these, and
    nothing would tell of it."""
    rows: NDArray[np.int64] = output.rows
    turns = wrench_jacobian(model.mechanism, model.start, output.body, np.asarray(output.frame.origin))[:3]
    is_partly_free = 0 < np.count_nonzero(rows >= 3) < np.linalg.matrix_rank(turns, tol=TURNS)
    return rows[rows < 3] if is_partly_free else rows


def _size(model: MechanismModel) -> float:
    """Distance [m] from the output to the farthest body at the start; it scales moments relative to forces."""
    from ..body_poses import BodyPoses

    positions = BodyPoses(model).update(model.start).positions
    return float(max(np.max(np.linalg.norm(positions - positions.mean(axis=0), axis=1)), 1e-3))
