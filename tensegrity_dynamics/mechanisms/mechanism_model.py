"""The mechanism of a robot: its bodies, joints and loops, where they start, its cables and its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.rotations import matrix_from_vector, quaternion_from_matrix
from ..robots.model import Pose, RobotModel
from ..robots.robot import Robot
from .cable_routing import CableEntry
from .dynamics.equations_of_motion import Work, make_work, place_bodies
from .joints import INVOLUTE_RIGID, KINDS, cable_length
from .kinematics.parallel_kinematics import BodyOutput, LoopKinematics
from .mechanism import Frame, Mechanism


@dataclass(frozen=True, eq=False)
class MechanismModel(RobotModel):
    """What a robot file of a mechanism describes.

    Attributes:
        mechanism: bodies, joints, loops, cables.
        start: (nq,) position with all loops closed, from which the shape at rest is sought.
        entries: the cables as the file states them.
    """

    kind: ClassVar[str] = "mechanism"
    noun: ClassVar[str] = "a mechanism of bodies and joints"

    mechanism: Mechanism
    start: NDArray[np.float64]
    entries: tuple[CableEntry, ...] = ()

    @property
    def tension_names(self) -> tuple[str, ...]:
        """All cables, rigid ones among them."""
        return self.cable_names

    @property
    def tension_kinds(self) -> Mapping[str, str]:
        """All cables, rigid ones among them."""
        return dict.fromkeys(self.cable_names, "cable")

    @property
    def initial_configuration(self) -> NDArray[np.float64]:
        """The stated start (nq,), loops closed."""
        return self.start

    def output_pose(self, output: BodyOutput, configuration: NDArray[np.float64]) -> Pose:
        """Pose of an output at q (nq,); for many of them take `BodyPoses`, which keeps its arrays."""
        return BodyPoses(self).move(configuration).output(output)[0]

    @property
    def cable_names(self) -> tuple[str, ...]:
        """All cables, rigid ones among them."""
        return tuple(entry.name for entry in self.entries)

    @property
    def body_names(self) -> tuple[str, ...]:
        """Bodies in sweep order."""
        return tuple(joint.body for joint in self.mechanism.joints)

    def joint_of(self, driven: str) -> str:
        """The joint that an actuator moves: the pulley's of a cable, or the joint of that name."""
        for entry in self.entries:
            if entry.name == driven:
                return entry.joints[1]
        return self.mechanism.joint(driven).name

    @cached_property
    def drivable(self) -> Mapping[str, str]:
        """What an actuator can drive, with its motion: cables (by their pulleys) and joints of one coordinate."""
        kinds = {entry.name: "revolute" for entry in self.entries}
        of_cables = {name for entry in self.entries for name in entry.joints if name != entry.joints[1]}
        for joint in self.mechanism.joints:
            if joint.kind in ("revolute", "prismatic") and joint.name not in of_cables:
                kinds[joint.name] = joint.kind
        return kinds


def zeroed(model: MechanismModel) -> MechanismModel:
    """The same mechanism with pulley angles counted from its start; turning a pulley in its plane changes nothing."""
    mechanism, q = model.mechanism, np.array(model.start)
    joints = list(mechanism.joints)
    pulleys = {entry.joints[1] for entry in model.entries}
    for k, joint in enumerate(joints):
        if joint.name in pulleys:
            at = mechanism.positions_of(joint.name)
            turn = matrix_from_vector(joint.axis * q[at][0])
            joints[k] = replace(joint, placement=Frame(joint.placement.origin, joint.placement.axes @ turn))
            q[at] = 0.0
    return replace(model, mechanism=replace(mechanism, joints=tuple(joints)), start=q)


def with_cables(
    model: MechanismModel,
    *,
    variant: str | None = None,
    young: float | None = None,
    damping: float | None = None,
    strain: float | None = None,
) -> MechanismModel:
    """The mechanism with other cables in the same start pose; what is not given stays.

    Args:
        variant: "rigid", "u", "epsilon" or "length".
        young, damping: E [Pa] and mu [Pa s]. strain: of every cable at the start.
    """
    wanted = {"variant": variant, "young": young, "damping": damping, "strain": strain}
    changes = {name: value for name, value in wanted.items() if value is not None}
    old, places = model.mechanism, BodyPoses(model).move(model.start)
    lengths, strains = places.lengths(), places.strains()
    entries = tuple(replace(entry, **changes) for entry in model.entries)  # type: ignore[arg-type]
    joints, cables = {joint.name: joint for joint in old.joints}, []
    for entry in entries:
        _, made, _, cable = entry.parts()
        joints[made[2].name] = made[2]
        cables += [cable] if cable is not None else []
    mechanism = replace(old, joints=tuple(joints.values()), cables=tuple(cables))
    q = mechanism.neutral()
    for joint in old.joints:
        if not joint.kind.startswith("involute"):
            q[mechanism.positions_of(joint.name)] = model.start[old.positions_of(joint.name)]
    for k, entry in enumerate(entries):
        own = 0.0 if entry.variant == "rigid" else float(strains[k] if strain is None else strain)
        rest = lengths[k] / (1.0 + own)
        _, pulley, involute = entry.joints
        # what is unwound less is wound more
        q[mechanism.positions_of(pulley)] += model.start[old.positions_of(involute)][0] - rest / entry.radius
        second = {"rigid": [], "u": [lengths[k] - rest], "epsilon": [own], "length": [lengths[k]]}[entry.variant]
        q[mechanism.positions_of(involute)] = [rest / entry.radius, *second]
    return zeroed(MechanismModel(mechanism, q, entries))


