"""Robot: a model, its actuators, its outputs, and its hardware description.

Robots are data. No code of this project depends on the name of a robot; `load_robot` reads a robot from a YAML file.
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
    """Goal of the demonstration tour, relative to the pose at rest.

    Args:
        name: name shown to the user.
        move: (3,) translation in world axes [m].
        turn: (3,) rotation vector about world axes [rad].
        duration: duration [s], or None for the shortest time within the limits.
        tolerance: distance [m] below which the goal counts as reached; None for the default of arms, see
            `tensegrity_tools.runtime.tour`.
    """

    name: str
    move: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    duration: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class Provenance:
    """Origin of a value: `printed` in the source, `deduced` from it, or `assumed` by the authors of the file."""

    fields: str
    status: str
    note: str


@dataclass(frozen=True, eq=False, repr=False)
class Robot(ShortRepr):
    """Robot: model, actuators, outputs and data of its file.

    Attributes:
        name, description: texts for users.
        model: a `RobotModel`, such as `Structure` or `MechanismModel`.
        actuators: actuators, in the order of the commands.
        outputs: frames of the end effector (`OutputFrame`); goals refer to the first.
        tour: goals of the demonstration.
        servos: hardware block as plain data in SI units, or an empty mapping; the servo driver reads and checks it.
        servo_motors: speed-torque lines of the servos of that block, by actuator; see `with_servo_motors`.
        blocks: blocks of other packages by name, as their readers return them (`robots.extensions`).
        provenance: notes on the origin of values.
        path: path of the file, or None.

    Raises:
        TensegrityError: the model is not a `RobotModel`.
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
        """Model as an instance of a class. Raises TensegrityError if it has another class."""
        if not isinstance(self.model, kind):
            raise TensegrityError(f"{self.name} is {self.model.noun}, not {kind.noun}.")
        return self.model

    @property
    def structure(self) -> Any:
        """Pin-jointed `Structure`. Raises TensegrityError if the robot is of another kind."""
        return self._model_of("structure", "a pin-jointed structure")

    @property
    def mechanism(self) -> Any:
        """`Mechanism` of bodies, joints and cables. Raises TensegrityError if the robot is of another kind."""
        return self._model_of("mechanism", "a mechanism of bodies and joints").mechanism

    def _model_of(self, kind: str, noun: str) -> Any:
        if self.model.kind != kind:
            raise TensegrityError(f"{self.name} is {self.model.noun}, not {noun}.")
        return self.model

    @property
    def output(self) -> Any:
        """Output frame to which goal poses refer. Raises TensegrityError if the robot has none."""
        if not self.outputs:
            raise TensegrityError(f"{self.name} has no output frame; add one under 'outputs' in its robot file.")
        return self.outputs[0]

    def output_pose(self, configuration: NDArray[np.float64]) -> Pose:
        """Pose of the output at a configuration. Raises TensegrityError if the robot has no output."""
        return self.model.output_pose(self.output, configuration)

    def actuator(self, name: str) -> Actuator:
        """Actuator with the name `name`."""
        for actuator in self.actuators:
            if actuator.name == name:
                return actuator
        raise TensegrityError(unknown_name("actuator", name, [each.name for each in self.actuators]))

    def with_servo_motors(self) -> Robot:
        """Copy of the robot whose plans respect the speed-torque lines of its servos.

        A motor defined in the block of an actuator is kept. Without this method, the drives are restricted only by the
        limits of the actuators, as in a simulation.
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
        """Whether the drives are the servos of the file, see `with_servo_motors`, and not those of a simulation."""
        return any(each.motor is not None and each.motor is self.servo_motors.get(each.name) for each in self.actuators)

    def actuated_members(self) -> np.ndarray:
        """(a,) member index of the tendon of each actuator, in actuator order."""
        return np.array([self.structure.member(each.drives) for each in self.actuators], dtype=np.int64)


def robot_of(robot: Robot | RobotModel) -> Robot:
    """The robot, or a new robot with the given model. Raises TensegrityError for other objects."""
    if isinstance(robot, Robot):
        return robot
    if not isinstance(robot, RobotModel):
        raise TensegrityError(f"{robot!r} is no robot; give one, such as load_robot('my_robot.yaml').")
    return Robot(name=robot.kind, model=robot)
