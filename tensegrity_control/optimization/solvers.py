"""Solvers of quadratic programs by name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tensegrity_dynamics.errors import TensegrityError, unknown_name

from .backends import Daqp, Osqp, Piqp
from .quadratic_program import QPSolver, Sizes

DEFAULT_SOLVER = "daqp"
SOLVERS: dict[str, Callable[..., QPSolver]] = {"daqp": Daqp, "piqp": Piqp, "osqp": Osqp}
"""Classes by name; an entry more is a solver more."""


class SolverStock:
    """Solvers that are made once for each name and size, for one caller at a time; to make one takes ten solutions."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Sizes], QPSolver] = {}

    def solver(self, name: str, sizes: Sizes) -> QPSolver:
        """Of `make_solver`."""
        found = self._made.get((name, sizes))
        if found is None:
            found = self._made[name, sizes] = make_solver(name, sizes)
        return found


_own = threading.local()


def stock_of_thread() -> SolverStock:
    """The stock of the thread that calls, for callers that keep nothing from one program to the next."""
    if not hasattr(_own, "stock"):
        _own.stock = SolverStock()
    return _own.stock  # type: ignore[no-any-return]


def make_solver(name: str, sizes: Sizes, iteration_limit: int | None = None, **options: Any) -> QPSolver:
    """Solver by name, for programs of one size, with its own limit of iterations or another one, and its own options.

    Raises TensegrityError with the names that exist.
    """
    if name not in SOLVERS:
        raise TensegrityError(unknown_name("solver", name, tuple(SOLVERS)))
    limit = () if iteration_limit is None else (iteration_limit,)
    return SOLVERS[name](sizes, *limit, **options)
