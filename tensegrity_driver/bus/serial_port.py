"""A serial port for `dynamixel_sdk` that waits instead of spinning, and says what went wrong in one kind of error.

The library's own port polls without pause, takes the time from a clock that may jump, and lets every error of the
system through. This one has the same methods (their names are the library's) and waits until the bytes are there or the
time for a packet is over. Bytes that came in time but were read late still count; bytes that nobody read before the
next packet goes out are kept in `leftover`: they tell of a second servo under the same id.
"""

# ruff: noqa: N802 (the library gives the names)

from __future__ import annotations

import os
import select
import termios
import time

import serial
from dynamixel_sdk.port_handler import PortHandler

from tensegrity_dynamics.errors import BusError

from .usb_adapter import DEFAULT_LATENCY, UsbAdapter, find_usb_adapter

BITS_PER_BYTE = 10
"""Start bit, eight bits, stop bit."""
MARGIN = 2e-3
"""s that a packet may take beyond wire time and adapter."""
CHUNK = 4096
WRITE_TIME = 1.0
"""s after which a port that takes no bytes counts as lost."""
LOST = select.POLLHUP | select.POLLERR | select.POLLNVAL


class SerialPort(PortHandler):
    """A port that is opened for one program alone, and may be closed and opened again.

    Args:
        path: such as /dev/ttyUSB0, or a pseudo-terminal.
        baud_rate: bit/s.
        patience: s to wait for a packet beyond its time on the wire; None takes what the USB adapter makes necessary.

    Attributes:
        device: what the path led to when it was opened. adapter: what the system tells about it.
        leftover: bytes that nobody had read when the last packet went out. sent_last: that packet.
    """

    def __init__(self, path: str, baud_rate: int = 1_000_000, *, patience: float | None = None) -> None:
        super().__init__(path)
        self.is_open: bool = False
        self.baudrate = baud_rate
        self.adapter = UsbAdapter()
        self.device = path
        self.leftover = b""
        self.sent_last = b""
        self._given_patience = patience
        self._serial: serial.Serial | None = None
        self._file = -1
        self._poll = select.poll()
        self._buffer = bytearray()
        self._deadline = 0.0
        self._last_look = True
        self._set_byte_time()

    # -- opening and closing -----------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Where the port is."""
        return self.port_name

    @property
    def patience(self) -> float:
        """s to wait for a packet beyond its time on the wire."""
        if self._given_patience is not None:
            return self._given_patience
        latency = self.adapter.latency_timer
        return 2.0 * (DEFAULT_LATENCY if latency is None else latency) + MARGIN

    def open(self) -> None:
        """Open the port, or do nothing if it is open.

        Raises:
            BusError: it is not there, in use by another program, or does not know the baud rate.
        """
        if self.is_open:
            return
        try:
            self._serial = serial.Serial(self.port_name, self.baudrate, timeout=0, exclusive=True)
        except (OSError, ValueError, termios.error) as problem:  # SerialException is an OSError
            raise BusError(
                f"port {self.port_name} cannot be opened at {self.baudrate} bit/s: {problem}. Check that the adapter "
                "is plugged in, that you may use it (group dialout), and that no other program does."
            ) from problem
        self._file = self._serial.fileno()
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)
        self._buffer.clear()
        self.leftover = b""
        self.is_open, self.is_using = True, False
        self.device = os.path.realpath(self.port_name)
        self.adapter = find_usb_adapter(self.port_name)
        self._set_byte_time()

    def close(self) -> None:
        """Close the port, or do nothing if it is closed."""
        port, self._serial = self._serial, None
        self.is_open, self.is_using = False, False
        self._buffer.clear()
        if port is not None:
            try:
                port.close()
            except OSError:  # the device has gone: nothing is left to be closed
                pass

    def set_baud_rate(self, baud_rate: int) -> None:
        """Change the speed [bit/s]; raises BusError where the port does not know it."""
        self.baudrate = baud_rate
        self._set_byte_time()
        if self._serial is None:
            return
        try:
            self._serial.baudrate = baud_rate
        except (OSError, ValueError, termios.error) as problem:
            raise BusError(
                f"port {self.port_name} cannot be set to {baud_rate} bit/s: {problem}. Take another speed."
            ) from problem

    def _set_byte_time(self) -> None:
        self._byte_time = BITS_PER_BYTE / self.baudrate
        self._patience = self.patience
        self.tx_time_per_byte = 1e3 * self._byte_time

    def _lost(self, problem: object) -> BusError:
        self.close()
        return BusError(
            f"port {self.port_name} is gone: {problem}. Plug the adapter in again; the port is opened by itself when "
            "it is back."
        )

    def _ready(self) -> int:
        if not self.is_open:
            raise BusError(f"port {self.port_name} is closed; open it first.")
        return self._file

    # -- bytes -------------------------------------------------------------------------------------------------------

    def writePort(self, packet: list[int] | bytes) -> int:
        """Send bytes; returns how many, which is all of them. Raises BusError when the port is gone."""
        file = self._ready()
        data = self.sent_last = bytes(packet)
        sent = 0
        try:
            sent = os.write(file, data)
        except BlockingIOError:
            pass  # the system's buffer is full
        except OSError as problem:
            raise self._lost(problem) from problem
        return len(data) if sent == len(data) else self._write_rest(data, sent)

    def _write_rest(self, data: bytes, sent: int) -> int:
        writable = select.poll()
        writable.register(self._file, select.POLLOUT)
        while sent < len(data):
            events = writable.poll(1e3 * WRITE_TIME)
            if not events or events[0][1] & LOST:
                raise self._lost("it takes no more bytes")
            try:
                sent += os.write(self._file, data[sent:])
            except OSError as problem:
                raise self._lost(problem) from problem
        return sent

    def readPort(self, length: int) -> bytes:
        """Up to `length` bytes, waiting until they are there or the time for the packet is over."""
        buffer = self._buffer
        if length <= 0:
            return b""
        while len(buffer) < length:
            remaining = self._deadline - time.monotonic()
            if remaining <= 0.0:
                if self._last_look:
                    break
                self._last_look = True
                remaining = 0.0
            self._receive(remaining)
        data = bytes(buffer[:length])
        del buffer[:length]
        return data

    def _receive(self, seconds: float) -> None:
        """Wait until there is something, and take what is there; raises BusError when the port is gone."""
        events = self._poll.poll(1e3 * seconds)
        if not events:
            return
        try:
            data = os.read(self._file, CHUNK)
        except BlockingIOError:
            return
        except OSError as problem:
            raise self._lost(problem) from problem
        if data:
            self._buffer += data
        elif events[0][1] & LOST:
            raise self._lost("the device hung up")

    def clearPort(self) -> None:
        """Forget what has come so far, but for `leftover`; called before every packet that goes out."""
        self._ready()
        self._receive(0.0)
        self.leftover = bytes(self._buffer)
        self._buffer.clear()

    def settle(self, quiet: float | None = None) -> None:
        """Let pass what is still coming, so that it is not taken for the next answer.

        Args:
            quiet: s without a byte after which nothing more is expected; None takes the gap within one packet.
        """
        quiet = MARGIN + 20.0 * self._byte_time if quiet is None else quiet
        end = time.monotonic() + self._patience + quiet
        while time.monotonic() < end:
            before = len(self._buffer)
            self._receive(quiet)
            if len(self._buffer) == before:
                break
        self._buffer.clear()

    # -- time --------------------------------------------------------------------------------------------------------

    def setPacketTimeout(self, packet_length: int) -> None:
        """Expect an answer of so many bytes from now on."""
        self._deadline = time.monotonic() + packet_length * self._byte_time + self._patience
        self._last_look = False

    def setPacketTimeoutMillis(self, msec: float) -> None:
        """Expect answers for so many ms from now on."""
        self._deadline = time.monotonic() + 1e-3 * msec
        self._last_look = False

    def isPacketTimeout(self) -> bool:
        """Whether the time for the packet is over and all that came in time has been read."""
        return self._last_look and not self._buffer and time.monotonic() >= self._deadline

    def getBytesAvailable(self) -> int:
        """Bytes that can be read without waiting."""
        self._ready()
        self._receive(0.0)
        return len(self._buffer)

    # -- the library's other names -------------------------------------------------------------------------------------

    def openPort(self) -> bool:
        """As `open`."""
        self.open()
        return True

    def closePort(self) -> None:
        """As `close`."""
        self.close()

    def setBaudRate(self, baudrate: int) -> bool:
        """As `set_baud_rate`, and open."""
        self.set_baud_rate(baudrate)
        self.open()
        return True
