"""Proof that a program has no solution, and the names of the conditions that clash.

By the lemma of Farkas the conditions have no common point exactly where multipliers of their signs exist with

    A'y + C'z + w = 0    and    b'y + (bounds of C)'z + (bounds of x)'w > 0.

They are the solution of a non-negative least squares problem (Lawson and Hanson, Solving Least Squares Problems, 1974,
chapter 23). It has as few of them as possible: without any one of the conditions that it weighs, the others have a
common point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from .control_problem import InputProblem
from .quadratic_program import QuadraticProgram

Array = NDArray[np.float64]

PROOF = 1e-7  # left of a unit contradiction; a program with a solution at distance d leaves 1 / (1 + d^2)^(1/2)
ROUNDING = 1e-9  # part of the largest weight that counts as none


class Infeasibility(NamedTuple):
    """Multipliers y (p,), z (r,), w (n,) of conditions that clash; zero for those that take no part."""

    y: Array
    z: Array
    w: Array


def prove_infeasible(program: QuadraticProgram) -> Infeasibility | None:
    """Multipliers that prove that a program has no solution; None where there are none."""
    n, p, _ = program.sizes
    rows = np.concatenate((program.A, program.C, np.eye(n)))
    low = np.concatenate((program.b, program.c_low, program.x_low))
    high = np.concatenate((program.b, program.c_high, program.x_high))
    size = np.linalg.norm(rows, axis=1)
    size[size == 0.0] = 1.0
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    system = np.empty((n + 1, below.size + above.size))
    system[:n, : below.size] = (rows[below] / size[below, None]).T
    system[:n, below.size :] = -(rows[above] / size[above, None]).T
    system[n] = np.concatenate((low[below] / size[below], -high[above] / size[above]))
    if not np.isfinite(system).all():
        return None
    system[n] /= max(1.0, float(np.max(np.abs(system[n]), initial=0.0)))
    target = np.zeros(n + 1)
    target[n] = 1.0
    try:
        weights, left = nnls(system, target)
    except RuntimeError:  # more iterations than it allows itself
        return None
    if left > PROOF:
        return None
    weights[weights < ROUNDING * np.max(weights)] = 0.0
    forces = np.zeros(rows.shape[0])
    forces[below] = weights[: below.size]
    forces[above] -= weights[below.size :]
    forces /= size
    r = program.c_low.size
    return Infeasibility(forces[:p], forces[p : p + r], forces[p + r :])


def clashing_names(problem: InputProblem, proof: Infeasibility) -> tuple[str, ...]:
    """Names of the unknowns, rows and tracked directions that a proof weighs; rounding weighs nothing."""
    unknowns = [name for name, weight in zip(problem.all_names, proof.w, strict=True) if weight]
    rows = [name for name, weight in zip(problem.row_names, proof.z, strict=True) if weight]
    directions = np.asarray(problem.tracking_directions)
    pull, parts = np.abs(proof.y @ directions), np.abs(proof.y) @ np.abs(directions)
    least = ROUNDING * float(np.max(parts, initial=0.0))
    tracked: tuple[str, ...] = tuple(problem.tracked)  # type: ignore[arg-type]
    return (*unknowns, *rows, *(name for name, weight in zip(tracked, pull, strict=True) if weight > least))
