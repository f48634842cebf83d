"""Bytes that a separate process sends to a port when the process that uses it has ended or stands still.

Servos without a watchdog continue at their last speed when nobody speaks to them any more. A small process that shares
only the open port and a pipe with the driver then sends one packet: when the pipe is closed (the driver was killed), or
when no sign of life came for a stated time (it was stopped, or its computer is too busy). It is this file, run with the
standard library alone, so that it starts within some hundredths of a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import subprocess
import sys
import termios
import time

ALIVE, END = b".", b"e"
"""Sign of life, and the end of a driver that needs no last words."""
REPEATED, SPACING = 3, 0.02
"""Number of times that the packet is sent, and the time between [s]: what the driver was sending when it ended may
damage the first one."""


def main(alive: int, port: int, packet: bytes, silence: float) -> None:
    """The process: read signs of life from a pipe, and send the packet where they end or none comes for `silence` s."""
    while True:
        heard = os.read(alive, 65536) if select.select([alive], [], [], silence)[0] else None
        if heard is not None and END in heard:
            return
        if not heard:
            for _ in range(REPEATED):
                with contextlib.suppress(OSError):  # the port is gone, or its buffer is full
                    os.write(port, packet)
                time.sleep(SPACING)
        if heard == b"":
            with contextlib.suppress(OSError):
                fcntl.ioctl(port, termios.TIOCNXCL)
            return
        if heard is None:
            select.select([alive], [], [])


class LastWords:
    """The process that sends them, from the construction until `close`.

    Args:
        port: descriptor of the open port. packet: bytes to send.
        silence: time without `feed` after which they are sent [s], once until the next `feed`.
    """

    def __init__(self, port: int, packet: bytes, silence: float) -> None:
        alive, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(alive), str(port), packet.hex(), str(silence)],
                pass_fds=(alive, port), start_new_session=True,  # Ctrl-C and the end of a group do not reach it
            )  # fmt: skip
        finally:
            os.close(alive)

    def feed(self) -> None:
        """Sign of life."""
        with contextlib.suppress(OSError):  # a full pipe, or a process that somebody has ended
            os.write(self._pipe, ALIVE)

    def close(self) -> None:
        """End the process; it sends nothing any more."""
        with contextlib.suppress(OSError):
            os.write(self._pipe, END)
        os.close(self._pipe)
        self._process.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3]), float(sys.argv[4]))
