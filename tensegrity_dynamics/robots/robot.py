"""What a robot is: a model, the actuators that move it, the output that it moves, and the hardware behind it.

Robots are data. Nothing in this project knows a robot by name; `load_robot` reads one from a YAML file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.short_repr import ShortRepr
from .actuator import Actuator, Motor
from .model import Pose, RobotModel

Model = TypeVar("Model", bound=RobotModel)


@dataclass(frozen=True)
class TourStop:
    """One goal of the demonstration tour, relative to the pose at rest.

    Args:
        name: what the user reads.
        move: (3,) m in world axes.
        turn: (3,) rad, rotation vector about world axes.
        duration: s, or None for the shortest time that the limits allow.
        tolerance: m, within which it counts as reached; None for what arms keep, see `tensegrity_tools.runtime.tour`.
    """

    name: str
    move: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    duration: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class Provenance:
    """Where a value comes from: `printed` in the source, `deduced` from it, or `assumed` by us."""

    fields: str
    status: str
    note: str


@dataclass(frozen=True, eq=False, repr=False)
class Robot(ShortRepr):
    """Robot: model, actuators, outputs and data of its file.

    Attributes:
        name, description: for people.
        model: a `RobotModel`, such as `Structure` or `MechanismModel`.
        actuators: in the order in which commands list them.
        outputs: frames of the end effector (`OutputFrame`); goals refer to the first.
        tour: goals of the demonstration.
        servos: the hardware block as plain data in SI, or an empty mapping; the servo driver reads and checks it.
        servo_motors: speed-torque lines of the servos of that block, by actuator; see `with_servo_motors`.
        blocks: blocks of other packages by name, as their readers return them (`robots.extensions`).
        provenance: notes on where values come from.
        path: the file, where there is one.

    Raises:
        TensegrityError: the model is no `RobotModel`.
    """

    name: str
    model: RobotModel
    actuators: tuple[Actuator, ...] = ()
    outputs: tuple[Any, ...] = ()
    tour: tuple[TourStop, ...] = ()
    servos: Mapping[str, Any] = field(default_factory=dict)
    servo_motors: Mapping[str, Motor] = field(default_factory=dict)
    blocks: Mapping[str, Any] = field(default_factory=dict)
    provenance: tuple[Provenance, ...] = ()
    description: str = ""
    source: str = ""
    path: Path | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, RobotModel):
            raise TensegrityError(
                f"the model of {self.name} is of type {type(self.model).__name__}; give a RobotModel, such as a "
                "Structure or a MechanismModel."
            )

    @property
    def kind(self) -> str:
        """Name of the robot type, such as "structure" or "mechanism"."""
        return self.model.kind

    def model_as(self, kind: type[Model]) -> Model:
        """The model as one of a class. Raises TensegrityError where it is of another one."""
        if not isinstance(self.model, kind):
            raise TensegrityError(f"{self.name} is {self.model.noun}, not {kind.noun}.")
        return self.model

    @property
    def structure(self) -> Any:
        """The pin-jointed `Structure`. Raises TensegrityError where the robot is of another kind."""
        return self._model_of("structure", "a pin-jointed structure")

    @property
    def mechanism(self) -> Any:
        """The `Mechanism` of bodies, joints and cables. Raises TensegrityError where the robot is of another kind."""
        return self._model_of("mechanism", "a mechanism of bodies and joints").mechanism

    def _model_of(self, kind: str, noun: str) -> Any:
        if self.model.kind != kind:
            raise TensegrityError(f"{self.name} is {self.model.noun}, not {noun}.")
        return self.model

    @property
    def output(self) -> Any:
        """The frame that goal poses mean. Raises TensegrityError where the robot has none."""
        if not self.outputs:
            raise TensegrityError(f"{self.name} has no output frame; add one under 'outputs' in its robot file.")
        return self.outputs[0]

    def output_pose(self, configuration: NDArray[np.float64]) -> Pose:
        """Pose of the output at a configuration. Raises TensegrityError where the robot has no output."""
        return self.model.output_pose(self.output, configuration)

    def actuator(self, name: str) -> Actuator:
        """The actuator called `name`."""
        for actuator in self.actuators:
            if actuator.name == name:
                return actuator
        raise TensegrityError(unknown_name("actuator", name, [each.name for each in self.actuators]))

    def with_servo_motors(self) -> Robot:
        """Copy of the robot whose plans respect the speed-torque lines of its servos.

        What an actuator says of its motor itself stays. Without this its drives do all that their limits allow, as
        those of a simulation do.
        """
        motors = self.servo_motors
        return replace(
            self,
            actuators=tuple(
                replace(each, motor=motors[each.name]) if each.motor is None and each.name in motors else each
                for each in self.actuators
            ),
        )

    @property
    def driven_by_servos(self) -> bool:
        """Whether its drives are the servos of its file, see `with_servo_motors`, and not those of a simulation."""
        return any(each.motor is not None and each.motor is self.servo_motors.get(each.name) for each in self.actuators)

    def actuated_members(self) -> np.ndarray:
        """(a,) member index of each actuator's tendon, in actuator order."""
        return np.array([self.structure.member(each.drives) for each in self.actuators], dtype=np.int64)


def robot_of(robot: Robot | RobotModel) -> Robot:
    """The robot itself, or one around a bare model. Raises TensegrityError where it is neither."""
    if isinstance(robot, Robot):
        return robot
    if not isinstance(robot, RobotModel):
        raise TensegrityError(f"{robot!r} is no robot; give one, such as load_robot('my_robot.yaml').")
    return Robot(name=robot.kind, model=robot)
