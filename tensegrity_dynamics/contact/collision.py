"""Collision model of rods: capsules around the bars with repulsive forces at overlap.

The depth is d = 2 r - distance of the axes. At a distance of at least r, the force is k d plus damping c times the rate
of d, limited to at least zero: rods never stick. At distances below r, the force is k times the distance, and the
damping decreases in the same way. The reason is that the shortest line between axes that pass closely rotates at any
speed, so that a large force there would need arbitrarily short steps. So the stiffness is at most k in any direction,
and the force is continuous in all positions and zero for intersecting axes. The force acts along the shortest line
between the axes (003, 3.3.3 and 3.4.3, mentioned there without a formula), at the nearest points of both rods. There is
no friction between rods. For parallel rods, the nearest points jump along the rods: the energy is continuous, but the
point of action of the force is not. If the axis of a rod reaches the other axis, which needs the impact energy k r^2,
the rod passes through and is pushed out on the other side. A stiffness well above the impact energy divided by r^2
prevents this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..numerics.compilation import allocation_free, for_compiled_callers

STIFFNESS, DAMPING, RADIUS = 0, 1, 2


@dataclass(frozen=True)
class Collision:
    """Parameters of the collisions of rods.

    Attributes:
        radius: radius of the capsule around every bar [m]. stiffness: N/m. damping: N s/m.

    Raises:
        TensegrityError: a number is not finite or out of range.
    """

    radius: float
    stiffness: float
    damping: float = 0.0

    def __post_init__(self) -> None:
        for name in ("radius", "stiffness", "damping"):
            value = float(getattr(self, name))
            if not np.isfinite(value):
                raise TensegrityError(f"collision: {name} is {value}; give a finite number.")
            if value < 0.0 or (value == 0.0 and name != "damping"):
                must = "not be negative" if name == "damping" else "be above zero"
                raise TensegrityError(f"collision: {name} is {value:g}, must {must}.")


def flatten_collision(collision: Collision | None, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """(1 + q, 4): stiffness, damping and radius, then the nodes of pairs (q, 4); (0, 4) without collisions."""
    if collision is None or not len(pairs):
        return np.zeros((0, 4))
    numbers = np.array([[collision.stiffness, collision.damping, collision.radius, 0.0]])
    return np.concatenate((numbers, pairs.astype(np.float64)))


def rod_pairs(rods: NDArray[np.int64], others: NDArray[np.int64], fixed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(q, 4) nodes of each pair of rods (r, 2) and others (s, 2) without a common node and with variable distance.

    Pairs within one list occur once; `others` can be the same array as `rods`.
    """
    same = rods is others
    found = []
    for a, (i, j) in enumerate(rods.tolist()):
        for b, (k, m) in enumerate(others.tolist()):
            if (same and b <= a) or len({i, j, k, m}) < 4 or fixed[[i, j, k, m]].all():
                continue
            found.append((i, j, k, m))
    return np.array(found, dtype=np.int64).reshape(-1, 4)


@allocation_free
def nearest_points(nodes, i, j, k, m):
    """Fractions along the segments from node i to j and k to m at their nearest points, and the distance [m]."""
    aa, ab, bb, ac, bc, cc = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for x in range(3):
        along, beside, apart = nodes[j, x] - nodes[i, x], nodes[m, x] - nodes[k, x], nodes[i, x] - nodes[k, x]
        aa += along * along
        ab += along * beside
        bb += beside * beside
        ac += along * apart
        bc += beside * apart
        cc += apart * apart
    spread = aa * bb - ab * ab
    s = 0.5
    if spread > 1e-12 * aa * bb:
        s = min(max((ab * bc - bb * ac) / spread, 0.0), 1.0)
    t = min(max((ab * s + bc) / bb, 0.0), 1.0)
    s = min(max((ab * t - ac) / aa, 0.0), 1.0)
    t = min(max((ab * s + bc) / bb, 0.0), 1.0)
    square = cc + s * s * aa + t * t * bb + 2.0 * (s * ac - t * bc - s * t * ab)
    return s, t, np.sqrt(max(square, 0.0))


@for_compiled_callers
def collision_forces(table, nodes, velocities, forces):
    """Add the contact forces of the pairs of rods in a table to forces (n, 3) [N]; returns the damping power [W]."""
    lost, reach = 0.0, 2.0 * table[0, RADIUS]
    for row in range(1, table.shape[0]):
        i, j, k, m = int(table[row, 0]), int(table[row, 1]), int(table[row, 2]), int(table[row, 3])
        s, t, distance = nearest_points(nodes, i, j, k, m)
        # for intersecting axes, the direction is undefined
        if distance >= reach or distance <= 1e-12 * reach:
            continue
        apart = 0.0
        for x in range(3):
            away = (1.0 - s) * nodes[i, x] + s * nodes[j, x] - (1.0 - t) * nodes[k, x] - t * nodes[m, x]
            moves = (1.0 - s) * velocities[i, x] + s * velocities[j, x]
            moves -= (1.0 - t) * velocities[k, x] + t * velocities[m, x]
            apart += away / distance * moves
        part = min(1.0, 2.0 * distance / reach)
        push = table[0, STIFFNESS] * min(reach - distance, distance)
        total = max(0.0, push - part * table[0, DAMPING] * apart)
        lost += (push - total) * apart
        for x in range(3):
            away = (1.0 - s) * nodes[i, x] + s * nodes[j, x] - (1.0 - t) * nodes[k, x] - t * nodes[m, x]
            force = total * away / distance
            forces[i, x] += (1.0 - s) * force
            forces[j, x] += s * force
            forces[k, x] -= (1.0 - t) * force
            forces[m, x] -= t * force
    return lost


@allocation_free
def collision_energy(table, nodes):
    """Elastic energy [J] of the contacts of the rods in a table."""
    stored = 0.0
    for row in range(1, table.shape[0]):
        i, j, k, m = int(table[row, 0]), int(table[row, 1]), int(table[row, 2]), int(table[row, 3])
        radius, distance = table[0, RADIUS], nearest_points(nodes, i, j, k, m)[2]
        depth = 2.0 * radius - distance
        if distance < radius:
            stored += table[0, STIFFNESS] * (radius * radius - 0.5 * distance * distance)
        elif depth > 0.0:
            stored += 0.5 * table[0, STIFFNESS] * depth * depth
    return stored


def distances(pairs: NDArray[np.int64], nodes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(q,) distances [m] between the axes of pairs (q, 4) for nodes (n, 3) [m]."""
    return np.array([nearest_points(nodes, *pair)[2] for pair in pairs.tolist()])
