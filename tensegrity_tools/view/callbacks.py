"""How the input of pages reaches the view: in the order in which it was sent, and without a queue of presses.

viser runs a plain function for each input in one of 32 threads, in any order; a coroutine it awaits, one after the
other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import Any

Callback = Callable[[Any], object]


def in_order(callback: Callback) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """A callback that sees a drag before its end, for which it must not wait for anything."""

    async def called(event: Any) -> None:
        callback(event)

    return called


def one_at_a_time(callback: Callback) -> Callable[[Any], None]:
    """A callback that may wait: calls of it during a call do nothing, so that they take no threads from other
    buttons."""
    free = threading.Lock()

    def called(event: Any) -> None:
        if free.acquire(blocking=False):
            try:
                callback(event)
            finally:
                free.release()

    return called
