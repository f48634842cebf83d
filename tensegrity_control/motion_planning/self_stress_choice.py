"""Choice among several self-stresses of a robot on cables: within floor and ceiling, smooth along a path.

The balance of forces leaves the tensions T = T_0 + N z undetermined. The choice minimises

    sum_c (T_c - f_c) / s  - 1/k sum_c log (T_c - f_c) / s  - 1/k sum_c log (t_c - T_c) / s        (least tension)

with floors f, ceilings t, and the mean floor s. With a desired level l the first sum is 1/2 sum_c ((T_c - l) / s)^2.
The cost is strictly convex and analytic inside the limits (an interior point of the program of 000, 3.2), so that the
tensions are as smooth as the data and never at a limit. For a desired stiffness s* of the output, the choice is the
nearest one with s(T) = s*: s is linearised repeatedly until convergence, in steps that decrease an exact penalty.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.numerics.compilation import QuickCall, compiled
from tensegrity_dynamics.numerics.linear_algebra import lu_factor, lu_solve
from tensegrity_dynamics.numerics.types import Array

SHARPNESS = 30.0
"""k: tensions are above their floor by about the mean floor over k. With a larger k they are nearer and change more
sharply."""
MAX_STEPS = 80
"""Largest number of Newton steps; ten are typical."""
SOLVED = 1e-12
"""Newton decrement at convergence."""
STIFF, STEP, MISSED = 1e8, 1e-3, 0.01
"""Weight of the stiffness, step of its finite differences as a fraction of the mean floor, and its tolerated relative
error."""
MAX_ROUNDS = 40
"""Largest number of linearisations of the stiffness; four are typical."""


def choose_tensions(
    particular: Array, stress: Array, floor: Array, ceiling: Array, level: float | None, start: Array | None = None,
    excess: Callable[[Array], float] | None = None,
) -> Array:  # fmt: skip
    """(c,) N, chosen tensions; see the module.

    Args:
        particular: T_0 (c,) N.
        stress: N (s, c), rows orthonormal.
        floor, ceiling: (c,) N.
        level: N, or None for the smallest tensions.
        start: (c,) N near the solution, such as the tensions an instant before.
        excess: function s / s* - 1 of tensions (c,) N, if a stiffness is desired.

    Raises:
        InfeasibleControlError: no self-stress brings all tensions between floor and ceiling, or gives the stiffness.
    """
    program = _Program(particular, stress, floor, ceiling, level)
    z = None if start is None else stress @ (start - particular)
    if z is None or not _inside(particular + z @ stress, floor, ceiling):
        z = deepest(particular, stress, floor, ceiling)[0]
    free = program.solve(z)
    if excess is None:
        return np.asarray(particular + free @ stress)
    program = _Program(particular, stress, floor, ceiling, particular + free @ stress)
    step, value = STEP * program.unit, excess(particular + z @ stress)
    for _ in range(MAX_ROUNDS):
        tension = particular + z @ stress
        slope = np.array([excess(tension + step * each) - value for each in stress]) / step
        offset = value - float(slope @ z)
        ahead = program.solve(z, slope, offset)
        price = 10.0 + 10.0 * STIFF * abs(float(slope @ ahead + offset))  # penalty of the stiffness
        merit, share = program.cost(z) + price * abs(value), 1.0
        while share > 1e-3:
            trial = z + share * (ahead - z)
            missed = excess(particular + trial @ stress)
            if program.cost(trial) + price * abs(missed) < merit:
                break
            share *= 0.5
        else:
            break
        moved, z, value = float(np.max(np.abs(trial - z), initial=0.0)), trial, missed
        if moved < 1e-7 * program.unit:
            break
    if abs(value) > MISSED:
        raise InfeasibleControlError(
            "no self-stress within tension floor and ceiling gives this stiffness; the closest gives "
            f"{1.0 + value:.3g} times it"
        )
    return np.asarray(particular + z @ stress)


@compiled
def cost_at(z, particular, stress, floor, ceiling, level, has_level):
    """Cost of the module at z (s,) for a level (c,), or for the least tension without `has_level`; infinite if a
    tension is at a limit or beyond."""
    unit, total = np.mean(floor), 0.0
    for c in range(particular.size):
        tension = particular[c]
        for s in range(z.size):
            tension += z[s] * stress[s, c]
        above, below = (tension - floor[c]) / unit, (ceiling[c] - tension) / unit
        if not (above > 0.0 and below > 0.0):
            return np.inf
        total += 0.5 * ((tension - level[c]) / unit) ** 2 if has_level else above
        total -= np.log(above) / SHARPNESS
        if np.isfinite(below):
            total -= np.log(below) / SHARPNESS
    return total


@compiled
def cost_with(z, slope, offset, particular, stress, floor, ceiling, level, has_level):
    """Cost of the module plus STIFF / 2 (slope z + offset)^2."""
    missed = offset
    for s in range(z.size):
        missed += slope[s] * z[s]
    return cost_at(z, particular, stress, floor, ceiling, level, has_level) + 0.5 * STIFF * missed**2


@compiled
def minimise(z, slope, offset, particular, stress, floor, ceiling, level, has_level):
    """Minimise `cost_with` from z (s,) inside the limits, in place, by Newton's method."""
    count, unit = z.size, np.mean(floor)
    gradient, hessian, step, trial = np.empty(count), np.empty((count, count)), np.empty(count), np.empty(count)
    pivots = np.empty(count, dtype=np.int64)
    cost = cost_with(z, slope, offset, particular, stress, floor, ceiling, level, has_level)
    for _ in range(MAX_STEPS):
        missed = offset
        for s in range(count):
            missed += slope[s] * z[s]
        for s in range(count):
            gradient[s] = STIFF * missed * slope[s]
            for t in range(count):
                hessian[s, t] = STIFF * slope[s] * slope[t]
        for c in range(particular.size):
            tension = particular[c]
            for s in range(count):
                tension += z[s] * stress[s, c]
            above, below = (tension - floor[c]) / unit, (ceiling[c] - tension) / unit
            rise = (tension - level[c]) / unit if has_level else 1.0
            rise += (1.0 / below - 1.0 / above) / SHARPNESS
            curve = (1.0 / above**2 + 1.0 / below**2) / SHARPNESS + (1.0 if has_level else 0.0)
            for s in range(count):
                gradient[s] += stress[s, c] * rise / unit
                for t in range(count):
                    hessian[s, t] += stress[s, c] * curve * stress[t, c] / unit**2
        for s in range(count):
            step[s] = -gradient[s]
        lu_factor(hessian, count, pivots)
        lu_solve(hessian, count, pivots, step)
        decrement = 0.0
        for s in range(count):
            decrement -= gradient[s] * step[s]
        if not decrement >= SOLVED:
            return
        share, ahead = 1.0, np.inf
        while share > 1e-12:
            for s in range(count):
                trial[s] = z[s] + share * step[s]
            ahead = cost_with(trial, slope, offset, particular, stress, floor, ceiling, level, has_level)
            if ahead <= cost - 0.25 * share * decrement:
                break
            share *= 0.5
        if not share > 1e-12:
            return
        cost = ahead
        for s in range(count):
            z[s] = trial[s]


