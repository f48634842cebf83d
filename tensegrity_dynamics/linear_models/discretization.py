"""From a linear model in continuous time to one in steps: e+ = A_d e + B_d u + c, with e = x - x0 and inputs held.

| method | A_d | order | source |
| --- | --- | --- | --- |
| euler | 1 + h A | 1 | 003, 3.38 |
| trapezoidal | (1 - h A / 2)^-1 (1 + h A / 2) | 2, damps nothing that is fast: it rings | 003, 3.39 |
| exponential | e^(h A) | exact for the affine model | Van Loan 1978 |

With inputs held over a step the two input rates of (3.39) are one. c is what the model does by itself: zero at rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from .linear_model import LinearModel, Matrix, dense

METHODS = ("euler", "trapezoidal", "exponential")


@dataclass(frozen=True, eq=False)
class DiscreteModel:
    """A linear model in steps of `step` s.

    Attributes:
        matrix: A_d (n, n). inputs: B_d (n, u). offset: c (n,). step: s. method: one of `METHODS`.
        model: in continuous time.
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
        """Deviation (n,) from x0 after some steps with inputs u - u0 (u,) held, none without."""
        result = np.array(deviation, dtype=np.float64)
        push = self.offset if inputs is None else self.offset + self.inputs @ np.asarray(inputs, dtype=np.float64)
        for _ in range(steps):
            result = self.matrix @ result + push
        return np.asarray(result)


def discretise(model: LinearModel, step: float, method: str = "exponential") -> DiscreteModel:
    """A linear model in steps of `step` s; sparse for Euler's rule where the model is sparse.

    Raises:
        TensegrityError: an unknown method, or a step that is not a finite time above zero.
    """
    if method not in METHODS:
        raise TensegrityError(unknown_name("method of discretisation", method, METHODS))
    if not (np.isfinite(step) and step > 0.0):
        raise TensegrityError(f"step is {step} s, must be a finite time above zero.")
    n, u = model.state.size, model.input.size
    if method == "euler":
        if hasattr(model.matrix, "tocsr"):
            from scipy.sparse import identity  # here, so that importing the package stays quick

            matrix: Matrix = (identity(n) + step * model.matrix).tocsr()
        else:
            matrix = np.eye(n) + step * model.matrix
        return DiscreteModel(matrix, step * model.inputs, step * model.rate, step, method, model)
    right = np.hstack((model.dense_inputs, model.rate[:, None]))
    if method == "trapezoidal":
        half = 0.5 * step * model.dense_matrix
        solved = np.linalg.solve(np.eye(n) - half, np.hstack((np.eye(n) + half, step * right)))
    else:
        from scipy.linalg import expm

        block = np.zeros((n + u + 1, n + u + 1))
        block[:n, :n], block[:n, n:] = dense(model.matrix), right
        solved = expm(step * block)[:n]
    return DiscreteModel(
        solved[:, :n].copy(), solved[:, n : n + u].copy(), solved[:, n + u].copy(), step, method, model
    )
