"""Linear model of a robot near one state: x' = f + A (x - x0) + B (u - u0), exact at x0 (003, section 3.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.short_repr import ShortRepr
from ..numerics.types import Array

Matrix = Any
"""Dense array (n, m) or sparse array of scipy."""


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(ShortRepr):
    """Linear (affine) model of a robot at a state.

    Attributes:
        matrix: A (n, n), sparse or dense, in SI units and 1/s. inputs: B (n, u).
        rate: f (n,), rate of change of the state at x0 and u0; zero at rest.
        state: x0 (n,), or zeros if the coordinates are relative to it (reduced models). input: u0 (u,).
        state_names, input_names: names of the entries, without units: m and rad, m/s and rad/s.
        lift: (N, n) transformation of deviations of this state to those of the full model; None for a full model.
        full_names: (N,) names of the states of the full model; empty for a full model.
        jump: (N, u) instantaneous effect of inputs on the states of the full model, or None. The states of this model
            do not include these jumps; see `full`.
    """

    matrix: Matrix
    inputs: Matrix
    rate: NDArray[np.float64]
    state: NDArray[np.float64]
    input: NDArray[np.float64]
    state_names: tuple[str, ...]
    input_names: tuple[str, ...]
    lift: Matrix | None = None
    full_names: tuple[str, ...] = field(default=(), kw_only=True)
    jump: Matrix | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        n, u = self.state.size, self.input.size
        if self.matrix.shape != (n, n) or self.inputs.shape != (n, u) or self.rate.shape != (n,):
            raise TensegrityError(
                f"a linear model of {n} states and {u} inputs has A {self.matrix.shape}, B {self.inputs.shape} and f "
                f"{self.rate.shape}."
            )

    @property
    def dense_matrix(self) -> Array:
        """A as a dense array."""
        return dense(self.matrix)

    @property
    def dense_inputs(self) -> Array:
        """B as a dense array."""
        return dense(self.inputs)

    @property
    def zeros(self) -> tuple[int, int]:
        """Number of structurally zero entries of A and B, and number of all their entries."""
        entries = self.matrix.shape[0] * (self.matrix.shape[1] + self.inputs.shape[1])
        stored = (
            each.nnz if hasattr(each, "nnz") else int(np.count_nonzero(each)) for each in (self.matrix, self.inputs)
        )
        return entries - sum(stored), entries

    def index(self, name: str) -> int:
        """Index of a state by its name. Raises TensegrityError if it is unknown."""
        if name not in self.state_names:
            raise TensegrityError(unknown_name("state", name, self.state_names))
        return self.state_names.index(name)

    def full(self, deviation: NDArray[np.float64], inputs: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Deviation of the full model (N,) for one of this model (n,), with inputs u - u0 (u,), zero by default."""
        result = np.asarray(deviation if self.lift is None else self.lift @ deviation)
        if self.jump is None or inputs is None:
            return result
        return np.asarray(result + self.jump @ np.asarray(inputs, dtype=np.float64))

    def eigenvalues(self) -> NDArray[np.complex128]:
        """(n,) eigenvalues [1/s], the slowest first."""
        values = np.linalg.eigvals(self.dense_matrix).astype(np.complex128)
        return values[np.argsort(np.abs(values), kind="stable")]

    def reduced(self, lift: Matrix, restrict: Matrix, names: tuple[str, ...]) -> LinearModel:
        """Model in coordinates z with x - x0 = lift z, z = restrict (x - x0); restrict @ lift is the identity."""
        return LinearModel(
            restrict @ self.matrix @ lift, restrict @ self.inputs, np.asarray(restrict @ self.rate),
            np.zeros(len(names)), self.input, names, self.input_names, lift, full_names=self.state_names,
            jump=self.jump,
        )  # fmt: skip


def dense(matrix: Matrix) -> Array:
    """Matrix as a dense array."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
