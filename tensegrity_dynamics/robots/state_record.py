"""State of a robot as plain values with the fields of msg/StructureState.msg, and the conversion from and to it.

Every kind of robot has a `StateCodec`, which converts a state of its simulator or an estimate to a `StateRecord` and
back. ROS nodes only copy records to messages and messages to records (`ros.state_encoding`, `ros.state_decoding`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..numerics.types import Array
from .layout import RobotLayout
from .model import Pose

FIGURES = ("residual",)
"""Scalar fields of a record for the whole robot; in msg/StructureState.msg they are the fields before the last one."""
NO_NUMBERS: Array = np.zeros(0)
NO_VECTORS: Array = np.zeros((0, 3))
NO_QUATERNIONS: Array = np.zeros((0, 4))
NO_TWISTS: Array = np.zeros((0, 6))


@dataclass(frozen=True, eq=False)
class StateRecord:
    """Configuration and motion of a whole robot in the world frame; fields that a kind does not use are empty.

    Attributes:
        node_name: n names. node_position, node_velocity: (n, 3) m and m/s.
        body_name: b names. body_position, body_quaternion: (b, 3) m and (b, 4) wxyz. body_twist: (b, 6), m/s, rad/s.
        coordinate_name: names of the velocity coordinates. q, v: positions and velocities.
        output_name: name of the output, or empty. output_pose, output_twist: pose and (6,) m/s then rad/s, or None.
        residual: largest out-of-balance force [N]. converged: whether the state is consistent with the readings.
        layout: hash of the `RobotLayout` of the robot with these names, or empty.
    """

    node_name: Sequence[str] = ()
    node_position: Array = field(default_factory=lambda: NO_VECTORS)
    node_velocity: Array = field(default_factory=lambda: NO_VECTORS)
    body_name: Sequence[str] = ()
    body_position: Array = field(default_factory=lambda: NO_VECTORS)
    body_quaternion: Array = field(default_factory=lambda: NO_QUATERNIONS)
    body_twist: Array = field(default_factory=lambda: NO_TWISTS)
    coordinate_name: Sequence[str] = ()
    q: Array = field(default_factory=lambda: NO_NUMBERS)
    v: Array = field(default_factory=lambda: NO_NUMBERS)
    output_name: str = ""
    output_pose: Pose | None = None
    output_twist: Array | None = None
    residual: float = 0.0
    converged: bool = True
    layout: str = ""


class ConfigurationState(Protocol):
    """Common interface of simulator states, estimates and decoded records."""

    @property
    def configuration(self) -> Array:
        """Configuration of the robot."""

    @property
    def velocity(self) -> Array:
        """Velocity of the robot; its shape depends on the kind."""


@dataclass(frozen=True, eq=False)
class DecodedState:
    """Content of a record: configuration and velocity in the order of the robot."""

    configuration: Array
    velocity: Array


class StateCodec(ABC):
    """Conversion of the states of one robot to records and back.

    Attributes:
        layout: common names of all records; None if a kind has no layout, so that every state contains the names.
    """

    layout: RobotLayout | None = None

    @abstractmethod
    def encode(
        self,
        state: ConfigurationState,
        pose: Pose | None = None,
        twist: Array | None = None,
    ) -> StateRecord:
        """Record of a state, without its `FIGURES`.

        Args:
            pose, twist: pose and twist of the output, if there is one. If they are not given, and the kind computes the
                body poses anyway, those of the state are used.
        """

    @abstractmethod
    def decode(self, record: StateRecord) -> DecodedState:
        """Configuration and velocity of a record, in the order of the robot.

        Raises:
            TensegrityError: the record is not of this robot.
        """

    @abstractmethod
    def tensions(self, names: Sequence[str], tensions: Sequence[float], configuration: Array) -> Array:
        """(m,) forces [N] of the members or cables in the order of the robot, from tensions [N] by name.

        Values that are not available are NaN. Unknown names are ignored, because a driver can report more than the
        model contains.
        """
