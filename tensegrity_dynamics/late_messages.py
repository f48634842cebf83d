"""Simulation of delayed messages: each is delayed by a random number of periods, and the order is kept.

The delay is measured in periods of time and not in messages: if a sender skips a message, the next ones are not delayed
more.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import numpy as np

from .errors import TensegrityError

Message = TypeVar("Message")


class LateMessages(Generic[Message]):
    """See the module.

    Args:
        least, most: range of the delay in periods, drawn for each message.
        seed: seed of the random numbers; the same seed gives the same delays.

    Raises:
        TensegrityError: `least` is negative or above `most`.
    """

    def __init__(self, least: int, most: int | None = None, seed: int = 0) -> None:
        self.least, self.most = least, least if most is None else most
        if not 0 <= self.least <= self.most:
            raise TensegrityError(f"delays are {least} to {most} periods; give 0 <= least <= most.")
        self._random = np.random.default_rng(seed)
        self._waiting: deque[tuple[int, Message]] = deque()
        self._last = 0

    def put(self, now: int, message: Message) -> None:
        """Send a message in the period `now`."""
        late = self.least
        if self.most > self.least:
            late = int(self._random.integers(self.least, self.most + 1))
        self._last = max(self._last, now + late)
        self._waiting.append((self._last, message))

    def take(self, now: int) -> Message | None:
        """Newest message that has arrived up to the period `now`, or None; older ones are discarded."""
        newest = None
        while self._waiting and self._waiting[0][0] <= now:
            newest = self._waiting.popleft()[1]
        return newest

    def clear(self) -> None:
        """Delete all delayed messages and restart the time."""
        self._waiting.clear()
        self._last = 0
