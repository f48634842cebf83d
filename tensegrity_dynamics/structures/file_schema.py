"""Fields of the robot file of a structure: nodes, members and their defaults (DESIGN section 2)."""

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
    """Point where members meet; it can be fixed, or held along some axes of the world."""

    position: Point
    fixed: Annotated[bool | list[str], BeforeValidator(_checked_axes)] = False
    mass: Annotated[Mass, Field(ge=0)] = 0.0
    _slanted: bool = PrivateAttr(default=False)

    @property
    def held(self) -> list[bool]:
        """Whether the node is held along x, y and z."""
        return [self.fixed] * 3 if isinstance(self.fixed, bool) else [axis in self.fixed for axis in AXES]

    @property
    def is_slanted(self) -> bool:
        """Whether it is a rotated copy that would be held along a direction that is not a world axis."""
        return self._slanted

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        self.position = movement.point(self.position)
        if isinstance(self.fixed, bool):
            return
        turned = np.array([movement.direction(row) for row in np.eye(3)[self.held].tolist()])
        along = np.einsum("ia,ib->ab", turned, turned)  # projection onto the held directions
        flags = along.diagonal() > 0.5
        self._slanted = self._slanted or bool(np.abs(along - np.diag(flags)).max() > 1e-9)
        self.fixed = [axis for axis, is_held in zip(AXES, flags, strict=True) if is_held]


class NodeLoadBlock(Block):
    """Load of a node: a carried mass, or a force in world axes."""

    name: Name
    node: Name
    mass: Annotated[Mass, Field(ge=0)] | None = None
    force: Forces | None = None

    def apply_movement(self, movement: RigidMovement, is_copied: Callable[[str], bool]) -> None:
        if self.force is not None:
            self.force = movement.direction(self.force)


class MemberBlock(Block):
    """Bar, tendon or spring between two nodes; missing values are the defaults of its kind."""

    name: Name
    kind: Literal["bar", "tendon", "spring"]
    nodes: Annotated[list[Name], Field(min_length=2, max_length=2)]
    rest_length: PositiveLength | None = None
    stiffness: Annotated[Stiffness, Field(gt=0)] | None = None
    mass: Annotated[Mass, Field(ge=0)] | None = None
    damping: Annotated[Damping, Field(ge=0)] | None = None
    initial_tension: Annotated[Force, Field(ge=0)] | None = None


class MemberDefaults(Block):
    """Default values for members of one kind."""

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
    """Law of tendons and springs near the slack state."""

    law: Literal["hard", "softplus"] = "hard"
    smoothness: PositiveLength = 1e-3


class ImuBlock(Block):
    """IMU on a bar; the noise is that of the direction, the rate is in 1/s."""

    bar: Name
    noise: Annotated[Angle, Field(ge=0, lt=1)] = 0.0
    rate: PositiveNumber | None = None
    seed: Annotated[int, Field(ge=0, strict=True)] = 0


class FormBlock(Block):
    """Desired shape at the nodes of the file: missing rest lengths are computed so that this shape is in
    equilibrium."""

    prestress: PositiveForce | None = None
    tensions: dict[Name, Force] = Field(default={})
    move: Annotated[Length, Field(ge=0)] | None = None


class NodeOutputBlock(Block):
    """Output frame carried by nodes."""

    name: Name
    nodes: Annotated[dict[Name, Point], Field(min_length=1)]
    controlled: Annotated[list[Axis], Field(min_length=1)] = Field(default=["x", "y", "z", "rx", "ry", "rz"])


class StructureFile(CommonBlock):
    """Pin-jointed network of nodes and members."""

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
