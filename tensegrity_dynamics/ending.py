"""SIGINT and SIGTERM as a request that a program answers where it is safe, so that every end is quiet.

A handler that raises does so wherever the interpreter happens to be. In C code that calls back into Python, such as the
conversion of a message, the exception comes out as another one, is printed and lost, or ends the process. So the
handlers here only take note and wake whoever waits. What still goes on after a while is broken off by an exception.
Where no exception can come through either, because a library waits in C for what never happens, a thread that needs no
interpreter ends the process after `LAST`, with status 1 and a line for each call that it was in.

This module is imported first of all and needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NoReturn

GRACE = 1.0
"""s that what is going on when the signal comes may take to its own end."""
LAST = 30.0
"""s from the signal until the process is ended, whatever holds it."""
LOOK_AT_CLOCK = 0.1
"""s between two looks at whether the computer's clock was set back, and by how much at least."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def module_to_run() -> str:
    """Module that Python is about to run by `python -m` and whose packages it imports now; empty at other times."""
    words = sys.orig_argv
    if sys.argv[:1] != ["-m"] or "-m" not in words[:-1]:
        return ""
    return words[words.index("-m") + 1]


def end_at_once(status: int) -> None:
    """From now on SIGINT and SIGTERM end the process with this exit status, while it imports and has nothing open.

    No exception would do: it would come out of the initialisation of extension modules as an ImportError. A signal that
    the parent has let wait since before the interpreter started (`hold_signals`) is heard now.
    """
    for each in SIGNALS:
        signal.signal(each, lambda *_: os._exit(status))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def hold_signals() -> None:
    """In a child before it runs Python for a node: SIGINT and SIGTERM wait until `end_at_once` hears them, since an
    interpreter that is still starting answers them with a traceback or dies of them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


END_WITH_PARENT = "TENSEGRITY_END_WITH_PARENT"
"""Variable with which a program asks its children to end when it ends, whatever ended it: its own process number."""
PR_SET_PDEATHSIG = 1


def follow_parent() -> None:
    """Get SIGTERM from the kernel when the parent is gone, even by SIGKILL (Linux)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def end_with_parent() -> None:
    """`follow_parent` where the parent asked for that.

    It stays in force when the process runs another program. A parent that has gone already is not waited for.
    """
    asked = os.environ.pop(END_WITH_PARENT, "")
    if not asked or not sys.platform.startswith("linux"):
        return
    follow_parent()
    if asked != str(os.getppid()):
        os._exit(0)


class Ending:
    """Context in the main thread in which SIGINT and SIGTERM only set `asked`, the number of the first one, else 0.

    `broke_off` tells whether KeyboardInterrupt had to be raised in what went on. Then end by `leave` or
    `leave_now`: where it came out of code that runs from a string, the interpreter remembers it even though
    it was caught, and ends the process by SIGINT whatever its exit status is.

    An exception that leaves the context after a signal is part of the end and is dropped. After the context the process
    is about to end: further signals do nothing.

    Args:
        grace: s from the signal until KeyboardInterrupt is raised in what still goes on, and again until it ends.
            Larger leaves more time to what is under way, such as a callback; smaller ends a long computation sooner.
        last: s from the signal until the process is ended though it does not come back from C code.
    """

    def __init__(self, grace: float = GRACE, last: float = LAST) -> None:
        self._grace, self._last, self._open = grace, last, True
        self._wake: Callable[[], Any] = lambda: None
        self.asked = 0
        self._limited = False
        self.broke_off = False

    def __enter__(self) -> Ending:
        # The interpreter runs handlers in the main thread, and only once that comes back from C code. A thread that
        # reads what the interpreter writes at the very instant of the signal can wake it there.
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        # What `wait` looks at. A pipe and no lock: `_break_off` may raise between the lines of Python that `threading`
        # takes a lock with, and nobody would get that lock again.
        self._asleep, self._alarm = os.pipe()
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGALRM, self._break_off)
        for each in SIGNALS:
            signal.signal(each, self._note)
        self._listener = threading.Thread(target=self._listen, name="signals", daemon=True)
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._open = False  # first of all: from here on `_break_off` raises nothing
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        faulthandler.cancel_dump_traceback_later()
        for each in (*SIGNALS, signal.SIGALRM):
            signal.signal(each, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        os.close(self._writer)
        self._listener.join(self._grace)  # it may wait for a lock in `_wake` that an exception left closed
        if not self._listener.is_alive():
            for pipe in (self._reader, self._asleep, self._alarm):
                os.close(pipe)
        return bool(self.asked)

    def when_asked(self, wake: Callable[[], Any]) -> None:
        """Call `wake` in another thread when the signal comes, for a main thread that waits in C code; and where
        somebody has set the computer's clock back, since a middleware may wait for a time of that clock, and would now
        wait for as much longer."""
        self._wake = wake

    def check(self) -> None:
        """Raise KeyboardInterrupt after a signal; for loops in which that is safe."""
        if self.asked:
            raise KeyboardInterrupt

    def wait(self, duration: float) -> None:
        """Sleep for so many seconds, or until the signal comes."""
        select.select([self._asleep], [], [], max(0.0, duration))

    def _note(self, number: int, _: FrameType | None) -> None:
        if not self._open:
            return
        if not signal.getitimer(signal.ITIMER_REAL)[0]:  # a second signal takes nothing from the time of the first
            signal.setitimer(signal.ITIMER_REAL, self._grace, self._grace)
        self.asked = self.asked or number
        # where an exception cannot be raised the interpreter prints it; now it only says that the end has come
        sys.unraisablehook = lambda _: None
        threading.excepthook = lambda _: None

    def _listen(self) -> None:
        before = _lead_of_clock()
        while True:
            if not select.select([self._reader], [], [], LOOK_AT_CLOCK)[0]:
                lead = _lead_of_clock()
                if lead < before - LOOK_AT_CLOCK:
                    with contextlib.suppress(Exception):  # at the end there may be nobody left to wake
                        self._wake()
                before = lead
                continue
            if not (numbers := os.read(self._reader, 64)):
                return
            self.asked = self.asked or next((each for each in numbers if each in SIGNALS), 0)
            if self.asked:
                if not self._limited and self._open:
                    self._limited = True
                    _end_for_sure(self._last)
                os.write(self._alarm, b".")
                self._wake()

    def _break_off(self, _: int, frame: FrameType | None) -> None:
        if self._open and (frame is None or frame.f_code is not Ending.__exit__.__code__):
            self.broke_off = True
            raise KeyboardInterrupt


def _lead_of_clock() -> float:
    """s that the computer's clock is ahead of one that nobody sets."""
    return time.time() - time.monotonic()


def end_within(duration: float, status: int) -> None:
    """End the process with this exit status after so many seconds of closing, whatever then still hangs."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(status))
    signal.setitimer(signal.ITIMER_REAL, duration)
    _end_for_sure(duration + 1.0)


def _end_for_sure(duration: float) -> None:
    """End the process with status 1 after so many seconds, even while C code holds the interpreter."""
    faulthandler.dump_traceback_later(duration, exit=True, file=sys.__stderr__ or 2)


def leave(ending: Ending, status: int) -> None:
    """End the program after its `Ending` where that needs `sys.exit` or more; with status 0 it may simply go on."""
    if ending.broke_off:
        leave_now(status)
    if status:
        sys.exit(status)


def leave_now(status: int) -> NoReturn:
    """End the process where everything is closed: the interpreter alone would take most of a second of processor time
    for objects that nobody misses, and on a busy computer many seconds."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
