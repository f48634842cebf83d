"""What the system tells about the USB adapter behind a serial port: its serial number and its latency timer.

An adapter collects bytes for as long as its latency timer says before it hands them over; with the usual 16 ms every
exchange on the bus takes that much longer. The serial number tells on which bus a calibration was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_LATENCY = 16e-3
"""s that the usual adapters wait, unless told otherwise; assumed where the system does not say."""
SYSTEM = Path("/sys")
LEVELS = 6
"""How far above its serial device the folder of a USB device may be."""


@dataclass(frozen=True)
class UsbAdapter:
    """One adapter; None where the system does not say, such as for a pseudo-terminal.

    Attributes:
        serial_number: as its maker gave it. latency_timer: s. latency_file: where to set it, in ms.
    """

    serial_number: str | None = None
    latency_timer: float | None = None
    latency_file: Path | None = None


def find_usb_adapter(port: str, system: Path = SYSTEM) -> UsbAdapter:
    """The adapter behind a port such as /dev/ttyUSB0, or a link to it.

    Args:
        system: where the system tells about its devices.
    """
    name = Path(port).resolve().name
    latency_file = system / "bus" / "usb-serial" / "devices" / name / "latency_timer"
    milliseconds = _text(latency_file)
    known = milliseconds is not None and milliseconds.isdigit()
    serial_number = None
    device = system / "class" / "tty" / name / "device"
    if device.exists():
        folder = device.resolve()
        for _ in range(LEVELS):
            serial_number = _text(folder / "serial")
            if serial_number is not None or folder.parent == folder:
                break
            folder = folder.parent
    return UsbAdapter(
        serial_number=serial_number or None,
        latency_timer=1e-3 * int(milliseconds) if known and milliseconds is not None else None,
        latency_file=latency_file if known else None,
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:  # there is no such file for this kind of device: that is the answer
        return None
