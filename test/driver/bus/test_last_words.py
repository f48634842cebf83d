"""A process of its own stops wheels whose driver was killed or stands still, and says nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bus_line import Line
from patience import PATIENCE_S, until

from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_dynamics.errors import BusError

HALT = b"\xff\xff\xfehalt"
DRIVER = """
import sys, time
from tensegrity_driver.bus.serial_port import SerialPort
port = SerialPort(sys.argv[1])
port.open()
port.leave(bytes.fromhex(sys.argv[2]), float(sys.argv[3]))
while True:
    port.writePort(b"run")
    time.sleep(0.02)
"""


@contextmanager
def driver_at(line: Line, silence: float) -> Iterator[subprocess.Popen[bytes]]:
    """A process that sends without a pause."""
    words = [sys.executable, "-c", DRIVER, line.path, HALT.hex(), str(silence)]
    process = subprocess.Popen(words, start_new_session=True)
    try:
        until(lambda: b"run" in line.heard)
        yield process
    finally:
        process.kill()
        process.wait()


def test_after_the_driver_is_killed_its_last_words_are_sent_and_the_port_is_free() -> None:
    with Line() as line, driver_at(line, PATIENCE_S) as driver:
        assert HALT not in line.heard
        os.killpg(driver.pid, signal.SIGKILL)
        until(lambda: HALT in line.heard)
        assert line.heard.rindex(HALT) > line.heard.rindex(b"run")
        port = SerialPort(line.path)

        def opened() -> bool:
            try:
                port.open()
            except BusError:
                return False
            return True

        until(opened)
        port.close()


def test_a_driver_that_stands_still_has_its_last_words_sent_and_goes_on_when_it_wakes() -> None:
    with Line() as line, driver_at(line, 0.3) as driver:
        os.kill(driver.pid, signal.SIGSTOP)
        until(lambda: line.heard.endswith(3 * HALT))
        line.heard.clear()
        os.kill(driver.pid, signal.SIGCONT)
        until(lambda: line.heard.startswith(b"runrun"))
        os.kill(driver.pid, signal.SIGSTOP)
        until(lambda: line.heard.endswith(3 * HALT))


@pytest.mark.parametrize("again", [False, True])
def test_a_port_that_is_closed_says_nothing_and_keeps_its_last_words_for_the_next_time(again: bool) -> None:
    with Line() as line:
        port = SerialPort(line.path)
        port.open()
        port.leave(HALT, 0.1)
        port.close()
        assert not line.heard
        if again:
            port.open()
            until(lambda: HALT in line.heard)
            port.close()
