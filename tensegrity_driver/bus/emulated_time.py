"""Time of emulated servos, which a driver in another process reads: a file beside their ports.

Emulated servos fall behind on a busy computer. A driver that went by the computer's clock would then command a world
that stands still, or moves at half the pace, and what it commands would be twice as quick in there. So the time of a
robot with emulated servos is theirs, as that of a simulated one is the simulation's. Servos at a real port have none:
their time is what really passes.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from .identity import PSEUDO_TERMINALS

NAME = "time"
_NANOSECONDS = struct.Struct("<q")


class EmulatedTime:
    """The file, for whoever makes it and for those who read it.

    Args:
        path: of the file. make: it is made; else it is there.

    Raises:
        OSError: it is not.
    """

    def __init__(self, path: Path, *, make: bool = False) -> None:
        self.path = path
        if make:
            path.unlink(missing_ok=True)  # a driver of before keeps its own
            path.write_bytes(bytes(_NANOSECONDS.size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _NANOSECONDS.size)

    @property
    def now(self) -> int:
        """ns since the emulated robot began."""
        return int(_NANOSECONDS.unpack_from(self._map)[0])

    def tell(self, seconds: float) -> None:
        """The time is now so many s."""
        _NANOSECONDS.pack_into(self._map, 0, round(1e9 * seconds))

    def close(self, *, remove: bool = False) -> None:
        """End; whoever made it removes it."""
        self._map.close()
        if remove:
            self.path.unlink(missing_ok=True)


def time_behind(port: str) -> EmulatedTime | None:
    """Time of the emulated servos behind a port; None where it leads to real ones, or to others that tell none."""
    try:
        if not str(Path(port).resolve()).startswith(PSEUDO_TERMINALS):
            return None
        return EmulatedTime(Path(port).with_name(NAME))
    except (OSError, ValueError):
        return None
