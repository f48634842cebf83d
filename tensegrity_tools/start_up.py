"""Signals during the imports of the command line, before any resource is open."""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def end_at_once(number: int, _: object) -> None:
    """End the process by a signal during imports, where an exception could be converted to another one.

    The status is that of an interrupted command, or 0 for an `up` that runs until it is ended.
    """
    with contextlib.suppress(OSError):
        os.write(2, f"\nended by {signal.Signals(number).name}\n".encode())
    runs_on = sys.argv[1:2] == ["up"] and not {"--tour", "replay"} & set(sys.argv)
    os._exit(0 if runs_on else 128 + number)


def guard_imports() -> None:
    """Let SIGINT and SIGTERM end the process at once, if it is the command line."""
    if os.path.basename(sys.argv[0]) == "tensegrity" or (
        sys.argv[0] == "-m" and "tensegrity_tools.cli" in sys.orig_argv
    ):
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, end_at_once)  # until the command starts
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))  # blocked by the parent process
