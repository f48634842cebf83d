"""Serial port for `dynamixel_sdk` that blocks in poll(2), uses a monotonic clock and raises only BusError.

The port of the library waits in a busy loop, uses a clock that may jump, and does not convert errors of the system.
This class has the same methods (with their names) and waits until the bytes have arrived or the timeout of the packet.
Bytes that arrived in time but were read late are valid; bytes that are unread when the next packet is sent are kept in
`leftover`, as they indicate a second servo with the same id.
"""

# ruff: noqa: N802 (names of the library)

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import termios
import time

import serial
from dynamixel_sdk.port_handler import PortHandler

from tensegrity_dynamics.errors import BusError

from .last_words import LastWords
from .port_holders import port_holders
from .usb_adapter import DEFAULT_LATENCY_S, UsbAdapter, find_usb_adapter

BITS_PER_BYTE = 10
"""Start bit, eight bits, stop bit."""
MARGIN_S = 2e-3
"""Additional timeout of a packet beyond wire time and adapter latency [s]."""
READ_BYTES = 4096
WRITE_TIMEOUT_S = 1.0
"""Time after which a port that accepts no bytes counts as lost [s]."""
HANG_UP_EVENTS = select.POLLHUP | select.POLLERR | select.POLLNVAL


def check_port(path: str) -> None:
    """Raise BusError unless a path is a serial port that this user may open; it is not opened.

    A port that another program holds is accepted, since this becomes visible only when the port is opened.
    """
    try:
        is_device = stat.S_ISCHR(os.stat(path).st_mode)
    except OSError as problem:
        raise BusError(
            f"there is no port {path} ({problem.strerror}); check that the adapter is plugged in, and its name in "
            "/dev/serial/by-id."
        ) from problem
    if not is_device:
        raise BusError(f"{path} is no serial port; their names are such as /dev/ttyUSB0, see /dev/serial/by-id.")
    if not os.access(path, os.R_OK | os.W_OK):
        raise BusError(f"you may not use port {path}; join the group dialout and log in again.")


