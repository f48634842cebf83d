"""Readings of IMUs on rods: validation, rejection of invalid readings, and storage of recent ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...errors import CommandRefused, unknown_name
from ...numerics.types import Array
from ..imu import Imu, elevation

PATIENCE = 0.5
"""Least validity time of a reading [s]; three periods of the IMU if these are longer."""
SIZE = 0.2
"""Largest relative difference between the norm of a reading and gravity; above it the rod is accelerated."""
WINDOW, STILL = 0.5, 0.01
"""Criterion of rest: time window [s], and largest difference between the means of its halves [rad], plus noise."""


class ImuReadings:
    """Readings of the IMUs of one structure.

    Args:
        imus: IMUs of the structure. gravity: magnitude of gravity [m/s^2].

    Attributes:
        names: names of the rods. noise: (k,) noise [rad]. refused: number of rejected readings.
        why: reason of the last rejection.
    """

    def __init__(self, imus: Sequence[Imu], gravity: float) -> None:
        self.names, self._gravity = tuple(each.bar for each in imus), gravity
        self.noise = np.array([each.noise for each in imus])
        self._patience = np.array([max(PATIENCE, 3.0 / each.rate if each.rate else 0.0) for each in imus])
        self.refused, self.why = 0, ""
        self.clear()

    def clear(self) -> None:
        """Delete all readings; the number of rejected readings is kept."""
        self._values = np.full(len(self.names), np.nan)
        self.stamps = np.full(len(self.names), -np.inf)
        self._recent: deque[tuple[float, Array]] = deque()
        self._now = -np.inf

    def take(self, rod: str, reading: ArrayLike, stamp: float) -> None:
        """Add a reading: specific force (3,) [m/s^2] of a rod at rest, in its axes (z along the rod), at a time [s].

        Raises:
            CommandRefused: the rod is unknown, or the reading is not finite, does not have the magnitude of gravity, or
                is outdated. Then the rod has no reading until its next one.
        """
        try:
            row = self._row(rod, stamp)
            self._values[row], self.stamps[row] = np.nan, stamp
            self._values[row] = self._elevation(rod, np.asarray(reading, dtype=np.float64))
        except CommandRefused as error:
            self.refused, self.why = self.refused + 1, str(error)
            raise

    def _row(self, rod: str, stamp: float) -> int:
        if rod not in self.names:
            raise CommandRefused("imu: " + unknown_name("IMU on a rod", rod, self.names))
        row = self.names.index(rod)
        if not np.isfinite(stamp):
            raise CommandRefused(f"imu of {rod}: its time is {stamp}.")
        if stamp < self.stamps[row] or stamp < self._now - self._patience[row]:
            newest = max(float(self.stamps[row]), self._now)
            raise CommandRefused(f"imu of {rod}: the reading of {stamp:.3f} s is stale, it is {newest:.3f} s already.")
        return row

    def _elevation(self, rod: str, reading: Array) -> float:
        if reading.shape != (3,) or not np.isfinite(reading).all():
            raise CommandRefused(f"imu of {rod}: three finite numbers in m/s^2 are needed, not {reading}.")
        size = float(np.linalg.norm(reading))
        if abs(size - self._gravity) > SIZE * self._gravity:
            raise CommandRefused(
                f"imu of {rod}: {size:.3g} m/s^2 is not gravity ({self._gravity:.3g} m/s^2): the rod is shaken, or the "
                "unit is another one."
            )
        return elevation(reading)

    def at(self, now: float) -> Array:
        """(k,) elevations of the rods at a time [s], in rad; NaN without a recent reading."""
        self._now = now
        early = self.stamps - now > np.maximum(self._patience, 2.0)  # stamps of another clock: accept the next readings
        self.stamps[early] = -np.inf
        fresh = np.abs(now - self.stamps) <= self._patience
        values = np.where(fresh, self._values, np.nan)
        newest = float(self.stamps.max(initial=-np.inf))
        if fresh.any() and not (self._recent and self._recent[-1][0] == newest):
            self._recent.append((newest, values))
            while len(self._recent) > 2 and self._recent[1][0] <= newest - WINDOW + 1e-9:
                self._recent.popleft()
        return values

    def stale(self, now: float) -> tuple[str, ...]:
        """Rods without a recent reading at a time [s]."""
        return tuple(name for name, value in zip(self.names, self.at(now), strict=True) if not np.isfinite(value))

    def still(self) -> Array | None:
        """(k,) mean elevations over the last `WINDOW` [rad] if the rods were at rest, else None."""
        if len(self._recent) < 3 or self._recent[-1][0] - self._recent[0][0] < WINDOW - 1e-9:
            return None
        values = np.array([each for _, each in self._recent])
        finite = np.isfinite(values).all(axis=0)
        half = len(values) // 2
        moved = np.abs(values[half:].mean(axis=0) - values[:half].mean(axis=0))[finite]
        if not finite.any() or (moved > STILL + 6.0 * self.noise[finite] / np.sqrt(len(values))).any():
            return None
        return np.where(finite, values.mean(axis=0), np.nan)
