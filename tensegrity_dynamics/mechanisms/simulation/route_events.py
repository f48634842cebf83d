"""Events of routed cables (slack, taut, stick, slip) for steps with error control.

Between two events, slip has one direction only, so that it depends on the configuration alone, and the forces are
smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..late_kernels import ROUTES
from ..mechanism import FlatMechanism, Mechanism
from ..routing.columns import BEFORE, COUNT, FIRST, HOLDS, RATE, RATIO, SLIP, STRAIN, TRIAL
from ..routing.efforts import keep_slip
from ..routing.slip import STICKS
from ..workspace import Workspace
from .powers import powers_of

ONSET = 1e-14
"""Slip [m] at which a contact counts as slipping."""
TAUT = 1e-12
"""Strain at which a strand counts as taut. Where slack cable slips after it, its strain stays at zero, and rounding
errors would make it slack and taut without end."""


def slips_kept(work: Workspace) -> NDArray[np.float64]:
    """(e,) slip [m] at the last stored state."""
    return np.array(work.route_state[:, SLIP])


class RouteEvents:
    """Event detection for the routed cables over the intervals of a motion.

    Args:
        split: function that returns q and v of a state vector.
    """

    def __init__(self, mechanism: Mechanism, flat: FlatMechanism, work: Workspace, split: Callable) -> None:
        self._flat, self._work, self._split = flat, work, split
        self._last: NDArray[np.float64] | None = None
        self._strands, self._contacts = [], []
        for cable, route in zip(flat.routed_cables, mechanism.routes, strict=True):
            first, count = int(cable[FIRST]), int(cable[COUNT])
            for e in range(first, first + count - 1):
                holds = bool(flat.route_elements[e, HOLDS])
                if e == first or holds:
                    self._strands.append((e, route.name))
                if e > first and holds:
                    self._contacts.append((e, route.name))
        self._kinds: list[tuple[str, str, int]] = []
        self._changed: dict[int, str] = {}  # elements of the last events and their kinds

    def begin(self, state: NDArray[np.float64]) -> list[Callable]:
        """Event functions for SciPy, for all changes that are possible from a state on."""
        if not self._flat.late_kernels[ROUTES]:
            return []
        rows = self._at(state)
        watch, self._kinds = [], []
        for e, name in self._strands:
            last = self._changed.get(e)
            taut = last == "taut" if last in ("slack", "taut") else bool(rows[e, STRAIN] > TAUT)
            level = 0.0 if taut else TAUT
            watch.append(self._event(e, lambda row, level=level: row[STRAIN] - level, -1.0 if taut else 1.0))
            self._kinds.append((name, "slack" if taut else "taut", e))
        for e, name in self._contacts:
            ratio, behind = rows[e, RATIO], int(self._flat.route_elements[e, BEFORE])
            if ratio in (STICKS, 1.0) or max(rows[e, STRAIN], rows[behind, STRAIN]) <= TAUT:  # no force to rub
                continue
            sense = 0.0 if self._changed.get(e) == "sticks" else float(np.sign(rows[e, RATE]))
            if not sense and self._changed.get(e) == "slips":  # slack cable slips after a slack strand, without force
                continue
            if sense:
                watch.append(self._event(e, lambda row, s=sense: s * row[RATE] - 1e-300, -1.0))
            else:
                watch.append(self._event(e, lambda row: ONSET - abs(row[TRIAL] - row[SLIP]), -1.0))
            self._kinds.append((name, "sticks" if sense else "slips", e))
        return watch

    def keep(self, state: NDArray[np.float64]) -> None:
        """Store the slip at a state as the new reference."""
        if self._flat.late_kernels[ROUTES]:
            self._at(state)
            keep_slip(self._flat.route_elements, self._flat.routed_cables, self._work.route_state)
            self._last = None

    def found(self, times: Sequence[NDArray[np.float64]]) -> Iterator[tuple[str, str]]:
        """Cable and kind of the events that occurred; strands begin the next interval as these changes leave them."""
        self._changed = {}
        for (name, kind, element), each in zip(self._kinds, times, strict=True):
            if len(each):
                self._changed[element] = kind
                yield name, kind

    def _at(self, state: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._last is None or not np.array_equal(state, self._last):
            q, v = self._split(state)
            powers_of(self._flat, q, v, self._work, np.zeros(4))
            self._last = np.array(state)
            self._rows = np.array(self._work.route_state)
        return self._rows

    def _event(self, element: int, value: Callable, direction: float) -> Callable:
        def event(_: float, state: NDArray[np.float64]) -> float:
            return float(value(self._at(state)[element]))

        event.terminal, event.direction = True, direction  # type: ignore[attr-defined]
        return event
