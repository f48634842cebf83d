"""Lock of a file, so that only one of several programs changes it at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from .line_fit import CalibrationError

PATIENCE_S = 10.0
"""Longest wait for a program that holds the lock [s]; saving takes milliseconds."""
PAUSE_S = 0.005  # between two attempts


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock `<path>.lock`; the system releases it if the program ends. The empty lock file remains.

    Raises:
        CalibrationError: the lock cannot be created, or another program holds it for more than `PATIENCE_S`.
    """
    lock = path.with_name(path.name + ".lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as problem:
        raise CalibrationError(
            f"{path} could not be saved: its lock {lock.name} cannot be opened ({problem.strerror or problem}). What "
            "was there before is untouched. Free some space or choose a folder that may be written, and save again."
        ) from problem
    try:
        _wait_for(handle, path, lock)
        yield
    finally:
        os.close(handle)


def _wait_for(handle: int, path: Path, lock: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise CalibrationError(
                    f"{path} could not be saved: another program has held {lock.name} for {PATIENCE_S:g} s. End that "
                    "program, and save again."
                ) from None
        except OSError as problem:
            raise CalibrationError(
                f"{path} could not be saved: {lock.name} cannot be locked ({problem.strerror or problem}). Choose a "
                "folder on a disk of this machine."
            ) from problem
        time.sleep(PAUSE_S)
