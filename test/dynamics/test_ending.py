"""The end of a program by a signal does not depend on locks that the end itself may have left closed."""

from __future__ import annotations

import subprocess
import sys

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