class SerialPort(PortHandler):
    """Serial port with exclusive access, which may be closed and opened again.

    Args:
        path: path such as /dev/ttyUSB0, or of a pseudo-terminal.
        baud_rate: speed [bit/s].
        patience: time to wait for a packet beyond its wire time [s]; None: determined by the latency timer of the USB
            adapter.

    Attributes:
        device: resolved path when the port was opened. adapter: USB adapter behind it.
        leftover: bytes that were unread when the last packet was sent. sent_last: that packet.
    """

    def __init__(self, path: str, baud_rate: int = 1_000_000, *, patience: float | None = None) -> None:
        super().__init__(path)
        self.is_open: bool = False
        self.baudrate = baud_rate
        self.adapter = UsbAdapter()
        self.device = path
        self.leftover = b""
        self.sent_last = b""
        self._last_words: tuple[bytes, float] | None = None
        self._speaker: LastWords | None = None
        self._fixed_patience = patience
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
        """Path of the port."""
        return self.port_name

    @property
    def patience(self) -> float:
        """Time to wait for a packet beyond its time on the wire [s]."""
        if self._fixed_patience is not None:
            return self._fixed_patience
        latency = self.adapter.latency_timer
        return 2.0 * (DEFAULT_LATENCY_S if latency is None else latency) + MARGIN_S

    def open(self) -> None:
        """Open the port, or do nothing if it is open.

        Raises:
            BusError: it does not exist, is in use by another program, or does not support the baud rate.
        """
        if self.is_open:
            return
        try:
            self._serial = serial.Serial(self.port_name, self.baudrate, timeout=0, exclusive=True)
            fcntl.ioctl(self._serial.fileno(), termios.TIOCEXCL)  # flock excludes only programs that use it
        except (OSError, ValueError, termios.error) as problem:  # SerialException is an OSError
            if self._serial is not None:
                self._serial.close()
                self._serial = None
            if _is_something_else(self.port_name):
                raise BusError(
                    f"{self.port_name} is not a serial port; name that of the adapter, see `ls /dev/serial/by-id`."
                ) from problem
            holders = port_holders(self.port_name)
            who = f"It is held by {', '.join(holders)}; end that program." if holders else (
                "Check that the adapter is plugged in, that you may use it (group dialout), and that no other program "
                "does."
            )  # fmt: skip
            raise BusError(
                f"port {self.port_name} cannot be opened at {self.baudrate} bit/s: {problem}. {who}"
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
        if self._last_words is not None:
            self._speaker = LastWords(self._file, *self._last_words)

    def leave(self, packet: bytes, silence: float) -> None:
        """Bytes that are sent if this process ends without `close`, or sends nothing for `silence` s.

        A separate process sends them; see `last_words`. They are kept when the port is opened again.
        """
        if self._speaker is not None:
            self._speaker.close()
        self._last_words, self._speaker = (packet, silence), LastWords(self._ready(), packet, silence)

    def close(self) -> None:
        """Close the port, or do nothing if it is closed."""
        port, self._serial = self._serial, None
        self.is_open, self.is_using = False, False
        if self._speaker is not None:
            self._speaker.close()
            self._speaker = None
        self._buffer.clear()
        if port is not None:
            try:
                # a terminal that another process keeps open, such as an emulator, would refuse all other programs
                fcntl.ioctl(port.fileno(), termios.TIOCNXCL)
            except (OSError, termios.error):
                pass
            try:
                port.close()
            except OSError:  # the device does not exist any more
                pass

    def set_baud_rate(self, baud_rate: int) -> None:
        """Change the speed [bit/s]; raises BusError if the port does not support it."""
        self.baudrate = baud_rate
        self._set_byte_time()
        if self._serial is None:
            return
        try:
            self._serial.baudrate = baud_rate
        except (OSError, ValueError, termios.error) as problem:
            raise BusError(
                f"port {self.port_name} cannot be set to {baud_rate} bit/s: {problem}. Choose another speed."
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

    def fileno(self) -> int:
        """The descriptor of the open port, for `select` and the like. Raises BusError: it is closed."""
        return self._ready()

    def _ready(self) -> int:
        if not self.is_open:
            raise BusError(f"port {self.port_name} is closed; open it first.")
        return self._file

    # -- bytes -------------------------------------------------------------------------------------------------------

    def writePort(self, packet: list[int] | bytes) -> int:
        """Send all bytes; returns their number. Raises BusError if the port is lost."""
        file = self._ready()
        if self._speaker is not None:
            self._speaker.feed()
        data = self.sent_last = bytes(packet)
        sent = 0
        try:
            sent = os.write(file, data)
        except BlockingIOError:
            pass  # the buffer of the system is full
        except OSError as problem:
            raise self._lost(problem) from problem
        return len(data) if sent == len(data) else self._write_rest(data, sent)

    def _write_rest(self, data: bytes, sent: int) -> int:
        writable = select.poll()
        writable.register(self._file, select.POLLOUT)
        while sent < len(data):
            events = writable.poll(1e3 * WRITE_TIMEOUT_S)
            if not events or events[0][1] & HANG_UP_EVENTS:
                raise self._lost("it accepts no more bytes")
            try:
                sent += os.write(self._file, data[sent:])
            except OSError as problem:
                raise self._lost(problem) from problem
        return sent

    def readPort(self, length: int) -> bytes:
        """Up to `length` bytes; waits until they have arrived or the timeout of the packet."""
        buffer = self._buffer
        if length <= 0:
            return b""
        while len(buffer) < length:
            remaining = self._deadline - time.monotonic()
            if remaining <= 0.0:
                if self._last_look:
                    break
                self._last_look = True
                remaining = self.grace()
            self._receive(remaining)
        data = bytes(buffer[:length])
        del buffer[:length]
        return data

    def grace(self) -> float:
        """Time of a last read after the timeout of a packet [s]; above zero for ports of emulated servos."""
        return 0.0

    def _receive(self, seconds: float) -> None:
        """Wait for bytes and append them to the buffer; raises BusError if the port is lost."""
        events = self._poll.poll(1e3 * seconds)
        if not events:
            return
        try:
            data = os.read(self._file, READ_BYTES)
        except BlockingIOError:
            return
        except OSError as problem:
            raise self._lost(problem) from problem
        if data:
            self._buffer += data
        elif events[0][1] & HANG_UP_EVENTS:
            raise self._lost("the device hung up")

    def clearPort(self) -> None:
        """Move unread bytes to `leftover`; called before every packet is sent."""
        self._ready()
        self._receive(0.0)
        self.leftover = bytes(self._buffer)
        self._buffer.clear()

    def drain(self, quiet: float | None = None) -> None:
        """Discard bytes until the line is quiet, so that a late answer is not confused with the next one.

        Args:
            quiet: time without a byte after which it ends [s]; None: the longest gap within one packet.
        """
        quiet = MARGIN_S + 20.0 * self._byte_time if quiet is None else quiet
        end = time.monotonic() + self._patience + quiet
        while time.monotonic() < end:
            before = len(self._buffer)
            self._receive(quiet)
            if len(self._buffer) == before:
                break
        self._buffer.clear()

    # -- time --------------------------------------------------------------------------------------------------------

    def setPacketTimeout(self, packet_length: int) -> None:
        """Start the timeout of an answer with this number of bytes."""
        self._deadline = time.monotonic() + packet_length * self._byte_time + self._patience
        self._last_look = False

    def setPacketTimeoutMillis(self, msec: float) -> None:
        """Start a timeout [ms]."""
        self._deadline = time.monotonic() + 1e-3 * msec
        self._last_look = False

    def isPacketTimeout(self) -> bool:
        """Whether the timeout has passed and all bytes that arrived in time have been read."""
        return self._last_look and not self._buffer and time.monotonic() >= self._deadline

    def getBytesAvailable(self) -> int:
        """Number of bytes that can be read without waiting."""
        self._ready()
        self._receive(0.0)
        return len(self._buffer)

    # -- other methods of the library ---------------------------------------------------------------------------------

    def openPort(self) -> bool:
        """Alias of `open` for the library."""
        self.open()
        return True

    def closePort(self) -> None:
        """Alias of `close` for the library."""
        self.close()

    def setBaudRate(self, baudrate: int) -> bool:
        """`set_baud_rate` and `open` for the library."""
        self.set_baud_rate(baudrate)
        self.open()
        return True


def _is_something_else(path: str) -> bool:
    """Whether a path can be opened and is no terminal, such as a file or /dev/null."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as problem:
        return problem.errno == errno.EISDIR
    try:
        return not os.isatty(handle)
    finally:
        os.close(handle)
