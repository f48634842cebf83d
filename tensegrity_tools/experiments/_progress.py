"""What an experiment is doing, for whoever waits for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

_listeners: list[Callable[[str], None]] = []


def report(text: str) -> None:
    """Say what comes next; nobody needs to listen."""
    for listener in _listeners:
        listener(text)


@contextlib.contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Hear what experiments say meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
