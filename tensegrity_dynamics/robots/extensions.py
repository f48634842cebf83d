"""Blocks of robot files for other packages: a schema, and a reader for checks that a schema cannot express.

A package next to this one (a folder `tensegrity_*` in the same directory) that reads blocks has a module
`robot_blocks`, which calls `register_block` for each of them. It is imported when a file contains such a block, so that
the block is checked in every program that loads the file. Other code calls `register_block` before loading. Errors of
the block contain file, line and field like all others, and are reported together with them.

Any other installed package declares a module as entry point of the group `tensegrity.extensions`. It is imported when a
file contains an unregistered block, or when an unregistered kind of robot or controller is requested.

`servos` is a block of the file format itself. If no package that reads it is installed, its data are kept without
checks. Any other block without a reader is an unknown field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, create_model

from ..errors import TensegrityError
from .actuator import Actuator, Motor
from .file_errors import Problems
from .schema import CommonBlock

KEPT = ("servos",)
"""Blocks of other packages that are allowed in a file without a reader."""
MODULE = "robot_blocks"
"""Name of the module of a package that registers its blocks."""
GROUP = "tensegrity.extensions"
"""Group of entry points of packages that register blocks, kinds of robot (`register_robot_type`) or controllers."""


Motors = Callable[[Any, tuple[Actuator, ...]], Mapping[str, Motor]]
"""Function that returns the motors of actuators by actuator name."""


@dataclass(frozen=True)
class BlockReader:
    """Reader of a block.

    Attributes:
        schema: schema of the block.
        read: function that converts a block which satisfies the schema to plain data, with the actuators of the robot
            as second argument. It adds errors to the problems, with paths that begin with the name of the block.
        motors: function that returns the motors of the actuators by name from the data of `read`, or None.
    """

    schema: type[BaseModel]
    read: Callable[[Any, tuple[Actuator, ...], Problems], Any]
    motors: Motors | None = None


_READERS: dict[str, BlockReader] = {}


def register_block(
    name: str,
    schema: type[BaseModel],
    read: Callable[[Any, tuple[Actuator, ...], Problems], Any],
    motors: Motors | None = None,
) -> None:
    """Register a block of robot files.

    Args:
        name: top-level field of the file. The data of `read` are stored in `Robot.blocks[name]`, those of `servos` in
            `Robot.servos`.
        schema, read, motors: see `BlockReader`.

    Raises:
        TensegrityError: another block has this name.
    """
    if name in _READERS or (name in CommonBlock.model_fields and name not in KEPT):
        raise TensegrityError(f"robot files have a field {name!r} already; choose another name for the block.")
    _READERS[name] = BlockReader(schema, read, motors)


def with_blocks(schema: type[CommonBlock], data: Mapping[str, Any]) -> type[CommonBlock]:
    """Schema of the kind of robot of a file, extended with the blocks of other packages in the file."""
    own = set(schema.model_fields).difference(KEPT)
    if own.issuperset(data):
        return schema
    _import_readers()
    if not own.union(_READERS, KEPT).issuperset(data):
        import_extensions()
    return _extended(schema, tuple((name, each.schema) for name, each in _READERS.items() if name not in own))


def read_blocks(block: CommonBlock, actuators: tuple[Actuator, ...], problems: Problems) -> dict[str, Any]:
    """Data of all blocks of other packages in a file, by name."""
    blocks: dict[str, Any] = {}
    for name in block.model_fields_set.intersection((*KEPT, *_READERS)):
        content = getattr(block, name)
        if content is not None:
            blocks[name] = _READERS[name].read(content, actuators, problems) if name in _READERS else content
    return blocks


def motors_of(actuators: tuple[Actuator, ...], blocks: Mapping[str, Any]) -> dict[str, Motor]:
    """Motors of actuators defined in blocks, by actuator name."""
    found: dict[str, Motor] = {}
    for name, data in blocks.items():
        reader = _READERS.get(name)
        if reader is not None and reader.motors is not None:
            found.update(reader.motors(data, actuators))
    return found


@lru_cache(maxsize=64)
def _extended(schema: type[CommonBlock], blocks: tuple[tuple[str, type[BaseModel]], ...]) -> type[CommonBlock]:
    fields: dict[str, Any] = {name: (content | None, None) for name, content in blocks}
    return create_model(schema.__name__, __base__=schema, **fields) if fields else schema


@lru_cache(maxsize=1)
def _import_readers() -> None:
    """Import the modules `robot_blocks` of the packages next to this one."""
    for path in sorted(Path(__file__).parents[2].glob(f"tensegrity_*/{MODULE}.py")):
        import_module(f"{path.parent.name}.{MODULE}")


@lru_cache(maxsize=1)
def import_extensions() -> None:
    """Import the modules that installed packages declare as entry points of `GROUP`, once per process.

    Raises:
        TensegrityError: one of them cannot be imported.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            whose = f" of {point.dist.name}" if point.dist else ""
            raise TensegrityError(
                f"the extension {point.value}{whose} cannot be imported ({type(error).__name__}: {error}); "
                "repair that package or uninstall it."
            ) from error
