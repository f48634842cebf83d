"""The document's law for mechanisms whose cables are stiff but not rigid (000, section 3.2), for comparison.

At every instant the inputs that would give the desired accelerations if the cables were rigid, with fictitious changes
of strain that restore the equations of motion,

    min |u|^2   s.t.   B u - A_s ds = M_d y'' + c - p,   strain_min <= strain + ds        (000, 3.2.5 to 3.2.8)

with the sign of A_s ds corrected: e restores, so the passive effort of a larger strain is -A_s ds. As printed, with +,
the floor pushes strains down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..motion_planning.near_rigid_model import NearRigidModel
from ..optimization.infeasibility import CheckedSolver
from ..optimization.quadratic_program import SOLVED, QuadraticProgram, Sizes
from ..optimization.solvers import DEFAULT_SOLVER


class NearRigidLaw:
    """Near-rigid control law of the module, evaluated at a state; without feedback.

    Args:
        robot: see `NearRigidModel`. tracked: names of the tracked coordinates.
        floor: strain (one, or one per cable) that stays the least. corrected: False takes the printed sign.
    """

    def __init__(self, robot: Robot, tracked: Sequence[str], floor: ArrayLike, *, corrected: bool = True) -> None:
        self.model = NearRigidModel(robot, tracked)
        cables, inputs = self.model.radii.size, len(self.model.drives)
        self.floor = np.broadcast_to(np.asarray(floor, dtype=np.float64), (cables,)).copy()
        self.sign = 1.0 if corrected else -1.0
        self.names = tuple(each.name for each in robot.actuators)
        self._solver = CheckedSolver(DEFAULT_SOLVER, Sizes(inputs + cables, self.model.index.size, 0))
        self._cost = np.diag(np.concatenate((np.ones(inputs), np.zeros(cables))))
        self._free = np.full(inputs, np.inf)

    def effort(self, q: Array, v: Array, acceleration: Array) -> Array:
        """(u,) N m or N for desired accelerations (y,) of the tracked coordinates at a state.

        Raises:
            InfeasibleControlError: the program has no solution.
        """
        model, inputs = self.model, len(self.names)
        reduced = model.reduced(q, model.charts.rates(q, v[model.index]))
        accelerations = np.concatenate((acceleration, np.zeros(model.radii.size)))  # strains: M_s strain'' is neglected
        right = reduced.mass @ accelerations + reduced.bias - reduced.passive
        # A_s ds as an effort of the reduced coordinates: more strain is E A more tension
        matrix = np.hstack((reduced.inputs, self.sign * reduced.cables * model.stiffness))
        rise = self.floor - q[model.q_strains]
        result = self._solver.solve(
            QuadraticProgram(
                self._cost, np.zeros(matrix.shape[1]), np.ascontiguousarray(matrix), right,
                np.zeros((0, matrix.shape[1])), np.zeros(0), np.zeros(0), np.concatenate((-self._free, rise)),
                np.full(matrix.shape[1], np.inf),
            )
        )  # fmt: skip
        if result.status != SOLVED:
            raise InfeasibleControlError(
                f"the inputs have no solution ({result.status}) within the floor of the strains."
            )
        return np.array(result.x[:inputs])
