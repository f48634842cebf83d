"""Writing of a bag that remains readable if the writing process is killed.

Flushed data are safe: an MCAP file is a sequence of complete chunks, and only the index at its end is missing if the
writer was killed; a sqlite3 file keeps all committed data. `reader` reads both, `repair` completes them.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from tensegrity_dynamics.errors import TensegrityError, unknown_name

from .message_types import Definition

STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
VERSION: Literal[9] = 9
"""Version of the metadata of the bag, as written by Jazzy."""
FOREVER = QosTime(9223372036, 854775807)


class BagWriteError(TensegrityError):
    """Error after which a bag cannot be written any more; the data written before remain."""


@dataclass(frozen=True)
class Quality:
    """Quality of service with which a topic was offered, as far as a replay needs it.

    Attributes:
        reliable: reliable, otherwise best effort. latched: whether late subscribers receive the last messages. depth:
            number of these messages.
    """

    reliable: bool = True
    latched: bool = False
    depth: int = 10

    def profile(self) -> Qos:
        """Profile for rosbags."""
        return Qos(
            QosHistory.KEEP_LAST, self.depth,
            QosReliability.RELIABLE if self.reliable else QosReliability.BEST_EFFORT,
            QosDurability.TRANSIENT_LOCAL if self.latched else QosDurability.VOLATILE,
            FOREVER, FOREVER, QosLiveliness.AUTOMATIC, FOREVER, False,
        )  # fmt: skip

    @staticmethod
    def of(profiles: Sequence[Qos]) -> Quality:
        """Quality of a topic with these profiles; latched if any of them is."""
        if not profiles:
            return Quality()
        latched = [each for each in profiles if each.durability == QosDurability.TRANSIENT_LOCAL]
        first = (latched or list(profiles))[0]
        reliable = first.reliability != QosReliability.BEST_EFFORT
        return Quality(reliable, bool(latched), max(1, first.depth))


class BagWriter:
    """Bag that is being written: a folder with one storage file, and `metadata.yaml` after closing.

    Args:
        path: path of the folder, which must not exist. storage: "mcap" (compressed with zstd) or "sqlite3".

    Raises:
        TensegrityError: the path exists already, or the folder cannot be created.
    """

    def __init__(self, path: Path | str, storage: str = "mcap") -> None:
        if storage not in STORAGES:
            raise TensegrityError(unknown_name("storage of bags", storage, tuple(STORAGES)))
        self.path = Path(path)
        if self.path.exists():
            raise TensegrityError(f"{self.path} exists already; name another bag or move it away.")
        self._writer = Writer(self.path, version=VERSION, storage_plugin=STORAGES[storage])
        if storage == "mcap":
            self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        try:
            self._writer.open()
        except OSError as error:
            raise TensegrityError(f"{self.path} cannot be made: {error.strerror or error}.") from None
        self._storage: Any = self._writer.storage
        self._topics: dict[str, Any] = {}
        self._kept = 0
        self.count = 0
        """Number of messages written."""
        self.flush()

    def add_topic(self, topic: str, definition: Definition, quality: Quality = Quality()) -> None:
        """Declare a topic, before its first message."""
        with self._failing():
            self._topics[topic] = self._writer.add_connection(
                topic, definition.name, msgdef=definition.text, rihs01=definition.digest,
                offered_qos_profiles=[quality.profile()],
            )  # fmt: skip

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def write(self, topic: str, time: int, data: bytes) -> None:
        """Add a serialised message at a time [ns]. Raises BagWriteError if the disk is full."""
        with self._failing():
            self._writer.write(self._topics[topic], time, data)
            self.count += 1

    def flush(self) -> None:
        """Pass all written data to the operating system, so that they are kept if this process ends."""
        storage = self._storage
        with self._failing():
            if hasattr(storage, "close_chunk"):
                if storage.chunk.bio.tell():
                    storage.close_chunk()
                storage.bio.flush()
                self._kept = storage.bio.tell()
            else:
                storage.conn.commit()

    def close(self) -> None:
        """Write the index and the metadata. Raises BagWriteError if there is no space for them."""
        if self._storage is not None:
            with self._failing():
                self._writer.close()
            self._storage = None

    @contextlib.contextmanager
    def _failing(self) -> Any:
        if self._storage is None:
            raise BagWriteError(f"{self.path} is closed.")
        try:
            yield
        except Exception as error:
            if not isinstance(error, OSError) and type(error).__module__ != "sqlite3":
                raise
            self._give_up()
            full = getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "full" in str(error)
            what = "the disk is full" if full else f"it cannot be written ({getattr(error, 'strerror', None) or error})"
            raise BagWriteError(
                f"the bag {self.path} ends here, {what}; what came before stays, `tensegrity bag repair {self.path}` "
                "completes it."
            ) from error

    def _give_up(self) -> None:
        """Restore the file to its state after the last flush."""
        storage, self._storage = self._storage, None
        if hasattr(storage, "bio"):
            with contextlib.suppress(OSError):
                storage.bio.raw.close()  # not the buffer, which would write its remaining data
            with contextlib.suppress(OSError):
                os.truncate(storage.path, self._kept)
        else:
            with contextlib.suppress(Exception):
                storage.abort()

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._storage is not None:
            self.close()
