"""Loop joints: constraint rows that close a loop between a predecessor and a successor body (000, section 1.2.2).

Each row gives an error, its direction T (a force vector: row of K = T' (v_s - v_p)) and the derivative of T. There are
two forms:

* along a direction n, fixed in the predecessor: error n . (x_s - x_p), T = [x_s x n, n];
* about: a direction b of the successor must stay perpendicular to a direction a of the predecessor: error -(a . b),
  T = [a x b, 0].

A third form, "routed", is the length minus the rest length of a strand of an inextensible routed cable; its row is
filled together with the motion of the bodies (`routing.rigid_rows`).

With directions fixed in the predecessor, K is the exact derivative of the error everywhere, also for open loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from .frame import Frame
from .resistance import BALL_LOOPS, SLIDING_LOOPS, TURNING_LOOPS, Resistance

ALONG, ABOUT, ROUTED = 0, 1, 2

# Constraints of each kind of loop: linear rows along axes of the predecessor frame, and pairs (a of the predecessor
# frame, b of the successor frame) of axes that stay perpendicular. The free axis is z.
LOOP_KINDS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "point": ("xyz", ()),
    "point_xy": ("xy", ()),
    "point_z": ("z", ()),
    "fixed": ("xyz", (("y", "z"), ("z", "x"), ("x", "y"))),
    "revolute": ("xyz", (("x", "z"), ("y", "z"))),
    "cylindrical": ("xy", (("x", "z"), ("y", "z"))),
    "prismatic": ("xy", (("y", "z"), ("z", "x"), ("x", "y"))),
    "planar": ("z", (("x", "z"), ("y", "z"))),
    "universal": ("xyz", (("x", "y"),)),
}


@dataclass(frozen=True, eq=False)
class Loop:
    """Joint that closes a loop between frames on two bodies.

    Args:
        name: unique name.
        kind: one of `loop_joints.LOOP_KINDS`; "point" is a ball joint, "point_xy" a pin in the plane of the
            predecessor.
        predecessor, successor: names of the bodies; either can be "world".
        predecessor_frame, successor_frame: frames that are joined.
        turning: resistance of the free rotation about z (for "point" and "universal" about any axis, then without
            spring and limits); None for no resistance. The angle is zero if both x axes coincide, and its range is half
            a turn to either side.
        sliding: resistance of the free displacement along z; None for no resistance.
    """

    name: str
    kind: str
    predecessor: str
    successor: str
    predecessor_frame: Frame = field(default_factory=Frame)
    successor_frame: Frame = field(default_factory=Frame)
    turning: Resistance | None = None
    sliding: Resistance | None = None

    def __post_init__(self) -> None:
        if self.kind not in LOOP_KINDS:
            raise TensegrityError(f"loop {self.name}: " + unknown_name("kind of loop", self.kind, LOOP_KINDS))
        if self.predecessor == self.successor:
            raise TensegrityError(f"loop {self.name} joins {self.predecessor} to itself; name two bodies.")
        if self.turning is not None and self.kind not in TURNING_LOOPS + BALL_LOOPS:
            raise TensegrityError(f"loop {self.name}: a {self.kind} loop has no free turn that could be resisted.")
        if self.sliding is not None and self.kind not in SLIDING_LOOPS:
            raise TensegrityError(f"loop {self.name}: a {self.kind} loop has no free motion that could be resisted.")
        if self.turning is not None and self.kind in BALL_LOOPS and (self.turning.stiffness or self.turning.has_stops):
            raise TensegrityError(
                f"loop {self.name}: the turn of a {self.kind} loop takes damping and friction, no spring and no limits."
            )


class Row(NamedTuple):
    """One constraint row: indices of the bodies, origins on them, and one or two directions in body axes."""

    kind: int
    predecessor: int
    successor: int
    predecessor_origin: NDArray[np.float64]
    successor_origin: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]


def loop_rows(loop: Loop, index: Mapping[str, int]) -> list[Row]:
    """Constraint rows of a loop; `first` is in axes of the predecessor body, `second` in axes of the successor body."""
    predecessor, successor = loop.predecessor_frame, loop.successor_frame
    along, about = LOOP_KINDS[loop.kind]
    ends = (index[loop.predecessor], index[loop.successor], predecessor.origin, successor.origin)
    rows = [Row(ALONG, *ends, predecessor.axes[:, "xyz".index(n)], np.zeros(3)) for n in along]
    rows += [
        Row(ABOUT, *ends, predecessor.axes[:, "xyz".index(a)], successor.axes[:, "xyz".index(b)]) for a, b in about
    ]
    return rows


def routed_row() -> Row:
    """Constraint row for a strand of an inextensible routed cable, which fills it."""
    return Row(ROUTED, -1, -1, np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3))
