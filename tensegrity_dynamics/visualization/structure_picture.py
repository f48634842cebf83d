"""What a structure looks like in every picture: cylinders between nodes, colours by tension, sizes that suit it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..mechanisms.mechanism_model import MechanismModel
from ..robots.robot import Robot
from ..structures.structure import Structure

# A perceptually uniform map (plasma of matplotlib, public domain) at equal steps. It stops before the yellow end,
# which nobody can see on a light ground.
TENSION_COLOURS = np.array(
    [
        [13, 8, 135], [56, 4, 154], [89, 1, 165], [122, 2, 168], [150, 19, 161], [177, 42, 144],
        [198, 65, 125], [217, 88, 106], [232, 112, 89], [245, 139, 71], [252, 166, 54],
    ],
    dtype=np.float64,
)  # fmt: skip
BAR_COLOUR = (66, 72, 84)
FIXED_COLOUR = (38, 42, 50)
PLATE_COLOUR = (150, 158, 172)
SLACK_COLOUR = (150, 152, 156)
UNKNOWN_COLOUR = (120, 170, 120)
GOAL_COLOUR = (38, 139, 110)

SLACK_SHARE = 1e-6  # of the ceiling of the scale; below that a tendon counts as slack


def shows_mechanism(robot: Robot) -> bool:
    """Whether pictures treat a robot as a mechanism; the one place where the kinds of picture part."""
    return isinstance(robot.model, MechanismModel)


@dataclass(frozen=True)
class Sizes:
    """Radii that suit a structure [m].

    Args:
        span: diagonal of the box around the nodes, by which cameras and grids are placed.
        bar, tendon, spring, node: radii; `spring` is the outer radius of the coil.
    """

    span: float
    bar: float
    tendon: float
    spring: float
    node: float

    @classmethod
    def of(cls, structure: Structure) -> Sizes:
        """Sizes from the longest member, so that small and large robots look alike; a crowd of members gets thinner."""
        longest = float(np.max(structure.rest_lengths)) if structure.rest_lengths.size else 1.0
        box = np.ptp(structure.nodes, axis=0) if structure.nodes.size else np.ones(3)
        shortest = float(np.min(structure.rest_lengths)) if structure.rest_lengths.size else 1.0
        unit = min(longest, 3.0 * shortest)
        return cls(
            span=max(float(np.linalg.norm(box)), longest),
            bar=0.016 * unit,
            tendon=0.0055 * unit,
            spring=0.017 * unit,
            node=0.023 * unit,
        )


def place_cylinders(
    nodes: NDArray[np.float64], members: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Where cylinders along z must go to run from node to node.

    Args:
        nodes: (n, 3) m.
        members: (m, 2) node indices.

    Returns:
        centres (m, 3) m, quaternions wxyz (m, 4) that turn z into the member's direction (first to second node), and
        lengths (m,) m. A member of no length keeps the z direction.
    """
    first, second = nodes[members[:, 0]], nodes[members[:, 1]]
    along = second - first
    lengths = np.linalg.norm(along, axis=1)
    safe = np.where(lengths > 0.0, lengths, 1.0)
    direction = np.where(lengths[:, None] > 0.0, along / safe[:, None], np.array([0.0, 0.0, 1.0]))
    # The shortest turn from z to d is 1 + z.d + z x d, normalised; straight down, any horizontal axis will do.
    quaternions = np.column_stack((1.0 + direction[:, 2], -direction[:, 1], direction[:, 0], np.zeros(len(members))))
    norms = np.linalg.norm(quaternions, axis=1)
    down = norms < 1e-7
    quaternions[down] = (0.0, 1.0, 0.0, 0.0)
    norms[down] = 1.0
    return 0.5 * (first + second), quaternions / norms[:, None], lengths


def tension_colours(tensions: ArrayLike, ceiling: float) -> NDArray[np.uint8]:
    """(m, 3) colours 0-255 for tensions (m,) N on a scale from 0 to ceiling [N]; NaN gets the colour for unknown."""
    values = np.asarray(tensions, dtype=np.float64)
    known = np.isfinite(values)
    place = np.clip(np.where(known, values, 0.0) / max(ceiling, 1e-12), 0.0, 1.0) * (len(TENSION_COLOURS) - 1)
    low = np.minimum(place.astype(np.int64), len(TENSION_COLOURS) - 2)
    share = (place - low)[:, None]
    colours = (1.0 - share) * TENSION_COLOURS[low] + share * TENSION_COLOURS[low + 1]
    colours[~known] = UNKNOWN_COLOUR
    return np.rint(colours).astype(np.uint8)


def slack_members(structure: Structure, tensions: NDArray[np.float64], ceiling: float) -> NDArray[np.bool_]:
    """(m,) bool: tendons and springs that are known to carry no tension."""
    return structure.unilateral & (tensions <= SLACK_SHARE * ceiling)


def least_ceiling(structure: Structure) -> float:
    """The smallest scale [N] worth drawing: a millionth of what doubling a tendon's length would take."""
    forces = (structure.stiffness * structure.rest_lengths)[structure.unilateral]
    return round_ceiling(1e-6 * float(forces.max())) if forces.size else 1.0


def round_ceiling(value: float) -> float:
    """The next of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten that is not below value; 1 for no value."""
    if not np.isfinite(value) or value <= 0.0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    for step in (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0):
        if value <= step * power * (1.0 + 1e-9):
            return float(step * power)
    return float(10.0 * power)


def dashes(nodes: NDArray[np.float64], members: NDArray[np.int64], count: int = 9) -> NDArray[np.float64]:
    """(m * count, 2, 3) m: every member as `count` short lines with gaps between them."""
    first, second = nodes[members[:, 0]], nodes[members[:, 1]]
    steps = np.arange(count) / (count - 0.5)
    ends = np.stack((steps, steps + 0.5 / (count - 0.5)), axis=1)  # (count, 2)
    points = first[:, None, None, :] + ends[None, :, :, None] * (second - first)[:, None, None, :]
    return points.reshape(-1, 2, 3)


def bar_triangles(structure: Structure) -> NDArray[np.int64]:
    """(t, 3) node indices of the triangles whose three sides are bars: plates, as people call them."""
    neighbours: dict[int, set[int]] = {}
    for row in np.flatnonzero(~structure.unilateral):
        i, j = (int(k) for k in structure.members[row])
        neighbours.setdefault(i, set()).add(j)
        neighbours.setdefault(j, set()).add(i)
    found = [
        (i, j, k)
        for i in sorted(neighbours)
        for j in sorted(neighbours[i])
        for k in sorted(neighbours[i] & neighbours[j])
        if i < j < k
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 3)
