"""Blocks of robot files that other packages read: a schema, and a reader that checks what a schema cannot say.

A package beside this one (a folder `tensegrity_*` in the same position) that reads blocks has a module `robot_blocks`,
which calls `register_block` for each of them. It is imported as soon as a file has such a block, so that the block is
checked for everybody who loads the file; anybody else calls `register_block` before loading. Errors of the block name
file, line and field like all others and come together with them.

Any other installed package names a module as entry point of the group `tensegrity.extensions`. It is imported as soon
as a file has a block, or somebody asks for a kind of robot or a controller, that nothing here has registered.

`servos` is a block of the format itself. Where no package that reads it is installed, it is kept as it stands in the
file. Any other block without a reader is an unknown field.
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
"""Blocks of other packages that a file may have although nobody reads them."""
MODULE = "robot_blocks"
"""Module of a package that registers the blocks which it reads."""
GROUP = "tensegrity.extensions"
"""Entry points of packages that register blocks, kinds of robot (`register_robot_type`) or controllers."""


Motors = Callable[[Any, tuple[Actuator, ...]], Mapping[str, Motor]]
"""Tells what turns actuators, by their names."""


@dataclass(frozen=True)
class BlockReader:
    """Who reads a block.

    Attributes:
        schema: of the block.
        read: makes plain data of a block that satisfies the schema, given the robot's actuators; adds to the problems
            what it finds wrong, by paths that begin with the name of the block.
        motors: reports the data of `read` what turns the robot's actuators, by name, or None.
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
    """Let robot files have a block of this name.

    Args:
        name: field at the top of the file. The data of `read` come back in `Robot.blocks[name]`, those of `servos` in
            `Robot.servos`.
        schema, read, motors: see `BlockReader`.

    Raises:
        TensegrityError: another block has this name.
    """
    if name in _READERS or (name in CommonBlock.model_fields and name not in KEPT):
        raise TensegrityError(f"robot files have a field {name!r} already; choose another name for the block.")
    _READERS[name] = BlockReader(schema, read, motors)


def with_blocks(schema: type[CommonBlock], data: Mapping[str, Any]) -> type[CommonBlock]:
    """The schema of a file's kind of robot, with the blocks of other packages where the file has any."""
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
    """The motors that blocks name for actuators, by the names of these."""
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
    """Import the `robot_blocks` of the packages beside this one."""
    for path in sorted(Path(__file__).parents[2].glob(f"tensegrity_*/{MODULE}.py")):
        import_module(f"{path.parent.name}.{MODULE}")


@lru_cache(maxsize=1)
def import_extensions() -> None:
    """Import the modules that installed packages name as entry points of `GROUP`, once for a process.

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
