"""Linear quadratic regulators of sampled systems, x_k+1 = A x_k + B u_k: gain K of u = -K x with minimum cost.

`regulator` is the one for infinite time, `RiccatiSweep` the one along a trajectory with a finite number of steps. Every
matrix argument may also be a stack of matrices, which are processed at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import matrix_balance, solve_discrete_are

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.linear_models.discretization import exponential_sums
from tensegrity_dynamics.numerics.types import Array

from ..cancellation import checkpoint

DOUBLINGS = 60
"""Largest number of doublings of the horizon of a regulator."""
OUT_OF_RANGE = "the costs of a regulator along this motion leave the range of numbers; take less extreme weights."
SOLVED, REFINEMENTS = 1e-9, 5
"""Relative error of the solution of a Riccati equation that is accepted, and most steps of its recursion, each of which
reduces the error by the square of the spectral radius of the closed loop."""


def discretized(matrix: Array, inputs: Array, period: float) -> tuple[Array, Array]:
    """A (n, n) and B (n, u), the exact discrete form of x' = matrix x + inputs u with u held over a period [s]."""
    ahead, push, _ = discretized_with_drift(matrix, inputs, period)
    return ahead, push


def discretized_with_drift(matrix: Array, inputs: Array, period: float) -> tuple[Array, Array, Array]:
    """A, B, and D (n, n) of x_k+1 = A x_k + B u_k + D c for x' = matrix x + inputs u + c, with u and c constant over a
    period.

    D / period = p1 of `exponential_sums`.
    """
    ahead, mean, _ = exponential_sums(period * np.asarray(matrix))
    drift = period * mean
    return ahead, drift @ inputs, drift


def regulator(ahead: Array, push: Array, state_cost: Array, input_cost: Array) -> tuple[Array, Array]:
    """Cost matrix (n, n) and gain (u, n) of the regulator for infinite time.

    Computed by structured doubling (Chu, Fan, Lin, Wang, 2004), in which every step doubles the horizon, and steps of
    the recursion, which remove its rounding errors; if that does not solve the equation, by the eigenvectors of the
    pencil.

    Args:
        ahead, push: A (n, n) and B (n, u).
        state_cost, input_cost: (n, n) and (u, u) of the quadratic cost per step.

    Raises:
        InfeasibleControlError: there is no regulator with these costs.
    """
    value = _doubled(ahead, push, state_cost, input_cost)
    for _ in range(REFINEMENTS):
        gain = _gain(value, ahead, push, input_cost)
        before, value = value, state_cost + _turned(ahead) @ value @ (ahead - push @ gain)
        if np.all(_sizes(value - before) <= SOLVED * _sizes(before)):
            return before, gain
        value = 0.5 * (value + _turned(value))
    if ahead.ndim > 2:
        costs = np.broadcast_to(state_cost, ahead.shape)
        each = [regulator(a, b, cost, input_cost) for a, b, cost in zip(ahead, push, costs, strict=True)]
        return np.array([value for value, _ in each]), np.array([gain for _, gain in each])
    try:
        # balanced coordinates: light bodies on stiff cables and heavy bodies differ by orders of magnitude
        scale = np.diagonal(matrix_balance(ahead, permute=False)[1])
        scales = np.outer(scale, scale)
        value = solve_discrete_are(
            ahead * scale / scale[:, None], push / scale[:, None], np.asarray(state_cost) * scales, input_cost
        )
        value = value / scales
    except (ValueError, ArithmeticError) as error_found:  # of numpy and scipy, LinAlgError among them
        raise InfeasibleControlError(
            f"no regulator has these weights ({error_found}); take less extreme ones."
        ) from error_found
    return value, _gain(value, ahead, push, input_cost)


