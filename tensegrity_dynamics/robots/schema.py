"""Schema of robot files: field names, types, units and ranges (DESIGN section 2; docs/robot_file.md).

This module has the fields of all robots; those of a kind are in `structures.file_schema` and `mechanisms.file_schema`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Protocol, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from .units import BaseUnits


def quantity(kind: str) -> BeforeValidator:
    """Validator that converts a number of this kind from the units of the file to SI units."""

    def read(value: Any, info: ValidationInfo) -> float:
        return _units(info).to_si(value, kind)

    return BeforeValidator(read)


def driven(tendon: str, revolute: str, prismatic: str) -> BeforeValidator:
    """Validator for a number whose unit depends on the driven part; the field `drives` must come before it."""

    def read(value: Any, info: ValidationInfo) -> float:
        motion = (info.context or {}).get("motion", lambda _: "tendon")(info.data.get("drives"))
        kinds = {"tendon": tendon, "revolute": revolute, "prismatic": prismatic}
        if motion in kinds:
            return _units(info).to_si(value, kinds[motion])
        return _of_any(value, info, (prismatic, revolute))  # the builder says that nothing has this name

    return BeforeValidator(read)


def _of_any(value: Any, info: ValidationInfo, kinds: tuple[str, str]) -> float:
    try:
        return _units(info).to_si(value, kinds[0])
    except ValueError:
        return _units(info).to_si(value, kinds[1])


def _units(info: ValidationInfo) -> BaseUnits:
    return (info.context or {}).get("units") or BaseUnits()


Length = Annotated[float, quantity("length")]
Angle = Annotated[float, quantity("angle")]
Mass = Annotated[float, quantity("mass")]
Force = Annotated[float, quantity("force")]
Time = Annotated[float, quantity("time")]
Speed = Annotated[float, quantity("speed")]
Stiffness = Annotated[float, quantity("stiffness")]
Damping = Annotated[float, quantity("damping")]
Acceleration = Annotated[float, quantity("acceleration")]
Stress = Annotated[float, quantity("stress")]
Viscosity = Annotated[float, quantity("viscosity")]
Density = Annotated[float, quantity("density")]
Number = Annotated[float, quantity("number")]
Position = Annotated[float, driven("length", "angle", "length")]
Rate = Annotated[float, driven("speed", "angular speed", "speed")]
Effort = Annotated[float, driven("force", "torque", "force")]
Gear = Annotated[float, driven("number", "number", "turning per length")]
Torque = Annotated[float, quantity("torque")]
Inertia = Annotated[float, quantity("inertia")]
TorsionalDamping = Annotated[float, quantity("torsional damping")]
PositiveLength = Annotated[Length, Field(gt=0)]
PositiveSpeed = Annotated[Speed, Field(gt=0)]
PositiveForce = Annotated[Force, Field(gt=0)]
PositiveTime = Annotated[Time, Field(gt=0)]
PositiveNumber = Annotated[Number, Field(gt=0)]
Count = Annotated[int, Field(gt=0, strict=True)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$", strict=True)]
Text = Annotated[str, Field(strict=True)]
Yes = Annotated[bool, Field(strict=True)]
Point = Annotated[list[Length], Field(min_length=3, max_length=3)]
Direction = Annotated[list[Number], Field(min_length=3, max_length=3)]
Vector = Annotated[list[Acceleration], Field(min_length=3, max_length=3)]
Turn = Annotated[list[Angle], Field(min_length=3, max_length=3)]
Forces = Annotated[list[Force], Field(min_length=3, max_length=3)]
Moments = Annotated[list[Torque], Field(min_length=3, max_length=3)]
Axis = Literal["x", "y", "z", "rx", "ry", "rz"]


class Block(BaseModel):
    """Mapping that rejects unknown keys."""

    model_config = ConfigDict(extra="forbid")

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        """Move the positions and directions of a copy made by `repeat`; most parts have none.

        Args:
            movement: movement of the copy.
            is_copied: function that returns whether a field such as "anchor.body" refers to a copied part; values in
                the axes of such a part have already moved with it.
        """


class RigidMovement(Protocol):
    """Rigid motion of positions and directions."""

    def point(self, position: Sequence[float]) -> list[float]: ...

    def direction(self, vector: Sequence[float]) -> list[float]: ...


class SettingsBlock(Block):
    """Settings with default values, which are also used for `null`; read-only after validation.

    Raises:
        ValidationError: a value is not allowed; `file_errors.validate_block` raises a TensegrityError instead.
    """

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, data: Any) -> Any:
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


class UnitsBlock(Block):
    """Units of plain numbers; they are checked first, because all other numbers depend on them."""

    length: Text = "m"
    mass: Text = "kg"
    force: Text = "N"
    time: Text = "s"
    angle: Text = "rad"


class ActuatorBlock(Block):
    """Actuator and its limits."""

    name: Name | None = None
    drives: Name
    position: Annotated[list[Position], Field(min_length=2, max_length=2)]
    rate: Annotated[Rate, Field(gt=0)]
    effort: Annotated[Effort, Field(gt=0)]
    minimum_tension: Annotated[Force, Field(ge=0)] = 0.0
    gear: Annotated[Gear, Field(gt=0)] = 1.0
    efficiency: Annotated[Number, Field(gt=0, le=1)] = 1.0
    rotor_inertia: Annotated[Inertia, Field(ge=0)] = 0.0
    motor_damping: Annotated[TorsionalDamping, Field(ge=0)] = 0.0
    motor_friction: Annotated[Torque, Field(ge=0)] = 0.0
    free_rate: Annotated[Rate, Field(gt=0)] | None = None
    stall_effort: Annotated[Effort, Field(gt=0)] | None = None


class TourBlock(Block):
    """Goal of the demonstration tour, relative to the pose at rest."""

    name: Text
    move: Point = [0.0, 0.0, 0.0]
    turn: Turn = [0.0, 0.0, 0.0]
    duration: Annotated[Time, Field(gt=0)] | None = None
    tolerance: PositiveLength | None = None


class ProvenanceBlock(Block):
    """Origin of values."""

    fields: Text
    status: Literal["printed", "deduced", "assumed"]
    note: Text


def _whole_number(value: Any, info: ValidationInfo) -> Any:
    """Integer, also given as an expression of parameters."""
    if not isinstance(value, str):
        return value
    number = _units(info).to_si(value, "number")
    return int(number) if number == int(number) else value


WholeNumber = Annotated[int, Field(strict=True), BeforeValidator(_whole_number)]


class RepeatBlock(Block):
    """Movement between the copies of repeated parts; the parts are on the same level as these fields."""

    count: Annotated[WholeNumber, Field(ge=1, le=100_000)]
    about: Literal["x", "y", "z"] | None = None
    through: Point = [0.0, 0.0, 0.0]
    angle: Angle | None = None
    along: Point | None = None
    mark: Literal["$", "@", "%"] = "$"

    @property
    def turn_per_copy(self) -> float:
        """Angle between successive copies [rad]: the given one, or a full turn divided by `count`."""
        return 2.0 * math.pi / self.count if self.angle is None else self.angle

    @property
    def is_ring(self) -> bool:
        """Whether the last copy is the neighbour of the first: a full turn without translation."""
        return self.about is not None and self.angle is None and self.along is None


class CommonBlock(Block):
    """Fields of all robot files; `parameters` and `repeat` are evaluated before these fields are read."""

    name: Name
    description: Text = ""
    source: Text = ""
    units: UnitsBlock = UnitsBlock()
    parameters: dict[str, Any] = {}
    gravity: Vector = [0.0, 0.0, -9.80665]
    actuators: list[ActuatorBlock] = []
    tour: list[TourBlock] = []
    servos: dict[str, Any] | None = None  # read by the package of the servo driver, see `extensions`
    provenance: list[ProvenanceBlock] = []

    @classmethod
    def repeatable(cls) -> tuple[str, ...]:
        """Names of the fields with parts of the robot that `repeat` can copy."""
        return tuple(name for name, each in cls.model_fields.items() if _holds_blocks(each.annotation))


def _holds_blocks(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _holds_blocks(get_args(annotation)[0])
    if get_origin(annotation) not in (list, dict):
        return False
    held = get_args(annotation)[-1]
    return isinstance(held, type) and issubclass(held, Block) and held not in (TourBlock, ProvenanceBlock)
