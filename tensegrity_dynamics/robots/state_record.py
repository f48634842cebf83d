"""The state of a robot as plain values, field by field what msg/StructureState.msg carries, and who translates it.

Every kind of robot has a `StateCodec`: from a state of its simulator or an estimate to a `StateRecord` and back. ROS
nodes only copy records into messages and messages into records (`ros.state_encoding`, `ros.state_decoding`).
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
"""Numbers of a record that say something of the whole robot; the fields of msg/StructureState.msg before its last."""
NO_NUMBERS: Array = np.zeros(0)
NO_VECTORS: Array = np.zeros((0, 3))
NO_QUATERNIONS: Array = np.zeros((0, 4))
NO_TWISTS: Array = np.zeros((0, 6))


@dataclass(frozen=True, eq=False)
class StateRecord:
    """Configuration and motion of a whole robot in the world frame; what a kind does not use stays empty.

    Attributes:
        node_name: n names. node_position, node_velocity: (n, 3) m and m/s.
        body_name: b names. body_position, body_quaternion: (b, 3) m and (b, 4) wxyz. body_twist: (b, 6), m/s, rad/s.
        coordinate_name: names of the velocity coordinates. q, v: positions and velocities.
        output_name: of the output, or empty. output_pose, output_twist: pose and (6,) m/s then rad/s, or None.
        residual: largest force out of balance [N]. converged: the state belongs to the readings.
        layout: hash of the robot's `RobotLayout`, whose names these are, or empty.
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
    """What every state of a simulator, every estimate and every decoded record has."""

    @property
    def configuration(self) -> Array:
        """Where the robot is."""

    @property
    def velocity(self) -> Array:
        """How it moves; of the shape that the kind gives it."""


@dataclass(frozen=True, eq=False)
class DecodedState:
    """What a record says: configuration and velocity in the robot's own order."""

    configuration: Array
    velocity: Array


class StateCodec(ABC):
    """Translates the states of one robot into records and back.

    Attributes:
        layout: the names that all its records have; None where a kind gives none, so that states carry their names.
    """

    layout: RobotLayout | None = None

    @abstractmethod
    def encode(
        self,
        state: ConfigurationState,
        pose: Pose | None = None,
        twist: Array | None = None,
    ) -> StateRecord:
        """The record of a state, without its `FIGURES`.

        Args:
            pose, twist: of the output where it has one; those that the state has, if they are not given and the kind
                computes where its bodies are anyway.
        """

    @abstractmethod
    def decode(self, record: StateRecord) -> DecodedState:
        """Configuration and velocity that a record carries, in the robot's own order.

        Raises:
            TensegrityError: the record is not of this robot.
        """

    @abstractmethod
    def tensions(self, names: Sequence[str], tensions: Sequence[float], configuration: Array) -> Array:
        """(m,) N of what carries forces in the robot's own order, from tensions [N] by name at a configuration.

        NaN where nothing is known. Unknown names are passed over: a driver may report more than the model has.
        """
