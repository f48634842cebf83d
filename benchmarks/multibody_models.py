"""Models for the multibody benchmarks: a mechanism as its equivalent in Pinocchio, and a tower of struts on struts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
from numpy.typing import NDArray

from tensegrity_dynamics.multibody.equations import equations
from tensegrity_dynamics.multibody.mechanism import Mechanism

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))  # the machines that the tests are about


class PinocchioPeer:
    """A mechanism of ordinary and `length` involute joints with ball-joint loops, as a Pinocchio model.

    An involute joint in its `length` variant becomes a revolute joint of the *block*, by psi = pulley angle + phi about
    the pulley's axis, and a prismatic joint tangential to the pulley at its radius: the same motion from the same
    number of coordinates. The pulley keeps its own revolute joint and inertia; an effort on phi acts on psi and, in
    reverse, on the pulley. Pinocchio needs a regular M, thus a mass at the massless end of each cable: it is taken
    from the body on which the cable ends, at that very point, which leaves the closed mechanism what it was.

    Args:
        mechanism: the mechanism; loops must be of kind "point".
        end_mass: kg taken from the anchor's body to the end of each cable.
    """

    def __init__(self, mechanism: Mechanism, end_mass: float = 0.05) -> None:
        self.mechanism = mechanism
        self.model = pinocchio.Model()
        self.model.gravity.linear = np.array(mechanism.gravity)
        flat = mechanism.flat
        moved = self._moved_masses(end_mass)
        joint_of = {"world": 0}
        q_from, v_from, turned = [], [], []  # where each of our coordinates stands there
        for i, joint in enumerate(mechanism.joints):
            placement = pinocchio.SE3(joint.placement.axes.copy(), joint.placement.origin.copy())
            parent, carries = joint_of.get(joint.parent, 0), joint.body
            if joint.kind == "involute_length":
                pulley = next(each for each in mechanism.joints if each.body == joint.parent)
                if pulley.kind != "revolute" or not np.allclose(pulley.axis, [0, 0, 1]):
                    raise ValueError(f"{pulley.name} must be a revolute joint about z.")
                placement = pinocchio.SE3(pulley.placement.axes.copy(), pulley.placement.origin.copy())
                turn = self.model.addJoint(
                    joint_of[pulley.parent], pinocchio.JointModelRZ(), placement, joint.name + "-turn"
                )
                leave = pinocchio.SE3(np.eye(3), np.array([0.0, joint.radius, 0.0]))
                index = self.model.addJoint(turn, pinocchio.JointModelPX(), leave, joint.name)
                # origin of the cable's end in the frame of the prismatic joint is that joint's own origin
                q_from += [self.model.joints[turn].idx_q, self.model.joints[index].idx_q]
                v_from += [self.model.joints[turn].idx_v, self.model.joints[index].idx_v]
                turned.append((mechanism.velocities_of(joint.name).start, mechanism.velocities_of(pulley.name).start))
            else:
                index = self.model.addJoint(parent, ordinary(joint), placement, joint.name)
                at = self.model.joints[index]
                if joint.kind == "floating":  # ours: quaternion wxyz, angular before linear velocity
                    q_from += [at.idx_q + k for k in (0, 1, 2, 6, 3, 4, 5)]
                    v_from += [at.idx_v + k for k in (3, 4, 5, 0, 1, 2)]
                else:
                    q_from += range(at.idx_q, at.idx_q + at.nq)
                    v_from += range(at.idx_v, at.idx_v + at.nv)
            joint_of[carries] = index
            inertia = pinocchio.Inertia(float(flat.mass[i]), flat.centre[i].copy(), flat.inertia[i].copy())
            full = inertia.matrix() + moved[carries]
            if full[0, 0] > 0.0:
                self.model.appendBodyToJoint(index, inertia_of(full), pinocchio.SE3.Identity())
        self._q_from, self._v_from = np.array(q_from), np.array(v_from)
        self._turned = np.array(turned, dtype=int).reshape(-1, 2)
        self.constraints = pinocchio.StdVec_RigidConstraintModel()
        for loop in mechanism.loops:
            if loop.kind != "point":
                raise ValueError(f"loop {loop.name}: only ball joints are built here.")
            ends = [
                (joint_of[name], pinocchio.SE3(frame.axes.copy(), frame.origin.copy()))
                for name, frame in ((loop.before, loop.placement_before), (loop.after, loop.placement_after))
            ]
            self.constraints.append(
                pinocchio.RigidConstraintModel(
                    pinocchio.ContactType.CONTACT_3D, self.model, *ends[0], *ends[1], pinocchio.ReferenceFrame.LOCAL
                )
            )
        self.constraint_data = pinocchio.StdVec_RigidConstraintData()
        for constraint in self.constraints:
            self.constraint_data.append(constraint.createData())
        self.data = self.model.createData()
        self.settings = pinocchio.ProximalSettings(1e-12, 0.0, 1)
        new = int(pinocchio.__version__.split(".")[0]) >= 4  # it wants the data of the constraints from there on
        initial = (self.constraints, self.constraint_data) if new else (self.constraints,)
        pinocchio.initConstraintDynamics(self.model, self.data, *initial)

    def _moved_masses(self, mass: float) -> dict[str, NDArray[np.float64]]:
        """(6, 6) inertia to add to each body, linear before angular."""
        moved = {body.name: np.zeros((6, 6)) for body in self.mechanism.bodies}
        moved["world"] = np.zeros((6, 6))
        cables = {joint.body for joint in self.mechanism.joints if joint.kind.startswith("involute")}
        for loop in self.mechanism.loops:
            if loop.after in cables:
                for name, frame, sign in (
                    (loop.before, loop.placement_before, -1.0),
                    (loop.after, loop.placement_after, 1.0),
                ):
                    point = pinocchio.Inertia(mass, frame.origin.copy(), np.zeros((3, 3)))
                    moved[name] += sign * point.matrix()
        return moved

    def state(self, q: NDArray, v: NDArray, effort: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Position, velocity and efforts of our coordinates in Pinocchio's."""
        theirs_q, theirs_v, theirs_effort = np.empty(self.model.nq), np.empty(self.model.nv), np.empty(self.model.nv)
        at = self.mechanism.positions_of
        q, v, effort = np.array(q), np.array(v), np.array(effort)
        for joint in self.mechanism.joints:
            if joint.kind == "involute_length":
                pulley = next(each for each in self.mechanism.joints if each.body == joint.parent)
                q[at(joint.name).start] += q[at(pulley.name).start]
        for angle, pulley in self._turned:
            v[angle] += v[pulley]
            effort[pulley] -= effort[angle]
        theirs_q[self._q_from], theirs_v[self._v_from], theirs_effort[self._v_from] = q, v, effort
        return theirs_q, theirs_v, theirs_effort

    def acceleration(self, q: NDArray, v: NDArray, effort: NDArray) -> NDArray[np.float64]:
        """(nv,) accelerations of our coordinates, for efforts (nv,) with those of the cables included."""
        theirs = self.call(*self.state(q, v, effort))[self._v_from]
        for angle, pulley in self._turned:
            theirs[angle] -= theirs[pulley]
        return theirs

    def call(self, q: NDArray, v: NDArray, effort: NDArray) -> NDArray[np.float64]:
        """`constraintDynamics` at a state in Pinocchio's coordinates."""
        return pinocchio.constraintDynamics(
            self.model, self.data, q, v, effort, self.constraints, self.constraint_data, self.settings
        )


