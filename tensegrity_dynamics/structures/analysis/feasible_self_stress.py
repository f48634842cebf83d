"""Feasible self-stress: a self-stress with tension in all tendons simultaneously.

With a basis S (a, s) of the self-stress states, find alpha with S alpha >= 1 in all members that cannot carry
compression (a linear programme). If there is none, Gordan's theorem gives weights y >= 0, not all zero, with S' y = 0
over these members: in every self-stress the weighted sum of their tensions is zero, so that not all can be in tension.
These members conflict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class FeasibleSelfStress:
    """Result of `tension_only`.

    Attributes:
        feasible: whether a self-stress has tension in every unilateral member.
        tensions: (a,) tensions of this self-stress [N], scaled to at least 1 N in each unilateral member and as uniform
            as possible; or None.
        clash: rows of members that no self-stress can tension simultaneously; a single one has no force in any
            self-stress.
    """

    feasible: bool
    tensions: NDArray[np.float64] | None
    clash: tuple[int, ...]


def tension_only(self_stress: NDArray[np.float64], unilateral: NDArray[np.bool_]) -> FeasibleSelfStress:
    """Find a self-stress with tension in every unilateral member.

    Args:
        self_stress: (a, s) basis of the self-stress states.
        unilateral: (a,) members that cannot carry compression.
    """
    from scipy.optimize import linprog  # imported here to keep the package import fast

    count, states = self_stress.shape
    if not states:
        return FeasibleSelfStress(False, None, ())
    if not unilateral.any():
        return FeasibleSelfStress(True, self_stress[:, 0] / np.abs(self_stress[:, 0]).max(), ())
    pulls = self_stress[unilateral]
    # maximises the smallest tension, with all tensions between -1 and 1
    cost = np.zeros(states + 1)
    cost[-1] = -1.0
    upper = np.vstack(
        (
            np.hstack((-pulls, np.ones((len(pulls), 1)))),
            np.hstack((self_stress, np.zeros((count, 1)))),
            np.hstack((-self_stress, np.zeros((count, 1)))),
        )
    )
    right = np.concatenate((np.zeros(len(pulls)), np.ones(2 * count)))
    solution = linprog(cost, A_ub=upper, b_ub=right, bounds=[(None, None)] * states + [(0.0, 1.0)], method="highs")
    least = -float(solution.fun) if solution.status == 0 else 0.0
    if least > 1e-7:
        return FeasibleSelfStress(True, self_stress @ solution.x[:-1] / least, ())
    rows = np.flatnonzero(unilateral)
    idle = rows[np.abs(pulls).max(axis=1) <= 1e-7]
    if idle.size:
        return FeasibleSelfStress(False, None, tuple(int(row) for row in idle))
    # a vertex of {y >= 0, sum y = 1, S' y = 0} contains at most s + 1 members
    equal = np.vstack((pulls.T, np.ones((1, len(pulls)))))
    target = np.zeros(states + 1)
    target[-1] = 1.0
    weights = linprog(np.zeros(len(pulls)), A_eq=equal, b_eq=target, bounds=(0.0, None), method="highs-ds")
    clash = rows[weights.x > 1e-7] if weights.status == 0 else rows
    return FeasibleSelfStress(False, None, tuple(int(row) for row in clash))
