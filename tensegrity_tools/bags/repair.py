"""Repair of a bag whose writer was killed: all readable messages are written to a new bag with index and metadata."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tensegrity_dynamics.errors import TensegrityError

from .message_types import Definition
from .reader import Bag, storage_files
from .writer import BagWriter

NO_DIGEST = "RIHS01_" + 64 * "0"
"""Hash of a type that is not defined completely; the format requires one."""


@dataclass(frozen=True)
class Repair:
    """Result of a repair: number of messages in the bag, and path of the broken bag (None: the bag was complete)."""

    count: int
    broken: Path | None


def repair_bag(path: Path | str) -> Repair:
    """Repair a bag at its path; the broken bag is kept in the same folder as `<name>.broken`.

    A complete bag is not changed. Nothing is replaced before the new bag is closed.

    Raises:
        TensegrityError: there is no bag, no space for the new bag, or no readable message.
    """
    path = Path(path).resolve()
    storage_files(path)  # raises if there is no bag
    target = path if path.is_dir() else path.with_suffix("")
    work, broken = path.with_name(path.name + ".repairing"), path.with_name(path.name + ".broken")
    with Bag(path) as bag:
        bag.check()
        if bag.whole:
            return Repair(bag.count, None)
        if not bag.topics:
            raise TensegrityError(f"{path} holds nothing that can be read, not even the names of its topics.")
        if broken.exists():
            raise TensegrityError(f"{broken} exists already; move it away, the broken bag is kept there.")
        if target != path and target.exists():
            raise TensegrityError(f"{target} exists already, and the repaired bag would be called so.")
        if work.exists():
            shutil.rmtree(work)  # left by an interrupted repair
        writer = BagWriter(work / target.name, bag.storage)
        try:
            for topic in bag.topics.values():
                digest = topic.digest or _digest(bag, topic.type)
                writer.add_topic(topic.name, Definition(topic.type, topic.definition.data, digest), topic.quality)
            for message in bag.messages():
                writer.write(*message)
            writer.close()
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    path.rename(broken)
    (work / target.name).rename(target)
    work.rmdir()
    return Repair(writer.count, broken)


def _digest(bag: Bag, kind: str) -> str:
    """Hash of a type as the bag defines it; `NO_DIGEST` if its definition, or a nested one, is damaged or missing."""
    try:
        return str(bag.store.hash_rihs01(kind))
    except Exception:  # the messages are kept; a definition that is repaired elsewhere makes them readable again
        return NO_DIGEST
