"""Small dense convex quadratic programs and the results of their solvers.

    min 1/2 x'P x + q'x    s.t.  A x = b    c_low <= C x <= c_high    x_low <= x <= x_high

At the solution P x + q = A'y + C'z + w, with multipliers z and w positive where a lower bound is active, negative where
an upper one is, and zero elsewhere; 000 (2.1.3)-(2.1.4).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from tensegrity_dynamics.numerics.compilation import compiled
from tensegrity_dynamics.numerics.types import Array

SOLVED, INFEASIBLE, ITERATION_LIMIT, NUMERICAL = "solved", "infeasible", "iteration limit", "numerical"
TIE_WEIGHT = 1e-8  # of a squared unknown that nothing else weighs, in parts of the largest entry of P's diagonal


class Objective(NamedTuple):
    """Cost 1/2 x'P x + q'x, with P (n, n) symmetric and positive semidefinite and q (n,)."""

    P: Array
    q: Array


class Equations(NamedTuple):
    """Rows A x = b with A (p, n) and b (p,)."""

    A: Array
    b: Array


class Rows(NamedTuple):
    """Inequalities lower <= C x <= upper with C (r, n); bounds (r,) may be infinite."""

    C: Array
    lower: Array
    upper: Array


class Bounds(NamedTuple):
    """Bounds lower <= x <= upper of the unknowns, (n,) each; they may be infinite."""

    lower: Array
    upper: Array


class Sizes(NamedTuple):
    """Numbers of unknowns x, of rows of A and of rows of C."""

    variables: int
    equalities: int
    rows: int


class QuadraticProgram(NamedTuple):
    """Arrays of a program, C-contiguous. Bounds may be infinite; all other entries are finite."""

    P: Array
    q: Array
    A: Array
    b: Array
    C: Array
    c_low: Array
    c_high: Array
    x_low: Array
    x_high: Array

    @classmethod
    def of(
        cls, objective: Objective, equations: Equations | None = None, rows: Rows | None = None,
        bounds: Bounds | None = None,
    ) -> QuadraticProgram:  # fmt: skip
        """Program of an objective and optional conditions."""
        n = objective.q.size
        equations = equations or Equations(np.zeros((0, n)), np.zeros(0))
        rows = rows or Rows(np.zeros((0, n)), np.zeros(0), np.zeros(0))
        bounds = bounds or Bounds(np.full(n, -np.inf), np.full(n, np.inf))
        return cls(*(np.ascontiguousarray(array) for array in (*objective, *equations, *rows, *bounds)))

    @property
    def sizes(self) -> Sizes:
        """Sizes of this program, for the choice of a solver."""
        return Sizes(self.q.size, self.b.size, self.c_low.size)


class QPResult(NamedTuple):
    """Result of a solver: status (see `SOLVED`), unknowns x (n,), multipliers y (p,), z (r,), w (n,), iterations.

    With `tie_broken` the program has many solutions; x is the one with the smallest unknowns (`without_ties`).
    """

    status: str
    x: Array
    y: Array
    z: Array
    w: Array
    iterations: int
    tie_broken: bool = False


class QPSolver(Protocol):
    """Solver of programs of one size."""

    def solve(self, program: QuadraticProgram) -> QPResult:
        """Result for a program of the sizes of the solver; the caller owns its arrays."""


def without_ties(program: QuadraticProgram) -> QuadraticProgram:
    """The program with a small cost of large unknowns, each scaled by its effect in the equations."""
    P = program.P.copy()
    add_tie_weights(program.A, P)
    return program._replace(P=P)


@compiled
def add_tie_weights(A, P):  # type: ignore[no-untyped-def]
    """Add TIE_WEIGHT times the largest diagonal entry of P to the diagonal of P."""
    p, n = A.shape
    heaviest, felt = 0.0, np.zeros(n)
    for i in range(n):
        heaviest = max(heaviest, P[i, i])
    for k in range(p):
        square = 0.0
        for i in range(n):
            square += A[k, i] * A[k, i]
        for i in range(n):
            if square > 0.0:
                felt[i] = max(felt[i], A[k, i] * A[k, i] / square)
    for i in range(n):
        P[i, i] += TIE_WEIGHT * (heaviest if heaviest > 0.0 else 1.0) * (felt[i] if felt[i] > 0.0 else 1.0)


@compiled
def equation_error(program, x):  # type: ignore[no-untyped-def]
    """Largest error |A x - b| of an equation, and the largest error relative to the largest term of its equation."""
    absolute, relative = 0.0, 0.0
    for i in range(x.shape[0]):
        if not np.isfinite(x[i]):
            return np.inf, np.inf
    for k in range(program.b.shape[0]):
        error, size = -program.b[k], abs(program.b[k])
        for i in range(x.shape[0]):
            part = program.A[k, i] * x[i]
            error += part
            size = max(size, abs(part))
        absolute, relative = max(absolute, abs(error)), max(relative, abs(error) / max(size, 1e-3))
    return absolute, relative
