"""Solvers of quadratic programs by name."""

from __future__ import annotations

from tensegrity_dynamics.errors import TensegrityError, unknown_name

from .active_set import ActiveSet
from .backends import Osqp, Piqp
from .quadratic_program import QPSolver, Sizes

SOLVERS: dict[str, type] = {"active_set": ActiveSet, "piqp": Piqp, "osqp": Osqp}


def make_solver(name: str, sizes: Sizes) -> QPSolver:
    """A solver by name for programs of one size. Raises TensegrityError with the names that exist."""
    if name not in SOLVERS:
        raise TensegrityError(unknown_name("solver", name, SOLVERS))
    solver: QPSolver = SOLVERS[name](sizes)
    return solver
