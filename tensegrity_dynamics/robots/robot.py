"""What a robot is: a model, the actuators that move it, the output that it moves, and the hardware behind it.

Robots are data. Nothing in this project knows a robot by name; `load_robot` reads one from a YAML file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import TensegrityError, unknown_name
from ..structures.structure import Structure
from .output_frame import OutputFrame

if TYPE_CHECKING:
    from ..mechanisms.mechanism_model import MechanismModel

UNITS = {"tendon": ("m", "m/s", "N"), "prismatic": ("m", "m/s", "N"), "revolute": ("rad", "rad/s", "N m")}


@dataclass(frozen=True)
class Actuator:
    """A drive with its limits; the command gate and the planners read them from here.

    Args:
        name: its own name.
        drives: the tendon or joint that it moves.
        position: (lowest, highest) rest length [m] of a tendon, or joint position [m or rad].
        rate: largest speed [m/s or rad/s], above zero.
        effort: largest tension [N] of a tendon, or joint effort [N or N m], above zero.
        minimum_tension: tension [N] that plans keep in the tendon or cable; zero for other joints.
        motion: "tendon" (its position is a rest length), or the kind of joint: "revolute" or "prismatic".
    """

    name: str
    drives: str
    position: tuple[float, float]
    rate: float
    effort: float
    minimum_tension: float = 0.0
    motion: str = "tendon"

    def __post_init__(self) -> None:
        if self.motion not in UNITS:
            raise TensegrityError(f"actuator {self.name}: " + unknown_name("motion", self.motion, UNITS))
        low, high = self.position
        numbers = (low, high, self.rate, self.effort, self.minimum_tension)
        if not np.all(np.isfinite(numbers)):
            raise TensegrityError(f"actuator {self.name}: every limit must be a finite number, found {numbers}.")
        if not low < high:
            raise TensegrityError(f"actuator {self.name}: position limits {low:g} to {high:g} leave no room.")
        if self.rate <= 0.0 or self.effort <= 0.0:
            raise TensegrityError(
                f"actuator {self.name}: rate {self.rate:g} and effort {self.effort:g} must be above zero."
            )
        if not 0.0 <= self.minimum_tension < (self.effort if self.motion == "tendon" else np.inf):
            raise TensegrityError(
                f"actuator {self.name}: minimum tension {self.minimum_tension:g} must lie between 0 and its effort "
                f"{self.effort:g}."
            )

    @property
    def units(self) -> tuple[str, str, str]:
        """Units of position, rate and effort, as people read them."""
        return UNITS[self.motion]


@dataclass(frozen=True)
class TourStop:
    """One goal of the demonstration tour, relative to the pose at rest.

    Args:
        name: what the user reads.
        move: (3,) m in world axes.
        turn: (3,) rad, rotation vector about world axes.
        duration: s, or None for the shortest time that the limits allow.
    """

    name: str
    move: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    duration: float | None = None


@dataclass(frozen=True)
class Provenance:
    """Where a value comes from: `printed` in the source, `deduced` from it, or `assumed` by us."""

    fields: str
    status: str
    note: str


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot as loaded from its file.

    Attributes:
        name, description: for people.
        model: the `Structure`, or the `MechanismModel` of robots of bodies, joints and cables.
        actuators: in the order in which commands list them.
        outputs: frames of the end effector (`OutputFrame`, `BodyOutput`); the first is the one that goals mean.
        tour: goals of the demonstration.
        contact: ground contact settings, or an empty mapping.
        servos: the hardware block as plain data in SI, or an empty mapping; the servo driver reads and checks it.
        blocks: blocks of other packages by name, as their readers return them (`robots.extensions`).
        provenance: notes on where values come from.
        path: the file, where there is one.
    """

    name: str
    model: Structure | Any
    actuators: tuple[Actuator, ...] = ()
    outputs: tuple[Any, ...] = ()
    tour: tuple[TourStop, ...] = ()
    contact: Mapping[str, Any] = field(default_factory=dict)
    servos: Mapping[str, Any] = field(default_factory=dict)
    blocks: Mapping[str, Any] = field(default_factory=dict)
    provenance: tuple[Provenance, ...] = ()
    description: str = ""
    source: str = ""
    path: Path | None = None

    @property
    def structure(self) -> Structure:
        """The pin-jointed model. Raises TensegrityError where the robot is a mechanism."""
        if not isinstance(self.model, Structure):
            raise TensegrityError(f"{self.name} is a mechanism of bodies and joints, not a pin-jointed structure.")
        return self.model

    @property
    def mechanism(self) -> MechanismModel:
        """The model of bodies, joints and cables. Raises TensegrityError where the robot is a structure."""
        if isinstance(self.model, Structure):
            raise TensegrityError(f"{self.name} is a pin-jointed structure, not a mechanism of bodies and joints.")
        return self.model  # type: ignore[no-any-return]

    @property
    def output(self) -> OutputFrame:
        """The frame that goal poses mean. Raises TensegrityError where the robot has none."""
        if not self.outputs:
            raise TensegrityError(f"{self.name} has no output frame; add one under 'outputs' in its robot file.")
        return self.outputs[0]  # type: ignore[no-any-return]

    def actuator(self, name: str) -> Actuator:
        """The actuator called `name`."""
        for actuator in self.actuators:
            if actuator.name == name:
                return actuator
        raise TensegrityError(unknown_name("actuator", name, [each.name for each in self.actuators]))

    def actuated_members(self) -> np.ndarray:
        """(a,) member index of each actuator's tendon, in actuator order."""
        return np.array([self.structure.member(each.drives) for each in self.actuators], dtype=np.int64)
