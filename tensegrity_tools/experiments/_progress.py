"""What an experiment is doing and has found so far, for whoever waits for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

Listener = Callable[[str, bool], None]

_listeners: list[Listener] = []


def report(text: str) -> None:
    """Say what comes next; nobody needs to listen."""
    _say(text, False)


def figures(part: str, row: dict[str, Any]) -> dict[str, Any]:
    """Say what a part that has just ended came to, so that a run that is broken off has shown its figures.

    Args:
        row: figures by name; series and tables are left out.

    Returns:
        The same row.
    """
    words = (f"{name} {_in_words(value)}" for name, value in row.items() if np.ndim(value) == 0 or np.size(value) < 4)
    _say(f"{part}: {', '.join(each for each in words if not each.endswith(' '))}", True)
    return row


def _in_words(value: Any) -> str:
    """One figure, a few of them, a sentence, or nothing."""
    if value is None or isinstance(value, Mapping):
        return ""
    if np.ndim(value):
        return "/".join(map(_in_words, value))
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)


def _say(text: str, lasts: bool) -> None:
    for listener in _listeners:
        listener(text, lasts)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear what experiments say meanwhile: the text, and whether it is a result that stays on the screen."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
