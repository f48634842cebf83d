"""Which of several self-stresses a robot on cables takes: within floor and ceiling, smoothly along a path.

What the forces leave open of the tensions is T = T_0 + N z. Of these is taken the minimum of

    sum_c (T_c - f_c) / s  - 1/k sum_c log (T_c - f_c) / s  - 1/k sum_c log (t_c - T_c) / s        (least tension)

with floors f, ceilings t and s their mean floor; with a desired level l the first sum is 1/2 sum_c ((T_c - l) / s)^2.
It is strictly convex and analytic inside the limits (an interior point of the program of 000, 3.2), so that the
tensions are as smooth as what they follow from, and never on a limit.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.numerics.types import Array

SHARPNESS = 30.0
"""k: tensions lie above their floor by about the mean floor over k. More lies nearer and bends more sharply."""
MAX_STEPS = 80
"""Newton steps; ten are usual."""
SOLVED = 1e-12
"""Newton decrement of a solved program."""


def choose_tensions(
    particular: Array, stress: Array, floor: Array, ceiling: Array, level: float | None, start: Array | None = None
) -> Array:
    """(c,) N, see the module.

    Args:
        particular: T_0 (c,) N. stress: N (s, c), rows orthonormal. floor, ceiling: (c,) N. level: N, or None for the
            least tensions. start: (c,) N near the solution, such as those an instant before.

    Raises:
        InfeasibleControlError: no self-stress brings all tensions between floor and ceiling.
    """
    unit = float(np.mean(floor))
    z = None if start is None else stress @ (start - particular)
    if z is None or not _inside(particular + z @ stress, floor, ceiling):
        z = _deepest(particular, stress, floor, ceiling)
    cost = _cost(particular, stress, floor, ceiling, level, unit, z)
    for _ in range(MAX_STEPS):
        tension = particular + z @ stress
        above, below = (tension - floor) / unit, (ceiling - tension) / unit
        slope = np.ones_like(tension) if level is None else (tension - level) / unit
        slope = slope - 1.0 / (SHARPNESS * above) + 1.0 / (SHARPNESS * below)
        curve = 1.0 / (SHARPNESS * above**2) + 1.0 / (SHARPNESS * below**2) + (0.0 if level is None else 1.0)
        gradient, hessian = stress @ slope / unit, (stress * curve) @ stress.T / unit**2
        step = -np.linalg.solve(hessian, gradient)
        decrement = float(-gradient @ step)
        if decrement < SOLVED:
            break
        share = 1.0
        while share > 1e-12:
            ahead = _cost(particular, stress, floor, ceiling, level, unit, z + share * step)
            if ahead <= cost - 0.25 * share * decrement:
                break
            share *= 0.5
        else:
            break
        z, cost = z + share * step, ahead
    return np.asarray(particular + z @ stress)


def _inside(tension: Array, floor: Array, ceiling: Array) -> bool:
    return bool(np.all(tension > floor) and np.all(tension < ceiling))


def _cost(
    particular: Array, stress: Array, floor: Array, ceiling: Array, level: float | None, unit: float, z: Array
) -> float:
    tension = particular + z @ stress
    if not _inside(tension, floor, ceiling):
        return np.inf
    logs = np.log((tension - floor) / unit) + np.where(np.isfinite(ceiling), np.log((ceiling - tension) / unit), 0.0)
    asked = (tension - floor) / unit if level is None else 0.5 * ((tension - level) / unit) ** 2
    return float(np.sum(asked - logs / SHARPNESS))


def _deepest(particular: Array, stress: Array, floor: Array, ceiling: Array) -> Array:
    """z (s,) with the tensions as far from their limits as can be, at most a floor's mean."""
    count = stress.shape[0]
    high = np.isfinite(ceiling)
    rows = np.vstack(
        (np.column_stack((-stress.T, np.ones(floor.size))), np.column_stack((stress.T, np.ones(floor.size)))[high])
    )
    right = np.concatenate((particular - floor, (ceiling - particular)[high]))
    bounds = [(None, None)] * count + [(None, float(np.mean(floor)))]
    found = linprog(np.append(np.zeros(count), -1.0), A_ub=rows, b_ub=right, bounds=bounds)
    if found.status != 0 or not found.x[-1] > 0.0:
        raise InfeasibleControlError("no self-stress brings all tensions between their floor and their ceiling")
    return np.asarray(found.x[:count])
