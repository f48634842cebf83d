"""Poses of the bodies, the cables and the output of a mechanism at one configuration."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.compilation import QuickCall, allocation_free
from ..numerics.rotations import quaternion_from_matrix, quaternions_from_matrices
from ..robots.output_frame import Pose
from .body_frame import BodyFrame
from .cable_routing import CableEntry
from .joints import INVOLUTE_RIGID, JOINT_KINDS, cable_length
from .kinematics.body_kinematics import body_kinematics
from .mechanism import Mechanism
from .route_readings import polylines, wound_lines
from .routing.late_call import call_routed_cables
from .workspace import Workspace, make_workspace


@allocation_free
def fill_cable_lengths(kind, radius, start, q, length):
    """Fill length (c,) m with the taut lengths of cables from joint kind, radius and index of the first coordinate."""
    for c in range(kind.shape[0]):
        length[c] = cable_length(kind[c], radius[c], q[start[c] :])


@allocation_free
def fill_twists(velocity, position, twist):
    """Fill twist (b, 6) = [linear velocity of the origin, angular velocity] from origins (b, 3) and spatial velocities
    (b, 6) = [angular, linear at the origin of the world]."""
    for i in range(velocity.shape[0]):
        x, y, z = position[i, 0], position[i, 1], position[i, 2]
        a, b, c = velocity[i, 0], velocity[i, 1], velocity[i, 2]
        twist[i, 0] = velocity[i, 3] + b * z - c * y
        twist[i, 1] = velocity[i, 4] + c * x - a * z
        twist[i, 2] = velocity[i, 5] + a * y - b * x
        twist[i, 3], twist[i, 4], twist[i, 5] = a, b, c


class CableMechanism(Protocol):
    """Mechanism with the cables of its robot file, such as `MechanismModel`."""

    @property
    def mechanism(self) -> Mechanism:
        """Bodies, joints and loops."""

    @property
    def entries(self) -> tuple[CableEntry, ...]:
        """Cables in the order of the file."""


class BodyPoses:
    """Poses of the bodies and lengths of the cables at the configuration of the last `update`.

    Args:
        model: the mechanism. An object has its own arrays; use one object per thread.
        work: arrays of a caller that evaluates all equations and calls `take` instead of `update`.
    """

    def __init__(self, model: CableMechanism, work: Workspace | None = None) -> None:
        self.model = model
        mechanism = model.mechanism
        self._work: Workspace = make_workspace(mechanism.flat) if work is None else work
        self._still, self._move = np.zeros(mechanism.velocity_count), QuickCall(body_kinematics)
        index = mechanism.body_index
        self._cables = [
            (index[f"{entry.name}-cable"], mechanism.positions_of(entry.joints[2]), mechanism.joint(entry.joints[2]))
            for entry in model.entries
        ]
        joints = [joint for _, _, joint in self._cables]
        self._kinds = np.array([JOINT_KINDS[joint.kind] for joint in joints], dtype=np.int64)
        self._radii = np.array([joint.radius for joint in joints], dtype=np.float64)
        self._starts = np.array([at.start for _, at, _ in self._cables], dtype=np.int64)
        self._is_rigid = self._kinds == INVOLUTE_RIGID
        self._fill_lengths, self._fill_twists = QuickCall(fill_cable_lengths), QuickCall(fill_twists)

    def take(self, q: NDArray) -> BodyPoses:
        """Use positions q (nq,) at which the caller has just evaluated the equations in `work`; returns itself."""
        self._q = q
        return self

    def update(self, q: NDArray, v: NDArray | None = None) -> BodyPoses:
        """Compute poses at position q (nq,) and velocity v (nv,), zero by default; returns itself."""
        self._q = np.ascontiguousarray(q, dtype=np.float64)
        v = self._still if v is None else np.ascontiguousarray(v, dtype=np.float64)
        self._move(self.model.mechanism.flat, self._q, v, self._work)
        if self.model.mechanism.routes:
            call_routed_cables(self.model.mechanism.flat, self._q, v, self._work)
        return self

    @property
    def positions(self) -> NDArray[np.float64]:
        """(b, 3) m, origins of the bodies in sweep order, in the world frame."""
        return self._work.position.copy()

    @property
    def rotations(self) -> NDArray[np.float64]:
        """(b, 3, 3), axes of the bodies as columns, in the world frame."""
        return self._work.rotation.copy()

    @property
    def quaternions(self) -> NDArray[np.float64]:
        """(b, 4) wxyz, orientations of the bodies in the world frame."""
        return quaternions_from_matrices(self._work.rotation)

    @property
    def twists(self) -> NDArray[np.float64]:
        """(b, 6): linear velocity of every body's origin [m/s] and angular velocity [rad/s], in world axes."""
        twists = np.empty((len(self._work.velocity), 6))
        self._fill_twists(self._work.velocity, self._work.position, twists)
        return twists

    def cables(self) -> NDArray[np.float64]:
        """(c, 2, 3) m: the point where each cable leaves its pulley, and the end of the cable."""
        ends = np.zeros((len(self._cables), 2, 3))
        for k, (body, at, joint) in enumerate(self._cables):
            length = cable_length(JOINT_KINDS[joint.kind], joint.radius, self._q[at])
            along = self._work.rotation[body][:, 0]
            ends[k, 1] = self._work.position[body]
            ends[k, 0] = ends[k, 1] - length * along
        return ends

    def lengths(self) -> NDArray[np.float64]:
        """(c,) m, taut length of every cable beyond its pulley."""
        lengths = np.empty(len(self._cables))
        self._fill_lengths(self._kinds, self._radii, self._starts, self._q, lengths)
        return lengths

    def rest_lengths(self) -> NDArray[np.float64]:
        """(c,) m, rest length of the free part of every cable."""
        return np.asarray(self._radii * self._q[self._starts])

    def strains(self) -> NDArray[np.float64]:
        """(c,) strain of every cable; zero for rigid cables."""
        strains = self.lengths() / self.rest_lengths() - 1.0
        strains[self._is_rigid] = 0.0
        return np.asarray(strains)

    def routes(self) -> list[NDArray[np.float64]]:
        """(n, 3) m, centre line of every routed cable; the number of points is constant."""
        return polylines(self.model.mechanism, self._work)

    def drums(self, most: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lines (d, n, 3) m of the cable wound on each drum, up to `most` rad, and their radii (d,) m."""
        return wound_lines(self.model.mechanism, self._work, self._q, most)

    def output(self, output: BodyFrame) -> tuple[Pose, NDArray[np.float64]]:
        """Pose of the output in the world, and its twist (6,): linear m/s, angular rad/s."""
        index = self.model.mechanism.body_index
        if output.body not in index:
            raise TensegrityError(f"output {output.name}: " + unknown_name("body", output.body, index))
        i = index[output.body]
        if i < 0:
            rotation, position, velocity = np.eye(3), np.zeros(3), np.zeros(6)
        else:
            rotation, position, velocity = self._work.rotation[i], self._work.position[i], self._work.velocity[i]
        origin = position + rotation @ output.frame.origin
        pose = (origin, quaternion_from_matrix(rotation @ output.frame.axes))
        twist = np.empty((1, 6))
        self._fill_twists(velocity[None], origin[None], twist)
        return pose, twist[0]
