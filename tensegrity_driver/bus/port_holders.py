"""Programs that hold a serial port, from the lock list of the system and the open files of processes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def port_holders(path: str) -> list[str]:
    """Other programs that hold a port, such as "python -m tensegrity_driver (process 123)".

    Programs that lock the port come first. The open files of other users may be hidden; the list is then incomplete or
    empty.
    """
    device = os.path.realpath(path)
    pids = [*_lockers(device), *_openers(device)]
    return [f"{_command(pid)} (process {pid})" for pid in dict.fromkeys(pids) if pid != os.getpid()]


def _lockers(device: str) -> list[int]:
    """Processes with a lock on a file, by /proc/locks: "1: FLOCK ADVISORY WRITE 123 00:18:5 0 EOF"."""
    try:
        inode = os.stat(device).st_ino
        rows = [row.split() for row in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    except (OSError, ValueError):
        return []
    found = []
    for row in rows:
        if len(row) > 5 and "->" not in row and row[5].rpartition(":")[2] == str(inode):
            with contextlib.suppress(ValueError):
                pid = int(row[4])
                if device in _files(pid):  # other file systems may use the same inode number
                    found.append(pid)
    return found


def _openers(device: str) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(each) for each in os.listdir("/proc") if each.isdigit() and device in _files(int(each))]
    return []


def _files(pid: int) -> set[str]:
    files: set[str] = set()
    with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
        for each in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                files.add(os.readlink(f"/proc/{pid}/fd/{each}"))
    return files


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip()
        if words:
            return words if len(words) <= 60 else words[:57] + "..."
    return "a program"
