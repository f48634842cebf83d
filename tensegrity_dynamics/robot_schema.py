"""What may stand in a robot file: field names, types, units and ranges (DESIGN section 2; docs/robot_file.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from .units import BaseUnits


def quantity(kind: str) -> Any:
    """Annotation for a number of that kind, read in the file's units, SI afterwards."""

    def read(value: Any, info: ValidationInfo) -> float:
        units = (info.context or {}).get("units") or BaseUnits()
        return units.to_si(value, kind)

    return Annotated[float, BeforeValidator(read)]


Length, Angle, Mass, Force, Time = (quantity(kind) for kind in ("length", "angle", "mass", "force", "time"))
Stiffness, Damping, Number, Density = (quantity(kind) for kind in ("stiffness", "damping", "number", "density"))
Acceleration, Stress, Viscosity = (quantity(kind) for kind in ("acceleration", "stress", "viscosity"))
PositiveLength = Annotated[Length, Field(gt=0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
Point = Annotated[list[Length], Field(min_length=3, max_length=3)]
Direction = Annotated[list[Number], Field(min_length=3, max_length=3)]
Vector = Annotated[list[Acceleration], Field(min_length=3, max_length=3)]
Turn = Annotated[list[Angle], Field(min_length=3, max_length=3)]


class Block(BaseModel):
    """A mapping that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", strict=False)


class UnitsBlock(Block):
    length: str = "m"
    mass: str = "kg"
    force: str = "N"
    time: str = "s"
    angle: str = "rad"


class NodeBlock(Block):
    position: Point
    fixed: bool = False
    mass: Annotated[Mass, Field(ge=0)] = 0.0


class MemberBlock(Block):
    name: Name
    kind: Literal["bar", "tendon", "spring"]
    nodes: Annotated[list[Name], Field(min_length=2, max_length=2)]
    rest_length: PositiveLength
    stiffness: Annotated[Stiffness, Field(gt=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    damping: Annotated[Damping, Field(ge=0)] | None = None


class MemberDefaults(Block):
    stiffness: Annotated[Stiffness, Field(gt=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    damping: Annotated[Damping, Field(ge=0)] | None = None


class DefaultsBlock(Block):
    """Values for members that do not state their own, by kind."""

    bar: MemberDefaults = MemberDefaults()
    tendon: MemberDefaults = MemberDefaults()
    spring: MemberDefaults = MemberDefaults()


def _either(first: str, second: str) -> Any:
    """A number with a unit of either kind: what a tendon needs, or what a joint needs."""

    def read(value: Any, info: ValidationInfo) -> float:
        units = (info.context or {}).get("units") or BaseUnits()
        kind = (info.context or {}).get("kind")
        order = (first, second) if kind != "mechanism" else (second, first)
        try:
            return units.to_si(value, order[0])
        except ValueError:
            if isinstance(value, str) and any(letter.isalpha() for letter in value):
                return units.to_si(value, order[1])
            raise

    return Annotated[float, BeforeValidator(read)]


Position, Rate, Effort = _either("length", "angle"), _either("speed", "angular speed"), _either("force", "torque")


class ActuatorBlock(Block):
    name: Name | None = None
    drives: Name
    position: Annotated[list[Position], Field(min_length=2, max_length=2)]
    rate: Annotated[Rate, Field(gt=0)]
    effort: Annotated[Effort, Field(gt=0)]
    minimum_tension: Annotated[Force, Field(ge=0)] = 0.0


Axis = Literal["x", "y", "z", "rx", "ry", "rz"]


class NodeOutputBlock(Block):
    name: Name
    nodes: Annotated[dict[Name, Point], Field(min_length=1)]
    controlled: Annotated[list[Axis], Field(min_length=1)] = ["x", "y", "z", "rx", "ry", "rz"]


class TourBlock(Block):
    name: str
    move: Point = [0.0, 0.0, 0.0]
    turn: Turn = [0.0, 0.0, 0.0]
    duration: Annotated[Time, Field(gt=0)] | None = None


class ProvenanceBlock(Block):
    fields: str
    status: Literal["printed", "deduced", "assumed"]
    note: str


class ContactBlock(Block):
    """Ground contact; used by the network dynamics."""

    height: Length = 0.0
    stiffness: Annotated[Stiffness, Field(gt=0)]
    damping: Annotated[Damping, Field(ge=0)] = 0.0
    friction: Annotated[Number, Field(ge=0)] = 0.0


class ServoBlock(Block):
    """One servo of the hardware."""

    actuator: Name
    id: Annotated[int, Field(ge=0, le=253, strict=True)]
    model: str
    spool_radius: PositiveLength
    direction: Literal[1, -1] = 1
    potentiometer: Annotated[int, Field(ge=0, strict=True)] | None = None


class HardwareBlock(Block):
    """The servo bus and its servos."""

    protocol: Literal[1, 2] = 2
    baud_rate: Annotated[int, Field(gt=0, strict=True)] = 1_000_000
    calibration: str | None = None
    servos: list[ServoBlock]


class CommonBlock(Block):
    """Fields of every robot file."""

    name: Name
    description: str = ""
    source: str = ""
    units: UnitsBlock = UnitsBlock()
    gravity: Vector = [0.0, 0.0, -9.80665]
    actuators: list[ActuatorBlock] = []
    tour: list[TourBlock] = []
    contact: ContactBlock | None = None
    servos: HardwareBlock | None = None
    provenance: list[ProvenanceBlock] = []


class StructureFile(CommonBlock):
    """A pin-jointed network of nodes and members."""

    kind: Literal["structure"]
    nodes: Annotated[dict[Name, NodeBlock], Field(min_length=2)]
    defaults: DefaultsBlock = DefaultsBlock()
    members: Annotated[list[MemberBlock], Field(min_length=1)]
    outputs: list[NodeOutputBlock] = []


class FrameBlock(Block):
    """A place on a body: origin, and turned by a rotation vector, or with z and y along given directions."""

    at: Point = [0.0, 0.0, 0.0]
    turn: Turn | None = None
    z: Direction | None = None
    y: Direction | None = None


class PrimitiveBlock(Block):
    kind: Literal["cylinder", "tube", "box", "cube", "sphere", "point"]
    size: list[Length] = []
    density: Annotated[Density, Field(ge=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    frame: FrameBlock = FrameBlock()


class BodyBlock(Block):
    shapes: list[PrimitiveBlock] = []


JointKind = Literal["fixed", "revolute", "prismatic", "universal", "spherical", "floating"]
LoopKind = Literal[
    "point", "point_xy", "point_z", "fixed", "revolute", "cylindrical", "prismatic", "planar", "universal"
]


class JointBlock(Block):
    name: Name
    kind: JointKind
    parent: Name
    body: Name
    frame: FrameBlock = FrameBlock()
    axis: Direction = [0.0, 0.0, 1.0]
    start: list[Union[Angle, Length]] | None = None  # noqa: UP007 - evaluated at run time on Python 3.10


class LoopBlock(Block):
    name: Name
    kind: LoopKind
    before: Name
    after: Name
    frame_before: FrameBlock = FrameBlock()
    frame_after: FrameBlock = FrameBlock()


class AnchorBlock(Block):
    body: Name
    at: Point


class CableBlock(Block):
    name: Name
    body: Name
    at: Point
    block_axis: Direction
    pulley_axis: Direction
    pulley_radius: PositiveLength
    anchor: AnchorBlock
    young: Annotated[Stress, Field(gt=0)]
    damping: Annotated[Viscosity, Field(ge=0)] = 0.0
    cable_radius: PositiveLength
    variant: Literal["rigid", "u", "epsilon", "length"] = "epsilon"
    length: PositiveLength | None = None
    strain: Number = 0.0
    block: list[PrimitiveBlock] = []
    pulley: list[PrimitiveBlock] = []


class BodyOutputBlock(Block):
    name: Name
    body: Name
    frame: FrameBlock = FrameBlock()
    controlled: Annotated[list[Axis], Field(min_length=1)] = ["x", "y", "z", "rx", "ry", "rz"]


class MechanismFile(CommonBlock):
    """Bodies, joints, loops and cables."""

    kind: Literal["mechanism"]
    density: Annotated[Density, Field(ge=0)] = 0.0
    bodies: dict[Name, BodyBlock]
    joints: Annotated[list[JointBlock], Field(min_length=1)]
    loops: list[LoopBlock] = []
    cables: list[CableBlock] = []
    outputs: list[BodyOutputBlock] = []


KINDS: dict[str, type[CommonBlock]] = {"structure": StructureFile, "mechanism": MechanismFile}
