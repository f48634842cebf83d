"""Tensions of rigid cables from the constraint forces of their loops (000, 1.2.30).

A rigid cable has no strain from which its tension follows. The multiplier of its loop holds its end at its anchor,

    K' lambda = M a + c - p - tau,

and its component along the cable is the tension. The equations constrain such a cable in both directions. If the
tension is negative, the cable would be under compression, and the motion or the equilibrium is not valid.

A strand of an inextensible routed cable is a loop row itself, and its multiplier is minus its tension.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import NoEquilibriumError
from ..mechanism import Mechanism
from ..mechanism_model import MechanismModel
from ..routing.columns import DRIVE, EXCESS, FIRST, HIGHEST, LOOP_ROW, MODE, SLACK, TENSION
from ..workspace import Workspace
from .equations_of_motion import evaluate
from .pulling_multipliers import ROUNDING, PullingRows


def rigid_strands(mechanism: Mechanism) -> NDArray[np.int64]:
    """(s,) rows of the elements at which strands of inextensible routed cables begin."""
    rows = [
        int(cable[FIRST]) + route.holding
        for cable, route in zip(mechanism.flat.routed_cables, mechanism.routes, strict=True)
        if route.rigid
    ]
    return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)


def route_tensions(
    mechanism: Mechanism, work: Workspace, multipliers: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """(s,) tensions [N] of the strands of inextensible routed cables, from the multipliers (nc,) of all loops.

    They are also stored in the work arrays for readings. The tension of a slack strand is zero.

    Args:
        scale: largest effort [N], reference for the rounding error of compressions.
    """
    found = []
    for cable, route, result in zip(mechanism.flat.routed_cables, mechanism.routes, work.route_results, strict=True):
        if not route.rigid:
            continue
        strands = int(cable[FIRST]) + route.holding
        row = int(cable[LOOP_ROW])
        tensions = -multipliers[row : row + strands.size]
        tensions[(tensions <= 0.0) & (tensions > -ROUNDING * scale)] = 0.0  # also -0.0
        slack = work.route_state[strands, SLACK] != 0.0
        for s in range(1, strands.size):  # strands that slip together with the strand before
            if work.route_state[strands[s], MODE] != 0.0 and not slack[s]:
                tensions[s] = tensions[leader_of(work, strands, s)] + work.route_state[strands[s], EXCESS]
        tensions[slack] = 0.0
        work.route_state[strands, TENSION] = work.route_state[strands, DRIVE] = tensions
        result[HIGHEST] = tensions.max()
        found.append(tensions)
    return np.concatenate(found) if found else np.zeros(0)


def leader_of(work: Workspace, strands: NDArray[np.int64], strand: int) -> int:
    """Index of the first strand of the group with which a strand slips; the strand itself if it does not slip."""
    while strand > 0 and work.route_state[strands[strand], MODE] != 0.0:
        strand -= 1
    return strand


class RigidTensions:
    """Tensions of the rigid cables of one model.

    Attributes:
        names: names of these cables.
        strands: (s,) rows at which strands of inextensible routed cables begin.
        strand_tensions: (s,) last computed tensions of these strands [N].
    """

    def __init__(self, model: MechanismModel) -> None:
        mechanism = self._mechanism = model.mechanism
        self._weight = float(mechanism.flat.mass.sum() * np.linalg.norm(mechanism.flat.gravity))
        self.strands = rigid_strands(mechanism)
        self.strand_tensions = np.zeros(self.strands.size)
        entries = [entry for entry in model.entries if entry.variant == "rigid"]
        self.names = tuple(entry.name for entry in entries)
        self._pulling = PullingRows(mechanism)
        order = {body: k for k, body in enumerate(self._pulling.blocks)}
        self._order = [order[f"{entry.name}-cable"] for entry in entries]

    def tensions(self, work: Workspace, acceleration: NDArray, effort: NDArray) -> dict[str, float]:
        """Tensions [N] by name for accelerations (nv,) and efforts (nv,), from the results of `evaluate` in `work`.

        If loops are redundant, it is the solution with the least norm of the constraint forces in which cables pull.
        """
        if not self.names and not self.strands.size:
            return {}
        terms = (work.mass @ acceleration, work.bias, -work.passive, -effort)
        force = np.sum(terms, axis=0)
        # the weight is added as a reference for the rounding error in case all terms vanish
        scale = float(np.max(np.abs(terms), initial=0.0)) + self._weight
        multipliers = self._pulling.solve(work, work.loop.T, force, scale)
        self.strand_tensions = route_tensions(self._mechanism, work, multipliers, scale)
        result = {}
        for name, tension in zip(self.names, (self._pulling.block_rows(work) @ multipliers)[self._order], strict=True):
            result[name] = 0.0 if -ROUNDING * scale < tension < 0.0 else float(tension)
        return result

    def refuse_pushing_at_rest(self, work: Workspace, q: NDArray, effort: NDArray) -> None:
        """Raise NoEquilibriumError if a rigid cable would push at rest at q (nq,) under efforts (nv,)."""
        if not self.names:
            return
        still = np.zeros(effort.size)
        evaluate(self._mechanism.flat, np.array(q), still, work)
        if reason := pushing(self.tensions(work, still, effort)):
            raise NoEquilibriumError(f"in the only shape found {reason}.")


def pushing(tensions: dict[str, float]) -> str:
    """Message for the rigid cable with the largest compression; empty if there is none."""
    worst = min(tensions, key=tensions.__getitem__, default="")
    if not worst or not tensions[worst] < 0.0:
        return ""
    return (
        f"the rigid cable {worst} would have to push with {-tensions[worst]:.4g} N, and a cable only pulls; tighten "
        "it, or let it go slack with an elastic variant (epsilon, u or length)"
    )
