"""Interface of robot models: coordinates, output and tendons of every kind of robot.

A configuration is an array that defines the position of a robot: node positions (n, 3) [m] of a pin-jointed structure,
coordinates (nq,) of a mechanism, or another array for other kinds. Code for all kinds uses this interface. Code for one
kind gets the class of the model with `Robot.model_as`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .actuator import Actuator

Pose = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Position (3,) m and quaternion wxyz (4,) of a frame in the world."""


class WoundCable(NamedTuple):
    """Cable on the pulley of an actuator: pulley radius [m], and unwound rest length [m] at position zero."""

    radius: float
    length: float


class RobotModel(ABC):
    """Base class of robot models.

    Attributes:
        kind: name of the robot type, the value of `kind:` in a robot file.
        noun: description with article for messages, such as "a pin-jointed structure".
        takes_moments: whether loads can be moments.
    """

    kind: ClassVar[str]
    noun: ClassVar[str]
    takes_moments: ClassVar[bool] = False

    @property
    @abstractmethod
    def tension_names(self) -> tuple[str, ...]:
        """Names of tendons, springs and cables in the order of `TendonState`; empty if there are none."""

    @property
    @abstractmethod
    def tension_kinds(self) -> Mapping[str, str]:
        """Kind ("tendon", "spring", "cable") by name of tension elements without fixed positions at both ends."""

    @property
    @abstractmethod
    def initial_configuration(self) -> NDArray[np.float64]:
        """Configuration of the robot file, initial guess of the equilibrium."""

    @abstractmethod
    def output_pose(self, output: Any, configuration: NDArray[np.float64]) -> Pose:
        """Pose of an output in the world at a configuration: position (3,) m, quaternion (4,) w, x, y, z."""

    @property
    def takes_no_goals(self) -> str:
        """Reason why the robot does not accept goal poses, as a part of a sentence; empty if it accepts them."""
        return ""

    @property
    def load_names(self) -> tuple[str, ...]:
        """Names of the nodes or bodies on which forces and payloads can act; empty if the kind has no loads."""
        return ()

    def tension_floors(self, actuators: Iterable[Actuator]) -> Mapping[str, float]:
        """Lower tension limit [N] by name of the wound tendon or cable: the `minimum_tension` of its actuator."""
        return {each.drives: each.minimum_tension for each in actuators}

    def tendon_stiffness(self, driven: str) -> float | None:
        """Stiffness [N/m] of the wound tendon with the name `driven`; None if the model has no such tendon."""
        return None

    def joint_of(self, driven: str) -> str:
        """Name of the part that an actuator moves, the same one for all names by which actuators can drive it."""
        return driven

    def wound_cable(self, driven: str) -> WoundCable | None:
        """Cable wound by the pulley with the name `driven`; None if the actuator does not turn a pulley."""
        return None
