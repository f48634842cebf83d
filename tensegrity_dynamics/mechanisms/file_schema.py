"""Fields of the robot file of a mechanism: bodies, joints, loops and cables (DESIGN section 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, Tag

from ..contact.file_schema import ContactBlock
from ..numerics.rotations import matrix_from_vector, rotation_vector
from ..robots.schema import (
    Axis,
    Block,
    CommonBlock,
    Density,
    Direction,
    Force,
    Forces,
    Inertia,
    Length,
    Mass,
    Moments,
    Name,
    Number,
    Point,
    PositiveLength,
    PositiveNumber,
    RigidMovement,
    Speed,
    Stress,
    Text,
    Turn,
    Viscosity,
    WholeNumber,
    Yes,
)
from .joint_coordinates import JOINT_COORDINATES


class FrameBlock(Block):
    """Frame on a body: its origin, and its axes by a rotation vector or by the directions of z and y."""

    at: Point = Field(default=[0.0, 0.0, 0.0])
    turn: Turn | None = None
    z: Direction | None = None
    y: Direction | None = None

    def moved(self, movement: RigidMovement) -> FrameBlock:
        """Frame rotated and translated in the axes of its body."""
        at = movement.point(self.at)
        if self.z is not None or self.y is not None:
            z, y = (None if each is None else movement.direction(each) for each in (self.z, self.y))
            return self.model_copy(update={"at": at, "z": z, "y": y})
        turned = [movement.direction(column) for column in matrix_from_vector(self.turn or [0.0, 0.0, 0.0]).T]
        return self.model_copy(update={"at": at, "turn": rotation_vector(np.transpose(turned)).tolist()})


class PrimitiveBlock(Block):
    """Solid of a body: its shape, and density or mass."""

    kind: Literal["cylinder", "tube", "box", "cube", "sphere", "point"]
    size: list[Length] = Field(default=[])
    density: Annotated[Density, Field(ge=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    frame: FrameBlock = FrameBlock()


def _as_list(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else [value]


class MeshBlock(Block):
    """File with triangles: appearance of the body, and its mass properties if a density or a mass is given."""

    file: Annotated[Text, Field(min_length=1)]
    scale: PositiveNumber = 1.0
    frame: FrameBlock = FrameBlock()
    density: Annotated[Density, Field(ge=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None


class BodyBlock(Block):
    """Rigid body: defined by solids, by meshes, or by the values of mass, centre and inertia."""

    shapes: list[PrimitiveBlock] = Field(default=[])
    mesh: Annotated[list[MeshBlock], Field(min_length=1), BeforeValidator(_as_list)] = Field(default=[])
    mass: Annotated[Mass, Field(ge=0)] | None = None
    centre: Point | None = None
    inertia: Annotated[list[Inertia], Field(min_length=3, max_length=6)] | None = None


class ResistanceBlock(Block):
    """Resistance of a joint. The builder reads its values, because their units depend on the joint."""

    stiffness: Any = None
    rest: Any = None
    damping: Any = None
    friction: Any = None
    friction_speed: Any = None
    limits: Annotated[list[Any], Field(min_length=2, max_length=2)] | None = None
    stop_stiffness: Any = None
    stop_damping: Any = None


Resistances = Annotated[
    Annotated[ResistanceBlock, Tag("one")] | Annotated[list[ResistanceBlock], Field(min_length=1), Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list) else "one"),
]
"""One resistance for all coordinates of a joint, or a list. The tag restricts error messages to the form in the
file."""


class LoadBlock(Block):
    """Payload (mass), or wrench (force, moment) in world axes."""

    name: Name
    body: Name
    at: Point = Field(default=[0.0, 0.0, 0.0])
    mass: Annotated[Mass, Field(ge=0)] | None = None
    force: Forces | None = None
    moment: Moments | None = None

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        if not is_copied("body"):
            self.at = movement.point(self.at)
        self.force, self.moment = (
            None if each is None else movement.direction(each) for each in (self.force, self.moment)
        )


if TYPE_CHECKING:
    JointKind = str
else:  # involute joints follow from cables
    JointKind = Literal[tuple(name for name in JOINT_COORDINATES if not name.startswith("involute"))]
LoopKind = Literal[
    "point", "point_xy", "point_z", "fixed", "revolute", "cylindrical", "prismatic", "planar", "universal"
]


Start = Annotated[list[Any], BeforeValidator(_as_list)]
"""Lengths or angles, depending on the kind of joint, read by the builder. A joint with one coordinate needs no list."""


class JointBlock(Block):
    """Tree joint that connects a body to its parent."""

    name: Name
    kind: JointKind
    parent: Name
    body: Name
    frame: FrameBlock = FrameBlock()
    axis: Direction = Field(default=[0.0, 0.0, 1.0])
    start: Start | None = None
    resistance: Resistances | None = None

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        if not is_copied("parent"):
            self.frame = self.frame.moved(movement)


class LoopBlock(Block):
    """Joint that closes a loop between two bodies of the tree."""

    name: Name
    kind: LoopKind
    before: Name
    after: Name
    frame_before: FrameBlock = FrameBlock()
    frame_after: FrameBlock = FrameBlock()
    turning: ResistanceBlock | None = None
    sliding: ResistanceBlock | None = None

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        if not is_copied("before"):
            self.frame_before = self.frame_before.moved(movement)
        if not is_copied("after"):
            self.frame_after = self.frame_after.moved(movement)


class AnchorBlock(Block):
    """Point of a body at which a cable ends."""

    body: Name
    at: Point


class CableBlock(Block):
    """Cable from a pulley to an anchor, modelled by an involute joint."""

    name: Name
    body: Name
    at: Point
    block_axis: Direction
    pulley_axis: Direction
    skew: Yes = False
    swivel: Point = Field(default=[0.0, 0.0, 0.0])
    pulley_joint: Name | None = None
    pulley_radius: PositiveLength
    anchor: AnchorBlock
    young: Annotated[Stress, Field(gt=0)] | None = None
    damping: Annotated[Viscosity, Field(ge=0)] = 0.0
    cable_radius: PositiveLength
    variant: Literal["rigid", "u", "epsilon", "length"] = "epsilon"
    length: PositiveLength | None = None
    strain: Number | None = None
    block: list[PrimitiveBlock] = Field(default=[])
    pulley: list[PrimitiveBlock] = Field(default=[])
    block_resistance: ResistanceBlock | None = None
    pulley_resistance: ResistanceBlock | None = None

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        if not is_copied("body"):
            self.at = movement.point(self.at)
            self.block_axis = movement.direction(self.block_axis)
            self.pulley_axis = movement.direction(self.pulley_axis)
            self.swivel = (np.array(movement.point(self.swivel)) - movement.point([0.0, 0.0, 0.0])).tolist()
        if not is_copied("anchor.body"):
            self.anchor.at = movement.point(self.anchor.at)


class LayersBlock(Block):
    """Layers of a cable on a drum: turns per layer, radius increase per layer, number of layers, turns of the climb."""

    turns: PositiveNumber
    pitch: Annotated[Length, Field(ge=0)]
    count: Annotated[WholeNumber, Field(ge=1)]
    ramp: PositiveNumber = 0.25


class RoutePointBlock(Block):
    """Element of a routed cable: a point or pulley on a body, or a joint that turns with the cable."""

    body: Name | None = None
    at: Point | None = None
    joint: Name | None = None
    radius: PositiveLength | None = None
    axis: Direction | None = None
    side: Literal[1, -1] = 1
    friction: Annotated[Number, Field(ge=0)] | None = None
    friction_speed: Annotated[Speed, Field(gt=0)] | None = None
    turns: Annotated[WholeNumber, Field(ge=0, le=10**6)] = 0
    may_be_clear: Yes = False
    wound: Annotated[Number, Field(ge=0)] | None = None
    layers: LayersBlock | None = None


class RoutedCableBlock(Block):
    """Cable over pulleys, from one end to the other."""

    name: Name
    route: Annotated[list[RoutePointBlock], Field(min_length=2)]
    rigid: Yes = False
    sag: Yes = False
    young: Annotated[Stress, Field(gt=0)] | None = None
    damping: Annotated[Viscosity, Field(ge=0)] = 0.0
    density: Annotated[Density, Field(gt=0)] | None = None
    cable_radius: PositiveLength | None = None
    strain: Number | None = None
    tension: Annotated[Force, Field(ge=0)] | None = None
    length: PositiveLength | None = None

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        for k, point in enumerate(self.route):
            if not is_copied(f"route.{k}.body"):
                point.at = None if point.at is None else movement.point(point.at)
                point.axis = None if point.axis is None else movement.direction(point.axis)


class BodyOutputBlock(Block):
    """Output: frame on a body to which goals refer."""

    name: Name
    body: Name
    frame: FrameBlock = FrameBlock()
    controlled: Annotated[list[Axis], Field(min_length=1)] = Field(default=["x", "y", "z", "rx", "ry", "rz"])


class ContactPartBlock(FrameBlock):
    """Shape on a body that can touch the ground; the fields of its frame are on the same level as the others."""

    name: Name | None = None
    body: Name
    kind: Literal["point", "sphere", "capsule", "box"] = "point"
    size: list[Length] = Field(default=[])

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        if not is_copied("body"):
            moved = self.moved(movement)
            self.at, self.turn, self.z, self.y = moved.at, moved.turn, moved.z, moved.y


class MechanismFile(CommonBlock):
    """Bodies, joints, loops and cables."""

    kind: Literal["mechanism"]
    density: Annotated[Density, Field(ge=0)] = 0.0
    bodies: dict[Name, BodyBlock]
    joints: Annotated[list[JointBlock], Field(min_length=1)]
    loops: list[LoopBlock] = Field(default=[])
    cables: list[CableBlock] = Field(default=[])
    routed_cables: list[RoutedCableBlock] = Field(default=[])
    loads: list[LoadBlock] = Field(default=[])
    outputs: list[BodyOutputBlock] = Field(default=[])
    contact: ContactBlock | None = None
    contact_parts: list[ContactPartBlock] = Field(default=[])


def motions(data: Mapping[str, Any]) -> Callable[[Any], str]:
    """Function from the name of a driven part to its motion: "prismatic" or "revolute" (joints, and pulleys of cables);
    "unknown" where no part has this name, since its units are not the error then."""

    def rows(name: str) -> list[dict[str, Any]]:
        given = data.get(name)
        return [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []

    kinds = {str(row.get("pulley_joint") or f"{row.get('name')}-pulleyJt"): "revolute" for row in rows("cables")}
    kinds |= {str(row.get("name")): "revolute" for row in rows("cables")}
    kinds |= {
        str(row.get("name")): "prismatic" if row.get("kind") == "prismatic" else "revolute" for row in rows("joints")
    }
    return lambda driven: kinds.get(str(driven), "unknown")
