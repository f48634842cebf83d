"""Small dense quadratic programs and what their solvers return.

    min 1/2 x'P x + q'x    s.t.  A x = b    c_low <= C x <= c_high    x_low <= x <= x_high

At the solution P x + q = A'y + C'z + w, with z and w positive where a lower bound presses, negative where an upper one
does and zero elsewhere; 000 (2.1.3)-(2.1.4).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.numerics.compilation import compiled

from .dense import dot

Array = NDArray[np.float64]

STATUSES = SOLVED, INFEASIBLE, ITERATION_LIMIT, NUMERICAL = "solved", "infeasible", "iteration limit", "numerical"
SLIGHT = 1e-8  # weight of breaking ties beside the heaviest one


class Sizes(NamedTuple):
    """Numbers of unknowns x, of rows of A and of rows of C."""

    variables: int
    equalities: int
    rows: int


class QuadraticProgram(NamedTuple):
    """The arrays of a program; see the module. Bounds may be infinite; everything else is finite and C-contiguous."""

    P: Array
    q: Array
    A: Array
    b: Array
    C: Array
    c_low: Array
    c_high: Array
    x_low: Array
    x_high: Array

    @property
    def sizes(self) -> Sizes:
        """Of the unknowns and rows."""
        return Sizes(self.q.size, self.b.size, self.c_low.size)


class QPResult(NamedTuple):
    """What a solver found: status (one of STATUSES), unknowns x (n,), multipliers y (p,), z (r,), w (n,), iterations.

    Where `certified`, the multipliers prove infeasibility: A'y + C'z + w = 0, while the bounds so weighed ask for more.
    Where `tie_broken`, x is one of many solutions.
    """

    status: str
    x: Array
    y: Array
    z: Array
    w: Array
    iterations: int
    certified: bool = False
    tie_broken: bool = False


class QPSolver(Protocol):
    """Solves programs of one size, keeping its work space and where the last one ended."""

    def solve(self, program: QuadraticProgram) -> QPResult:
        """Solve a program of the solver's sizes; the result's arrays are its own."""


def without_ties(program: QuadraticProgram) -> QuadraticProgram:
    """The program with a slight wish for small unknowns, each in the unit in which the equations feel it."""
    size = np.linalg.norm(program.A, axis=1)[:, None]
    felt = np.max(np.abs(program.A) / np.where(size > 0.0, size, 1.0), axis=0, initial=0.0)
    heaviest = float(np.max(np.diag(program.P), initial=0.0)) or 1.0
    return program._replace(P=program.P + np.diag(SLIGHT * heaviest * np.where(felt > 0.0, felt, 1.0) ** 2))


@compiled
def worst_error(program, x):  # type: ignore[no-untyped-def]
    """Largest error of the equations, and the largest in parts of their size."""
    absolute, relative = 0.0, 0.0
    if not np.isfinite(dot(x, x)):
        return np.inf, np.inf
    for k in range(program.b.shape[0]):
        error, size = -program.b[k], abs(program.b[k])
        for i in range(x.shape[0]):
            part = program.A[k, i] * x[i]
            error += part
            size = max(size, abs(part))
        absolute, relative = max(absolute, abs(error)), max(relative, abs(error) / max(size, 1e-3))
    return absolute, relative
