"""Compensation of gear friction: additional motor effort, so that the joints receive the desired effort.

A gear of efficiency e reduces the effort of its motor by |tau| (1 - e) |t| when it drives, and by |tau| (1/e - 1) |t|
when it is driven back, with t = tanh(x' / s) (`mechanisms/resistance`). For a joint effort u the motor effort is

    tau = u / (1 - (1 - e) |t|)  where u x' > 0,   tau = u / (1 + (1/e - 1) |t|)  otherwise.

The rate x' is that with which the output follows its reference and corrects its error, x' = y_r' + w (y_r - y) / 2,
and never the measured rate: compared with the slope |tau| / s of the friction every loop over the measured rate is
slow, and would be unstable. Coulomb friction of joints is treated in the same way (`dynamics/sliding_friction`).
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.resistance import EFFICIENCY, FIRST, KIND, LAW, SPEED, TREE
from tensegrity_dynamics.numerics.types import Array


class GearLosses:
    """Gear losses of the actuators of one robot.

    Args:
        equations: equations of the robot.

    Attributes:
        any: whether a gear has losses.
    """

    def __init__(self, equations: TightCables) -> None:
        drive = equations.parts.drive
        self._efficiency, self._speed = np.ones(drive.size), np.ones(drive.size)
        for row in equations.mechanism.flat.resistances:
            if int(row[KIND]) == TREE:
                driven = drive == int(row[FIRST])
                self._efficiency[driven], self._speed[driven] = row[LAW + EFFICIENCY], row[LAW + SPEED]
        self.any = bool(np.any(self._efficiency < 1.0))

    def more(self, effort: Array, rate: Array) -> Array:
        """(a,) additional efforts for joint efforts (a,) at the desired rates of the actuators (a,)."""
        turned, e = np.abs(np.tanh(rate / self._speed)), self._efficiency
        part = np.where(effort * rate > 0.0, 1.0 - (1.0 - e) * turned, 1.0 + (1.0 / e - 1.0) * turned)
        return np.asarray(effort / part - effort)