_minimise, _cost_at = QuickCall(minimise), QuickCall(cost_at)


class _Program:
    """Minimisation of the cost of the module plus STIFF / 2 (slope z + offset)^2 over z."""

    def __init__(
        self, particular: Array, stress: Array, floor: Array, ceiling: Array, level: float | Array | None
    ) -> None:
        self.unit, self._none = float(np.mean(floor)), np.zeros(stress.shape[0])
        levels = np.broadcast_to(0.0 if level is None else level, particular.shape)
        given = (particular, stress, floor, ceiling, levels)
        self._limits = *(np.array(each, dtype=np.float64, order="C") for each in given), level is not None

    def cost(self, z: Array) -> float:
        """Cost of the module at z (s,); infinite if a tension is at a limit or beyond."""
        return float(_cost_at(np.ascontiguousarray(z), *self._limits))

    def solve(self, z: Array, slope: Array | None = None, offset: float = 0.0) -> Array:
        """Minimise, from z (s,) inside the limits."""
        found = np.array(z, dtype=np.float64)
        _minimise(found, self._none if slope is None else np.ascontiguousarray(slope), float(offset), *self._limits)
        return found


def _inside(tension: Array, floor: Array, ceiling: Array) -> bool:
    return bool(np.all(tension > floor) and np.all(tension < ceiling))


def deepest(particular: Array, stress: Array, floor: Array, ceiling: Array) -> tuple[Array, float]:
    """z (s,) with the largest distance of all tensions from their limits, at most the mean floor; and this distance
    [N].

    Raises:
        InfeasibleControlError: no self-stress brings all tensions between floor and ceiling.
    """
    z, margin = farthest(particular, stress, floor, ceiling)
    if not margin > 0.0:
        raise InfeasibleControlError("no self-stress keeps all tensions between floor and ceiling")
    return z, margin


def farthest(
    particular: Array, stress: Array, floor: Array, ceiling: Array, most: float | None = None
) -> tuple[Array, float]:
    """As `deepest`, but with a negative distance [N] if there is no such self-stress, and with an upper bound of `most`
    N."""
    count = stress.shape[0]
    high = np.isfinite(ceiling)
    rows = np.vstack(
        (np.column_stack((-stress.T, np.ones(floor.size))), np.column_stack((stress.T, np.ones(floor.size)))[high])
    )
    right = np.concatenate((particular - floor, (ceiling - particular)[high]))
    bounds = [(None, None)] * count + [(None, float(np.mean(floor)) if most is None else most)]
    found = linprog(np.append(np.zeros(count), -1.0), A_ub=rows, b_ub=right, bounds=bounds)
    return (np.asarray(found.x[:count]), float(found.x[-1])) if found.status == 0 else (np.zeros(count), -np.inf)