def inertia_of(matrix: NDArray) -> Any:
    """Pinocchio's inertia from its (6, 6) matrix, linear before angular."""
    mass, moment = matrix[0, 0], matrix[3:, :3]
    centre = np.array([moment[2, 1], moment[0, 2], moment[1, 0]]) / mass
    return pinocchio.Inertia(mass, centre, matrix[3:, 3:] + mass * pinocchio.skew(centre) @ pinocchio.skew(centre))


def ordinary(joint: Any) -> Any:
    """Pinocchio's joint for a revolute, prismatic or floating one, aligned (the fastest kind) where it can be."""
    if joint.kind == "floating":
        return pinocchio.JointModelFreeFlyer()
    if joint.kind not in ("revolute", "prismatic"):
        raise ValueError(f"joint {joint.name}: no peer for {joint.kind}.")
    for letter, axis in zip("XYZ", np.eye(3), strict=True):
        if np.array_equal(joint.axis, axis):
            return getattr(pinocchio, f"JointModel{'R' if joint.kind == 'revolute' else 'P'}{letter}")()
    name = "JointModelRevoluteUnaligned" if joint.kind == "revolute" else "JointModelPrismaticUnaligned"
    return getattr(pinocchio, name)(joint.axis.copy())


def moving_state(mechanism: Mechanism, q: NDArray, seed: int = 0) -> tuple[NDArray, NDArray, NDArray]:
    """Velocity (nv,) that keeps the loops closed, random efforts (nv,) and the efforts of the cables at that state."""
    random = np.random.default_rng(seed)
    velocity = random.uniform(-0.3, 0.3, mechanism.velocity_count)
    loop = equations(mechanism, q, velocity).loop
    velocity -= np.linalg.lstsq(loop, loop @ velocity, rcond=None)[0]
    return velocity, random.uniform(-1.0, 1.0, velocity.size), equations(mechanism, q, velocity).passive
