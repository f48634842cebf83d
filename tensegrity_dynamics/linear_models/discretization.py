"""Discretisation of a linear model: e+ = A_d e + B_d u + c, with e = x - x0 and inputs held constant over a step.

| method | A_d | order | source |
| --- | --- | --- | --- |
| euler | 1 + h A | 1 | 003, 3.38 |
| trapezoidal | (1 - h A / 2)^-1 (1 + h A / 2) | 2, no damping of fast modes: oscillations | 003, 3.39 |
| exponential | e^(h A) | exact for the affine model | Higham 2008, chapter 10 |

With constant inputs over a step, both input rates of (3.39) are equal. c is the free motion of the model: zero at rest.

The exponential method separates states that only integrate inputs, such as rest lengths whose rates are the inputs.
With these states L and the other states x, x' = A x + K L + B u + f and L' = C u + g over a step are

    x+ = p0 x + h p1 (K L + B u + f) + h^2 p2 K (C u + g),   L+ = L + h (C u + g),   p_j = sum_i (h A)^i / (i + j)!

so that only three matrices of the size of x are needed, while the exponential of the whole system would have the size
of x, L, inputs and rates together.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.short_repr import ShortRepr
from ..numerics.types import Array
from .linear_model import LinearModel, Matrix, dense

METHODS = ("euler", "trapezoidal", "exponential")


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteModel(ShortRepr):
    """Linear model in discrete time.

    Attributes:
        matrix: A_d (n, n). inputs: B_d (n, u). offset: c (n,). step: step [s]. method: one of `METHODS`.
        model: model in continuous time.
    """

    matrix: Matrix
    inputs: Matrix
    offset: NDArray[np.float64]
    step: float
    method: str
    model: LinearModel

    def advance(
        self, deviation: NDArray[np.float64], inputs: NDArray[np.float64] | None = None, steps: int = 1
    ) -> NDArray[np.float64]:
        """Deviation (n,) from x0 after some steps with constant inputs u - u0 (u,), zero by default.

        Raises:
            TensegrityError: the deviation or the inputs have another shape.
        """
        result = np.array(deviation, dtype=np.float64)
        for name, given, size in (("deviation", result, self.offset.size), ("inputs", inputs, self.inputs.shape[1])):
            if given is not None and np.shape(given) != (size,):
                raise TensegrityError(f"{name} has shape {np.shape(given)}, expected ({size},).")
        push = self.offset if inputs is None else self.offset + self.inputs @ np.asarray(inputs, dtype=np.float64)
        for _ in range(steps):
            result = self.matrix @ result + push
        return np.asarray(result)


def discretise(model: LinearModel, step: float, method: str = "exponential") -> DiscreteModel:
    """Discretise a linear model with a step [s]; the result of Euler's method is sparse for a sparse model.

    Raises:
        TensegrityError: the method is unknown, or the step is not finite and positive.
    """
    if method not in METHODS:
        raise TensegrityError(unknown_name("method of discretisation", method, METHODS))
    if not (np.isfinite(step) and step > 0.0):
        raise TensegrityError(f"step is {step} s, must be a finite time above zero.")
    n, u = model.state.size, model.input.size
    if method == "euler":
        if hasattr(model.matrix, "tocsr"):
            from scipy.sparse import identity  # imported here to keep the package import fast

            matrix: Matrix = (identity(n) + step * model.matrix).tocsr()
        else:
            matrix = np.eye(n) + step * model.matrix
        return DiscreteModel(matrix, step * model.inputs, step * model.rate, step, method, model)
    right = np.hstack((model.dense_inputs, model.rate[:, None]))
    if method == "trapezoidal":
        half = 0.5 * step * model.dense_matrix
        solved = np.linalg.solve(np.eye(n) - half, np.hstack((np.eye(n) + half, step * right)))
    else:
        solved = _exponential(dense(model.matrix), right, step)
    return DiscreteModel(
        solved[:, :n].copy(), solved[:, n : n + u].copy(), solved[:, n + u].copy(), step, method, model
    )


def _exponential(matrix: Array, right: Array, step: float) -> Array:
    """(n, n + r): e^(h A) and the effect of inputs (n, r) that are constant over the step."""
    held = ~matrix.any(axis=1)  # states that only integrate inputs
    own = ~held
    still, first, second = exponential_sums(step * matrix[np.ix_(own, own)])
    by_held, n = matrix[np.ix_(own, held)], len(matrix)
    solved = np.zeros((n, n + right.shape[1]))
    solved[np.ix_(own, np.flatnonzero(own))] = still
    solved[np.ix_(own, np.flatnonzero(held))] = step * first @ by_held
    solved[own, n:] = step * (first @ right[own]) + step**2 * (second @ (by_held @ right[held]))
    solved[np.flatnonzero(held), np.flatnonzero(held)] = 1.0
    solved[held, n:] = step * right[held]
    return solved


def exponential_sums(matrix: Array) -> tuple[Array, Array, Array]:
    """p0 = e^Z, p1 and p2 of matrices Z (..., n, n) (module), by scaling and squaring.

    The matrices are balanced by powers of two first, so that different units do not need additional squarings. The
    Taylor series to the 11th power is used below a norm of 0.5, where further terms are below the machine precision. A
    stack is scaled as needed by its largest matrix.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    if not matrix.size:
        return matrix, matrix, matrix
    scale = balance(matrix)
    z = matrix * scale[..., None, :] / scale[..., :, None]
    size = float(np.abs(z).sum(axis=-2).max())
    halvings = max(0, int(np.ceil(np.log2(size / 0.5)))) if 0.0 < size < np.inf else 0
    z = z / 2.0**halvings
    one = np.eye(z.shape[-1])
    square = z @ z
    cube = square @ z
    second = np.zeros_like(z)
    for k in (9, 6, 3, 0):
        a, b, c = (1.0 / float(factorial(k + 2 + i)) for i in range(3))
        second = cube @ second + a * one + b * z + c * square
    first = one + z @ second
    still = one + z @ first
    for _ in range(halvings):
        second = 0.25 * (still @ second + first + second)
        first = 0.5 * (still @ first + first)
        still = still @ still
    turn = scale[..., :, None] / scale[..., None, :]
    return turn * still, turn * first, turn * second


def balance(matrix: Array) -> Array:
    """(..., n) powers of two s for which columns and rows of diag(s)^-1 matrix diag(s) have similar norms."""
    sizes, scale = np.abs(matrix), np.ones(matrix.shape[:-1])
    index = np.arange(matrix.shape[-1])
    sizes[..., index, index] = 0.0
    for _ in range(4):
        scaled = sizes * scale[..., None, :] / scale[..., :, None]
        rows, columns = scaled.sum(axis=-1), scaled.sum(axis=-2)
        ratio = np.where((rows > 0.0) & (columns > 0.0), rows / np.where(columns > 0.0, columns, 1.0), 1.0)
        scale = scale * np.exp2(np.round(0.5 * np.log2(np.clip(ratio, 1e-12, 1e12))))
    return scale
