"""Trace of a moving point with a limited number of stored points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Trace:
    """Last positions of a moving point.

    Args:
        spacing: least distance of two stored points [m]. length: largest number of stored points; the oldest are
            removed.
    """

    def __init__(self, spacing: float, length: int = 500) -> None:
        self._spacing, self._length = spacing, length
        self._points: list[NDArray[np.float64]] = []
        self._time = -np.inf

    def add(self, time: float, point: NDArray[np.float64]) -> None:
        """Add a position at a time [s]; a time before the last one restarts the trace."""
        if time < self._time:
            self._points.clear()
        self._time = time
        if not self._points or float(np.linalg.norm(point - self._points[-1])) >= self._spacing:
            self._points.append(np.array(point, dtype=np.float64))
            del self._points[: -self._length]

    @property
    def points(self) -> NDArray[np.float64]:
        """(k, 3) stored points [m]."""
        return np.array(self._points).reshape(-1, 3)
