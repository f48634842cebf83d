"""Ends of nodes that run inside a test."""

from __future__ import annotations

import time
from collections.abc import Callable

from patience import PATIENCE_S


class Until:
    """An ending that comes when a condition holds."""

    def __init__(self, condition: Callable[[], object]) -> None:
        self._condition, self._end = condition, time.monotonic() + PATIENCE_S

    @property
    def asked(self) -> bool:
        assert time.monotonic() < self._end
        return bool(self._condition())
