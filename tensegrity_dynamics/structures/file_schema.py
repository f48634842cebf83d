"""The fields of a structure's file: nodes, members and their defaults (DESIGN section 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PrivateAttr

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
)
from .structure import AXES


def _checked_axes(value: Any) -> Any:
    """True, False, or a list of axes of the world."""
    names = value if isinstance(value, list) else []
    if isinstance(value, bool) or (names and all(name in tuple(AXES) for name in names)):
        return value
    raise ValueError("give true, false or axes of the world such as [x, z]")


class NodeBlock(Block):
    """A point where members meet; fixed whole, or along some axes of the world."""

    position: Point
    fixed: Annotated[bool | list[str], BeforeValidator(_checked_axes)] = False
    mass: Annotated[Mass, Field(ge=0)] = 0.0
    _slanted: bool = PrivateAttr(default=False)

    @property
    def held(self) -> list[bool]:
        """Along x, y and z."""
        return [self.fixed] * 3 if isinstance(self.fixed, bool) else [axis in self.fixed for axis in AXES]

    @property
    def is_slanted(self) -> bool:
        """Whether it is a turned copy that would be held along no axis of the world."""
        return self._slanted

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        self.position = movement.point(self.position)
        if isinstance(self.fixed, bool):
            return
        turned = np.array([movement.direction(row) for row in np.eye(3)[self.held].tolist()])
        along = np.einsum("ia,ib->ab", turned, turned)  # projects onto what is held
        flags = along.diagonal() > 0.5
        self._slanted = self._slanted or bool(np.abs(along - np.diag(flags)).max() > 1e-9)
        self.fixed = [axis for axis, is_held in zip(AXES, flags, strict=True) if is_held]


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
    """The nodes are the desired shape: members without a rest length get the one that holds it."""

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
