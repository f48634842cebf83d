"""Tensions of rigid cables: the forces of the loops that hold them (000, 1.2.30).

A rigid cable has no strain to take its tension from. What holds its end at its anchor is the multiplier of its loop,

    K' lambda = M a + c - p - tau,

and its part along the cable is the tension. The equations hold such a cable in both directions; where the tension would
be below zero it would have to push, and the motion or the equilibrium is not that of a cable.

A strand of a routed cable without stretch is a row of the loops itself, whose multiplier is minus its tension.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..loop_joints import loop_rows
from ..mechanism import Mechanism
from ..mechanism_model import MechanismModel
from ..routing.columns import DRIVE, EXCESS, FIRST, HIGHEST, LOOP_ROW, MODE, SLACK, TENSION
from ..workspace import Workspace

ROUNDING = 1e-7
"""Part of the largest effort at play below which a push is rounding."""


def rigid_strands(mechanism: Mechanism) -> NDArray[np.int64]:
    """(s,) rows of elements at which strands of routed cables begin that do not stretch."""
    rows = [
        int(cable[FIRST]) + route.holding
        for cable, route in zip(mechanism.flat.routed_cables, mechanism.routes, strict=True)
        if route.rigid
    ]
    return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)


def route_tensions(
    mechanism: Mechanism, work: Workspace, multipliers: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """(s,) N of the strands of routed cables that do not stretch, from forces of all loops (nc,); kept for readings.

    A strand that hangs slack has none. scale: N, the largest effort at play, of which pushes may be rounding.
    """
    found = []
    for cable, route, result in zip(mechanism.flat.routed_cables, mechanism.routes, work.route_results, strict=True):
        if not route.rigid:
            continue
        strands = int(cable[FIRST]) + route.holding
        row = int(cable[LOOP_ROW])
        tensions = -multipliers[row : row + strands.size]
        tensions[(tensions < 0.0) & (tensions > -ROUNDING * scale)] = 0.0
        slack = work.route_state[strands, SLACK] != 0.0
        for s in range(1, strands.size):  # those that slip along
            if work.route_state[strands[s], MODE] != 0.0 and not slack[s]:
                tensions[s] = tensions[leader_of(work, strands, s)] + work.route_state[strands[s], EXCESS]
        tensions[slack] = 0.0
        work.route_state[strands, TENSION] = work.route_state[strands, DRIVE] = tensions
        result[HIGHEST] = tensions.max()
        found.append(tensions)
    return np.concatenate(found) if found else np.zeros(0)


def leader_of(work: Workspace, strands: NDArray[np.int64], strand: int) -> int:
    """The first of the strands of a cable (its rows) with which a strand slips along; itself where it does not."""
    while strand > 0 and work.route_state[strands[strand], MODE] != 0.0:
        strand -= 1
    return strand


class RigidTensions:
    """The rigid cables of one model.

    Attributes:
        names: of these cables.
        strands: (s,) rows where strands of routed cables without stretch begin. strand_tensions: (s,) N, last found.
    """

    def __init__(self, model: MechanismModel) -> None:
        mechanism = self._mechanism = model.mechanism
        self._weight = float(mechanism.flat.mass.sum() * np.linalg.norm(mechanism.flat.gravity))
        self.strands = rigid_strands(mechanism)
        self.strand_tensions = np.zeros(self.strands.size)
        entries = [entry for entry in model.entries if entry.variant == "rigid"]
        self.names = tuple(entry.name for entry in entries)
        first, rows = {}, 0
        for loop in mechanism.loops:
            first[loop.name] = rows
            rows += len(loop_rows(loop, mechanism.body_index))
        self._rows = [first[f"{entry.name}-loopJt"] for entry in entries]
        self._anchors = [mechanism.body_index[entry.anchor_body] for entry in entries]
        self._ends = [mechanism.body_index[f"{entry.name}-cable"] for entry in entries]

    def tensions(self, work: Workspace, acceleration: NDArray, effort: NDArray) -> dict[str, float]:
        """N by name, for accelerations (nv,) and efforts (nv,), from what `evaluate` left in the arrays.

        Where loops depend on each other it is the solution of least forces.
        """
        if not self.names and not self.strands.size:
            return {}
        terms = (work.mass @ acceleration, work.bias, -work.passive, -effort)
        force = np.sum(terms, axis=0)
        multipliers = np.linalg.lstsq(work.loop.T, force, rcond=None)[0]
        # where all of these vanish, too, what rounding leaves is still part of the weight
        scale = float(np.max(np.abs(terms), initial=0.0)) + self._weight
        self.strand_tensions = route_tensions(self._mechanism, work, multipliers, scale)
        result = {}
        for name, row, anchor, end in zip(self.names, self._rows, self._anchors, self._ends, strict=True):
            axes = np.eye(3) if anchor < 0 else work.rotation[anchor]
            tension = float((axes @ multipliers[row : row + 3]) @ work.rotation[end][:, 0])
            result[name] = 0.0 if -ROUNDING * scale < tension < 0.0 else tension
        return result


def pushing(tensions: dict[str, float]) -> str:
    """What to say of rigid cables that would have to push, or nothing where none does."""
    worst = min(tensions, key=tensions.__getitem__, default="")
    if not worst or not tensions[worst] < 0.0:
        return ""
    return (
        f"the rigid cable {worst} would have to push with {-tensions[worst]:.4g} N, and a cable only pulls; tighten "
        "it, or let it go slack with an elastic variant (epsilon, u or length)"
    )
