"""Reading of rosbag2 bags: complete ones with `rosbags`, broken ones as far as they are readable."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.rosbag2 import Reader, ReaderError
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

from tensegrity_dynamics.errors import TensegrityError, unknown_name

from .message_types import SEPARATOR
from .salvage import Salvaged, salvage
from .writer import Quality

STORAGE_SUFFIXES = (".mcap", ".db3")


class Message(NamedTuple):
    """Serialised message: topic, time in the bag [ns], bytes (CDR)."""

    topic: str
    time: int
    data: bytes


@dataclass(frozen=True)
class Topic:
    """Topic of a bag.

    Attributes:
        name, type: such as "/joint_states", "sensor_msgs/msg/JointState". count: number of messages.
        definition: definition of the type, with those of all nested types. digest: its hash, or "" if the bag has none.
        quality: quality of service with which the topic was offered.
    """

    name: str
    type: str
    count: int
    definition: MessageDefinition
    digest: str
    quality: Quality


class Bag:
    """Bag that is open for reading.

    Args:
        path: path of its folder, or of one storage file (.mcap, .db3).

    Attributes:
        topics: topics by name. whole: whether index and metadata are complete; if not, `problem` states the defect.
        start, end: times of the first and the last message [ns]; both are 0 in an empty bag.

    Raises:
        TensegrityError: there is no bag.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.problem = ""
        self._reader: Reader | None = None
        self._salvaged: list[Salvaged] = []
        self._store: Any = None
        files = storage_files(self.path)
        try:
            self._reader = Reader(self.path)
            self._reader.open()
            self.topics = self._indexed(self._reader)
            self.start, self.end = self._reader.start_time, self._reader.end_time - 1
        except Exception as error:  # a broken file can cause any exception
            missing = self.path.is_dir() and not (self.path / "metadata.yaml").is_file()
            broken = str(error) if isinstance(error, ReaderError) else f"damaged ({_short(error)})"
            ended = "no metadata.yaml: the recorder was ended before it could close the bag"
            self._salvage(files, ended if missing else broken)
        if not self.count:
            self.start = self.end = 0

    def _salvage(self, files: list[Path], problem: str) -> None:
        """Continue with the content that is readable without index."""
        with contextlib.suppress(Exception):  # it may not have been opened
            self.close()
        self._reader, self.problem = None, problem
        self._salvaged = [salvage(each) for each in files]
        self.topics = self._found(self._salvaged)
        times = [time for each in self._salvaged for _, time, _ in each.messages]
        self.start, self.end = (min(times), max(times)) if times else (0, 0)

    def check(self) -> None:
        """Read all messages of the index; if this fails, continue as for a bag without index."""
        try:
            for _ in self.messages():
                pass
        except TensegrityError as error:
            self._salvage(storage_files(self.path), str(error))

    @property
    def whole(self) -> bool:
        """Whether the bag was closed properly."""
        return not self.problem

    @property
    def count(self) -> int:
        """Number of messages of all topics."""
        return sum(each.count for each in self.topics.values())

    @property
    def storage(self) -> str:
        """Storage format: "mcap" or "sqlite3"."""
        return "sqlite3" if storage_files(self.path)[0].suffix == ".db3" else "mcap"

    @property
    def size(self) -> int:
        """Size of its storage files [bytes]."""
        return sum(each.stat().st_size for each in storage_files(self.path))

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Message]:
        """Messages of these topics, or of all topics, in the order of their times.

        Raises:
            TensegrityError: the bag is damaged at the messages of its index; `check` finds the readable ones.
        """
        if self._reader is None:
            found = [item for each in self._salvaged for item in each.messages if topics is None or item[0] in topics]
            for topic, time, data in sorted(found, key=lambda item: item[1]):
                yield Message(topic, time, data)
            return
        topics_read = [each for each in self._reader.connections if topics is None or each.topic in topics]
        indexed = iter(self._reader.messages(topics_read) if topics_read else ())
        missing = sum(each.msgcount for each in topics_read)
        while True:
            try:
                connection, time, data = next(indexed)
            except StopIteration:
                problem = f"{abs(missing)} messages {'less' if missing > 0 else 'more'} than its index says"
                break
            except Exception as error:  # as above
                problem = _short(error)
                break
            missing -= 1
            yield Message(connection.topic, time, bytes(data))
        if missing:
            raise TensegrityError(
                f"{self.path} is damaged ({problem}); `tensegrity bag repair` keeps what can be read."
            )

    def of_type(self, kind: str) -> list[str]:
        """Topics with messages of a type."""
        return [name for name, topic in self.topics.items() if topic.type == kind]

    def decoder(self, topic: str) -> Callable[[bytes], Any]:
        """Function that converts the bytes of a message to an object with its fields.

        Raises:
            TensegrityError: the topic or its type is unknown. The function raises it if the bytes are no such message.
        """
        if topic not in self.topics:
            raise TensegrityError(unknown_name("topic", topic, sorted(self.topics), f"in {self.path}"))
        kind = self.topics[topic].type
        store = self.store
        if kind not in store.fielddefs:
            what = "damaged" if self.topics[topic].definition.data else "missing"
            raise TensegrityError(
                f"{self.path}: the definition of {kind}, the type of {topic}, is {what}; record it again, or read the "
                "bag with the program that wrote it."
            )

        def decode(data: bytes) -> Any:
            try:
                return store.deserialize_cdr(data, kind)
            except Exception:  # any exception, as the bytes may be foreign
                raise TensegrityError(
                    f"{self.path}: a message of {len(data)} bytes on {topic} is no {kind} as the bag defines it. "
                    "The bag is damaged, or it was recorded while the interfaces of another version were installed "
                    "(run make setup after an update, and record it again)."
                ) from None

        return decode

    @property
    def store(self) -> Any:
        """Type store of this bag for rosbags; the types of Jazzy if the bag has no definitions."""
        if self._store is None:
            defined = [each for each in self.topics.values() if each.definition.format != MessageDefinitionFormat.NONE]
            if not defined:
                self._store = get_typestore(Stores.ROS2_JAZZY)
                return self._store
            parts: list[dict[str, Any]] = []
            for topic in defined:
                with contextlib.suppress(Exception):  # damaged definition: the other topics remain readable
                    parts.append(_types_of(topic))
            self._store = _store_of(parts)
        return self._store

    def close(self) -> None:
        """Close the files."""
        if self._reader is not None:
            self._reader.close()

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _indexed(reader: Reader) -> dict[str, Topic]:
        topics: dict[str, Topic] = {}
        for each in reader.connections:
            before = topics[each.topic].count if each.topic in topics else 0
            quality = Quality.of(each.ext.offered_qos_profiles)  # type: ignore[union-attr]
            topics[each.topic] = Topic(
                each.topic, each.msgtype, before + each.msgcount, each.msgdef, each.digest or "", quality
            )
        return topics

    @staticmethod
    def _found(parts: list[Salvaged]) -> dict[str, Topic]:
        topics: dict[str, Topic] = {}
        for part in parts:
            counts: dict[str, int] = {}
            for name, _, _ in part.messages:
                counts[name] = counts.get(name, 0) + 1
            for name, each in part.topics.items():
                before = topics[name].count if name in topics else 0
                topics[name] = Topic(
                    name, each.type, before + counts.get(name, 0), each.definition, each.digest, each.quality
                )
        return topics


