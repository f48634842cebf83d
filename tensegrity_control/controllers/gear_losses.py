"""What gears that rub take of efforts: what motors give beyond what the joints shall get.

A gear of efficiency e passes on less than its motor gives, by |tau| (1 - e) |t| where it drives and |tau| (1/e - 1) |t|
where it is driven back, t = tanh(x' / s) (`mechanisms/resistance`). So that the joint gets u,

    tau = u / (1 - (1 - e) |t|)  where u x' > 0,   tau = u / (1 + (1/e - 1) |t|)  else.

The rate x' is the one that the output's reference asks for, with what its error w (y_r - y) / 2 adds, and never the one
that is seen: beside the friction's slope |tau| / s every loop over it is slow, and would be lost.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.resistance import EFFICIENCY, FIRST, KIND, LAW, SPEED, TREE
from tensegrity_dynamics.numerics.types import Array


class GearLosses:
    """Of the actuators of one robot.

    Args:
        equations: of the robot.

    Attributes:
        any: whether a gear takes anything.
    """

    def __init__(self, equations: TightCables) -> None:
        self._equations, drive = equations, equations.parts.drive
        self._efficiency, self._speed = np.ones(drive.size), np.ones(drive.size)
        for row in equations.mechanism.flat.resistances:
            if int(row[KIND]) == TREE:
                driven = drive == int(row[FIRST])
                self._efficiency[driven], self._speed[driven] = row[LAW + EFFICIENCY], row[LAW + SPEED]
        self.any = bool(np.any(self._efficiency < 1.0))

    def more(self, effort: Array, rate: Array) -> Array:
        """(a,) what efforts (a,) of the joints take beside themselves where the output moves at a rate (k,), of least
        effort, at the state of the last `equations.update`."""
        arrays = self._equations.arrays
        rates = arrays.joint_1 @ np.linalg.lstsq(arrays.output_1, rate, rcond=1e-9)[0]
        turned, e = np.abs(np.tanh(rates / self._speed)), self._efficiency
        part = np.where(effort * rates > 0.0, 1.0 - (1.0 - e) * turned, 1.0 + (1.0 / e - 1.0) * turned)
        return np.asarray(effort / part - effort)
