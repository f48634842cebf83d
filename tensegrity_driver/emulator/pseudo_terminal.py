"""Pseudo-terminals at fixed paths, and one thread that serves them and sleeps in between.

Users open a symbolic link, which keeps its path when the terminal behind it is removed and returns, like an unplugged
adapter. The slave side remains open here, so that users may open and close it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import heapq
import logging
import math
import os
import select
import termios
import threading
import time
import tty
from collections.abc import Callable
from pathlib import Path

from tensegrity_dynamics.errors import BusError

Delivery = list[tuple[float, bytes]]
"""Pairs of delay from now [s] and bytes for the host."""
PAUSE_S = 0.1
"""Pause after which an incomplete packet is discarded [s]."""
REFRESH_TIMEOUT_S = 10.0
"""Longest time until the serving thread notices the removal of a terminal [s]."""
_BAUD_RATES = {
    getattr(termios, name): int(name[1:]) for name in dir(termios) if name.startswith("B") and name[1:].isdigit()
}
_log = logging.getLogger(__name__)


class PseudoTerminal:
    """Device side of a serial line.

    Args:
        link: path for the users.
        receive: called with bytes from the user; returns the bytes to send back.
        end_of_burst: called after a pause of `PAUSE_S` after some bytes.

    Attributes:
        last_bytes: time of the last bytes, by the monotonic clock [s].
        lost: number of bytes dropped because nobody read them.
    """

    def __init__(self, link: Path, receive: Callable[[bytes], Delivery], end_of_burst: Callable[[], Delivery]) -> None:
        self.link, self._on_bytes, self._on_pause = link, receive, end_of_burst
        self.master: int | None = None
        self.slave: int | None = None
        self._queue: list[tuple[float, int, bytes]] = []
        self._count = 0
        self._last_received: float | None = None
        self.last_bytes = -math.inf
        self.lost = 0

    @property
    def plugged(self) -> bool:
        """Whether there is a terminal behind the path."""
        return self.master is not None

    @property
    def baud_rate(self) -> int | None:
        """Speed set by the user [bit/s]; None when unplugged or unknown."""
        return None if self.slave is None else _BAUD_RATES.get(termios.tcgetattr(self.slave)[5])

    def plug(self) -> None:
        """Create the terminal and its path. Raises BusError if the path exists and is no symbolic link."""
        if self.plugged:
            return
        if self.link.exists() and not self.link.is_symlink():
            raise BusError(f"{self.link} exists and is no symbolic link; choose another directory for the emulator.")
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.master, False)
        fresh = self.link.with_name(f".{self.link.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(os.ttyname(self.slave))
        fresh.replace(self.link)

    def unplug(self) -> None:
        """Remove the terminal and its path: users get an input/output error."""
        if self.master is None or self.slave is None:
            return
        self.link.unlink(missing_ok=True)
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = None
        self._queue.clear()
        self._last_received = None

    def receive(self) -> bool:
        """Read pending bytes and answer them; returns whether there were any."""
        if self.master is None:
            return False
        try:
            data = os.read(self.master, 65536)
        except BlockingIOError:
            return False
        except OSError as problem:
            if problem.errno != errno.EIO:
                raise
            return False  # no user has opened it
        if not data:
            return False
        self._last_received = self.last_bytes = time.monotonic()
        self._plan(self._on_bytes(data))
        self.send_due()
        return True

    def send(self, data: bytes) -> None:
        """Send bytes that are no answer."""
        self._plan([(0.0, data)])
        self.send_due()

    def wait(self) -> float | None:
        """Time until the next delivery or pause is due [s], or None."""
        now = time.monotonic()
        due = [self._queue[0][0] - now] if self._queue else []
        if self._last_received is not None:
            due.append(self._last_received + PAUSE_S - now)
        return max(0.0, min(due)) if due else None

    def send_due(self) -> None:
        """Send what is due, and end a burst after its pause."""
        now = time.monotonic()
        if self._last_received is not None and now >= self._last_received + PAUSE_S:
            self._last_received = None
            self.end_exclusion()
            self._plan(self._on_pause())
        while self._queue and self._queue[0][0] <= now:
            self._write(heapq.heappop(self._queue)[2])

    # -- parts -----------------------------------------------------------------------------------------------------

    def end_exclusion(self) -> None:
        """End exclusive access: a user process that was killed may have set it. Closing a real device would end it, but
        here the slave side remains open."""
        if self.slave is not None:
            with contextlib.suppress(OSError, termios.error):
                fcntl.ioctl(self.slave, termios.TIOCNXCL)

    def _plan(self, delivery: Delivery) -> None:
        now = time.monotonic()
        latest = max((each[0] for each in self._queue), default=now)
        for delay, data in delivery:
            latest = max(latest, now + delay)  # bytes keep their order
            self._count += 1
            heapq.heappush(self._queue, (latest, self._count, data))

    def _write(self, data: bytes) -> None:
        if self.master is None:
            return
        try:
            sent = os.write(self.master, data)
        except BlockingIOError:
            sent = 0
        self.lost += len(data) - sent  # a full buffer drops the rest, as an adapter does


class Server:
    """Thread that serves terminals and sleeps until bytes arrive or a delivery is due.

    Args:
        terminals: terminals to serve.
        lock: held during all access to the terminals and the emulation.

    Attributes:
        failure: error that ended the thread, or None.
    """

    def __init__(self, terminals: list[PseudoTerminal], lock: threading.RLock) -> None:
        self.terminals, self.lock = terminals, lock
        self.failure: BaseException | None = None
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._running = True
        self._rounds, self._round = 0, threading.Condition(lock)
        self._thread = threading.Thread(target=self._run, name="emulated ports", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread after a change of the queues."""
        if self._running:
            os.write(self._wake_write, b"w")

    def refresh(self) -> None:
        """Wait until the thread uses the present terminals; it may be waiting on a removed one."""
        with self._round:
            before = self._rounds
            self.wake()
            self._round.wait_for(
                lambda: self._rounds > before or not self._thread.is_alive(), timeout=REFRESH_TIMEOUT_S
            )

    def receive_pending(self, patience: float) -> None:
        """Read and answer all bytes sent before now, waiting `patience` [s] for each batch."""
        while True:
            masters = self._masters()
            if not masters:
                return
            with contextlib.suppress(OSError, ValueError):  # a terminal may have been removed
                select.select(masters, [], [], patience)
            with self.lock:
                if not [each for each in self.terminals if each.receive()]:
                    return

    def close(self) -> None:
        """End the thread and remove the terminals."""
        if not self._running:
            return
        self._running = False  # before the wake-up, after which the thread reads it
        os.write(self._wake_write, b"w")
        self._thread.join()
        with self.lock:
            for terminal in self.terminals:
                terminal.unplug()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _masters(self) -> list[int]:
        with self.lock:
            return [each.master for each in self.terminals if each.master is not None]

    def _run(self) -> None:
        try:
            while self._running:
                self._once()
        except Exception as problem:
            self.failure = problem
            _log.exception("the emulated ports ended")

    def _once(self) -> None:
        with self.lock:
            waits = [wait for wait in (each.wait() for each in self.terminals) if wait is not None]
            masters = [each.master for each in self.terminals if each.master is not None]
        try:
            ready, _, _ = select.select([*masters, self._wake_read], [], [], min(waits, default=None))
        except (OSError, ValueError):
            ready = []  # a terminal was removed: try again
        if self._wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        with self._round:
            self._rounds += 1
            self._round.notify_all()
            for terminal in self.terminals:
                terminal.receive()
                terminal.send_due()
