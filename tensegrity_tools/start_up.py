"""Signals while the command line imports its modules, before anything is open that needs care."""

from __future__ import annotations

import os
import signal
import sys


def end_at_once(number: int, _: object) -> None:
    """End the process by a signal while it imports, where an exception could come out as another one."""
    os._exit(128 + number)


def guard_imports() -> None:
    """Let SIGINT and SIGTERM end the process at once, where it is the command line that starts."""
    if os.path.basename(sys.argv[0]) == "tensegrity" or (
        sys.argv[0] == "-m" and "tensegrity_tools.cli" in sys.orig_argv
    ):
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, end_at_once)  # until the command begins
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))  # held by what started Python
