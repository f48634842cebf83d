"""The port waits for bytes without losing any, and every failure of the system is one error that names the port."""

from __future__ import annotations

import array
import fcntl
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from bus_line import Line
from patience import PATIENCE_S, until

from tensegrity_driver.bus.serial_port import SerialPort, check_port
from tensegrity_driver.bus.usb_adapter import DEFAULT_LATENCY_S, UsbAdapter, find_usb_adapter
from tensegrity_driver.emulator.pseudo_terminal import PseudoTerminal
from tensegrity_dynamics.errors import BusError

TIOCGEXCL = 0x80045440
"""Linux: whether a terminal is open for one program alone."""


def open_port(line: Line, patience: float = PATIENCE_S) -> SerialPort:
    port = SerialPort(line.path, patience=patience)
    port.open()
    return port


def send(line: Line, port: SerialPort, data: bytes) -> None:
    """Send, and wait until it lies at the port."""
    line.send(data)
    waiting = array.array("i", [0])
    until(lambda: fcntl.ioctl(port.fileno(), termios.FIONREAD, waiting) == 0 and waiting[0] >= len(data))


def test_bytes_come_in_pieces_and_none_is_lost() -> None:
    with Line(lambda data: bytes(reversed(data))) as line:
        port = open_port(line)
        port.clearPort()
        assert port.writePort([1, 2, 3, 4, 5]) == 5
        port.setPacketTimeout(5)
        assert port.readPort(2) == b"\x05\x04"
        assert port.readPort(3) == b"\x03\x02\x01"
        assert not port.isPacketTimeout()
        assert port.readPort(0) == b""
        assert port.readPort(-3) == b""
        port.close()


def test_a_read_ends_with_what_there_is_when_the_time_is_over() -> None:
    with Line() as line:
        port = open_port(line, patience=0.0)
        send(line, port, b"ab")
        port.setPacketTimeout(4)
        assert port.readPort(4) == b"ab"
        assert port.isPacketTimeout()
        assert port.readPort(4) == b""
        port.close()


def test_bytes_that_came_in_time_count_even_if_they_are_read_late() -> None:
    with Line() as line:
        port = open_port(line)
        port.setPacketTimeoutMillis(1.0)
        send(line, port, b"abcd")
        time.sleep(0.01)  # longer than the packet may take
        assert not port.isPacketTimeout()
        assert port.readPort(4) == b"abcd"
        assert port.isPacketTimeout()
        port.close()


def test_an_endless_stream_does_not_hold_a_reader_for_ever() -> None:
    with Line() as line:
        port = open_port(line)
        port.setPacketTimeoutMillis(0.0)
        send(line, port, b"x" * 2000)
        read = 0
        while data := port.readPort(100):
            read += len(data)
            line.send(b"x" * 200)
        assert read <= 4096  # what was there when the time was over
        port.close()


def test_unread_bytes_are_kept_aside_when_the_next_packet_goes_out() -> None:
    with Line(lambda data: data + data) as line:
        port = open_port(line)
        port.writePort(b"abc")
        port.setPacketTimeout(3)
        assert port.readPort(3) == b"abc"
        port.setPacketTimeout(3)
        until(lambda: port.getBytesAvailable() == 3)
        port.clearPort()
        assert port.leftover == b"abc"
        port.clearPort()
        assert port.leftover == b""
        port.close()


def test_settling_swallows_what_is_still_coming() -> None:
    with Line() as line:
        port = open_port(line)
        line.send(b"rest of something")
        until(lambda: port.getBytesAvailable() == 17)
        port.drain()
        assert port.getBytesAvailable() == 0
        port.close()


def test_two_programs_cannot_use_one_port() -> None:
    with Line() as line:
        first = open_port(line)
        second = SerialPort(line.path)
        with pytest.raises(BusError, match=f"{line.path}.*no other program"):
            second.open()
        first.close()
        second.open()
        second.close()


def test_a_port_can_be_closed_and_opened_again() -> None:
    with Line(lambda data: data) as line:
        port = open_port(line)
        port.close()
        port.close()
        for use in (lambda: port.writePort(b"a"), port.clearPort):
            with pytest.raises(BusError, match="is closed"):
                use()
        port.open()
        port.open()
        port.writePort(b"a")
        port.setPacketTimeout(1)
        assert port.readPort(1) == b"a"
        port.close()


