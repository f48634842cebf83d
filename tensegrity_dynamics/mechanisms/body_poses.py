"""Poses of the bodies, cables and output of a mechanism at one configuration."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.rotations import quaternion_from_matrix, quaternions_from_matrices
from ..robots.output_frame import Pose
from .body_frame import BodyFrame
from .cable_routing import CableEntry
from .joints import INVOLUTE_RIGID, JOINT_KINDS, cable_length
from .kinematics.body_kinematics import body_kinematics
from .mechanism import Mechanism
from .route_readings import polylines
from .routing.late_call import call_routed_cables
from .workspace import Workspace, make_workspace


class CableMechanism(Protocol):
    """A mechanism with the cables that a robot file states, such as `MechanismModel`."""

    @property
    def mechanism(self) -> Mechanism:
        """Bodies, joints and loops."""

    @property
    def entries(self) -> tuple[CableEntry, ...]:
        """Cables in the order of the file."""


class BodyPoses:
    """Poses of the bodies and lengths of the cables at the configuration of the last `update`.

    Args:
        model: the mechanism; every object keeps its own arrays, so take one for each thread.
    """

    def __init__(self, model: CableMechanism) -> None:
        self.model = model
        mechanism = model.mechanism
        self._work: Workspace = make_workspace(mechanism.flat)
        self._still = np.zeros(mechanism.velocity_count)
        index = mechanism.body_index
        self._cables = [
            (index[f"{entry.name}-cable"], mechanism.positions_of(entry.joints[2]), mechanism.joint(entry.joints[2]))
            for entry in model.entries
        ]

    def update(self, q: NDArray, v: NDArray | None = None) -> BodyPoses:
        """Move to position q (nq,) and velocity v (nv,), zero by default; returns itself."""
        self._q = np.ascontiguousarray(q, dtype=np.float64)
        body_kinematics(self.model.mechanism.flat, self._q, self._still if v is None else v, self._work)
        if self.model.mechanism.routes:
            call_routed_cables(self.model.mechanism.flat, self._q, self._still if v is None else v, self._work)
        return self

    @property
    def positions(self) -> NDArray[np.float64]:
        """(b, 3) m, origins of the bodies in sweep order, in the world."""
        return self._work.position.copy()

    @property
    def rotations(self) -> NDArray[np.float64]:
        """(b, 3, 3), axes of the bodies as columns, in the world."""
        return self._work.rotation.copy()

    @property
    def quaternions(self) -> NDArray[np.float64]:
        """(b, 4) wxyz."""
        return quaternions_from_matrices(self._work.rotation)

    @property
    def twists(self) -> NDArray[np.float64]:
        """(b, 6): linear velocity of every body's origin [m/s] and angular velocity [rad/s], in world axes."""
        angular = self._work.velocity[:, :3]
        linear = self._work.velocity[:, 3:] + np.cross(angular, self._work.position)
        return np.hstack((linear, angular))

    def cables(self) -> NDArray[np.float64]:
        """(c, 2, 3) m: the point where each cable leaves its pulley, and its end."""
        ends = np.zeros((len(self._cables), 2, 3))
        for k, (body, at, joint) in enumerate(self._cables):
            length = cable_length(JOINT_KINDS[joint.kind], joint.radius, self._q[at])
            along = self._work.rotation[body][:, 0]
            ends[k, 1] = self._work.position[body]
            ends[k, 0] = ends[k, 1] - length * along
        return ends

    def lengths(self) -> NDArray[np.float64]:
        """(c,) m, taut length of every cable beyond its pulley."""
        return np.array(
            [cable_length(JOINT_KINDS[joint.kind], joint.radius, self._q[at]) for _, at, joint in self._cables]
        )  # fmt: skip

    def rest_lengths(self) -> NDArray[np.float64]:
        """(c,) m, rest length of the part of every cable that is off its pulley."""
        return np.array([joint.radius * self._q[at.start] for _, at, joint in self._cables])

    def strains(self) -> NDArray[np.float64]:
        """(c,) strain of every cable; zero for rigid ones."""
        rest = self.rest_lengths()
        rigid = np.array([JOINT_KINDS[joint.kind] == INVOLUTE_RIGID for _, _, joint in self._cables], dtype=np.bool_)
        return np.where(rigid, 0.0, self.lengths() / rest - 1.0) if rest.size else rest

    def routes(self) -> list[NDArray[np.float64]]:
        """(n, 3) m, the line of every routed cable; always as many points."""
        return polylines(self.model.mechanism, self._work)

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
        linear = velocity[3:] + np.cross(velocity[:3], origin)
        pose = (origin, quaternion_from_matrix(rotation @ output.frame.axes))
        return pose, np.concatenate((linear, velocity[:3]))
