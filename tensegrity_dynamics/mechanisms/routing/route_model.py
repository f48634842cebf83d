"""The model of a routed cable: rows of the arrays over which the compiled functions run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .columns import BEFORE, CABLE_COLUMNS, ELEMENT_COLUMNS, FRICTION, HOLDS, KIND, PULLEY, REST, TURNING_Q


@dataclass(frozen=True, eq=False)
class RouteModel:
    """A routed cable of a mechanism, made by `route_initialization`.

    Args:
        name: unique among cables.
        elements: (n, ELEMENT_COLUMNS), see `columns`; row numbers are relative to the first row of the cable.
        stiffness: E A [N]. damping: mu A [N s].
        rigid: whether the cable is inextensible; then every strand is a row of the loop constraints.
        line_mass: mass per length [kg/m] of a cable that sags, else 0.
    """

    name: str
    elements: NDArray[np.float64]
    stiffness: float
    damping: float
    rigid: bool = False
    line_mass: float = 0.0

    def is_pulley(self, number: int) -> bool:
        """Whether an element is a pulley or drum."""
        return bool(self.elements[number, KIND] == PULLEY)

    def point_name(self, number: int) -> str:
        """Name of an element in messages."""
        return f"route[{number}]"

    @cached_property
    def holding(self) -> NDArray[np.int64]:
        """Rows at which a strand begins: the first row, and every contact that holds the cable."""
        inner = np.flatnonzero(self.elements[:-1, HOLDS])
        return np.union1d([0], inner)

    @property
    def rubbing(self) -> NDArray[np.int64]:
        """Rows of the contacts over which the cable can slip with friction."""
        friction = self.elements[1:-1, FRICTION]
        return 1 + np.flatnonzero((friction > 0.0) & np.isfinite(friction))

    def sliding_freely(self) -> RouteModel:
        """Copy of the cable without friction on elements that do not turn with it; contacts on joints are unchanged."""
        guides = [e for e in self.rubbing.tolist() if self.elements[e, TURNING_Q] < 0.0]
        if not guides:
            return self
        rows, before = np.array(self.elements), 0
        rows[guides, FRICTION] = rows[guides, HOLDS] = 0.0
        for e in range(1, len(rows)):
            rows[e, BEFORE] = before
            if e in guides:
                rows[before, REST] += rows[e, REST]
                rows[e, REST] = 1.0
            elif rows[e, HOLDS]:
                before = e
        return replace(self, elements=rows)


def rigid_row_count(routes: Sequence[RouteModel]) -> int:
    """Number of loop rows for the strands of inextensible routed cables."""
    return sum(route.holding.size for route in routes if route.rigid)


def route_arrays(routes: Sequence[RouteModel], row: int) -> dict[str, NDArray]:
    """Arrays of the routed cables of a mechanism, by field name; the loop rows of the cables begin at `row`."""
    elements: list[NDArray[np.float64]] = []
    cables, first = [], 0
    for route in routes:
        rows = np.array(route.elements)
        rows[:, BEFORE] += first
        elements.append(rows)
        cables.append([first, len(rows), route.stiffness, route.damping, row if route.rigid else -1, route.line_mass])
        first += len(rows)
        row += route.holding.size if route.rigid else 0
    return {
        "route_elements": np.vstack(elements) if elements else np.zeros((0, ELEMENT_COLUMNS)),
        "routed_cables": np.array(cables, dtype=np.float64).reshape(-1, CABLE_COLUMNS),
    }
