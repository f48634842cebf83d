"""Forces of redundant loops: of all that balance, those of least norm under which rigid cables only pull.

Loops that hold a body more often than necessary have forces K' lambda = f with many solutions, lambda_0 + N z. The one
of least norm may compress a cable where another one does not. Then

    min |z|  with  P (lambda_0 + N z) >= a,

P lambda the tensions of the rigid cables, is the solution: a least distance problem (Lawson and Hanson 1974, ch. 23).
a is a small part of the largest tension, so that servos that hold such cables do not drop one by rounding errors; where
no solution has it, a is zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from ..loop_joints import loop_rows
from ..mechanism import Mechanism
from ..routing.columns import FIRST, LOOP_ROW, SLACK
from ..workspace import Workspace

Array = NDArray[np.float64]
ROUNDING = 1e-7
"""Compression relative to the largest effort, below which it counts as rounding error."""
MARGIN = 0.01
"""Tension that redundant cables keep if possible, relative to the largest tension."""
REDUNDANT = 1e-9
"""Singular value of dependent loop rows, relative to the largest."""


class PullingRows:
    """Tensions of the rigid cables of a mechanism as linear functions of the multipliers of its loops.

    Attributes:
        blocks: names of the bodies at which rigid block cables end, in the order of the tree.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism, self._count = mechanism, 0
        ends = {joint.body for joint in mechanism.joints if joint.kind == "involute_rigid"}
        self._block_rows: dict[str, tuple[int, int, int]] = {}
        for loop in mechanism.loops:
            if loop.successor in ends:
                index = mechanism.body_index
                self._block_rows[loop.successor] = (self._count, index[loop.predecessor], index[loop.successor])
            self._count += len(loop_rows(loop, mechanism.body_index))
        self.blocks = tuple(self._block_rows)
        self.any = bool(ends) or any(route.rigid for route in mechanism.routes)

    def block_rows(self, work: Workspace) -> Array:
        """(b, nc) rows of the tensions of the block cables, in the order of `blocks`, at the state of `work`."""
        rows = np.zeros((len(self.blocks), len(work.loop)))
        for k, (first, before, after) in enumerate(self._block_rows.values()):
            axes = np.eye(3) if before < 0 else work.rotation[before]
            rows[k, first : first + 3] = axes.T @ work.rotation[after][:, 0]
        return rows

    def rows(self, work: Workspace) -> Array:
        """(t, nc) rows of the tensions of all cables that are not slack."""
        found = [self.block_rows(work)]
        routed = zip(self._mechanism.flat.routed_cables, self._mechanism.routes, strict=True)
        for cable, route in routed:
            if not route.rigid:
                continue
            first = int(cable[LOOP_ROW])
            for s, element in enumerate(int(cable[FIRST]) + route.holding):
                # strands that slip together are one row, that of the first of them
                if work.route_state[element, SLACK] == 0.0 and np.any(work.loop[first + s]):
                    found.append(-np.eye(len(work.loop))[first + s : first + s + 1])
        return np.vstack(found)

    def solve(self, work: Workspace, matrix: Array, force: Array, scale: float) -> Array:
        """(nc,) multipliers with matrix @ multipliers = force (n,), of least norm with cables that only pull.

        If no solution lets all cables pull, it is the one of least norm.

        Args:
            work: results of `evaluate`. matrix: (n, nc) transposed loop rows. scale: largest effort, reference for
                rounding errors [N or N m].
        """
        found, _, rank, _ = np.linalg.lstsq(matrix, force, rcond=None)
        least = np.asarray(found, dtype=np.float64)
        if not self.any or rank == np.count_nonzero(np.any(matrix != 0.0, axis=0)):
            return least
        rows = self.rows(work)
        tensions = rows @ least
        margin = MARGIN * float(np.abs(tensions).max(initial=0.0))
        if not (tensions < margin - ROUNDING * scale).any():
            return least
        free = null_space(matrix, rcond=REDUNDANT)
        for floor in (margin, 0.0):
            moved = _least_distance(rows @ free, floor - tensions)
            if moved is not None:
                return least + free @ moved
        return least


def _least_distance(matrix: Array, least: Array) -> Array | None:
    """Shortest z (k,) with matrix @ z >= least, or None if there is none (Lawson and Hanson)."""
    from scipy.optimize import nnls  # imported here to keep the package import fast

    if not matrix.shape[1]:
        return None
    size = float(np.abs(least).max(initial=0.0)) or 1.0
    system = np.vstack((matrix.T, least / size))
    target = np.append(np.zeros(matrix.shape[1]), 1.0)
    residual = system @ nnls(system, target)[0] - target
    if not -residual[-1] > 1e-10:
        return None
    z = np.asarray(-residual[:-1] / residual[-1] * size)
    return z if (matrix @ z - least > -1e-8 * size).all() else None