def loop_kinematics(robot: Robot) -> LoopKinematics:
    """Geometric, first- and second-order models of a robot between its actuators and its output.

    Raises:
        TensegrityError: it has no output, or other numbers of actuators and controlled axes.
    """
    model = robot.model_as(MechanismModel)
    active = tuple(model.joint_of(each.drives) for each in robot.actuators)
    return LoopKinematics(model.mechanism, active, robot.output)  # type: ignore[arg-type]


class BodyPoses:
    """Where the bodies and cables of a mechanism are; keeps its arrays, so one for each thread.

    Args:
        model: the mechanism.
    """

    def __init__(self, model: MechanismModel) -> None:
        self.model = model
        mechanism = model.mechanism
        self._work: Work = make_work(mechanism.flat)
        self._still = np.zeros(mechanism.velocity_count)
        index = mechanism.body_index
        self._cables = [
            (index[f"{entry.name}-cable"], mechanism.positions_of(entry.joints[2]), mechanism.joint(entry.joints[2]))
            for entry in model.entries
        ]

    def move(self, q: NDArray, v: NDArray | None = None) -> BodyPoses:
        """Place everything at q (nq,), moving at v (nv,); returns itself."""
        self._q = np.ascontiguousarray(q, dtype=np.float64)
        place_bodies(self.model.mechanism.flat, self._q, self._still if v is None else v, self._work)
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
        return np.array([quaternion_from_matrix(each) for each in self._work.rotation]).reshape(-1, 4)

    @property
    def twists(self) -> NDArray[np.float64]:
        """(b, 6): linear velocity of every body's origin [m/s] and angular velocity [rad/s], in world axes."""
        angular = self._work.velocity[:, :3]
        linear = self._work.velocity[:, 3:] + np.cross(angular, self._work.position)
        return np.hstack((linear, angular))

    def cables(self) -> NDArray[np.float64]:
        """(c, 2, 3) m: where every cable leaves its pulley, and where it ends."""
        ends = np.zeros((len(self._cables), 2, 3))
        for k, (body, at, joint) in enumerate(self._cables):
            length = cable_length(KINDS[joint.kind], joint.radius, self._q[at])
            along = self._work.rotation[body][:, 0]
            ends[k, 1] = self._work.position[body]
            ends[k, 0] = ends[k, 1] - length * along
        return ends

    def lengths(self) -> NDArray[np.float64]:
        """(c,) m, taut length of every cable beyond its pulley."""
        return np.array(
            [cable_length(KINDS[joint.kind], joint.radius, self._q[at]) for _, at, joint in self._cables]
        )  # fmt: skip

    def rest_lengths(self) -> NDArray[np.float64]:
        """(c,) m, rest length of the part of every cable that is off its pulley."""
        return np.array([joint.radius * self._q[at.start] for _, at, joint in self._cables])

    def strains(self) -> NDArray[np.float64]:
        """(c,) strain of every cable; zero for rigid ones."""
        rest = self.rest_lengths()
        rigid = np.array([KINDS[joint.kind] == INVOLUTE_RIGID for _, _, joint in self._cables], dtype=np.bool_)
        return np.where(rigid, 0.0, self.lengths() / rest - 1.0) if rest.size else rest

    def output(self, output: BodyOutput) -> tuple[Pose, NDArray[np.float64]]:
        """Pose of the output in the world, and its twist (6,): linear m/s, angular rad/s."""
        index = self.model.mechanism.body_index
        if output.body not in index:
            raise TensegrityError(f"output {output.name}: " + unknown_name("body", output.body, index))
        i = index[output.body]
        if i < 0:
            rotation, position, velocity = np.eye(3), np.zeros(3), np.zeros(6)
        else:
            rotation, position, velocity = self._work.rotation[i], self._work.position[i], self._work.velocity[i]
        place = position + rotation @ output.frame.origin
        linear = velocity[3:] + np.cross(velocity[:3], place)
        pose = (place, quaternion_from_matrix(rotation @ output.frame.axes))
        return pose, np.concatenate((linear, velocity[:3]))
