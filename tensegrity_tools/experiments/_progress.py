"""Progress messages and intermediate results of an experiment."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

Listener = Callable[[str, bool], None]

_listeners: list[Listener] = []


def report(text: str) -> None:
    """Report the next part; without a listener there is no effect."""
    _say(text, False)


def figures(part: str, row: dict[str, Any]) -> dict[str, Any]:
    """Report the results of a finished part, so that an interrupted run has shown them.

    Args:
        part: name of the part. row: results by name; series and tables are left out.

    Returns:
        Unchanged `row`.
    """
    words = (f"{name} {_in_words(value)}" for name, value in row.items() if np.ndim(value) == 0 or np.size(value) < 4)
    _say(f"{part}: {', '.join(each for each in words if not each.endswith(' '))}", True)
    return row


def _in_words(value: Any) -> str:
    """Text for one number, a few numbers or a sentence; empty for other values."""
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
    """Context in which a listener receives the messages: text, and whether it is a result that remains on the
    screen."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
