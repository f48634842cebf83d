"""A robot near one state: x' = f + A (x - x0) + B (u - u0), exact at x0 and affine around it (003, section 3.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.short_repr import ShortRepr
from ..numerics.types import Array

Matrix = Any
"""A dense array (n, m) or a sparse one of scipy."""


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(ShortRepr):
    """The linear (affine) model of a robot at a state.

    Attributes:
        matrix: A (n, n), sparse or dense, in SI units and 1/s. inputs: B (n, u).
        rate: f (n,), the state's own rate of change at x0 and u0; zero at rest.
        state: x0 (n,), or zeros where the coordinates are counted from it (reduced models). input: u0 (u,).
        state_names, input_names: of each entry, with its unit left out: m and rad, m/s and rad/s.
        lift: (N, n) from deviations of this state to those of the full model; None where this is the full one.
        full_names: (N,) names of the full model's states; empty where this is the full one.
        jump: (N, u) what inputs move of the full model's states at once, or None for nothing: the states of this model
            are those apart from it, which nothing moves at once; see `full`.
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
        """Entries of A and B that are zero whatever the state, and all their entries."""
        entries = self.matrix.shape[0] * (self.matrix.shape[1] + self.inputs.shape[1])
        stored = (
            each.nnz if hasattr(each, "nnz") else int(np.count_nonzero(each)) for each in (self.matrix, self.inputs)
        )
        return entries - sum(stored), entries

    def index(self, name: str) -> int:
        """Position of a state by its name. Raises TensegrityError for an unknown one."""
        if name not in self.state_names:
            raise TensegrityError(unknown_name("state", name, self.state_names))
        return self.state_names.index(name)

    def full(self, deviation: NDArray[np.float64], inputs: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Deviation of the full model (N,) for one of this model (n,), under inputs u - u0 (u,), none without."""
        result = np.asarray(deviation if self.lift is None else self.lift @ deviation)
        if self.jump is None or inputs is None:
            return result
        return np.asarray(result + self.jump @ np.asarray(inputs, dtype=np.float64))

    def eigenvalues(self) -> NDArray[np.complex128]:
        """(n,) 1/s, the slowest first."""
        values = np.linalg.eigvals(self.dense_matrix).astype(np.complex128)
        return values[np.argsort(np.abs(values), kind="stable")]

    def reduced(self, lift: Matrix, restrict: Matrix, names: tuple[str, ...]) -> LinearModel:
        """The model in coordinates z with x - x0 = lift z, z = restrict (x - x0); restrict @ lift is the identity."""
        return LinearModel(
            restrict @ self.matrix @ lift, restrict @ self.inputs, np.asarray(restrict @ self.rate),
            np.zeros(len(names)), self.input, names, self.input_names, lift, full_names=self.state_names,
            jump=self.jump,
        )  # fmt: skip


def dense(matrix: Matrix) -> Array:
    """A matrix as a dense array."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
