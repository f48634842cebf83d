"""Components of a structure without fixed nodes, and the balance of the forces on them.

At large distances every member is taut, so that the energy of a component connected to a fixed node increases with the
square of the distance: it has a minimum, an equilibrium, for any forces. A component without fixed nodes has an
equilibrium exactly if the forces on it are in balance. If nodes are held along some axes, the same holds for each axis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import NoEquilibriumError
from ...numerics.compilation import compiled
from ..structure import AXES, Structure


@compiled
def floating_parts(members, fixed, part):
    """Fill part (n,) with a representative node of the component of each node, or -1 if it contains a fixed node."""
    for i in range(part.shape[0]):
        part[i] = i
    for k in range(members.shape[0]):
        first, second = members[k, 0], members[k, 1]
        while part[first] != first:
            part[first] = part[part[first]]
            first = part[first]
        while part[second] != second:
            part[second] = part[part[second]]
            second = part[second]
        part[max(first, second)] = min(first, second)
    held = np.zeros(part.shape[0], dtype=np.bool_)
    for i in range(part.shape[0]):  # every node points to an earlier one, whose own entry is final
        part[i] = part[part[i]]
        if fixed[i]:
            held[part[i]] = True
    for i in range(part.shape[0] - 1, -1, -1):
        if held[part[i]]:
            part[i] = -1


class FloatingComponent:
    """Floating components of one structure."""

    def __init__(self, structure: Structure) -> None:
        self._names = structure.node_names
        # nodes of the floating components, their components, and axes
        self._floating: list[tuple[NDArray[np.int64], NDArray[np.int64], slice]] = []
        along = [(structure.fixed, slice(0, 3))]
        if structure.rollers.any():
            along = [(np.array(structure.supports[:, axis]), slice(axis, axis + 1)) for axis in range(3)]
        for held, axes in along:
            part = np.zeros(len(structure.node_names), dtype=np.int64)
            floating_parts(structure.members, held, part)
            nodes = np.flatnonzero(part >= 0)
            if nodes.size:
                self._floating.append((nodes, part[nodes], axes))

    def check(self, forces: NDArray[np.float64], tolerance: float) -> None:
        """Raise NoEquilibriumError if the forces (n, 3) [N] on a floating component are not in balance."""
        for nodes, parts, axes in self._floating:
            self._check(forces, tolerance, nodes, parts, axes)

    def _check(
        self, forces: NDArray[np.float64], tolerance: float, nodes: NDArray, parts: NDArray, axes: slice
    ) -> None:
        mine = forces[nodes, axes]
        if not mine.any():
            return
        sums = np.zeros_like(forces)
        np.add.at(sums[:, axes], parts, mine)
        limit = max(0.5 * tolerance, 1e-12 * float(np.abs(mine).sum()))
        for part in np.flatnonzero(np.abs(sums).max(axis=1) > limit):
            names = [self._names[i] for i in nodes[parts == part]]
            listed = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
            total = ", ".join(f"{value:.3g}" for value in sums[part])
            holds = "a fixed node" if axes == slice(0, 3) else f"a node that is held along {AXES[axes]}"
            raise NoEquilibriumError(
                f"no member leads from {'node' if len(names) == 1 else 'nodes'} {listed} to {holds}, and the "
                f"forces there add up to ({total}) N: nothing holds them, they fall. Give the robot a ground "
                "to stand on ('contact' in its file), fix a node, add members, or take the forces away."
            )
