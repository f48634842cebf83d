"""The fields of a mechanism's file: bodies, joints, loops and cables (DESIGN section 2)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ..robots.schema import (
    Axis,
    Block,
    CommonBlock,
    Density,
    Direction,
    Length,
    Mass,
    Name,
    Number,
    Point,
    PositiveLength,
    Stress,
    Turn,
    Viscosity,
)


class FrameBlock(Block):
    """A place on a body: origin, and turned by a rotation vector, or with z and y along given directions."""

    at: Point = Field(default=[0.0, 0.0, 0.0])
    turn: Turn | None = None
    z: Direction | None = None
    y: Direction | None = None


class PrimitiveBlock(Block):
    kind: Literal["cylinder", "tube", "box", "cube", "sphere", "point"]
    size: list[Length] = Field(default=[])
    density: Annotated[Density, Field(ge=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    frame: FrameBlock = FrameBlock()


class BodyBlock(Block):
    shapes: list[PrimitiveBlock] = Field(default=[])


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
    axis: Direction = Field(default=[0.0, 0.0, 1.0])
    start: list[Any] | None = None  # read by the builder: lengths and angles by the kind of joint


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
    pulley_joint: Name | None = None
    pulley_radius: PositiveLength
    anchor: AnchorBlock
    young: Annotated[Stress, Field(gt=0)]
    damping: Annotated[Viscosity, Field(ge=0)] = 0.0
    cable_radius: PositiveLength
    variant: Literal["rigid", "u", "epsilon", "length"] = "epsilon"
    length: PositiveLength | None = None
    strain: Number = 0.0
    block: list[PrimitiveBlock] = Field(default=[])
    pulley: list[PrimitiveBlock] = Field(default=[])


class BodyOutputBlock(Block):
    name: Name
    body: Name
    frame: FrameBlock = FrameBlock()
    controlled: Annotated[list[Axis], Field(min_length=1)] = Field(default=["x", "y", "z", "rx", "ry", "rz"])


class MechanismFile(CommonBlock):
    """Bodies, joints, loops and cables."""

    kind: Literal["mechanism"]
    density: Annotated[Density, Field(ge=0)] = 0.0
    bodies: dict[Name, BodyBlock]
    joints: Annotated[list[JointBlock], Field(min_length=1)]
    loops: list[LoopBlock] = Field(default=[])
    cables: list[CableBlock] = Field(default=[])
    outputs: list[BodyOutputBlock] = Field(default=[])
