"""Headroom of the tensions above their floors while the output is held at rest, for robots that hang in their cables.

If no self-stress raises all tensions at once, the tensions follow from the load of the robot (a platform with as many
cables as degrees of freedom, a crane). Such a robot leaves the configurations that keep its floors at tensions and
efforts no larger than elsewhere, and `holding_reserve` does not show it. With the efforts u within their limits U and
their effect on output and tensions (`tight_cables`),

    headroom z = max z   s.t.   y'' = b_0 + B u = 0,   T_low + z S <= T_0 + T_1 u,   |u| <= U,

with S the floors. y contains the output and those free motions that efforts accelerate, since a robot at rest needs
tensions that hold these too. (Free motions of robots with routed cables follow equilibria and are not included.) z
falls to zero at the border and is negative beyond it. A self-stress raises all tensions if the same program without
b_0, T_0 and T_low has a solution above zero.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array

from ....optimization.quadratic_program import SOLVED, QuadraticProgram, Sizes
from ....optimization.solvers import DEFAULT_SOLVER, make_solver
from .holding_reserve import SECOND_SOLVER

CURVED = 1e-6
"""Weight of the squared unknowns relative to z; it makes the program strictly convex."""
WITHOUT_FLOOR = 0.1
"""Fraction of the mean tension that replaces the floor in S for cables without a floor."""
MOVED = 1e-6
"""Fraction of the largest acceleration by efforts below which a row counts as not moved by efforts."""
LIFTS = 1e-4
"""z of a self-stress above which it raises all tensions."""


class TensionHeadroom:
    """Headroom of the tensions; see the module.

    Args:
        equations: equations of the robot at the state of their last `update`.
        effort: (a,) effort limits, N m or N.
        low: (c,) N, tension floors of the actuated cables; may be changed.

    Attributes:
        hangs: whether no self-stress raised all tensions at the last `begin`.
    """

    def __init__(self, equations: TightCables, effort: Array, low: Array) -> None:
        self._equations, self._effort, self.low = equations, effort, low
        cables, inputs = equations.arrays.tension_1.shape
        self._outputs = equations.arrays.output_1.shape[0]
        led = len(equations.parts.strands) > 0  # follow equilibria, whose tensions the check of the goal covers
        self._free = 0 if led else max(0, equations.count - cables - self._outputs)
        outputs = self._outputs + self._free
        self._scale, self.hangs, self._last = np.ones(cables), False, 0.0
        self._program = program = QuadraticProgram(
            CURVED * np.eye(inputs + 1), np.zeros(inputs + 1), np.zeros((outputs, inputs + 1)), np.zeros(outputs),
            np.zeros((cables, inputs + 1)), np.zeros(cables), np.full(cables, np.inf), np.full(inputs + 1, -1.0),
            np.full(inputs + 1, 1.0),
        )  # fmt: skip
        program.q[inputs] = -1.0
        program.x_low[inputs], program.x_high[inputs] = -np.inf, np.inf
        sizes = Sizes(inputs + 1, outputs, cables)
        self._solvers = tuple(make_solver(name, sizes) for name in (DEFAULT_SOLVER, SECOND_SOLVER)) if cables else ()

    def begin(self, tension: Array) -> None:
        """Check whether the robot hangs at the state of the last `update`, with tensions (c,) N there."""
        self.hangs = False
        if not self._solvers:
            return
        without = WITHOUT_FLOOR * float(np.mean(np.abs(tension)))
        self._scale = np.where(self.low > 0.0, self.low, without if without > 0.0 else 1.0)
        self._last = 0.0
        self.hangs = self._solve(np.zeros(self._scale.size), 0.0) < LIFTS
        self._last = 0.0

    def value(self) -> float:
        """z at the state of the last `update`; the last z if no solver converges."""
        arrays = self._equations.arrays
        self._last = self._solve(self.low - arrays.tension_0, 1.0)
        return self._last

    def least(self, effort: Array) -> float:
        """Headroom under efforts (a,), a lower bound of z if these efforts hold the output at rest."""
        arrays = self._equations.arrays
        return float(np.min((arrays.tension_0 + arrays.tension_1 @ effort - self.low) / self._scale))

    def above(self, headroom: float) -> Array:
        """(c,) N above the floors for a headroom; zero for one below zero."""
        return max(headroom, 0.0) * self._scale

    def tightest(self) -> str:
        """Name of the cable nearest to its floor in the last solution."""
        arrays = self._equations.arrays
        above = (arrays.tension_0 + arrays.tension_1 @ self._held - self.low) / self._scale
        return self._equations.cables[int(np.argmin(above))]

    def _solve(self, floors: Array, loaded: float) -> float:
        """z above floors (c,) [N], with the present weight and motion (`loaded` 1) or without them (0)."""
        arrays, program = self._equations.arrays, self._program
        inputs = self._effort.size
        program.A[:], program.b[:] = 0.0, 0.0
        program.A[: self._outputs, :inputs], program.b[: self._outputs] = arrays.output_1, -arrays.output_0
        if self._free:
            free = self._equations.free_directions()[:, : self._free].T
            rows = slice(self._outputs, self._outputs + len(free))
            program.A[rows, :inputs], program.b[rows] = free @ arrays.rate_1, -free @ arrays.rate_0
        program.A[:, :inputs] *= self._effort
        program.b[:] *= loaded
        size = np.max(np.abs(program.A), axis=1)
        still = ~(size > MOVED * np.max(size, initial=0.0))
        program.A[still], program.b[still], size[still] = 0.0, 0.0, 1.0
        program.A[:] /= size[:, None]
        program.b[:] /= size
        program.C[:, :inputs] = arrays.tension_1 * self._effort / self._scale[:, None]
        program.C[:, inputs] = -1.0
        program.c_low[:] = floors / self._scale
        for solver in self._solvers:
            result = solver.solve(program)
            if result.status == SOLVED:
                self._held = result.x[:inputs] * self._effort
                return float(result.x[inputs])
        return self._last
