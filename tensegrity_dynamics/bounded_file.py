"""Files that people name, read with a bound: a device such as /dev/zero never ends."""

from __future__ import annotations

import errno
from pathlib import Path

LARGEST_BYTES = 64_000_000
"""Bound of tables and lists, a hundred times what a long measurement needs."""


def read_bounded(path: Path, largest: int = LARGEST_BYTES) -> bytes:
    """Content of a file or a pipe.

    Args:
        path: of the file. largest: number of bytes that it may have.

    Raises:
        OSError: it cannot be read, or is larger (EFBIG).
    """
    with path.open("rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise OSError(errno.EFBIG, f"larger than {largest} bytes", str(path))
    return data
