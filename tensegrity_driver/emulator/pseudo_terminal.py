"""Pseudo-terminals under stable names, and one thread that serves them without spinning.

The name that users open is a symbolic link that stays the same when the terminal behind it goes away and comes back, as
an unplugged adapter does. The slave side is kept open here, so that users may come and go.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import logging
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
"""Bytes for the host and how many s from now they arrive."""
QUIET = 0.1
"""s of silence after which an unfinished packet is given up."""
LET_GO = 10.0
"""s that are granted to the serving thread to notice that a terminal is gone."""
_BAUD_RATES = {
    getattr(termios, name): int(name[1:]) for name in dir(termios) if name.startswith("B") and name[1:].isdigit()
}
_log = logging.getLogger(__name__)


class PseudoTerminal:
    """One end of a serial line.

    Args:
        link: path under which users open it. hear: called with bytes from the user; returns what goes back.
        quiet: called when nothing came for `QUIET` s after some bytes.
    """

    def __init__(self, link: Path, hear: Callable[[bytes], Delivery], quiet: Callable[[], Delivery]) -> None:
        self.link, self._hear, self._quiet = link, hear, quiet
        self.master: int | None = None
        self._slave: int | None = None
        self._queue: list[tuple[float, int, bytes]] = []
        self._count = 0
        self._heard: float | None = None
        self.lost = 0

    @property
    def plugged(self) -> bool:
        """Whether there is a terminal behind the name."""
        return self.master is not None

    @property
    def baud_rate(self) -> int | None:
        """bit/s to which the user has set the line; None when unplugged or unknown."""
        return None if self._slave is None else _BAUD_RATES.get(termios.tcgetattr(self._slave)[5])

    def plug(self) -> None:
        """Make the terminal and its name. Raises BusError where the name is taken by something else."""
        if self.plugged:
            return
        if self.link.exists() and not self.link.is_symlink():
            raise BusError(f"{self.link} exists and is no symbolic link; choose another directory for the emulator.")
        self.master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self.master, False)
        fresh = self.link.with_name(f".{self.link.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(os.ttyname(self._slave))
        fresh.replace(self.link)

    def unplug(self) -> None:
        """Take the terminal away: users get an input/output error, and the name is gone."""
        if self.master is None or self._slave is None:
            return
        self.link.unlink(missing_ok=True)
        os.close(self._slave)
        os.close(self.master)
        self.master = self._slave = None
        self._queue.clear()
        self._heard = None

    def receive(self) -> bool:
        """Take what is there and answer it; returns whether there was anything."""
        if self.master is None:
            return False
        try:
            data = os.read(self.master, 65536)
        except BlockingIOError:
            return False
        except OSError as problem:
            if problem.errno != errno.EIO:
                raise
            return False  # nobody is at the other end
        if not data:
            return False
        self._heard = time.monotonic()
        self._plan(self._hear(data))
        self.send_due()
        return True

    def send(self, data: bytes) -> None:
        """Send something unasked."""
        self._plan([(0.0, data)])
        self.send_due()

    def wait(self) -> float | None:
        """s until something is due, or None for nothing."""
        now = time.monotonic()
        due = [self._queue[0][0] - now] if self._queue else []
        if self._heard is not None:
            due.append(self._heard + QUIET - now)
        return max(0.0, min(due)) if due else None

    def send_due(self) -> None:
        """Send what is due, and give up what never ended."""
        now = time.monotonic()
        if self._heard is not None and now >= self._heard + QUIET:
            self._heard = None
            self._plan(self._quiet())
        while self._queue and self._queue[0][0] <= now:
            self._write(heapq.heappop(self._queue)[2])

    # -- parts -----------------------------------------------------------------------------------------------------

    def _plan(self, delivery: Delivery) -> None:
        now = time.monotonic()
        latest = max((each[0] for each in self._queue), default=now)
        for delay, data in delivery:
            latest = max(latest, now + delay)  # a line never overtakes itself
            self._count += 1
            heapq.heappush(self._queue, (latest, self._count, data))

    def _write(self, data: bytes) -> None:
        if self.master is None:
            return
        try:
            sent = os.write(self.master, data)
        except BlockingIOError:
            sent = 0
        self.lost += len(data) - sent  # nobody reads: a full buffer drops the rest, as an adapter does


class Server:
    """A thread that sleeps until bytes come or something is due.

    Args:
        terminals: to serve. lock: held whenever anything behind them is touched.
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
        """Something is to be sent: look again."""
        if self._running:
            os.write(self._wake_write, b"w")

    def look_again(self) -> None:
        """Terminals came or went. A terminal is really gone only when the thread no longer sleeps on it."""
        with self._round:
            before = self._rounds
            self.wake()
            self._round.wait_for(lambda: self._rounds > before or not self._thread.is_alive(), timeout=LET_GO)

    def settle(self, patience: float) -> None:
        """Take in all bytes that were sent before now; `patience` s are granted to each batch on its way."""
        while True:
            masters = self._masters()
            if not masters:
                return
            with contextlib.suppress(OSError, ValueError):  # a terminal may go away meanwhile
                select.select(masters, [], [], patience)
            with self.lock:
                if not [each for each in self.terminals if each.receive()]:
                    return

    def close(self) -> None:
        """End the thread and the terminals."""
        if not self._running:
            return
        self._running = False  # first: the thread looks at it when it wakes
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
            ready = []  # a terminal went away while we slept: look again
        if self._wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        with self._round:
            self._rounds += 1
            self._round.notify_all()
            for terminal in self.terminals:
                terminal.receive()
                terminal.send_due()
