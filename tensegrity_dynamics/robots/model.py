"""The model of a robot: what every kind of robot can answer about its coordinates, its output and its tendons.

A configuration is the array that says where a robot is: nodes (n, 3) m of a pin-jointed structure, coordinates (nq,) of
a mechanism, whatever another kind chooses. Code that serves every kind asks the model; code of one kind takes its own
class by `Robot.model_as`.
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
    """A cable on the pulley that an actuator turns: radius [m], and rest length off it [m] at position zero."""

    radius: float
    length: float


class RobotModel(ABC):
    """Base class of robot models.

    Attributes:
        kind: name of the robot type, as `kind:` of a robot file says it.
        noun: what such a model is, with its article, for messages: "a pin-jointed structure".
        takes_moments: whether loads on it may be moments, too.
    """

    kind: ClassVar[str]
    noun: ClassVar[str]
    takes_moments: ClassVar[bool] = False

    @property
    @abstractmethod
    def tension_names(self) -> tuple[str, ...]:
        """Names of tendons, springs and cables in the order of `TendonState`; empty without any."""

    @property
    @abstractmethod
    def tension_kinds(self) -> Mapping[str, str]:
        """Kind ("tendon", "spring", "cable") by name of what can only pull and is not held at both ends."""

    @property
    @abstractmethod
    def initial_configuration(self) -> NDArray[np.float64]:
        """Configuration in the robot file, the initial guess of the equilibrium."""

    @abstractmethod
    def output_pose(self, output: Any, configuration: NDArray[np.float64]) -> Pose:
        """Pose of an output in the world at a configuration: position (3,) m, quaternion (4,) w, x, y, z."""

    @property
    def takes_no_goals(self) -> str:
        """Why goal poses mean nothing for the robot, or nothing where they do: part of a sentence about the robot."""
        return ""

    @property
    def load_names(self) -> tuple[str, ...]:
        """Names of the nodes or bodies on which forces and payloads can act; empty if the kind has no loads."""
        return ()

    def tension_floors(self, actuators: Iterable[Actuator]) -> Mapping[str, float]:
        """N by the name of what actuators wind: `minimum_tension` of these."""
        return {each.drives: each.minimum_tension for each in actuators}

    def tendon_stiffness(self, driven: str) -> float | None:
        """Stiffness [N/m] of the tendon called `driven` that an actuator winds; None where the model has none."""
        return None

    def wound_cable(self, driven: str) -> WoundCable | None:
        """The cable that the pulley called `driven` winds; None where an actuator turns no pulley."""
        return None
