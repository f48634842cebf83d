"""The fields of a structure's file: nodes, members and their defaults (DESIGN section 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from ..contact.file_schema import CollisionBlock, ContactBlock
from ..robots.schema import (
    Angle,
    Axis,
    Block,
    CommonBlock,
    Damping,
    Force,
    Forces,
    Length,
    Mass,
    Name,
    Point,
    PositiveForce,
    PositiveLength,
    PositiveNumber,
    RigidMovement,
    Stiffness,
    Yes,
)


class NodeBlock(Block):
    """A point where members meet."""

    position: Point
    fixed: Yes = False
    mass: Annotated[Mass, Field(ge=0)] = 0.0

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        self.position = movement.point(self.position)


class NodeLoadBlock(Block):
    """What a node carries (mass) or what acts on it (force, in world axes)."""

    name: Name
    node: Name
    mass: Annotated[Mass, Field(ge=0)] | None = None
    force: Forces | None = None

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        if self.force is not None:
            self.force = movement.direction(self.force)


class MemberBlock(Block):
    """A bar, tendon or spring between two nodes; what is missing comes from the defaults of its kind."""

    name: Name
    kind: Literal["bar", "tendon", "spring"]
    nodes: Annotated[list[Name], Field(min_length=2, max_length=2)]
    rest_length: PositiveLength | None = None
    stiffness: Annotated[Stiffness, Field(gt=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    damping: Annotated[Damping, Field(ge=0)] | None = None
    initial_tension: Annotated[Force, Field(ge=0)] | None = None


class MemberDefaults(Block):
    """Values for members of one kind that do not state their own."""

    rest_length: PositiveLength | None = None
    stiffness: Annotated[Stiffness, Field(gt=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    damping: Annotated[Damping, Field(ge=0)] | None = None
    initial_tension: Annotated[Force, Field(ge=0)] | None = None


class DefaultsBlock(Block):
    """Defaults by kind of member."""

    bar: MemberDefaults = MemberDefaults()
    tendon: MemberDefaults = MemberDefaults()
    spring: MemberDefaults = MemberDefaults()


class TensionBlock(Block):
    """How tendons and springs go slack."""

    law: Literal["hard", "softplus"] = "hard"
    smoothness: PositiveLength = 1e-3


class ImuBlock(Block):
    """An IMU on a bar; its noise is that of the direction, its rate in 1/s."""

    bar: Name
    noise: Annotated[Angle, Field(ge=0, lt=1)] = 0.0
    rate: PositiveNumber | None = None
    seed: Annotated[int, Field(ge=0, strict=True)] = 0


class FormBlock(Block):
    """The nodes are the wanted shape: members without a rest length get the one that holds it."""

    prestress: PositiveForce | None = None
    tensions: dict[Name, Force] = Field(default={})
    move: Annotated[Length, Field(ge=0)] | None = None


class NodeOutputBlock(Block):
    """A frame carried by nodes."""

    name: Name
    nodes: Annotated[dict[Name, Point], Field(min_length=1)]
    controlled: Annotated[list[Axis], Field(min_length=1)] = Field(default=["x", "y", "z", "rx", "ry", "rz"])


class StructureFile(CommonBlock):
    """A pin-jointed network of nodes and members."""

    kind: Literal["structure"]
    nodes: Annotated[dict[Name, NodeBlock], Field(min_length=2)]
    defaults: DefaultsBlock = DefaultsBlock()
    members: Annotated[list[MemberBlock], Field(min_length=1)]
    loads: list[NodeLoadBlock] = Field(default=[])
    outputs: list[NodeOutputBlock] = Field(default=[])
    contact: ContactBlock | None = None
    collision: CollisionBlock | None = None
    imu: list[ImuBlock] = Field(default=[])
    tension: TensionBlock = TensionBlock()
    form: FormBlock | None = None