def test_an_unplugged_adapter_is_an_error_that_names_the_port_wherever_it_is_noticed() -> None:
    for use in (lambda port: port.readPort(4), lambda port: port.clearPort(), lambda port: port.writePort(b"abcd")):
        line = Line()
        port = open_port(line)
        port.setPacketTimeout(4)
        line.unplug()
        with pytest.raises(BusError, match=f"{line.path} is gone"):
            use(port)
        assert not port.is_open
        with pytest.raises(BusError, match="cannot be opened"):
            port.open()


def test_a_port_that_is_not_there_is_named() -> None:
    with pytest.raises(BusError, match=r"/dev/no_such_port.*plugged in"):
        SerialPort("/dev/no_such_port").open()


def test_the_speed_can_be_changed_while_open() -> None:
    with Line(lambda data: data) as line:
        port = open_port(line)
        for rate in (57_600, 1_000_000, 115_200):
            port.set_baud_rate(rate)
            assert port.getBaudRate() == rate
            port.writePort(b"a")
            port.setPacketTimeout(1)
            assert port.readPort(1) == b"a"
        port.close()


def test_an_adapter_tells_its_serial_number_and_latency_timer(tmp_path: Path) -> None:
    device = tmp_path / "devices" / "usb1" / "1-1"
    serial_device = device / "1-1:1.0" / "ttyUSB7"
    serial_device.mkdir(parents=True)
    (device / "serial").write_text("FT3M9STO\n")
    (tmp_path / "class" / "tty" / "ttyUSB7").mkdir(parents=True)
    (tmp_path / "class" / "tty" / "ttyUSB7" / "device").symlink_to(serial_device)
    file = tmp_path / "bus" / "usb-serial" / "devices" / "ttyUSB7" / "latency_timer"
    file.parent.mkdir(parents=True)
    file.write_text("16\n")
    assert find_usb_adapter("/dev/ttyUSB7", tmp_path) == UsbAdapter("FT3M9STO", 0.016, file)


def test_a_pseudo_terminal_has_no_adapter_and_the_usual_patience(tmp_path: Path) -> None:
    with Line() as line:
        port = SerialPort(line.path)
        port.open()
        assert port.adapter == UsbAdapter()
        assert port.patience > 2.0 * DEFAULT_LATENCY_S
        assert port.device == line.path
        port.close()
    assert find_usb_adapter("/dev/ttyUSB7", tmp_path) == UsbAdapter()


HOLDER = """
import sys
from tensegrity_driver.bus.serial_port import SerialPort
port = SerialPort(sys.argv[1])
port.open()
print("open", flush=True)
sys.stdin.read()
"""


def test_a_port_is_for_one_program_alone_and_the_error_says_which(tmp_path: Path) -> None:
    terminal = PseudoTerminal(tmp_path / "port", lambda data: [], lambda: [])
    terminal.plug()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "port")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "open\n"
        exclusive = array.array("i", [0])
        fcntl.ioctl(terminal.slave, TIOCGEXCL, exclusive)
        assert exclusive[0], "programs that ask for no lock are kept out, too"
        port = SerialPort(str(tmp_path / "port"))
        with pytest.raises(
            BusError, match=rf"(?s)cannot be opened .* It is held by .*\(process {holder.pid}\); end that"
        ):
            port.open()
        assert not port.is_open
        holder.kill()
        holder.wait()
        terminal.end_exclusion()  # as the emulator does once nobody speaks; a device does it when it is closed
        port.open()
        port.close()
        fcntl.ioctl(terminal.slave, TIOCGEXCL, exclusive)
        assert not exclusive[0]
    finally:
        holder.kill()
        holder.communicate()
        terminal.unplug()


def test_a_path_that_is_no_port_is_refused_without_opening_it(tmp_path: Path) -> None:
    with Line() as line:
        check_port(line.path)
    (tmp_path / "file").write_text("")
    with pytest.raises(
        BusError, match=r"there is no port .*none \(No such file or directory\); check that the adapter"
    ):
        check_port(str(tmp_path / "none"))
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(BusError, match="is no serial port; their names are such as /dev/ttyUSB0"):
            check_port(str(path))


def test_what_is_no_serial_port_is_called_so_and_nobody_holds_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("/dev/null", str(tmp_path), str(tmp_path / "file")):
        with pytest.raises(BusError, match="is not a serial port") as refusal:
            SerialPort(path).open()
        assert path in str(refusal.value) and "held" not in str(refusal.value)
