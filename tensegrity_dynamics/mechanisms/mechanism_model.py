"""The model of a robot that is a mechanism: bodies, joints and loops, initial position, cables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..robots.model import Pose, RobotModel
from .body_frame import BodyFrame
from .body_poses import BodyPoses
from .cable_routing import CableEntry
from .mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class MechanismModel(RobotModel):
    """What a robot file of a mechanism describes.

    Attributes:
        mechanism: bodies, joints, loops, cables.
        start: (nq,) initial position with all loops closed; the search for the equilibrium starts there.
        entries: the cables as the file states them.
    """

    kind: ClassVar[str] = "mechanism"
    noun: ClassVar[str] = "a mechanism of bodies and joints"
    takes_moments: ClassVar[bool] = True

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

    def output_pose(self, output: BodyFrame, configuration: NDArray[np.float64]) -> Pose:
        """Pose of an output at q (nq,); for many of them take `BodyPoses`, which keeps its arrays."""
        return BodyPoses(self).update(configuration).output(output)[0]

    @cached_property
    def cable_names(self) -> tuple[str, ...]:
        """All cables, rigid ones among them."""
        return tuple(entry.name for entry in self.entries)

    def need_elastic_cables(self, what: str) -> None:
        """Raise TensegrityError where a cable is rigid; `what` needs the strains of all of them."""
        for entry in self.entries:
            if entry.variant == "rigid":
                raise TensegrityError(
                    f"cable {entry.name} is rigid, and {what} needs the strain of every cable; give it the variant "
                    "epsilon (or u, length) and its Young's modulus."
                )

    @property
    def body_names(self) -> tuple[str, ...]:
        """Bodies in sweep order."""
        return tuple(joint.body for joint in self.mechanism.joints)

    @property
    def load_names(self) -> tuple[str, ...]:
        """All bodies."""
        return self.body_names

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
