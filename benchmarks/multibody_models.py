"""Models for the multibody benchmarks: a mechanism as its equivalent in Pinocchio, and a tower of struts on struts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
from numpy.typing import NDArray

from tensegrity_dynamics.mechanisms.cable_routing import CableEntry
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.mechanisms.frame import Frame
from tensegrity_dynamics.mechanisms.kinematics.body_kinematics import body_kinematics
from tensegrity_dynamics.mechanisms.loop_joints import Loop
from tensegrity_dynamics.mechanisms.mechanism import Body, Cable, Joint, Mechanism
from tensegrity_dynamics.mechanisms.primitives import Primitive, body_from
from tensegrity_dynamics.mechanisms.workspace import make_workspace

UP = np.array([0.0, 0.0, 1.0])

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1] / "test" / "support")
)  # the machines that the tests are about


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
        q_from: dict[str, list[int]] = {}  # where our coordinates of a joint stand there
        v_from: dict[str, list[int]] = {}
        turned = []
        for joint in branch_by_branch(mechanism):
            i = mechanism.body_index[joint.body]
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
                q_from[joint.name] = [self.model.joints[turn].idx_q, self.model.joints[index].idx_q]
                v_from[joint.name] = [self.model.joints[turn].idx_v, self.model.joints[index].idx_v]
                turned.append((mechanism.velocities_of(joint.name).start, mechanism.velocities_of(pulley.name).start))
            else:
                index = self.model.addJoint(parent, ordinary(joint), placement, joint.name)
                at = self.model.joints[index]
                if joint.kind == "floating":  # ours: quaternion wxyz, angular before linear velocity
                    q_from[joint.name] = [at.idx_q + k for k in (0, 1, 2, 6, 3, 4, 5)]
                    v_from[joint.name] = [at.idx_v + k for k in (3, 4, 5, 0, 1, 2)]
                else:
                    q_from[joint.name], v_from[joint.name] = [at.idx_q], [at.idx_v]
            joint_of[carries] = index
            inertia = pinocchio.Inertia(float(flat.mass[i]), flat.centre[i].copy(), flat.inertia[i].copy())
            full = inertia.matrix() + moved[carries]
            if full[0, 0] > 0.0:
                self.model.appendBodyToJoint(index, inertia_of(full), pinocchio.SE3.Identity())
        self._q_from = np.concatenate([q_from[joint.name] for joint in mechanism.joints])
        self._v_from = np.concatenate([v_from[joint.name] for joint in mechanism.joints])
        self._turned = np.array(turned, dtype=int).reshape(-1, 2)
        self.constraints = pinocchio.StdVec_RigidConstraintModel()
        for loop in mechanism.loops:
            if loop.kind != "point":
                raise ValueError(f"loop {loop.name}: only ball joints are built here.")
            ends = [
                (joint_of[name], pinocchio.SE3(frame.axes.copy(), frame.origin.copy()))
                for name, frame in ((loop.predecessor, loop.predecessor_frame), (loop.successor, loop.successor_frame))
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
            if loop.successor in cables:
                for name, frame, sign in (
                    (loop.predecessor, loop.predecessor_frame, -1.0),
                    (loop.successor, loop.successor_frame, 1.0),
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


def branch_by_branch(mechanism: Mechanism) -> list[Joint]:
    """The joints depth first: Pinocchio wants every branch to stand together."""
    carried: dict[str, list[Joint]] = {}
    for joint in mechanism.joints:
        carried.setdefault(joint.parent, []).append(joint)
    ordered: list[Joint] = []
    waiting = carried["world"][::-1]
    while waiting:
        ordered.append(waiting.pop())
        waiting += carried.get(ordered[-1].body, [])[::-1]
    return ordered


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


def tower(stages: int, variant: str = "length") -> tuple[Mechanism, NDArray[np.float64]]:
    """Prisms with square faces on top of each other, and the position (nq,) in which their loops are closed.

    Every stage is the manipulator's (000, section 5.1.2) without its platform: three struts on universal joints, each
    of which stands on the tip of one of the stage below, and six cables. A stage brings 30 coordinates, 18 loop rows.
    """
    length, radius, half = 1.0, 0.05, 0.01
    edge_length, side = length / np.sqrt(2.0), np.sqrt(2.0) * radius
    corners = [
        edge_length / np.sqrt(3.0) * np.array([np.cos(z), np.sin(z), 0.0]) for z in np.radians([0.0, 120.0, 240.0])
    ]
    bodies: list[Body] = []
    joints: list[Joint] = []
    loops: list[Loop] = []
    cables: list[Cable] = []
    entries: list[CableEntry] = []
    axes_of = {"world": np.eye(3)}
    for stage in range(stages):
        for i in range(3):
            name, before = f"S{stage}-strut{i}", f"S{stage}-strut{(i - 1) % 3}"
            foot, ahead = corners[(i + stage) % 3], corners[(i + stage + 1) % 3]
            edge = (ahead - foot) / edge_length
            along, y = (edge + UP) / np.sqrt(2.0), np.cross(UP, edge)
            axes_of[name] = axes = np.column_stack((np.cross(y, along), y, along))
            below = f"S{stage - 1}-strut{i}" if stage else "world"
            stand = Frame(length * UP if stage else foot, axes_of[below].T @ axes)
            strut = Primitive("tube", (0.035, 0.032, length), 2700.0, placement=Frame(0.5 * length * UP))
            bodies += [Body(f"{name}-shaft"), body_from(name, [strut])]
            joints += [
                Joint(f"{name}-x", "revolute", below, f"{name}-shaft", stand, np.array([1.0, 0.0, 0.0])),
                Joint(f"{name}-y", "revolute", f"{name}-shaft", name, axis=np.array([0.0, 1.0, 0.0])),
            ]
            for where, at, sign in (("top", length - side, -1.0), ("bot", side, 1.0)):
                entries.append(
                    CableEntry(
                        f"{name}-{where}", name, at * UP, UP, sign * axes.T @ np.cross(edge, UP), radius, before,
                        length * UP, 2e9, 0.001, 1e7, variant, strain=1e-2,
                        block=(Primitive("box", (3 * half, 2 * side, side), 2700.0),),
                        pulley=(Primitive("cylinder", (radius, 2 * half), 2700.0),),
                    )
                )  # fmt: skip
    for entry in entries:
        more, made, loop, cable = entry.parts()
        bodies, joints, loops = bodies + more, joints + made, [*loops, loop]
        cables += [cable] if cable is not None else []
    mechanism = Mechanism(tuple(bodies), tuple(joints), tuple(loops), tuple(cables), -9.81 * UP)
    return mechanism, wound(mechanism, entries)


def wound(mechanism: Mechanism, entries: list[CableEntry]) -> NDArray[np.float64]:
    """Position (nq,): all joints at zero, every cable wound so that it reaches its anchor."""
    q, work = mechanism.neutral(), make_workspace(mechanism.flat)
    body_kinematics(mechanism.flat, q, np.zeros(mechanism.velocity_count), work)
    for entry in entries:
        carrier, anchor = mechanism.body_index[entry.carrier], mechanism.body_index[entry.anchor_body]
        target = work.position[anchor] + work.rotation[anchor] @ entry.anchor
        for joint, value in zip(
            entry.joints, entry.start(work.rotation[carrier].T @ (target - work.position[carrier])), strict=True
        ):
            q[mechanism.positions_of(joint)] = value
    return q
