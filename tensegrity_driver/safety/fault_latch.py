"""Latch of faults: a latched fault stays until it is cleared after its cause has gone."""

from __future__ import annotations

from collections.abc import Iterable

from tensegrity_dynamics.errors import CommandRefused

from .faults import Fault, FaultKind, Reaction
from .settings import SafetySettings


class FaultLatch:
    """Memory of the faults of one bus.

    Args:
        settings: reactions, and which faults are latched.
    """

    def __init__(self, settings: SafetySettings) -> None:
        self.settings = settings
        self._held: dict[tuple[FaultKind, str | None], Fault] = {}
        self._present: set[tuple[FaultKind, str | None]] = set()

    def update(self, found: Iterable[Fault]) -> tuple[Fault, ...]:
        """Take the faults found in one cycle and return the new ones."""
        found = tuple(found)
        self._present = {fault.key for fault in found}
        new = tuple(fault for fault in found if fault.key not in self._held)
        self._held.update({fault.key: fault for fault in new})
        for key in [key for key in self._held if key not in self._present and key[0] not in self.settings.latched]:
            del self._held[key]
        return new

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All present faults, oldest first."""
        return tuple(self._held.values())

    @property
    def latched(self) -> tuple[Fault, ...]:
        """Faults that stay until they are cleared; the others end with their cause."""
        return tuple(fault for fault in self._held.values() if fault.kind in self.settings.latched)

    def reaction(self, tendon: str) -> Reaction | None:
        """Strongest reaction to the faults that concern a tendon; None if it is free to follow commands."""
        reactions = [
            self.settings.reaction(fault.kind)
            if fault.tendon in (None, tendon)
            else self.settings.others or Reaction.HOLD
            for fault in self._held.values()
            if self.settings.reaction(fault.kind) is not Reaction.WARN
        ]
        return max(reactions, key=lambda each: each.strength, default=None)

    def clear(self) -> tuple[Fault, ...]:
        """Delete the latched faults and return them. Faults that end with their cause stay until it has ended.

        Raises:
            CommandRefused: the cause of a latched fault persists; the text lists all such faults.
        """
        held = self.latched
        still = [fault.line for fault in held if fault.key in self._present]
        if still:
            raise CommandRefused("faults cannot be cleared while their causes are there: " + " | ".join(still))
        for fault in held:
            del self._held[fault.key]
        return held

    def restore(self, faults: Iterable[Fault]) -> None:
        """Latch faults again that were cleared too early."""
        self._held.update({fault.key: fault for fault in faults})
