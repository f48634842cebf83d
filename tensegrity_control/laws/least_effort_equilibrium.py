"""Equilibrium with the smallest efforts and every cable at or above its floor: a start for laws without another
criterion.

    min |u|^2   s.t.   w''(w, u) = 0,   p(w) = goal,   strain >= floor

solved by sequential quadratic programming around the last w and u, with w'' linearised exactly and a limited step size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.numerics.types import Array

from ..motion_planning.output_model import OutputModel
from ..optimization.infeasibility import CheckedSolver
from ..optimization.quadratic_program import SOLVED, QuadraticProgram, Sizes
from ..optimization.solvers import DEFAULT_SOLVER

STEPS = 100
LONGEST = 0.05
"""rad, m and strain, largest step."""
AT_REST = 1e-9
"""Change of a coordinate at convergence."""
TOWARDS = 1e-6
"""Cost of a step relative to that of efforts: among equal equilibria the nearest one is chosen."""


def least_effort_equilibrium(
    model: OutputModel,
    start: Array,
    effort: ArrayLike,
    goal: ArrayLike,
    strains: NDArray[np.int64],
    floor: ArrayLike,
) -> tuple[Array, Array]:
    """Configuration (nq,) and efforts (u,) of the equilibrium near a start.

    Args:
        model: model with the strains of the cables among its coordinates.
        start: (nq,) initial configuration.
        effort: (u,) N m or N at the start.
        goal: (k,) controlled coordinates of the output, m and rad.
        strains: indices of the strains among the coordinates w of the model.
        floor: smallest strain, one value or one per strain.

    Raises:
        InfeasibleControlError: there is no such equilibrium near the start.
    """
    size, inputs = model.index.size, model.drives.size
    q, u, target = np.array(start), np.array(effort, dtype=np.float64), np.asarray(goal, dtype=np.float64)
    rows, least = target.size, np.asarray(floor, dtype=np.float64)
    qp = CheckedSolver(DEFAULT_SOLVER, Sizes(size + inputs, size + rows, 0))
    cost = np.diag(np.concatenate((np.full(size, TOWARDS), np.ones(inputs))))
    none = np.zeros(0)
    for _ in range(STEPS):
        moving, pushed, here = model.linearised(q, np.zeros(size), u)
        scale = 1.0 / np.maximum(np.max(np.abs(moving[size:, :size]), axis=1), 1e-12)
        matrix = np.zeros((size + rows, size + inputs))
        matrix[:size, :size] = scale[:, None] * moving[size:, :size]
        matrix[:size, size:] = scale[:, None] * pushed[size:]
        matrix[size:, :size] = model.output_jacobian(q)
        right = np.concatenate((-scale * here, -model.output_error(q, target)))
        low, high = np.full(size + inputs, -np.inf), np.full(size + inputs, np.inf)
        low[strains] = least - model.coordinates_at(q)[strains]
        linear = np.concatenate((np.zeros(size), u))
        program = QuadraticProgram(
            cost, linear, matrix, right, np.zeros((0, size + inputs)), none, none, low, high
        )  # fmt: skip
        found = qp.solve(program)
        if found.status != SOLVED:
            raise InfeasibleControlError(f"no equilibrium has its cables above the floor there ({found.status}).")
        change = found.x[:size]
        longest = float(np.max(np.abs(change)))
        share = min(1.0, LONGEST / max(longest, 1e-300))
        try:
            q = model.closed_configuration(q, model.coordinates_at(q) + share * change)
        except TensegrityError as error:
            raise InfeasibleControlError(f"no equilibrium was found there: {error}") from error
        u = u + share * found.x[size:]
        if share == 1.0 and longest < AT_REST:
            return q, u
    raise InfeasibleControlError(f"no equilibrium was found in {STEPS} steps; the last one was {longest:.2g} long.")
