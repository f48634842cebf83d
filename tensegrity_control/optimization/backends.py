"""External solvers with the interface of `QPSolver`.

The results of `piqp` (proximal interior point) and `osqp` (operator splitting) are refined: the optimality conditions
are solved exactly for the active rows that the solver found. The refined result is accepted only if it is close to the
original one and all signs are correct.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.numerics.compilation import Kept, QuickCall, allocation_free, taken
from tensegrity_dynamics.numerics.types import Array

from .quadratic_program import (
    INFEASIBLE,
    ITERATION_LIMIT,
    NUMERICAL,
    SOLVED,
    QPResult,
    QuadraticProgram,
    Sizes,
    without_ties,
)

FLOAT = np.dtype(np.float64)
NOTHING = 1e-9  # violation or multiplier below which it is rounding
NEAR = 1e-4  # largest change of the unknowns by the refinement, relative to the largest unknown
CORRECTIONS = 10
EMPTY_ROW = 1e-9  # tolerance of the bounds of a row without entries, which must contain zero
TIED = "tied"  # the solution is not unique
DAQP_EQUATION = 5
DAQP_FLAGS = {1: SOLVED, -1: INFEASIBLE, -2: ITERATION_LIMIT, -4: ITERATION_LIMIT, -5: TIED}
DAQP_ACCURATE = 1e-11  # relative error of the optimality condition above which a result is refined
DAQP_SETTINGS = {"primal_tol": 1e-12, "sing_tol": 1e-13, "zero_tol": 1e-13, "eps_prox": 0.0}


class _Scaled(NamedTuple):
    """Arrays of a program in the form of daqp, with columns and rows of norm one; bounds of x come before the rows."""

    H: Array  # (n, n)
    f: Array  # (n,)
    rows: Array  # (p + r, n)
    low: Array  # (n + p + r,)
    high: Array  # (n + p + r,)
    column: Array  # (n,) unknowns per scaled unknown
    row: Array  # (p + r,) norm of a row
    weight: Array  # (p,) weights of the squared equations in the objective

    @classmethod
    def of(cls, sizes: Sizes) -> _Scaled:
        n, p, r = sizes
        m = p + r
        return cls(*(np.zeros(shape) for shape in ((n, n), n, (m, n), n + m, n + m, n, m, p)))


@allocation_free
def scale_program(program, kept):  # type: ignore[no-untyped-def]
    """Write a program into `kept`, a `_Scaled`; returns whether all of it is finite (bounds aside).

    The squared equations are added to the objective, 1/2 (A x - b)'R (A x - b). This changes no solution and makes the
    quadratic form definite if the solution is unique.
    """
    ((H, f, rows, low, high, column, row, weight),) = taken(kept)
    n, p, r = program.q.shape[0], program.b.shape[0], program.c_low.shape[0]
    heaviest, total = 0.0, 0.0
    for i in range(n):
        heaviest = max(heaviest, program.P[i, i])
        f[i] = program.q[i]
        for j in range(n):
            H[i, j] = program.P[i, j]
    heaviest = heaviest if heaviest > 0.0 else 1.0
    for k in range(p):
        square = 0.0
        for i in range(n):
            square += program.A[k, i] * program.A[k, i]
        weight[k] = heaviest / square if square > 0.0 else 0.0
        for i in range(n):
            pull = weight[k] * program.A[k, i]
            if pull != 0.0:
                f[i] -= pull * program.b[k]
                for j in range(n):
                    H[i, j] += pull * program.A[k, j]
        total += program.b[k]
    for i in range(n):
        column[i] = 1.0 / np.sqrt(H[i, i]) if H[i, i] > 0.0 else 1.0
    for i in range(n):
        f[i] *= column[i]
        total += f[i]
        for j in range(n):
            H[i, j] *= column[i] * column[j]
            total += H[i, j]
        low[i], high[i] = program.x_low[i] / column[i], program.x_high[i] / column[i]
    for k in range(p + r):
        square = 0.0
        for i in range(n):
            rows[k, i] = (program.A[k, i] if k < p else program.C[k - p, i]) * column[i]
            square += rows[k, i] * rows[k, i]
        row[k] = np.sqrt(square) if square > 0.0 else 1.0
        total += row[k]
        for i in range(n):
            rows[k, i] /= row[k]
        slack = 0.0 if square > 0.0 else EMPTY_ROW
        low[n + k] = (program.b[k] if k < p else program.c_low[k - p]) / row[k] - slack
        high[n + k] = (program.b[k] if k < p else program.c_high[k - p]) / row[k] + slack
    return np.isfinite(total)


@allocation_free
def unscale_result(program, kept, solution, multipliers, x, y, z, w):  # type: ignore[no-untyped-def]
    """Compute unknowns and multipliers of the program from those of the scaled one, whose multipliers have the opposite
    sign.

    Returns the largest entry of P x + q - A'y - C'z - w relative to its largest term, both of the scaled program.
    """
    n, p, r = x.shape[0], y.shape[0], z.shape[0]
    (scaled,) = taken(kept)
    for i in range(n):  # rounding must not break a bound
        x[i] = min(max(solution[i] * scaled.column[i], program.x_low[i]), program.x_high[i])
        w[i] = -multipliers[i] / scaled.column[i]
    for k in range(p):
        error = -program.b[k]
        for i in range(n):
            error += program.A[k, i] * x[i]
        y[k] = -multipliers[n + k] / scaled.row[k] - scaled.weight[k] * error
    for k in range(r):
        z[k] = -multipliers[n + p + k] / scaled.row[p + k]
    worst, largest = 0.0, 0.0
    for i in range(n):
        slope, size = program.q[i] - w[i], max(abs(program.q[i]), abs(w[i]))
        for j in range(n):
            part = program.P[i, j] * x[j]
            slope += part
            size = max(size, abs(part))
        for k in range(p):
            part = program.A[k, i] * y[k]
            slope -= part
            size = max(size, abs(part))
        for k in range(r):
            part = program.C[k, i] * z[k]
            slope -= part
            size = max(size, abs(part))
        worst, largest = max(worst, abs(slope) * scaled.column[i]), max(largest, size * scaled.column[i])
    return worst / largest if worst > 0.0 else 0.0


# shared by all solvers: array types do not depend on the sizes, and a lookup takes longer than a solution
_scale, _unscale = QuickCall(scale_program), QuickCall(unscale_result)


class Daqp:
    """The dual active-set method `daqp` (Arnstroem, Bemporad, Axehill, 2022), for a few dozen unknowns.

    Exact up to rounding. Every program starts cold, so a result does not depend on the programs before it.

    Args:
        sizes: sizes of the programs.
        iteration_limit: largest number of changes of the active set.
    """

    def __init__(self, sizes: Sizes, iteration_limit: int = 1000) -> None:
        import daqp

        n, p, r = self._sizes = sizes
        self._scaled, self._daqp = _Scaled.of(sizes), daqp.solve
        self._kept = Kept(self._scaled)
        self._settings = {**DAQP_SETTINGS, "iter_limit": iteration_limit}
        self._sense = np.array([0] * n + [DAQP_EQUATION] * p + [0] * r, dtype=np.intc)
        self._unsolved = np.full(n, np.nan)
        self._checked: QuadraticProgram | None = None  # nearly always the same arrays with new values

    def solve(self, program: QuadraticProgram) -> QPResult:
        """See `QPSolver`. If the solution is not unique, that of `without_ties`."""
        result = self._solve(program)
        if result.status == TIED:
            result = self._solve(without_ties(program))._replace(tie_broken=True)
        return result._replace(status=NUMERICAL) if result.status == TIED else result

    def _solve(self, program: QuadraticProgram) -> QPResult:
        n, p, r = self._sizes
        scaled = self._scaled
        x, y, z, w = self._unsolved.copy(), np.zeros(p), np.zeros(r), np.zeros(n)
        if program is not self._checked:
            if not all(each.dtype is FLOAT and each.flags.c_contiguous for each in program):
                program = QuadraticProgram(*(np.ascontiguousarray(each, dtype=np.float64) for each in program))
            self._checked = program
        if not _scale(program, self._kept):
            return QPResult(NUMERICAL, x, y, z, w, 0)
        solution, _, flag, info = self._daqp(
            scaled.H, scaled.f, scaled.rows, scaled.high, scaled.low, self._sense, **self._settings
        )
        status = DAQP_FLAGS.get(flag, NUMERICAL)
        result = QPResult(status, x, y, z, w, int(info["iterations"]))
        if status == SOLVED and _unscale(program, self._kept, solution, info["lam"], x, y, z, w) > DAQP_ACCURATE:
            return sharpened(program, result)
        return result


class Piqp:
    """The proximal interior-point solver `piqp`, with refinement; its set-up is kept between programs.

    Args:
        sizes: sizes of the programs.
        iteration_limit: largest number of iterations.
        sharpen: whether results are refined. Without refinement the accuracy is 1e-10, and an inverse of the size of
            the program is saved.
    """

    def __init__(self, sizes: Sizes, iteration_limit: int = 250, *, sharpen: bool = True) -> None:
        self.sizes, self._sharpens = sizes, sharpen
        import piqp

        self._statuses = {
            piqp.PIQP_SOLVED: SOLVED,
            piqp.PIQP_PRIMAL_INFEASIBLE: INFEASIBLE,
            piqp.PIQP_MAX_ITER_REACHED: ITERATION_LIMIT,
        }
        self._solver = piqp.DenseSolver()
        settings = self._solver.settings
        settings.eps_abs = settings.eps_duality_gap_abs = 1e-10
        settings.eps_rel = settings.eps_duality_gap_rel = 1e-12
        settings.check_duality_gap = True
        settings.max_iter = iteration_limit
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
        status = self._statuses.get(self._solver.solve(), NUMERICAL)
        found = self._solver.result
        z = np.array(found.z_l) - np.array(found.z_u)
        w = np.array(found.z_bl) - np.array(found.z_bu)
        x = np.clip(found.x, program.x_low, program.x_high)
        raw = QPResult(status, x, -np.array(found.y), z, w, int(found.info.iter))
        return sharpened(program, raw) if self._sharpens and status in (SOLVED, ITERATION_LIMIT) else raw


class Osqp:
    """The operator-splitting solver `osqp`, with refinement; its set-up and last solution are kept.

    Args:
        sizes: sizes of the programs.
        iteration_limit: largest number of iterations.
    """

    def __init__(self, sizes: Sizes, iteration_limit: int = 50_000) -> None:
        self.sizes, self._limit = sizes, iteration_limit
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
                verbose=False, eps_abs=1e-10, eps_rel=1e-10, max_iter=self._limit, check_termination=25,
                polishing=False,
            )  # fmt: skip
        else:
            self._solver.update(q=program.q, l=low, u=high, Px=upper, Ax=entries)
        found = self._solver.solve(raise_error=False)
        word = str(found.info.status)
        status = SOLVED if word.startswith("solved") else ITERATION_LIMIT if "iterations" in word else NUMERICAL
        if "primal infeasible" in word:
            status = INFEASIBLE
        y = -np.asarray(found.y)
        x = np.clip(found.x, program.x_low, program.x_high)
        raw = QPResult(status, x, y[:p], y[p : p + r], y[p + r :], int(found.info.iter))
        return sharpened(program, raw) if status in (SOLVED, ITERATION_LIMIT) else raw


def sharpened(program: QuadraticProgram, raw: QPResult) -> QPResult:
    """Refined result: exact solution for the active rows of a solver, if it is close and all signs are correct; else
    `raw`.

    Rows with small multipliers are hard to distinguish from inactive rows near their bounds; a few of them are
    corrected by their signs. A solver that reached its iteration limit close to the solution counts as successful.
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
        below, above = (margin < -NOTHING * (1.0 + np.abs(value)) for margin in (value - low, high - value))
        if not (pulling | below | above).any():
            x = np.clip(x, program.x_low, program.x_high)
            return raw._replace(status=SOLVED, x=x, y=y, z=exact[:r], w=exact[r:])
        side[pulling], side[below], side[above] = 0.0, 1.0, -1.0
    return raw


def _exact(
    program: QuadraticProgram, rows: Array, bounds: Array, active: NDArray[np.intp], raw: QPResult
) -> tuple[Array, Array, Array]:
    """Unknowns, multipliers of the equations and of all rows, with the active rows at their bounds."""
    n, p, _ = program.sizes
    border = np.concatenate((program.A, rows[active]))
    system = np.zeros((n + border.shape[0],) * 2)
    system[:n, :n], system[:n, n:], system[n:, :n] = program.P, -border.T, border
    right = np.concatenate((-program.q, program.b, bounds[active]))
    guess = np.concatenate((raw.x, raw.y, np.zeros(active.size)))
    # A shift makes the matrix regular if rows are dependent; iterative refinement removes its effect.
    inverse = np.linalg.inv(system + 1e-9 * max(1.0, float(np.max(np.abs(program.P)))) * np.eye(guess.size))
    for _ in range(CORRECTIONS):
        guess = guess + inverse @ (right - system @ guess)
    exact = np.zeros(rows.shape[0])
    exact[active] = guess[n + p :]
    return guess[:n], guess[n : n + p], exact
