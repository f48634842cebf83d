"""Coulomb friction of joints at the rates of a desired motion.

Friction f tanh(x' / s) has the slope f / s at rest, that of an enormous damper. A controller that compensates friction
at the measured rate x' adds the opposite slope with its own delay, and throws its robot to and fro within the width s.
At the desired rate the same effort is a feed-forward, which no delay destabilises.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import allocation_free
from ...numerics.types import Array
from ..kinematics.body_kinematics import body_kinematics
from ..mechanism import FlatMechanism
from ..resistance import DAMPING, FRICTION, LAW, STIFFNESS, STOP_DAMPING, STOP_STIFFNESS
from ..workspace import make_workspace
from .joint_efforts import joint_efforts

SMALL = 1e-9
"""Rate far below those at which friction has its full value, as a fraction of the rate of a motion."""


@allocation_free
def fill_friction(flat, q, v, work, effort):
    """Fill effort (nv,) with the generalised forces of the resistances at a state."""
    body_kinematics(flat, q, v, work)
    for d in range(effort.shape[0]):
        work.passive[d] = 0.0
    joint_efforts(flat, q, v, work)
    for d in range(effort.shape[0]):
        effort[d] = work.passive[d]


class SlidingFriction:
    """Friction of the joints of one mechanism; see the module.

    Args:
        flat: arrays of the mechanism.

    Attributes:
        any: whether a joint has Coulomb friction. effort: (nv,) N or N m, generalised forces at the rates of the last
            `slide`; zero before.
    """

    def __init__(self, flat: FlatMechanism) -> None:
        own = np.array(flat.resistances)
        own[:, [LAW + k for k in (STIFFNESS, DAMPING, STOP_STIFFNESS, STOP_DAMPING)]] = 0.0
        self.any = bool(np.any(own[:, LAW + FRICTION] > 0.0))
        self._flat, self._work = flat._replace(resistances=own), make_workspace(flat)
        self.effort = np.zeros(flat.dof_parent.size)

    def slide(self, q: Array, v: Array) -> None:
        """Compute `effort` at the position q (nq,) and the desired rates v (nv,)."""
        fill_friction(self._flat, q, v, self._work, self.effort)

    def slopes(self, q: Array, motions: Array) -> Array:
        """(k, k) forces along velocities `motions` (k, nv), per small rate along them, with which joints rub from rest
        at q (nq,)."""
        found = np.zeros((len(motions), self.effort.size))
        for each, motion in zip(found, motions, strict=True):
            fill_friction(self._flat, q, SMALL * motion, self._work, each)
        return np.asarray(motions @ found.T / -SMALL)


def without_friction(flat: FlatMechanism) -> FlatMechanism:
    """Same arrays, with copies of the resistances that have no Coulomb friction."""
    own = np.array(flat.resistances)
    own[:, LAW + FRICTION] = 0.0
    return flat._replace(resistances=own)
