"""The document's law for mechanisms with free motions (000, section 5.4).

The accelerations of the coordinates that are neither cables nor drives join the unknowns, and the output's desired
acceleration is a constraint on them:

    min |u|^2   s.t.   B u - A_s ds - M_y y'' = c - p,   J y'' + J' y' = P'',   strain_min <= strain + ds

(5.4.2 to 5.4.5). Nothing in it says what the free accelerations should be. Evaluated without feedback it leaves its
path, because a free motion of a tensegrity mechanism can be unstable; it stands here to be compared with, see
`output_planner` for one that works.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.mechanisms.kinematics.independent_coordinates import wrench_jacobian
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..motion_planning.near_rigid_model import NearRigidModel
from ..optimization.infeasibility import CheckedSolver
from ..optimization.quadratic_program import SOLVED, QuadraticProgram, Sizes
from ..optimization.solvers import DEFAULT_SOLVER


class ExtendedNearRigidLaw:
    """See the module.

    Args:
        robot: see `NearRigidModel`. coordinates: names of all independent coordinates but the strains.
        floor: strain (one, or one per cable) that stays the least. solver: of `optimization.solvers`.
    """

    def __init__(
        self, robot: Robot, coordinates: Sequence[str], floor: ArrayLike, *, solver: str = DEFAULT_SOLVER
    ) -> None:
        self.model, self._output = NearRigidModel(robot, coordinates), robot.outputs[0]
        self.rows = self._output.rows
        self.names = tuple(each.name for each in robot.actuators)
        inputs, cables, moving = len(self.names), self.model.radii.size, len(self.model.tracked)
        self._sizes = (inputs, cables, moving)
        self.floor = np.broadcast_to(np.asarray(floor, dtype=np.float64), (cables,)).copy()
        self.limits = np.array([each.effort for each in robot.actuators])
        self._solver = CheckedSolver(solver, Sizes(inputs + cables + moving, self.model.index.size + self.rows.size, 0))
        self._cost = np.diag(np.concatenate((np.ones(inputs), np.zeros(cables + moving))))

    def effort(self, q: Array, v: Array, acceleration: Array) -> Array:
        """(u,) N m or N, within the actuators' limits, for a desired acceleration (k,) m/s^2 of the output.

        Raises:
            InfeasibleControlError: the program has no solution.
        """
        model, (inputs, cables, moving) = self.model, self._sizes
        reduced = model.reduced(q, v[model.index])
        jacobian, rate = self._task(q, reduced.basis, reduced.velocity)
        count = model.index.size
        matrix = np.zeros((count + self.rows.size, inputs + cables + moving))
        matrix[:count, :inputs] = reduced.inputs
        matrix[:count, inputs : inputs + cables] = reduced.cables * model.stiffness
        matrix[:count, inputs + cables :] = -reduced.mass[:, :moving]
        matrix[count:, inputs + cables :] = jacobian[:, :moving]
        right = np.concatenate((reduced.bias - reduced.passive, acceleration - rate))
        low = np.concatenate((-self.limits, self.floor - q[model.q_strains], np.full(moving, -np.inf)))
        high = np.concatenate((self.limits, np.full(cables + moving, np.inf)))
        none = np.zeros(0)
        program = QuadraticProgram(
            self._cost, np.zeros(matrix.shape[1]), matrix, right, np.zeros((0, matrix.shape[1])), none, none, low, high
        )
        result = self._solver.solve(program)
        if result.status != SOLVED:
            raise InfeasibleControlError(f"the inputs have no solution ({result.status}) within limits and floor.")
        return np.array(result.x[:inputs])

    def _task(self, q: Array, basis: Array, velocity: Array) -> tuple[Array, Array]:
        """Jacobian (k, n) of the output, and the part (k,) m/s^2 of its acceleration that velocities make."""
        mechanism, origin = self.model.mechanism, self._output.frame.origin

        def jacobian(position: Array) -> Array:
            full = wrench_jacobian(mechanism, position, self._output.body, origin)[3:][self.rows]
            return np.asarray(full @ self.model._basis(position, velocity))

        here, h = jacobian(q), 1e-6
        rate = velocity[self.model.index]
        speed = max(1.0, float(np.max(np.abs(rate))))
        sides = []
        for sign in (1.0, -1.0):
            moved = self.model.closed_configuration(q, q[self.model.q_index] + sign * h / speed * rate)
            sides.append(jacobian(moved))
        return here, ((sides[0] - sides[1]) * speed / (2.0 * h)) @ rate
