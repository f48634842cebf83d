"""Solvers of others behind the face of `QPSolver`.

`piqp` (proximal interior point) and `osqp` (operator splitting) are sharpened by solving the conditions of optimality
of the active rows that they found exactly; this is accepted only where it moves the answer little and keeps all signs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .quadratic_program import INFEASIBLE, ITERATION_LIMIT, NUMERICAL, SOLVED, QPResult, QuadraticProgram, Sizes

Array = NDArray[np.float64]

NOTHING = 1e-9  # below which a violation or a force is rounding
NEAR = 1e-4  # how far sharpening may move the unknowns, in parts of the largest
CORRECTIONS = 10


class Piqp:
    """The proximal interior-point solver `piqp`, sharpened; its set-up is kept from program to program."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        import piqp

        self._known = {
            piqp.PIQP_SOLVED: SOLVED,
            piqp.PIQP_PRIMAL_INFEASIBLE: INFEASIBLE,
            piqp.PIQP_MAX_ITER_REACHED: ITERATION_LIMIT,
        }
        self._solver = piqp.DenseSolver()
        settings = self._solver.settings
        settings.eps_abs = settings.eps_duality_gap_abs = 1e-10
        settings.eps_rel = settings.eps_duality_gap_rel = 1e-12
        settings.check_duality_gap = True
        self._ready = False

    def solve(self, program: QuadraticProgram) -> QPResult:
        """See `QPSolver`."""
        P, q, A, b, C, c_low, c_high, x_low, x_high = program
        idle = np.isinf(c_low) & np.isinf(c_high)
        if idle.any():  # piqp warns of such rows on every call
            C, c_low, c_high = np.where(idle[:, None], 0.0, C), np.where(idle, -1.0, c_low), np.where(idle, 1.0, c_high)
        put = self._solver.update if self._ready else self._solver.setup
        square = (np.asfortranarray(P), q, np.asfortranarray(A), b, np.asfortranarray(C))
        put(*square, c_low, c_high, x_low, x_high)
        self._ready = True
        status = self._known.get(self._solver.solve(), NUMERICAL)
        found = self._solver.result
        z = np.array(found.z_l) - np.array(found.z_u)
        w = np.array(found.z_bl) - np.array(found.z_bu)
        raw = QPResult(status, np.array(found.x), -np.array(found.y), z, w, int(found.info.iter))
        return sharpened(program, raw) if status in (SOLVED, ITERATION_LIMIT) else raw


class Osqp:
    """The operator-splitting solver `osqp`, sharpened; its set-up and last solution are kept."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        n, p, r = sizes
        self._pattern = np.triu_indices(n)
        self._solver: Any = None
        self._rows = np.zeros((p + r + n, n))
        self._rows[p + r :] = np.eye(n)

    def solve(self, program: QuadraticProgram) -> QPResult:
        """See `QPSolver`."""
        import osqp
        from scipy.sparse import csc_matrix

        n, p, r = self.sizes
        upper = np.ascontiguousarray(program.P.T[np.tril_indices(n)])  # columns of the upper triangle one by one
        self._rows[:p], self._rows[p : p + r] = program.A, program.C
        low = np.maximum(np.concatenate((program.b, program.c_low, program.x_low)), -1e30)
        high = np.minimum(np.concatenate((program.b, program.c_high, program.x_high)), 1e30)
        entries = self._rows.reshape(-1, order="F")
        if self._solver is None:
            ends = np.cumsum(np.arange(n + 1))
            inside = np.concatenate([np.arange(j + 1) for j in range(n)])
            count = self._rows.shape[0]
            quadratic = csc_matrix((upper, inside, ends), shape=(n, n))
            rows = csc_matrix((entries, np.tile(np.arange(count), n), count * np.arange(n + 1)), shape=(count, n))
            self._solver = osqp.OSQP()
            self._solver.setup(
                quadratic, program.q, rows, low, high,
                verbose=False, eps_abs=1e-10, eps_rel=1e-10, max_iter=50_000, check_termination=25, polishing=False,
            )  # fmt: skip
        else:
            self._solver.update(q=program.q, l=low, u=high, Px=upper, Ax=entries)
        found = self._solver.solve(raise_error=False)
        word = str(found.info.status)
        status = SOLVED if word.startswith("solved") else ITERATION_LIMIT if "iterations" in word else NUMERICAL
        if "primal infeasible" in word:
            status = INFEASIBLE
        y = -np.asarray(found.y)
        raw = QPResult(status, np.array(found.x), y[:p], y[p : p + r], y[p + r :], int(found.info.iter))
        return sharpened(program, raw) if status in (SOLVED, ITERATION_LIMIT) else raw


def sharpened(program: QuadraticProgram, raw: QPResult) -> QPResult:
    """The exact solution for the rows that a solver found active, where it is close and keeps all signs; else `raw`.

    Rows that press weakly are hard to tell from rows that are near; a few are put right by their signs. A solver that
    ran out of iterations close to the solution has solved the program as well.
    """
    n, _, r = program.sizes
    rows, forces = np.concatenate((program.C, np.eye(n))), np.concatenate((raw.z, raw.w))
    low = np.concatenate((program.c_low, program.x_low))
    high = np.concatenate((program.c_high, program.x_high))
    value = rows @ raw.x
    side = np.where(value - low < forces, 1.0, 0.0) - np.where(high - value < -forces, 1.0, 0.0)
    side[low == high] = 1.0
    for _ in range(CORRECTIONS):
        x, y, exact = _exact(program, rows, np.where(side > 0.0, low, high), np.flatnonzero(side), raw)
        if not np.all(np.isfinite(x)) or np.max(np.abs(x - raw.x)) > NEAR * (1.0 + np.max(np.abs(raw.x))):
            return raw
        value, small = rows @ x, NOTHING * (1.0 + np.max(np.abs(exact), initial=0.0))
        pulling = (exact * side < -small) & (low < high)
        below, above = (room < -NOTHING * (1.0 + np.abs(value)) for room in (value - low, high - value))
        if not (pulling | below | above).any():
            x = np.clip(x, program.x_low, program.x_high)
            return raw._replace(status=SOLVED, x=x, y=y, z=exact[:r], w=exact[r:])
        side[pulling], side[below], side[above] = 0.0, 1.0, -1.0
    return raw


def _exact(
    program: QuadraticProgram, rows: Array, bounds: Array, active: NDArray[np.intp], raw: QPResult
) -> tuple[Array, Array, Array]:
    """Unknowns, forces of the equations and of all rows where the active ones are at their bounds."""
    n, p, _ = program.sizes
    border = np.concatenate((program.A, rows[active]))
    system = np.zeros((n + border.shape[0],) * 2)
    system[:n, :n], system[:n, n:], system[n:, :n] = program.P, -border.T, border
    wanted = np.concatenate((-program.q, program.b, bounds[active]))
    guess = np.concatenate((raw.x, raw.y, np.zeros(active.size)))
    # A shift makes the inverse exist where rows depend on each other; refinement takes its effect away.
    inverse = np.linalg.inv(system + 1e-9 * max(1.0, float(np.max(np.abs(program.P)))) * np.eye(guess.size))
    for _ in range(CORRECTIONS):
        guess = guess + inverse @ (wanted - system @ guess)
    exact = np.zeros(rows.shape[0])
    exact[active] = guess[n + p :]
    return guess[:n], guess[n : n + p], exact
