"""The end of a program by a signal does not depend on locks that the end itself may have left closed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

FOLDER = Path(importlib.util.find_spec("tensegrity_dynamics").origin).parent


def run(program: str, *words: str) -> Any:
    """What becomes of a program that imports `ending` alone, which needs nothing else of the package."""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=PATIENCE_S, env=environment
    )


PROGRAM = """
import os, signal, threading
from ending import Ending

lock = threading.Lock()
lock.acquire()  # what an exception leaves that comes between two lines of Python around a lock
with Ending(grace=0.2) as ending:
    ending.when_asked(lock.acquire)
    os.kill(os.getpid(), signal.SIGINT)
    while not ending.asked:
        ending.wait(10.0)
print("ended by", ending.asked)
"""


def test_an_end_does_not_wait_for_a_lock_that_nobody_opens_any_more():
    ended = run(PROGRAM)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended by 2\n", "")


def test_a_wait_is_over_as_soon_as_the_signal_has_come():
    program = PROGRAM.replace("ending.when_asked(lock.acquire)", "pass").replace(
        "ending.wait(10.0)", "ending.wait(1e6)"
    )
    ended = run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended by 2\n", "")


BROKEN_OFF = """
import os, signal, time
from ending import Ending, leave

with Ending(grace=0.1) as ending:
    os.kill(os.getpid(), signal.SIGINT)
    exec("time.sleep(60.0)")  # as libraries make classes from text
leave(ending, 0)
"""


def test_a_program_that_was_broken_off_in_code_from_a_string_ends_with_its_own_status():
    ended = run(BROKEN_OFF)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


STUCK = """
import ctypes, os, signal, sys, threading
from ending import Ending, end_within

held, closing = sys.argv[1] == "held", sys.argv[2] == "closing"
library = (ctypes.PyDLL if held else ctypes.CDLL)(None)  # PyDLL keeps the interpreter's lock meanwhile

def wait_for_ever():  # as a middleware waits for a thread that will never answer; no signal ends it
    mutex, condition = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    library.pthread_cond_wait(condition, mutex)

with Ending(grace=0.1, last=0.5) as ending:
    if closing:
        os.kill(os.getpid(), signal.SIGINT)
        ending.wait(60.0)
    else:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        wait_for_ever()
end_within(0.1, 0)
wait_for_ever()
"""


@pytest.mark.parametrize(("lock", "when"), [("free", "running"), ("free", "closing"), ("held", "closing")])
def test_a_program_that_never_comes_back_from_c_code_ends_all_the_same(lock, when):
    ended = run(STUCK, lock, when)
    assert ended.returncode == 1 and "wait_for_ever" in ended.stderr


SET_BACK = """
import threading, time
from ending import Ending

clock, woken, asked = time.time, threading.Event(), threading.Event()
with Ending() as ending:
    ending.when_asked(asked.set)
    ending.when_clock_was_set_back(woken.set)
    time.time = lambda: clock() + 3600.0
    time.sleep(0.5)
    print(woken.is_set())
    time.time = clock
    print(woken.wait(60.0), ending.asked, asked.is_set())
"""


def test_who_waits_for_a_time_of_day_is_woken_when_somebody_sets_the_clock_back():
    """A middleware waits for a time of the computer's clock: set back by an hour, it would wait for an hour longer."""
    ended = run(SET_BACK)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "False\nTrue 0 False\n", "")
