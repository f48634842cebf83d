"""Messages that come late on purpose: each waits for some periods, drawn from a seed, and none overtakes another.

What a delay is counted in are periods of time and not messages: a sender that leaves one out makes the next ones no
later than they are anyway.
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
        least, most: periods by which a message is late, drawn anew for each.
        seed: of what is drawn; the same one gives the same delays.

    Raises:
        TensegrityError: the least is below zero or above the most.
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
        """The newest that has arrived by the period `now`, or None; older ones are left out."""
        newest = None
        while self._waiting and self._waiting[0][0] <= now:
            newest = self._waiting.popleft()[1]
        return newest

    def clear(self) -> None:
        """None is under way, and time begins anew."""
        self._waiting.clear()
        self._last = 0
