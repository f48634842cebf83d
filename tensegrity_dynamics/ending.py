"""Handling of SIGINT and SIGTERM as requests that a program processes at safe points, for a clean shutdown.

A signal handler that raises an exception does so at any point of the interpreter. In C code that calls back into
Python, such as the conversion of a message, the exception is replaced by another one, is printed and lost, or ends the
process. So these handlers only store the signal and wake waiting code. Code that is still running after a grace time is
interrupted by an exception.
If an exception cannot interrupt either, because a library waits in C without end, a thread that does not need the
interpreter ends the process after `LAST`, with status 1 and a line for each active call.

This module is imported first and needs only the standard library.
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
"""Grace time [s] after a signal, in which running code can complete."""
LAST = 30.0
"""Time from the signal until the process is ended in any case [s]."""
LOOK_AT_CLOCK = 0.1
"""Interval of the checks whether the system clock was set back, and least detected step [s]."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def module_to_run() -> str:
    """Module that Python will run with `python -m` while its packages are imported; empty at other times."""
    words = sys.orig_argv
    if sys.argv[:1] != ["-m"] or "-m" not in words[:-1]:
        return ""
    return words[words.index("-m") + 1]


def end_at_once(status: int) -> None:
    """Let SIGINT and SIGTERM end the process with this exit status, during the imports and without open resources.

    An exception is not suitable: the initialisation of extension modules would convert it to an ImportError. A signal
    that the parent blocked before the start of the interpreter (`hold_signals`) is processed now.
    """
    for each in SIGNALS:
        signal.signal(each, lambda *_: os._exit(status))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def hold_signals() -> None:
    """Block SIGINT and SIGTERM in a child process before it runs Python for a node, until `end_at_once`.

    An interpreter that is still starting responds to them with a traceback or a crash."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


END_WITH_PARENT = "TENSEGRITY_END_WITH_PARENT"
"""Environment variable with the process id of a program whose children should end when it ends for any reason."""
PR_SET_PDEATHSIG = 1


def follow_parent() -> None:
    """Request SIGTERM from the kernel when the parent ends, also by SIGKILL (Linux)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def end_with_parent() -> None:
    """Call `follow_parent` if the parent requested it.

    It remains active when the process runs another program. If the parent has already ended, the process ends as well.
    """
    asked = os.environ.pop(END_WITH_PARENT, "")
    if not asked or not sys.platform.startswith("linux"):
        return
    follow_parent()
    if asked != str(os.getppid()):
        os._exit(0)


class Ending:
    """Context of the main thread in which SIGINT and SIGTERM only set `asked`, the number of the first signal, else 0.

    `broke_off` is true if KeyboardInterrupt was raised in running code. Then the program must end with `leave` or
    `leave_now`: if the exception came from code run from a string, the interpreter stores it although it was caught,
    and ends the process by SIGINT, independent of the exit status.

    An exception that leaves the context after a signal is part of the shutdown and is suppressed. After the context the
    process is ending: further signals have no effect.

    Args:
        grace: time from the signal until KeyboardInterrupt is raised in running code [s], and interval of repetitions.
            A larger value leaves more time for running code such as a callback; a smaller one ends a long computation
            sooner.
        last: time from the signal until the process is ended even if it does not return from C code [s].
    """

    def __init__(self, grace: float = GRACE, last: float = LAST) -> None:
        self._grace, self._last, self._open = grace, last, True
        self._wake: Callable[[], Any] = lambda: None
        self._wake_late = self._wake
        self.asked = 0
        self._limited = False
        self.broke_off = False

    def __enter__(self) -> Ending:
        # The interpreter runs handlers in the main thread, and only after it returns from C code. A thread that reads
        # what the interpreter writes at the instant of the signal can wake the main thread there.
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        # Used by `wait`. It is a pipe and not a lock: `_break_off` can raise inside the Python code of `threading` that
        # acquires a lock, and this lock would never be released.
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
        self._open = False  # first: from here on `_break_off` raises nothing
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        faulthandler.cancel_dump_traceback_later()
        for each in (*SIGNALS, signal.SIGALRM):
            signal.signal(each, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        os.close(self._writer)
        self._listener.join(self._grace)  # it can wait for a lock in `_wake` that an exception left locked
        if not self._listener.is_alive():
            for pipe in (self._reader, self._asleep, self._alarm):
                os.close(pipe)
        return bool(self.asked)

    def when_asked(self, wake: Callable[[], Any]) -> None:
        """Set a function that another thread calls at a signal, for a main thread that waits in C code."""
        self._wake = wake

    def when_clock_was_set_back(self, wake: Callable[[], Any]) -> None:
        """Set a function that another thread calls after the system clock was set back, because a middleware can wait
        for a time of this clock and would wait longer."""
        self._wake_late = wake

    def check(self) -> None:
        """Raise KeyboardInterrupt after a signal; for loops in which this is safe."""
        if self.asked:
            raise KeyboardInterrupt

    def wait(self, duration: float) -> None:
        """Sleep for a duration [s], or until a signal."""
        select.select([self._asleep], [], [], max(0.0, duration))

    def _note(self, number: int, _: FrameType | None) -> None:
        if not self._open:
            return
        if not signal.getitimer(signal.ITIMER_REAL)[0]:  # a second signal does not shorten the time of the first one
            signal.setitimer(signal.ITIMER_REAL, self._grace, self._grace)
        self.asked = self.asked or number
        # exceptions that cannot be raised are printed by the interpreter; during the shutdown they are suppressed
        sys.unraisablehook = lambda _: None
        threading.excepthook = lambda _: None

    def _listen(self) -> None:
        before = _lead_of_clock()
        while True:
            if not select.select([self._reader], [], [], LOOK_AT_CLOCK)[0]:
                lead = _lead_of_clock()
                if lead < before - LOOK_AT_CLOCK:
                    with contextlib.suppress(Exception):  # at the end there can be nothing left to wake
                        self._wake_late()
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
    """Difference [s] between the system clock and the monotonic clock."""
    return time.time() - time.monotonic()


def end_within(duration: float, status: int) -> None:
    """End the process with this exit status after a duration of closing [s], even if a part of it hangs."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(status))
    signal.setitimer(signal.ITIMER_REAL, duration)
    _end_for_sure(duration + 1.0)


def _end_for_sure(duration: float) -> None:
    """End the process with status 1 after a duration [s], even while C code holds the interpreter."""
    faulthandler.dump_traceback_later(duration, exit=True, file=sys.__stderr__ or 2)


def leave(ending: Ending, status: int) -> None:
    """End the program after its `Ending` if this needs `sys.exit` or more; with status 0 it can simply continue."""
    if ending.broke_off:
        leave_now(status)
    if status:
        sys.exit(status)


def leave_now(status: int) -> NoReturn:
    """End the process immediately after everything is closed.

    The normal shutdown of the interpreter takes nearly a second of processor time to delete objects, and many seconds
    on a busy computer."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
