"""Tells from nodes over time whether a structure rests."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray


class RestWatch:
    """Nothing has moved by more than a limit for a window; a shift as a whole does not count, for friction creeps.

    Args:
        window: s. limit: m.
    """

    def __init__(self, window: float, limit: float) -> None:
        self._window, self._limit = window, limit
        self._seen: deque[tuple[float, NDArray[np.float64]]] = deque()

    def rests(self, time: float, nodes: NDArray[np.float64]) -> bool:
        """Whether nodes (n, 3) m rest at a time [s]; ask at times that increase."""
        self._seen.append((time, nodes - nodes.mean(axis=0)))
        while len(self._seen) > 2 and self._seen[1][0] <= time - self._window + 1e-9:
            self._seen.popleft()
        if self._seen[0][0] > time - self._window + 1e-9:
            return False
        shapes = np.array([shape for _, shape in self._seen])
        return bool(np.ptp(shapes, axis=0).max() <= self._limit)
