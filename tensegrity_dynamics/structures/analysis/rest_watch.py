"""Detection of the rest of a structure from its nodes over time."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray


class RestWatch:
    """Criterion of rest: no node moves by more than a limit within a time window.

    A translation of the whole structure does not count, because regularised friction creeps.

    Args:
        window: time window [s]. limit: largest motion [m].
    """

    def __init__(self, window: float, limit: float) -> None:
        self._window, self._limit = window, limit
        self._seen: deque[tuple[float, NDArray[np.float64]]] = deque()

    def rests(self, time: float, nodes: NDArray[np.float64]) -> bool:
        """Whether nodes (n, 3) [m] are at rest at a time [s]; the times of successive calls must increase."""
        self._seen.append((time, nodes - nodes.mean(axis=0)))
        while len(self._seen) > 2 and self._seen[1][0] <= time - self._window + 1e-9:
            self._seen.popleft()
        if self._seen[0][0] > time - self._window + 1e-9:
            return False
        shapes = np.array([shape for _, shape in self._seen])
        return bool(np.ptp(shapes, axis=0).max() <= self._limit)
