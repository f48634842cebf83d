"""Ends of nodes that run inside a test."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0
"""s of wall time after which a test gives up; nothing else depends on it."""


class Until:
    """An ending that comes when a condition holds."""

    def __init__(self, condition: Callable[[], object]) -> None:
        self._condition, self._end = condition, time.monotonic() + PATIENCE

    @property
    def asked(self) -> bool:
        assert time.monotonic() < self._end
        return bool(self._condition())
