"""How far above their floors cables can be kept where the output stands still, of robots that hang in them.

Where no self-stress lifts all cables at once, what they pull follows from what the robot carries (a platform on as many
cables as it has motions, a crane): it leaves the configurations that keep its floors at tensions and efforts that are
no larger than elsewhere, without a sign in `holding_reserve`. With the efforts u within their limits U and what they do
to output and tensions (`tight_cables`),

    headroom z = max z   s.t.   y'' = b_0 + B u = 0,   T_low + z S <= T_0 + T_1 u,   |u| <= U,

S the floors. y are the output and those free motions that efforts move: tensions that let one of these go are not those
of a robot at rest. (Free motions of robots with routed cables are led by shapes at rest and do not count.) z falls to
zero at the border, and is below zero beyond. Self-stress lifts all cables where the same
program without b_0, T_0 and T_low has a solution above zero.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array

from ..optimization.quadratic_program import SOLVED, QuadraticProgram, Sizes
from ..optimization.solvers import DEFAULT_SOLVER, make_solver
from .holding_reserve import SECOND_SOLVER

CURVED = 1e-6
"""Of the squared unknowns beside z: what makes the program strictly convex."""
WITHOUT_FLOOR = 0.1
"""Of the mean tension: what counts as the floor of cables that have none."""
MOVED = 1e-6
"""Of the largest acceleration by efforts, below which they do not move a row."""
LIFTS = 1e-4
"""z of a self-stress from which on it lifts all cables."""


class TensionHeadroom:
    """See the module.

    Args:
        equations: of the robot; their arrays are those of the last `update`. effort: (a,) limits, N m or N.
        low: (c,) N that the driven cables keep; may be changed.

    Attributes:
        hangs: whether no self-stress lifted all cables at the last `begin`.
    """

    def __init__(self, equations: TightCables, effort: Array, low: Array) -> None:
        self._equations, self._effort, self.low = equations, effort, low
        cables, inputs = equations.arrays.tension_1.shape
        self._outputs = equations.arrays.output_1.shape[0]
        led = len(equations.parts.strands) > 0  # by shapes at rest, whose tensions the goal's check has looked at
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
        """Look whether the robot hangs at the state of the last `update`; tension: (c,) N there."""
        self.hangs = False
        if not self._solvers:
            return
        without = WITHOUT_FLOOR * float(np.mean(np.abs(tension)))
        self._scale = np.where(self.low > 0.0, self.low, without if without > 0.0 else 1.0)
        self._last = 0.0
        self.hangs = self._solve(np.zeros(self._scale.size), 0.0) < LIFTS
        self._last = 0.0

    def value(self) -> float:
        """z at the state of the last `update`; that of the last look where no solver comes to an end."""
        arrays = self._equations.arrays
        self._last = self._solve(self.low - arrays.tension_0, 1.0)
        return self._last

    def least(self, effort: Array) -> float:
        """What efforts (a,) leave: z is at least that, where they let the output stand."""
        arrays = self._equations.arrays
        return float(np.min((arrays.tension_0 + arrays.tension_1 @ effort - self.low) / self._scale))

    def tightest(self) -> str:
        """Name of the cable that was nearest to its floor at the last look."""
        arrays = self._equations.arrays
        above = (arrays.tension_0 + arrays.tension_1 @ self._held - self.low) / self._scale
        return self._equations.cables[int(np.argmin(above))]

    def _solve(self, floors: Array, loaded: float) -> float:
        """z above floors (c,) [N], with weight and motion as they are (`loaded` 1) or without (0)."""
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
