"""Identity of a servo bus: its adapter and its servos; a calibration is valid for one identity only."""

from __future__ import annotations

from dataclasses import dataclass

EMULATED_ADAPTER = "emulated"
"""Adapter name of buses behind pseudo-terminals, which have no serial number."""
PSEUDO_TERMINALS = "/dev/pts/"
"""Folder of pseudo-terminals: a port whose path resolves to this folder is emulated."""


@dataclass(frozen=True)
class BusIdentity:
    """Identity of a bus, for which a calibration is valid.

    Args:
        adapter: serial number of the USB adapter (servos have none), or "emulated".
        servos: (id, model number) of every servo, sorted by id.
    """

    adapter: str
    servos: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "servos", tuple(sorted((int(a), int(b)) for a, b in self.servos)))

    def difference(self, other: BusIdentity) -> str | None:
        """First difference of another bus from this one as a text, or None."""
        if self.adapter != other.adapter:
            return f"adapter {other.adapter!r} instead of {self.adapter!r}"
        mine, theirs = dict(self.servos), dict(other.servos)
        for servo in sorted(mine.keys() | theirs.keys()):
            if servo not in theirs:
                return f"servo {servo} is missing"
            if servo not in mine:
                return f"servo {servo} is new"
            if mine[servo] != theirs[servo]:
                return f"servo {servo} is of model {theirs[servo]} instead of {mine[servo]}"
        return None
