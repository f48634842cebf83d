"""Reserve of the actuators: the part of their efforts that remains while they hold the output at rest.

Cables cannot push. So a cable-driven robot reaches the border of the configurations that it can hold while the matrix
of its forces is still regular: tensions that balance its weight and keep their floors grow like 1/x before that border,
until efforts reach their limits. With the efforts u within their limits U and their effect on output and tensions
(`tight_cables`),

    share s = min max_i |u_i| / U_i   s.t.   y'' = b_0 + B u = 0,   T_low <= T_0 + T_1 u,

and the reserve is 1/s - 1, which decreases in proportion to the distance from the border. It is zero if the whole
effort of an actuator is needed, negative beyond that, and -1 if no efforts hold the output.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array

from ....optimization.infeasibility import prove_infeasible
from ....optimization.quadratic_program import SOLVED, QuadraticProgram, Sizes
from ....optimization.solvers import DEFAULT_SOLVER, make_solver

LEAST_SHARE = 0.2
"""Smallest share; smaller ones are replaced by it, so that the reserve stays finite when hardly any effort is
needed."""
SECOND_SOLVER = "piqp"
"""Solver for programs that the default one does not solve: an interior-point method is slower but robust to
degeneracy."""
AT_LIMIT = 1.02
"""Largest initial effort of a cable's actuator, relative to its limit; estimated tensions may be a little too high."""
BALANCED = 1e-3
"""Acceleration of the output by the efforts that actuators lack at the start, relative to the largest one that all
efforts together cause, below which these efforts balance."""
ROUNDING = 1e-3
"""Relative error by which a computed share may exceed the true one; `CURVED` causes a part of it."""
CURVED = 1e-6
"""Weight of the squared efforts relative to the squared share; it makes the program strictly convex."""


class HoldingReserve:
    """Reserve of the actuators; see the module.

    Args:
        equations: equations of the robot at the state of their last `update`.
        effort: (a,) effort limits, N m or N.
        floor: (c,) N, tension floors of the actuated cables; may be changed.

    Attributes:
        solvers: tried one after the other. last_share: see `share`.
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
        self.solvers = tuple(make_solver(name, sizes) for name in (DEFAULT_SOLVER, SECOND_SOLVER))
        self.last_share = 0.0

    def share(self) -> float:
        """s at the state of the last `equations.update`; infinite if no effort holds the output.

        Infeasibility is proved (`infeasibility`), since solvers may not converge when floors are only just feasible.
        Without a solution and without a proof the last share is returned.
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
        for solver in self.solvers:  # with many active bounds the first one may fail on feasible programs
            result = solver.solve(program)
            if result.status == SOLVED:
                self._last, self.last_share = result.x[:inputs], float(result.x[inputs])
                break
        else:
            if prove_infeasible(program) is not None:
                self.last_share = np.inf
        return self.last_share

    def refuse(self) -> None:
        """Raise TensegrityError if no efforts hold the output at the state of the last `equations.update`.

        If only efforts that violate tension floors hold it, nothing is raised: floors are given up before the output.
        """
        share = self.share()
        if share <= 1.0 + ROUNDING:
            return
        floor, name = self.floor, self._equations.robot.name
        self.floor, self.last_share = np.zeros_like(floor), 0.0
        try:
            least = self.share()
        finally:
            self.floor = floor
        if 1.0 + ROUNDING < least < np.inf:
            raise TensegrityError(
                f"the output of {name} cannot be held in this configuration: that takes {least:.3g} times the effort "
                f"limit of {self.strained()}. Start it in another configuration, or use a stronger actuator (`effort` "
                "in the robot file)."
            )
        if share < np.inf:
            self.share()
            return
        if not np.isfinite(least):
            raise TensegrityError(
                f"no cable tensions hold the output of {name} in this configuration: its cables would have to push. "
                "Start it in another configuration, or move it to one by its actuators first."
            )
        floors = [f"{cable} {kept:.4g} N" for cable, kept in zip(self._equations.cables, floor, strict=True) if kept]
        raise TensegrityError(
            f"no cable tensions hold the output of {name} in this configuration and keep all tension floors "
            f"({', '.join(floors)}). Lower `minimum_tension` of its actuators, or start it in another configuration."
        )

    def refuse_start(self, effort: Array) -> None:
        """Raise TensegrityError if efforts (a,) that keep the present tensions are above their limits, at the state of
        the last `equations.update`.

        Another self-stress may hold the output within the limits. But a cable that a brake has held so far unwinds at
        once where its actuator cannot hold it, before the other tensions follow; unless what all actuators lack
        balances, so that the cables unwind together.
        """
        robot, cables = self._equations.robot, set(self._equations.cables)
        winds = np.array([each.drives in cables for each in robot.actuators])
        used = np.where(winds, np.abs(effort) / self._effort, 0.0)
        worst, moves = int(np.argmax(used)), self._equations.arrays.output_1
        lacks = np.abs(moves @ (effort - np.clip(effort, -self._effort, self._effort)))
        if used[worst] > AT_LIMIT and np.any(lacks > BALANCED * np.abs(moves) @ self._effort):
            raise TensegrityError(
                f"cable {robot.actuators[worst].drives} of {robot.name} pulls with {used[worst]:.3g} times what its "
                f"actuator {robot.actuators[worst].name} can hold, and would unwind as soon as this control begins. "
                "Lower the prestress (`strain` of the cables in the robot file), or use a stronger actuator (`effort`)."
            )

    def effort(self) -> Array:
        """(a,) N m or N of the last solution."""
        return np.asarray(self._last * self._effort)

    def strained(self) -> str:
        """Name of the actuator with the largest share of its effort in the last solution."""
        return self._equations.robot.actuators[int(np.argmax(np.abs(self._last)))].name

    def value(self) -> float:
        """1/s - 1, with s at least `LEAST_SHARE`."""
        return 1.0 / max(self.share(), LEAST_SHARE) - 1.0
