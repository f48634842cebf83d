"""The end of a program by a signal does not depend on locks that the end itself may have left closed."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, threading
from tensegrity_dynamics.ending import Ending

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
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60.0)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended by 2\n", "")


def test_a_wait_is_over_as_soon_as_the_signal_has_come():
    program = PROGRAM.replace("ending.when_asked(lock.acquire)", "pass").replace(
        "ending.wait(10.0)", "ending.wait(1e6)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60.0)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended by 2\n", "")


BROKEN_OFF = """
import os, signal, time
from tensegrity_dynamics.ending import Ending, leave

with Ending(grace=0.1) as ending:
    os.kill(os.getpid(), signal.SIGINT)
    exec("time.sleep(60.0)")  # as libraries make classes from text
leave(ending, 0)
"""


def test_a_program_that_was_broken_off_in_code_from_a_string_ends_with_its_own_status():
    ended = subprocess.run([sys.executable, "-c", BROKEN_OFF], capture_output=True, text=True, timeout=60.0)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


STUCK = """
import ctypes, os, signal, sys, threading
from tensegrity_dynamics.ending import Ending, end_within

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
    ended = subprocess.run([sys.executable, "-c", STUCK, lock, when], capture_output=True, text=True, timeout=60.0)
    assert ended.returncode == 1 and "wait_for_ever" in ended.stderr
