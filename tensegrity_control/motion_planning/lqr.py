"""Linear quadratic regulators of sampled systems, x_k+1 = A x_k + B u_k: the gain K of u = -K x with the least cost.

`regulator` is the one over an infinite time, `riccati_sweep` the one along a trajectory of finitely many steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm, solve_discrete_are

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.numerics.types import Array

from ..cancellation import checkpoint


def discretized(matrix: Array, inputs: Array, period: float) -> tuple[Array, Array]:
    """A (n, n) and B (n, u), the exact discrete form of x' = matrix x + inputs u with u held over a period [s]."""
    size, drives = inputs.shape
    block = np.zeros((size + drives, size + drives))
    block[:size] = np.hstack((matrix, inputs))
    step = expm(period * block)
    return step[:size, :size], step[:size, size:]


def discretized_with_drift(matrix: Array, inputs: Array, period: float) -> tuple[Array, Array, Array]:
    """A, B, and D (n, n) of x_k+1 = A x_k + B u_k + D c for x' = matrix x + inputs u + c, where c is held, too."""
    size, drives = inputs.shape
    ahead, push = discretized(matrix, np.hstack((inputs, np.eye(size))), period)
    return ahead, push[:, :drives], push[:, drives:]


def regulator(ahead: Array, push: Array, state_cost: Array, input_cost: Array) -> tuple[Array, Array]:
    """Cost matrix (n, n) and gain (u, n) of the regulator over an infinite time.

    Args:
        ahead, push: A (n, n) and B (n, u). state_cost, input_cost: (n, n) and (u, u) of the quadratic cost per step.

    Raises:
        InfeasibleControlError: there is none with these costs.
    """
    try:
        value = solve_discrete_are(ahead, push, state_cost, input_cost)
    except (ValueError, ArithmeticError) as error:  # of numpy and scipy, LinAlgError among them
        raise InfeasibleControlError(f"no regulator has these weights ({error}); take less extreme ones.") from error
    return value, np.linalg.solve(input_cost + push.T @ value @ push, push.T @ value @ ahead)


@dataclass(frozen=True, eq=False)
class LinearPieces:
    """A trajectory's linear dynamics, x_k+1 = ahead x_k + push u_k + defect, and its output, jacobian x_k + error.

    Attributes:
        ahead, push, defect: lists of (n, n), (n, u) and (n,), one less than there are instants.
        jacobian, error: lists of (p, n) and (p,), one for each instant.
    """

    ahead: list[Array]
    push: list[Array]
    defect: list[Array]
    jacobian: list[Array]
    error: list[Array]


def riccati_sweep(
    pieces: LinearPieces, state_cost: Array, input_cost: Array, output: float, gains: Array
) -> list[Array]:
    """Inputs u_k = -step_k - gain_k x_k with the least cost of states, inputs and |(jacobian x + error) / output|^2.

    Args:
        state_cost, input_cost: (n, n) and (u, u). output: m, deviation that costs 1. Beyond the end all stays as there.
        gains: (k, u, n), written.

    Returns:
        Steps, (u,) each; that of the last instant is 0.

    Raises:
        InfeasibleControlError: see `regulator`.
    """
    count = len(pieces.jacobian)
    last = pieces.jacobian[-1].T @ pieces.jacobian[-1] / output**2 + state_cost
    value, gains[-1] = regulator(pieces.ahead[-1], pieces.push[-1], last, input_cost)
    slope = pieces.jacobian[-1].T @ pieces.error[-1] / output**2
    steps = [np.zeros(input_cost.shape[0])] * count
    for k in range(count - 2, -1, -1):
        checkpoint()
        ahead, push = pieces.ahead[k], pieces.push[k]
        pulled = slope + value @ pieces.defect[k]
        curvature = input_cost + push.T @ value @ push
        both = np.linalg.solve(curvature, np.column_stack((push.T @ value @ ahead, push.T @ pulled)))
        gains[k], steps[k] = both[:, :-1], both[:, -1]
        jacobian = pieces.jacobian[k]
        slope = jacobian.T @ pieces.error[k] / output**2 + ahead.T @ (pulled - value @ (push @ steps[k]))
        value = jacobian.T @ jacobian / output**2 + state_cost + ahead.T @ value @ (ahead - push @ gains[k])
        value = 0.5 * (value + value.T)
    return steps
