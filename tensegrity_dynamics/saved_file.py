"""Atomic writing of files: the old content is kept until the new content is on the disk."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from .errors import TensegrityError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a disk on which space helps."""


def replace_file(path: Path, data: bytes) -> None:
    """Write a file atomically; its permissions are kept, and links to it remain valid.

    Raises:
        OSError: writing failed; the old file is unchanged.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():  # a pipe or a device has no old content
        path.write_bytes(data)
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # also the new name, if the system supports it
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def save_file(path: Path, content: bytes | str) -> None:
    """Write bytes, or text as UTF-8, atomically.

    Raises:
        TensegrityError: writing failed; the old file is unchanged.
    """
    try:
        replace_file(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        remedy = "free some space, or choose another file" if error.errno in FULL else "choose another file"
        raise TensegrityError(
            f"cannot write {path}: {error.strerror or error}. Nothing was changed there; {remedy}."
        ) from error
