"""Contact parts of a mechanism as data: points, spheres, capsules and boxes on its bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...contact.ground import Ground
from ...contact.ground_forces import flatten
from ...errors import TensegrityError, unknown_name
from ..frame import Frame
from .columns import POINT_COLUMNS

DIMENSIONS = {"point": (), "sphere": ("radius",), "capsule": ("radius", "length"), "box": ("x", "y", "z")}
"""Kinds of parts and names of their sizes [m]; the length of a capsule is the distance of the centres of its
spheres."""


@dataclass(frozen=True, eq=False)
class ContactPart:
    """Shape on a body that can touch the ground: point, sphere, capsule (with its end spheres), box (with its corners).

    Args:
        name: unique among the parts. body: body that carries the part.
        kind: one of `DIMENSIONS`. size: sizes [m] in the order of `DIMENSIONS`.
        placement: frame on the body; shapes are centred at its origin, the axis of a capsule is z.

    Raises:
        TensegrityError: the kind is unknown, the number of sizes is wrong, or a size is not finite and positive.
    """

    name: str
    body: str
    kind: str = "point"
    size: tuple[float, ...] = ()
    placement: Frame = field(default_factory=Frame)

    def __post_init__(self) -> None:
        if self.kind not in DIMENSIONS:
            raise TensegrityError(f"contact part {self.name}: " + unknown_name("kind", self.kind, DIMENSIONS))
        needed = DIMENSIONS[self.kind]
        if len(self.size) != len(needed):
            raise TensegrityError(
                f"contact part {self.name}: a {self.kind} has {len(needed)} dimensions "
                f"({', '.join(needed) or 'none'}); found {len(self.size)}."
            )
        for value in self.size:
            if not (np.isfinite(value) and value > 0.0):
                raise TensegrityError(f"contact part {self.name}: its size {value:g} m must be finite and above zero.")

    @property
    def balls(self) -> tuple[NDArray[np.float64], float]:
        """Centres (k, 3) on the body [m] and radius [m] of the contact spheres; the radius of points is zero."""
        local, radius = np.zeros((1, 3)), 0.0
        if self.kind == "sphere":
            radius = self.size[0]
        elif self.kind == "capsule":
            radius, half = self.size[0], 0.5 * self.size[1]
            local = np.array([[0.0, 0.0, -half], [0.0, 0.0, half]])
        elif self.kind == "box":
            local = 0.5 * np.array(list(product((-1.0, 1.0), repeat=3))) * np.array(self.size)
        return self.placement.origin + local @ self.placement.axes.T, radius


def contact_array(ground: Ground | None, parts: Sequence[ContactPart], index: Mapping[str, int]) -> NDArray[np.float64]:
    """Array of the contact points (p, POINT_COLUMNS), with the parameters of the ground in further rows.

    They are in one array, because all compiled functions pass on the arrays in every call.
    """
    rows = []
    for part in parts if ground is not None else ():
        centres, radius = part.balls
        rows += [[index[part.body], *centre, radius] for centre in centres]
    numbers = flatten(ground if rows else None)
    padding = np.zeros(-numbers.size % POINT_COLUMNS)
    points = np.array(rows, dtype=np.float64).reshape(-1, POINT_COLUMNS)
    return np.vstack((points, np.concatenate((numbers, padding)).reshape(-1, POINT_COLUMNS)))
