"""What may stand in a robot file: field names, types, units and ranges (DESIGN section 2; docs/robot_file.md).

Here are the fields of every robot and those of a structure; the ones of a mechanism are in `mechanism_schema`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from .units import BaseUnits


def quantity(kind: str) -> BeforeValidator:
    """Reads a number of that kind, in the file's units; SI afterwards."""

    def read(value: Any, info: ValidationInfo) -> float:
        return _units(info).to_si(value, kind)

    return BeforeValidator(read)


def driven(tendon: str, revolute: str, prismatic: str) -> BeforeValidator:
    """Reads a number of an actuator, whose unit depends on what the actuator drives; `drives` must come before it."""

    def read(value: Any, info: ValidationInfo) -> float:
        motion = (info.context or {}).get("motion", lambda _: "tendon")(info.data.get("drives"))
        kind = {"tendon": tendon, "revolute": revolute, "prismatic": prismatic}[motion]
        return _units(info).to_si(value, kind)

    return BeforeValidator(read)


def _units(info: ValidationInfo) -> BaseUnits:
    return (info.context or {}).get("units") or BaseUnits()


Length = Annotated[float, quantity("length")]
Angle = Annotated[float, quantity("angle")]
Mass = Annotated[float, quantity("mass")]
Force = Annotated[float, quantity("force")]
Time = Annotated[float, quantity("time")]
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
PositiveLength = Annotated[Length, Field(gt=0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$", strict=True)]
Text = Annotated[str, Field(strict=True)]
Yes = Annotated[bool, Field(strict=True)]
Point = Annotated[list[Length], Field(min_length=3, max_length=3)]
Direction = Annotated[list[Number], Field(min_length=3, max_length=3)]
Vector = Annotated[list[Acceleration], Field(min_length=3, max_length=3)]
Turn = Annotated[list[Angle], Field(min_length=3, max_length=3)]
Axis = Literal["x", "y", "z", "rx", "ry", "rz"]


class Block(BaseModel):
    """A mapping that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid")


# -- every robot ----------------------------------------------------------------------------------------------------


class UnitsBlock(Block):
    """The units of plain numbers; checked before everything else, since all other numbers need them."""

    length: Text = "m"
    mass: Text = "kg"
    force: Text = "N"
    time: Text = "s"
    angle: Text = "rad"


class ActuatorBlock(Block):
    """A drive and its limits."""

    name: Name | None = None
    drives: Name
    position: Annotated[list[Position], Field(min_length=2, max_length=2)]
    rate: Annotated[Rate, Field(gt=0)]
    effort: Annotated[Effort, Field(gt=0)]
    minimum_tension: Annotated[Force, Field(ge=0)] = 0.0


class TourBlock(Block):
    """One goal of the demonstration, relative to the pose at rest."""

    name: Text
    move: Point = [0.0, 0.0, 0.0]
    turn: Turn = [0.0, 0.0, 0.0]
    duration: Annotated[Time, Field(gt=0)] | None = None


class ContactBlock(Block):
    """Ground contact."""

    height: Length = 0.0
    stiffness: Annotated[Stiffness, Field(gt=0)]
    damping: Annotated[Damping, Field(ge=0)] = 0.0
    friction: Annotated[Number, Field(ge=0)] = 0.0


class ServoDefaults(Block):
    """What servos that do not say otherwise have in common."""

    model: Text | None = None
    spool_radius: PositiveLength | None = None
    direction: Literal[1, -1] = 1


class ServoBlock(Block):
    """One servo of the hardware; what is missing here comes from the defaults."""

    actuator: Name
    id: Annotated[int, Field(ge=0, le=253, strict=True)]
    model: Text | None = None
    spool_radius: PositiveLength | None = None
    direction: Literal[1, -1] | None = None
    potentiometer: Annotated[int, Field(ge=0, strict=True)] | None = None


class HardwareBlock(Block):
    """The servo bus and its servos."""

    protocol: Literal[1, 2] = 2
    baud_rate: Annotated[int, Field(gt=0, strict=True)] = 1_000_000
    calibration: Text | None = None
    defaults: ServoDefaults = ServoDefaults()
    servos: Annotated[list[ServoBlock], Field(min_length=1)]


class ProvenanceBlock(Block):
    """Where values come from."""

    fields: Text
    status: Literal["printed", "deduced", "assumed"]
    note: Text


class CommonBlock(Block):
    """Fields of every robot file."""

    name: Name
    description: Text = ""
    source: Text = ""
    units: UnitsBlock = UnitsBlock()
    gravity: Vector = [0.0, 0.0, -9.80665]
    actuators: list[ActuatorBlock] = []
    tour: list[TourBlock] = []
    contact: ContactBlock | None = None
    servos: HardwareBlock | None = None
    provenance: list[ProvenanceBlock] = []


# -- structures -----------------------------------------------------------------------------------------------------


class NodeBlock(Block):
    """A place where members meet."""

    position: Point
    fixed: Yes = False
    mass: Annotated[Mass, Field(ge=0)] = 0.0


class MemberBlock(Block):
    """A bar, tendon or spring between two nodes; what is missing comes from the defaults of its kind."""

    name: Name
    kind: Literal["bar", "tendon", "spring"]
    nodes: Annotated[list[Name], Field(min_length=2, max_length=2)]
    rest_length: PositiveLength | None = None
    stiffness: Annotated[Stiffness, Field(gt=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    damping: Annotated[Damping, Field(ge=0)] | None = None


class MemberDefaults(Block):
    """Values for members of one kind that do not state their own."""

    rest_length: PositiveLength | None = None
    stiffness: Annotated[Stiffness, Field(gt=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    damping: Annotated[Damping, Field(ge=0)] | None = None


class DefaultsBlock(Block):
    """Defaults by kind of member."""

    bar: MemberDefaults = MemberDefaults()
    tendon: MemberDefaults = MemberDefaults()
    spring: MemberDefaults = MemberDefaults()


class NodeOutputBlock(Block):
    """A frame carried by nodes."""

    name: Name
    nodes: Annotated[dict[Name, Point], Field(min_length=1)]
    controlled: Annotated[list[Axis], Field(min_length=1)] = ["x", "y", "z", "rx", "ry", "rz"]


class StructureFile(CommonBlock):
    """A pin-jointed network of nodes and members."""

    kind: Literal["structure"]
    nodes: Annotated[dict[Name, NodeBlock], Field(min_length=2)]
    defaults: DefaultsBlock = DefaultsBlock()
    members: Annotated[list[MemberBlock], Field(min_length=1)]
    outputs: list[NodeOutputBlock] = []
