"""Watches that measured tensions are those of the estimated shape.

Shapes at rest follow from what actuators have wound and from the loads that are known. An unknown load, a tendon that
gave way or a robot that has collapsed is not in them; the tensions tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

AVERAGED = 1.0
"""s over which deviations are averaged, so that what a motion adds and takes away again counts little."""
MEASURED, ESTIMATED = 0.1, 0.6
"""Deviations in parts of the largest tension that are not told: of what is measured, and of what motor currents say,
in which the friction of gears is."""
NAMED = 3
"""Tendons that are named, those that are farthest off."""


class TensionFit:
    """Deviations of the tensions of one robot from those of its estimated shape, averaged over `AVERAGED` s."""

    def __init__(self) -> None:
        self._time = -math.inf
        self._means: dict[str, float] = {}

    def look(self, time: float, shape: Mapping[str, float], measured: Mapping[str, float], estimated: bool) -> str:
        """What does not fit at a time [s], the worst first; empty where all does.

        Args:
            shape, measured: N by tendon; tendons that stand in one of them alone, and NaN, do not count.
            estimated: whether `measured` follows from motor currents or loads.

        A time before the last one starts anew.
        """
        if time < self._time:
            self._means.clear()
        share = -math.expm1(-(time - self._time) / AVERAGED) if self._time > -math.inf else 0.0
        self._time = time
        known = {name: value for name, value in measured.items() if _is_known(value) and _is_known(shape.get(name))}
        self._means = {
            name: (1.0 - share) * self._means.get(name, 0.0) + share * (value - shape[name])
            for name, value in known.items()
        }
        largest = max((max(shape[name], value) for name, value in known.items()), default=0.0)
        allowed = (ESTIMATED if estimated else MEASURED) * largest
        off = [name for name, mean in self._means.items() if abs(mean) > allowed]
        return _words(sorted(off, key=lambda name: -abs(self._means[name])), shape, known)


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _words(names: Iterable[str], shape: Mapping[str, float], measured: Mapping[str, float]) -> str:
    worst = list(names)
    if not worst:
        return ""
    words = [f"{name} carries {measured[name]:.3g} N, the shape {shape[name]:.3g} N" for name in worst[:NAMED]]
    more = f"; {len(worst) - NAMED} more" if len(worst) > NAMED else ""
    return "measured tensions do not fit the shape: " + "; ".join(words) + more
