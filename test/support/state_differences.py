"""Differences of states of mechanisms, to hold against what the library derives."""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.numerics.types import Array


def change_of_coordinates(before: ReducedModel, after: ReducedModel, q: Array, v: Array, size: float) -> Array:
    """(2n, 2n) central differences of the state in the coordinates `after` over that in `before`, at q and v.

    Args:
        size: of one step, in either direction.
    """
    state = before.state(q, v)
    count, columns = state.size // 2, []
    for k in range(state.size):
        sides = []
        for sign in (1.0, -1.0):
            moved = state.copy()
            moved[k] += sign * size
            there = before.closed_configuration(q, moved[:count])
            sides.append(after.state(there, before.velocity(there, moved[count:])))
        columns.append((sides[0] - sides[1]) / (2.0 * size))
    return np.array(columns).T
