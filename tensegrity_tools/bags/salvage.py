"""Reading of broken storage files, after the writer was killed or the disk was full.

MCAP (mcap.dev/spec) is a sequence of records: one byte for the kind, eight for the length, content. Messages are stored
in chunks, each compressed separately; of a truncated chunk the part before the cut is decompressed. sqlite3 returns to
its last commit automatically.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.rosbag2.metadata import parse_qos

from .writer import Quality

if sys.version_info >= (3, 14):
    from compression import zstd  # type: ignore[import-not-found]
else:
    from backports import zstd

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0F
LARGEST_RECORD = 2**32
"""Largest plausible length of a record [bytes]; a larger one means that the file is truncated or overwritten."""
FORMATS = {"ros2msg": MessageDefinitionFormat.MSG, "ros2idl": MessageDefinitionFormat.IDL}


@dataclass
class FoundTopic:
    """Topic of a storage file: name, type, definition, hash (empty if the file has none), quality of service."""

    name: str
    type: str
    definition: MessageDefinition
    digest: str = ""
    quality: Quality = field(default_factory=Quality)


@dataclass
class Salvaged:
    """Content of a storage file.

    Attributes:
        topics: topics by name. messages: (topic, time [ns], data) in the order of the file.
        cut: whether the end of the file is missing or unreadable.
    """

    topics: dict[str, FoundTopic] = field(default_factory=dict)
    messages: list[tuple[str, int, bytes]] = field(default_factory=list)
    cut: bool = False


def salvage(path: Path) -> Salvaged:
    """All readable content of a storage file (.mcap or .db3); damaged content never raises an exception."""
    found = Salvaged()
    if path.suffix == ".db3":
        _read_sqlite(path, found)
    else:
        _McapScan(found).read(path)
    return found


class _McapScan:
    def __init__(self, found: Salvaged) -> None:
        self._found = found
        self._schemas: dict[int, tuple[str, MessageDefinition]] = {}
        self._channels: dict[int, str] = {}

    def read(self, path: Path) -> None:
        data = memoryview(path.read_bytes())
        if bytes(data[: len(MAGIC)]) != MAGIC:
            self._found.cut = True
            return
        ended = False
        for kind, content, whole in _records(data, len(MAGIC)):
            if kind in (DATA_END, FOOTER):
                ended = whole
                if kind == DATA_END:
                    continue
                break
            if kind == CHUNK:
                self._chunk(content)
            elif whole:
                self._record(kind, content)
        self._found.cut = not ended

    def _chunk(self, content: memoryview) -> None:
        try:
            (length,) = struct.unpack_from("<I", content, 28)
            compression = bytes(content[32 : 32 + length])
            body = content[32 + length + 8 :]
        except struct.error:
            return
        for kind, record, whole in _records(memoryview(_decompressed(bytes(body), compression)), 0):
            if whole:
                self._record(kind, record)

    def _record(self, kind: int, content: memoryview) -> None:
        try:
            if kind == SCHEMA:
                number, name, encoding, text = _Fields(content).take("H", "text", "text", "text")
                form = FORMATS.get(encoding, MessageDefinitionFormat.NONE)
                self._schemas[number] = name, MessageDefinition(form, text)
            elif kind == CHANNEL:
                fields = _Fields(content)
                number, schema, topic, _ = fields.take("H", "H", "text", "text")
                schema_definition = self._schemas.get(schema)
                if schema_definition is not None:
                    quality = _quality(fields.table().get("offered_qos_profiles", ""))
                    self._channels[number] = topic
                    self._found.topics.setdefault(topic, FoundTopic(topic, *schema_definition, quality=quality))
            elif kind == MESSAGE:
                number, _, time, _ = struct.unpack_from("<HIQQ", content, 0)
                if number in self._channels:
                    self._found.messages.append((self._channels[number], time, bytes(content[22:])))
        except (struct.error, UnicodeDecodeError, ValueError):
            self._found.cut = True


def _records(data: memoryview, position: int) -> Iterator[tuple[int, memoryview, bool]]:
    """(kind, content, whether it is complete) of each record; ends where no further record is possible."""
    while position + 9 <= len(data):
        kind, length = struct.unpack_from("<BQ", data, position)
        if kind == 0 or length > LARGEST_RECORD:
            return
        position += 9
        yield kind, data[position : position + length], position + length <= len(data)
        position += length


def _decompressed(body: bytes, compression: bytes) -> bytes:
    """Decompressed data up to the first error."""
    if compression == b"":
        return body
    if compression == b"zstd":
        make: Any = zstd.ZstdDecompressor
    elif compression == b"lz4":
        from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]

        make = LZ4FrameDecompressor
    else:
        return b""
    decompressor, parts = make(), []
    # in pieces, so that an error in one of them keeps the data before it
    for start in range(0, len(body), 4096):
        try:
            parts.append(decompressor.decompress(body[start : start + 4096]))
        except (zstd.ZstdError, EOFError, RuntimeError):
            break
    return b"".join(parts)


class _Fields:
    """Sequential reader of the fields of a record."""

    def __init__(self, content: memoryview) -> None:
        self._content, self._at = content, 0

    def take(self, *kinds: str) -> tuple[Any, ...]:
        return tuple(self._text() if kind == "text" else self._number(kind) for kind in kinds)

    def table(self) -> dict[str, str]:
        end = self._number("I") + self._at
        result = {}
        while self._at < end:
            key = self._text()
            result[key] = self._text()
        return result

    def _number(self, kind: str) -> int:
        (value,) = struct.unpack_from("<" + kind, self._content, self._at)
        self._at += struct.calcsize("<" + kind)
        return int(value)

    def _text(self) -> str:
        length = self._number("I")
        if self._at + length > len(self._content):
            raise ValueError("a text ends beyond its record")
        text = bytes(self._content[self._at : self._at + length]).decode()
        self._at += length
        return text


def _quality(text: str) -> Quality:
    try:
        return Quality.of(parse_qos(text))
    except Exception:  # any exception, as the file may be foreign or broken
        return Quality()


def _read_sqlite(path: Path, found: Salvaged) -> None:
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    except sqlite3.Error:
        found.cut = True
        return
    try:
        definitions = {}
        for name, encoding, text in connection.execute(
            "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
        ):
            definitions[name] = MessageDefinition(FORMATS.get(encoding, MessageDefinitionFormat.NONE), text)
        names = {}
        for number, topic, kind, profiles, digest in connection.execute(
            "SELECT id, name, type, offered_qos_profiles, type_description_hash FROM topics"
        ):
            names[number] = topic
            definition = definitions.get(kind, MessageDefinition(MessageDefinitionFormat.NONE, ""))
            found.topics[topic] = FoundTopic(topic, kind, definition, digest, _quality(profiles))
        for number, time, data in connection.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY id"):
            if number in names:
                found.messages.append((names[number], int(time), bytes(data)))
        found.cut = not connection.execute("SELECT COUNT(*) FROM metadata").fetchone()[0]
    except sqlite3.Error:
        found.cut = True
    finally:
        connection.close()
