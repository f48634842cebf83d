"""Monitoring of the agreement between measured tensions and those of the estimated equilibrium.

Equilibria follow from the wound lengths and from the known loads. Deviations of the tensions indicate an unknown load,
a broken tendon or a collapsed robot, which the equilibria do not contain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

AVERAGED = 1.0
"""Averaging time of deviations [s], which reduces the effect of short motions."""
MEASURED, ESTIMATED = 0.1, 0.6
"""Largest deviations that are not reported, relative to the largest tension: for measured tensions, and for tensions
from motor currents, which contain the friction of gears."""
NAMED = 3
"""Number of reported tendons, those with the largest deviations."""


class TensionFit:
    """Deviations of the tensions of one robot from those of its estimated equilibrium, averaged over `AVERAGED` [s]."""

    def __init__(self) -> None:
        self._time = -math.inf
        self._means: dict[str, float] = {}

    def look(self, time: float, shape: Mapping[str, float], measured: Mapping[str, float], estimated: bool) -> str:
        """Text on deviations at a time [s], the largest first; empty if there are none.

        Args:
            shape, measured: tensions by tendon [N]; tendons that are in only one of them, and NaN, are ignored.
            estimated: whether `measured` follows from motor currents or loads.

        A time before the last one restarts the averaging.
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
