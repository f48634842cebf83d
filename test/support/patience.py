"""How tests wait: for a condition, never for a time that decides whether they pass.

What must come is waited for with `PATIENCE_S`, which only says how late a test reports that something is stuck. What
must not come, such as the answer of a silent servo, is waited for in turns of the waiting thread: on a busy machine
they become longer with those of the threads that would have sent it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import dynamixel_sdk as sdk

PATIENCE_S = 600.0
"""Time [s] after which something is stuck, however busy the machine is."""
TURN_S = 0.01
TURNS = 40
"""Turns without a byte after which no answer comes."""


def until(condition: Callable[[], object], what: object = "this never came") -> None:
    """Wait until a condition holds; `what` says what is missing where it never does, a callable when it is needed."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(TURN_S)


class PatientPort(sdk.PortHandler):  # type: ignore[misc]
    """The port of dynamixel_sdk, open, with its patience counted in turns."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._turns = 0
        assert self.setBaudRate(1_000_000)
        self.ser.timeout = TURN_S

    def setPacketTimeout(self, packet_length: int) -> None:  # noqa: N802
        self._turns = 0

    setPacketTimeoutMillis = setPacketTimeout  # noqa: N815

    def isPacketTimeout(self) -> bool:  # noqa: N802
        self._turns += 1
        return self._turns > TURNS

    def take(self, length: int) -> bytes:
        """The next bytes, fewer where no more come."""
        return take(self.ser, length)


def take(port: object, length: int) -> bytes:
    """The next bytes of a port of pyserial with a timeout of `TURN_S`, fewer where no more come."""
    data, turns = b"", 0
    while len(data) < length and turns < TURNS:
        more = port.read(length - len(data))
        data, turns = data + more, 0 if more else turns + 1
    return data
