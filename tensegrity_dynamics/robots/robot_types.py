"""The kinds of robot that files can describe: each has a schema and a builder, and more can be registered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import TensegrityError

if TYPE_CHECKING:
    from .file_errors import Problems
    from .schema import CommonBlock


@dataclass(frozen=True)
class BuiltModel:
    """What a builder makes of a file's block.

    Attributes:
        model: the `Structure` or `MechanismModel`.
        drivable: what an actuator can drive, with its motion ("tendon", "revolute" or "prismatic").
        outputs: frames of the end effector.
        starts: position at the start [m or rad] of what can be driven; the limits of an actuator must hold it.
    """

    model: Any
    drivable: Mapping[str, str]
    outputs: tuple[Any, ...] = ()
    starts: Mapping[str, float] = field(default_factory=dict)


class Builder(Protocol):
    """Builds the model of a block that satisfies the schema; adds to the problems what it finds wrong."""

    def __call__(self, block: Any, problems: Problems) -> BuiltModel: ...


@dataclass(frozen=True)
class RobotKind:
    """Where the schema (a `CommonBlock`) and the builder of a kind are, as "module:name"; loaded on first use."""

    schema: str
    builder: str

    def load_schema(self) -> type[CommonBlock]:
        return _load(self.schema)  # type: ignore[no-any-return]

    def load_builder(self) -> Builder:
        return _load(self.builder)  # type: ignore[no-any-return]


KINDS: dict[str, RobotKind] = {
    "structure": RobotKind(
        "tensegrity_dynamics.robots.schema:StructureFile", "tensegrity_dynamics.structures.file_builder:build_structure"
    ),
    "mechanism": RobotKind(
        "tensegrity_dynamics.mechanisms.file_schema:MechanismFile",
        "tensegrity_dynamics.mechanisms.file_builder:build_mechanism",
    ),
}


def register_kind(name: str, schema: str, builder: str) -> None:
    """Let robot files say `kind: <name>`.

    Args:
        schema, builder: "module:name" of a `CommonBlock` and of a `Builder`.

    Raises:
        TensegrityError: the name is taken.
    """
    if name in KINDS:
        raise TensegrityError(f"robots of kind {name!r} are known already; choose another name.")
    KINDS[name] = RobotKind(schema, builder)


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)
