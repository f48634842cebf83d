"""Collisions of rods as data: capsules around the bars that push each other away where they come too near.

Over the depth d = 2 r - distance of the axes the force is k d while they are at least r apart, with damping c times the
rate of d, and the sum is cut at zero: rods never stick. Nearer than r the force is k times the distance, and damping
falls with it: the line between axes that pass close by turns at any speed, so that a force which stayed large there
would need any short step. So no direction is stiffer than k, the force is continuous in all positions and none where
the axes cut each other. It acts along the shortest line between the axes (003, 3.3.3 and 3.4.3, announced there
without a formula), at the nearest points of both rods; there is no friction between rods. Where two rods lie parallel
the nearest points jump along them: the stored energy stays continuous, the force's point of action does not. Nothing
stops a rod whose axis reaches the other's, for which a blow needs the energy k r^2: it is pushed out on the far side.
A stiffness well above the energy of a blow over r^2 keeps rods apart.
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
    """How rods collide.

    Attributes:
        radius: m, of the capsule around every bar. stiffness: N/m. damping: N s/m.

    Raises:
        TensegrityError: a number that is not finite or out of range.
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
    """(q, 4) nodes of each pair of rods (r, 2) with others (s, 2) that share no node and can come nearer.

    Pairs within one list are named once; `others` may be the rods themselves.
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
    """Shares of the segments from node i to j and k to m at which these are nearest, and the distance [m]."""
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
    """Add to forces (n, 3) N what the pairs of rods in a table exert on each other; returns the dampers' power [W]."""
    lost, reach = 0.0, 2.0 * table[0, RADIUS]
    for row in range(1, table.shape[0]):
        i, j, k, m = int(table[row, 0]), int(table[row, 1]), int(table[row, 2]), int(table[row, 3])
        s, t, distance = nearest_points(nodes, i, j, k, m)
        # axes that cut each other have no line between them: nothing says to which side
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
    """J, stored in rods of a table that press each other."""
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
    """(q,) m, between the axes of pairs (q, 4) for nodes (n, 3) m."""
    return np.array([nearest_points(nodes, *pair)[2] for pair in pairs.tolist()])
