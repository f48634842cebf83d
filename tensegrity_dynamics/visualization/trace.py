"""The path that a point took, thinned so that it stays short to draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Trace:
    """The last points of a moving one.

    Args:
        spacing: m between two points that are kept. length: points that are kept; the oldest go first.
    """

    def __init__(self, spacing: float, length: int = 500) -> None:
        self._spacing, self._length = spacing, length
        self._points: list[NDArray[np.float64]] = []
        self._time = -np.inf

    def add(self, time: float, point: NDArray[np.float64]) -> None:
        """Where it is at a time [s]; a time before the last one begins anew."""
        if time < self._time:
            self._points.clear()
        self._time = time
        if not self._points or float(np.linalg.norm(point - self._points[-1])) >= self._spacing:
            self._points.append(np.array(point, dtype=np.float64))
            del self._points[: -self._length]

    @property
    def points(self) -> NDArray[np.float64]:
        """(k, 3) m."""
        return np.array(self._points).reshape(-1, 3)
