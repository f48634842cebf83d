"""How much more the actuators could hold: what is left of their efforts where the output stands still.

A cable cannot push, so that a robot of cables leaves the configurations that it can hold where the matrix of its forces
is still regular: the tensions that balance its weight and keep their floors grow like 1/x before that border, until the
efforts end. With the efforts u within their limits U and what they do to output and tensions (`tight_cables`),

    share s = min max_i |u_i| / U_i   s.t.   y'' = b_0 + B u = 0,   T_low <= T_0 + T_1 u,

and the reserve 1/s - 1, which falls in proportion to the distance from the border. It is zero where all of an effort is
needed, and below zero, or -1 where no effort does it at all, beyond.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array

from ..optimization.infeasibility import prove_infeasible
from ..optimization.quadratic_program import SOLVED, QuadraticProgram, Sizes
from ..optimization.solvers import DEFAULT_SOLVER, make_solver

LEAST_SHARE = 0.2
"""Of the efforts: what needs less counts as much, so that what hardly needs any has no endless reserve."""
SECOND_SOLVER = "piqp"
"""What decides where the default one finds nothing: an interior point takes longer, and minds no ties."""
ROUNDING = 1e-3
"""Part by which the share that a solver finds may be above what it is; it gives up a little for `CURVED`."""
CURVED = 1e-6
"""Of the squared efforts beside the squared share: what makes the program strictly convex."""


class HoldingReserve:
    """See the module.

    Args:
        equations: of the robot; their arrays are those of the last `update`. effort: (a,) limits, N m or N.
        floor: (c,) N that the driven cables keep; may be changed.
    """

    def __init__(self, equations: TightCables, effort: Array, floor: Array) -> None:
        self._equations, self._effort, self.floor = equations, effort, floor
        cables, inputs = equations.arrays.tension_1.shape
        outputs, rows = equations.arrays.output_1.shape[0], cables + 2 * inputs
        unit = np.eye(inputs)
        self._program = program = QuadraticProgram(
            CURVED * np.eye(inputs + 1), np.zeros(inputs + 1), np.zeros((outputs, inputs + 1)), np.zeros(outputs),
            np.zeros((rows, inputs + 1)), np.zeros(rows), np.full(rows, np.inf), np.full(inputs + 1, -np.inf),
            np.full(inputs + 1, np.inf),
        )  # fmt: skip
        program.P[inputs, inputs] = 1.0
        program.C[cables : cables + inputs, :inputs], program.C[cables + inputs :, :inputs] = unit, -unit
        program.C[cables:, inputs] = 1.0
        self._last = np.zeros(inputs)
        sizes = Sizes(inputs + 1, outputs, rows)
        self._solvers = tuple(make_solver(name, sizes) for name in (DEFAULT_SOLVER, SECOND_SOLVER))
        self._share = 0.0

    def share(self) -> float:
        """s at the state of the last `equations.update`, infinite where no effort holds the output.

        Whether none does is proved (`infeasibility`): solvers may come to no end where floors are all but kept. Without
        solution and proof it is that of the last look.
        """
        arrays, program = self._equations.arrays, self._program
        cables, inputs = arrays.tension_1.shape
        program.A[:, :inputs], program.b[:] = arrays.output_1 * self._effort, -arrays.output_0
        size = np.max(np.abs(program.A), axis=1)
        size[~(size > 0.0)] = 1.0
        program.A[:] /= size[:, None]
        program.b[:] /= size
        program.C[:cables, :inputs] = arrays.tension_1 * self._effort
        program.c_low[:cables] = self.floor - arrays.tension_0
        for solver in self._solvers:  # with many bounds at once the first one may give up where there is a solution
            result = solver.solve(program)
            if result.status == SOLVED:
                self._last, self._share = result.x[:inputs], float(result.x[inputs])
                break
        else:
            if prove_infeasible(program) is not None:
                self._share = np.inf
        return self._share

    def refuse(self) -> None:
        """Raise TensegrityError where no efforts hold the output at the state of the last `equations.update`.

        Where efforts within their limits do, but break floors, it is held: floors are given up before the output.
        """
        share = self.share()
        if share <= 1.0 + ROUNDING:
            return
        floor, name = self.floor, self._equations.robot.name
        self.floor, self._share = np.zeros_like(floor), 0.0
        try:
            least = self.share()
        finally:
            self.floor = floor
        if 1.0 + ROUNDING < least < np.inf:
            raise TensegrityError(
                f"the output of {name} cannot be held here: that takes {least:.3g} times the effort of "
                f"{self.strained()}. Start it elsewhere, or with stronger actuators (effort in the robot file)."
            )
        if share < np.inf:
            self.share()
            return
        if not np.isfinite(least):
            raise TensegrityError(
                f"no tensions hold the output of {name} here: its cables would have to push. Start it elsewhere, or "
                "lead it by its actuators."
            )
        floors = [f"{cable} {kept:.4g} N" for cable, kept in zip(self._equations.cables, floor, strict=True) if kept]
        raise TensegrityError(
            f"no tensions hold the output of {name} here and keep all floors ({', '.join(floors)}). Lower "
            "minimum_tension of its actuators, or start it elsewhere."
        )

    def effort(self) -> Array:
        """(a,) N m or N of the last look that found some."""
        return np.asarray(self._last * self._effort)

    def strained(self) -> str:
        """Name of the actuator that needed the largest part of its effort at the last look."""
        return self._equations.robot.actuators[int(np.argmax(np.abs(self._last)))].name

    def value(self) -> float:
        """1/s - 1, at most what `LEAST_SHARE` says."""
        return 1.0 / max(self.share(), LEAST_SHARE) - 1.0