def _turned(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def _sizes(matrix: Array) -> Array:
    return np.asarray(np.max(np.abs(matrix), axis=(-2, -1)))


def _gain(value: Array, ahead: Array, push: Array, input_cost: Array) -> Array:
    pulled = _turned(push) @ value
    return np.asarray(np.linalg.solve(input_cost + pulled @ push, pulled @ ahead))


def _doubled(ahead: Array, push: Array, state_cost: Array, input_cost: Array) -> Array:
    """Cost matrix (n, n) by doubling; not finite, or no solution, if the method fails."""
    step, identity = np.asarray(ahead), np.eye(ahead.shape[-1])
    scale = np.sqrt(np.maximum(np.diagonal(np.broadcast_to(state_cost, step.shape), axis1=-2, axis2=-1), 1e-300))
    step = scale[..., :, None] * step / scale[..., None, :]  # so that states cost about one
    moved = scale[..., :, None] * push
    reach = moved @ np.linalg.solve(input_cost, _turned(moved))
    value = np.broadcast_to(state_cost, step.shape) / (scale[..., :, None] * scale[..., None, :])
    with np.errstate(all="ignore"):
        for _ in range(DOUBLINGS):
            try:
                solved = np.linalg.solve(identity + reach @ value, np.concatenate((step, reach), axis=-1))
            except np.linalg.LinAlgError:
                break
            size = step.shape[-1]
            more = _turned(step) @ value @ solved[..., :size]
            reach = reach + step @ solved[..., size:] @ _turned(step)
            step = step @ solved[..., :size]
            value = value + 0.5 * (more + _turned(more))
            if not np.all(np.isfinite(value)):
                break
            if np.all(np.max(np.abs(more), axis=(-2, -1)) <= 1e-14 * np.max(np.abs(value), axis=(-2, -1))):
                break
    return np.asarray(scale[..., :, None] * value * scale[..., None, :])


@dataclass(frozen=True, eq=False)
class LinearPieces:
    """Linear dynamics x_k+1 = ahead x_k + push u_k + defect and output jacobian x_k + error along a trajectory.

    Attributes:
        ahead, push: (k - 1, n, n) and (k - 1, n, u).
        jacobian: (k, p, n).
    """

    ahead: Array
    push: Array
    jacobian: Array


class RiccatiSweep:
    """Inputs u_k = -step_k - gain_k x_k that minimise the cost of states, inputs and |(jacobian x + error) / output|^2.

    Args:
        pieces: linear dynamics along the trajectory.
        state_cost, input_cost: (n, n) and (u, u).
        output: m, deviation with cost 1. After the end the cost continues with the last values.
        end: `end` of another sweep with the same final state; None to compute it.
        last: cost matrix (n, n) of the last state if the motion continues after it; None for that of `end`.

    Attributes:
        gains: (k, u, n).
        values: (k, n, n) cost matrices.
        end: cost matrix (n, n) and gain (u, n) after the end.

    Raises:
        InfeasibleControlError: see `regulator`.
    """

    def __init__(
        self,
        pieces: LinearPieces,
        state_cost: Array,
        input_cost: Array,
        output: float,
        end: tuple[Array, Array] | None = None,
        last: Array | None = None,
    ) -> None:
        from scipy.linalg.lapack import dposv  # little overhead, unlike numpy's solver for small matrices

        self.pieces, self._output = pieces, output
        count, drives = len(pieces.jacobian), input_cost.shape[0]
        costs = _turned(pieces.jacobian) @ pieces.jacobian / output**2 + state_cost
        self.end = end or regulator(pieces.ahead[-1], pieces.push[-1], costs[-1], input_cost)
        value, gain = self.end
        value = value if last is None else last
        self.gains = np.empty((count, drives, value.shape[0]))
        self.gains[-1] = gain
        self.values = np.empty_like(costs)
        self.values[-1] = value
        self._inverses, identity = np.empty((count - 1, drives, drives)), np.eye(drives)
        for k in range(count - 2, -1, -1):
            if not k % 100:
                checkpoint()
            ahead, push = pieces.ahead[k], pieces.push[k]
            pulled = push.T @ value
            inverse, failed = dposv(input_cost + pulled @ push, identity)[1:]
            if failed:
                raise InfeasibleControlError(OUT_OF_RANGE)
            self._inverses[k] = inverse
            gain = self.gains[k] = inverse @ (pulled @ ahead)
            value = costs[k] + ahead.T @ (value @ (ahead - push @ gain))
            value = self.values[k] = 0.5 * (value + value.T)
        self._closed = pieces.ahead - pieces.push @ self.gains[:-1]

    def deviations(
        self, defect: Array, error: Array, start: Array | None = None, last: Array | None = None
    ) -> tuple[Array, Array]:
        """States x (k, n), from `start` (n,) or zero, and inputs u (k, u) for defects (k - 1, n) and errors (k, p) m.

        Args:
            last: (n,) gradient of the cost of the last state; None for that of its error.
        """
        pieces, count = self.pieces, len(self.gains)
        slopes = (_turned(pieces.jacobian) @ error[..., None])[..., 0] / self._output**2
        lifted = (self.values[1:] @ defect[..., None])[..., 0]
        pulled, slope = np.empty_like(lifted), slopes[-1] if last is None else last
        for k in range(count - 2, -1, -1):
            pulled[k] = slope + lifted[k]
            slope = slopes[k] + pulled[k] @ self._closed[k]
        steps = (self._inverses @ (_turned(pieces.push) @ pulled[..., None]))[..., 0]
        pushed = defect - (pieces.push @ steps[..., None])[..., 0]
        states = np.zeros((count, slopes.shape[1]))
        states[0] = 0.0 if start is None else start
        for k in range(count - 1):
            states[k + 1] = self._closed[k] @ states[k] + pushed[k]
        inputs = -(self.gains @ states[..., None])[..., 0]
        inputs[:-1] -= steps
        return states, inputs
