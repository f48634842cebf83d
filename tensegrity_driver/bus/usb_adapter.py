"""USB adapter behind a serial port: its serial number and its latency timer, as the Linux kernel reports them.

An adapter collects bytes for the time of its latency timer before it forwards them; with the usual 16 ms every exchange
on the bus takes that much longer. The serial number identifies the bus for which a calibration was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_LATENCY_S = 16e-3
"""Factory setting of the latency timer of common adapters [s]; assumed if the system reports none."""
SYSTEM = Path("/sys")
MAX_LEVELS = 6
"""Largest number of folder levels between a serial device and its USB device."""


@dataclass(frozen=True)
class UsbAdapter:
    """USB adapter; attributes that the system does not report are None, such as for a pseudo-terminal.

    Attributes:
        serial_number: serial number of the manufacturer. latency_timer: s.
        latency_file: file that sets the latency timer [ms].
    """

    serial_number: str | None = None
    latency_timer: float | None = None
    latency_file: Path | None = None


def find_usb_adapter(port: str, system: Path = SYSTEM) -> UsbAdapter:
    """Adapter of a port such as /dev/ttyUSB0, or of a symbolic link to it.

    Args:
        port: path. system: root of sysfs.
    """
    name = Path(port).resolve().name
    latency_file = system / "bus" / "usb-serial" / "devices" / name / "latency_timer"
    milliseconds = _text(latency_file)
    has_timer = milliseconds is not None and milliseconds.isdigit()
    serial_number = None
    device = system / "class" / "tty" / name / "device"
    if device.exists():
        folder = device.resolve()
        for _ in range(MAX_LEVELS):
            serial_number = _text(folder / "serial")
            if serial_number is not None or folder.parent == folder:
                break
            folder = folder.parent
    return UsbAdapter(
        serial_number=serial_number or None,
        latency_timer=1e-3 * int(milliseconds) if has_timer and milliseconds is not None else None,
        latency_file=latency_file if has_timer else None,
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:  # this kind of device has no such file
        return None