def storage_files(path: Path) -> list[Path]:
    """Storage files of a bag in the order of their names. Raises TensegrityError if there are none."""
    if path.is_file() and path.suffix in STORAGE_SUFFIXES:
        return [path]
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in STORAGE_SUFFIXES)
        if files:
            return files
        raise TensegrityError(f"{path} is no bag: the folder has no .mcap and no .db3 file.")
    what = "is no bag: name a folder, or a .mcap or .db3 file" if path.exists() else "does not exist"
    raise TensegrityError(f"{path} {what}.")


def _store_of(parts: list[dict[str, Any]]) -> Any:
    """Type store of all parts, or of as many parts as are compatible."""
    for groups in ([{name: each for part in parts for name, each in part.items()}], parts):
        store = get_typestore(Stores.EMPTY)
        failed = False
        for types in groups:
            try:
                store.register(types)
            except Exception:  # any exception, as a definition may be damaged
                failed = True
        if not failed:
            break
    return store


def _types_of(topic: Topic) -> dict[str, Any]:
    """Type of a topic and its nested types."""
    text = topic.definition.data
    if topic.definition.format == MessageDefinitionFormat.MSG:
        return dict(get_types_from_msg(text, topic.type))
    types: dict[str, Any] = {}
    parts = text.split(SEPARATOR + "\nIDL: ")
    for part in parts[1:] or parts:
        types.update(get_types_from_idl(part.split("\n", 1)[1] if parts[1:] else part))
    return types


def _short(error: Exception) -> str:
    """First line of the message of an error, or its class name without a message; parser errors contain the whole
    text."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
