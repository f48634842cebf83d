"""Signals during the imports of the command line, before any resource is open."""

from __future__ import annotations

import os
import signal
import sys


def end_at_once(number: int, _: object) -> None:
    """End the process by a signal during imports, where an exception could be converted to another one."""
    os._exit(128 + number)


def guard_imports() -> None:
    """Let SIGINT and SIGTERM end the process at once, if it is the command line."""
    if os.path.basename(sys.argv[0]) == "tensegrity" or (
        sys.argv[0] == "-m" and "tensegrity_tools.cli" in sys.orig_argv
    ):
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, end_at_once)  # until the command starts
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))  # blocked by the parent process
