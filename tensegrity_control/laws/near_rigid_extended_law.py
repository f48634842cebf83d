"""The law of document 000, section 5.4, for mechanisms with free motions.

The accelerations of the coordinates that are neither cables nor drives are additional unknowns, and the desired
acceleration of the output is a constraint on them:

    min |u|^2   s.t.   B u - A_s ds - M_y y'' = c - p,   J y'' + J' y' = P'',   strain_min <= strain + ds

(5.4.2 to 5.4.5). The law does not determine the free accelerations otherwise, and without feedback it leaves its path.
Its result does not depend on the choice of the independent coordinates y beside the strains, since the accelerations
without strain accelerations are the same. If the coordinates come near a singularity, others are chosen for numerical
reasons (`rechosen`).

`damping` d adds a goal for the free motions that the document does not contain: with coordinates z that move with them,

    min |u|^2 + weight |z'' + d z'|^2.

This law is for comparison only; `output_planner` and the controller `qp` are the working methods.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables, output_motion
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..motion_planning.near_rigid_model import NearRigidModel
from ..optimization.infeasibility import CheckedSolver
from ..optimization.quadratic_program import SOLVED, QuadraticProgram, Sizes
from ..optimization.solvers import DEFAULT_SOLVER


class ExtendedNearRigidLaw:
    """Law of the document; see the module.

    Args:
        robot: see `NearRigidModel`.
        coordinates: names of all independent coordinates except the strains.
        floor: smallest strain (one value, or one per cable).
        rechosen: whether other coordinates are chosen when `coordinates` come near a singularity.
        damping: d [1/s] of the motions z, which are those of `coordinates`; 0: none, the law as printed.
        weight: weight of the damping term, N^2 m^2 s^4 per rad^2.
        solver: name in `optimization.solvers`.

    Attributes:
        changes: number of changes of the coordinates.
    """

    def __init__(
        self,
        robot: Robot,
        coordinates: Sequence[str],
        floor: ArrayLike,
        *,
        rechosen: bool = False,
        damping: float = 0.0,
        weight: float = 1.0,
        solver: str = DEFAULT_SOLVER,
    ) -> None:
        self.model, self._output = NearRigidModel(robot, coordinates), TightCables(robot)
        self.rows = self._output.parts.axes
        self.names = tuple(each.name for each in robot.actuators)
        inputs, cables, moving = len(self.names), self.model.radii.size, len(self.model.tracked)
        self._sizes = (inputs, cables, moving)
        self.floor = np.broadcast_to(np.asarray(floor, dtype=np.float64), (cables,)).copy()
        self.limits = np.array([each.effort for each in robot.actuators])
        self.rechosen, self.damping, self.weight, self.changes = rechosen, damping, weight, 0
        self._damped = np.array(self.model.y)
        self._solver = CheckedSolver(solver, Sizes(inputs + cables + moving, self.model.index.size + self.rows.size, 0))

    def effort(self, q: Array, v: Array, acceleration: Array) -> Array:
        """(u,) N m or N, within the actuators' limits, for a desired acceleration (k,) m/s^2 of the output.

        Raises:
            InfeasibleControlError: the program has no solution.
        """
        model, (inputs, cables, moving) = self.model, self._sizes
        if self.rechosen and model.rechoose(q, v, model.strains) is not None:
            self.changes += 1
        free = np.flatnonzero(~np.isin(model.index, model.strains))
        reduced = model.reduced(q, model.charts.rates(q, v[model.index]))
        jacobian, rate = self.task(reduced.basis)
        count = model.index.size
        width = inputs + cables + moving
        matrix = np.zeros((count + self.rows.size, width))
        matrix[:count, :inputs] = reduced.inputs
        matrix[:count, inputs : inputs + cables] = reduced.cables * model.stiffness
        matrix[:count, inputs + cables :] = -reduced.mass[:, free]
        matrix[count:, inputs + cables :] = jacobian[:, free]
        right = np.concatenate((reduced.bias - reduced.passive, acceleration - rate))
        low = np.concatenate((-self.limits, self.floor - q[model.q_strains], np.full(moving, -np.inf)))
        high = np.concatenate((self.limits, np.full(cables + moving, np.inf)))
        cost, linear = np.zeros((width, width)), np.zeros(width)
        cost[np.arange(inputs), np.arange(inputs)] = 1.0
        if self.damping > 0.0:
            follows = reduced.basis[self._damped][:, free]
            aim = -self.damping * reduced.velocity[self._damped] - model.offset[self._damped]
            cost[inputs + cables :, inputs + cables :] = self.weight * follows.T @ follows
            linear[inputs + cables :] = -self.weight * follows.T @ aim
        none = np.zeros(0)
        program = QuadraticProgram(cost, linear, matrix, right, np.zeros((0, width)), none, none, low, high)
        result = self._solver.solve(program)
        if result.status != SOLVED:
            raise InfeasibleControlError(f"the inputs have no solution ({result.status}) within limits and floor.")
        return np.array(result.x[:inputs])

    def output(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Position (k,) m and velocity (k,) m/s of the output's controlled axes at a state."""
        arrays = self._output.arrays
        evaluate(self.model.flat, q, v, self.model.work)
        output_motion(self.model.flat, self._output.parts, self.model.work, arrays)
        return arrays.position[self.rows], arrays.velocity[self.rows]

    def task(self, basis: Array) -> tuple[Array, Array]:
        """Jacobian (k, n) of the output, and the part (k,) m/s^2 of its acceleration due to velocities.

        At the state of the last `NearRigidModel.reduced`.
        """
        model, arrays = self.model, self._output.arrays
        arrays.full[:] = 0.0
        output_motion(model.flat, self._output.parts, model.work, arrays)
        full = arrays.full[self.rows]
        return full @ basis, full @ model.offset + arrays.bias[self.rows]
