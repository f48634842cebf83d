"""One step of the inverse kinematics: change of the rest lengths if there are more tendons than controlled pose axes.

With y the pose error to be removed, J and T the Jacobians of pose and tensions, the step u = dd solves

    min  1/2 |(t + T u - t*) / s_t|^2 + w/2 |(d + u - d*) / s_d|^2 - M_p progress + M_r rest
    s.t. J u = progress y                          0 <= progress <= 1
         low - rest max(0, low - c) <= c + G u <= high + rest max(0, c - high)       0 <= rest <= 1
         |u| <= radius

over u, progress and rest. The rows c are tensions and rest lengths with their limits. Preferred tensions and lengths
(t*, d*) resolve the redundancy independently of the history: a goal has the same lengths for every path to it. `rest`
is the fraction of a present violation that may remain, so that a step always exists. M_r > M_p give limits priority
over progress, and progress priority over posture. If the straight line to the goal is blocked, the equality is replaced
by least squares, min 1/2 |W (J u - y)|^2 / |W y|^2, and the motion slides along the limits to the nearest pose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array

from ..optimization.infeasibility import CheckedSolver
from ..optimization.quadratic_program import (
    ITERATION_LIMIT,
    SOLVED,
    Bounds,
    Equations,
    Objective,
    QuadraticProgram,
    Rows,
)
from ..optimization.solvers import DEFAULT_SOLVER, make_solver, stock_of_thread
from .limits import Limits

# All without unit: terms are scaled by tension_scale and length_scale; progress and rest are fractions.
REPAIR = 1.0e4
"""M_r, cost of a remaining violation of limits; larger than PROGRESS, so that limits have priority over the goal."""
PROGRESS = 1.0e3
"""M_p, cost of no progress; much larger than the terms of the posture, so that the goal has priority over it."""
COMFORT_WHEN_BLOCKED = 1.0e-5
"""Weight of the posture while the motion slides along its limits; small, so that the nearest pose hardly changes."""
PRESSING = 1.0e-2
"""Fraction of the largest multiplier above which a limit counts as active."""
NO_PRESSURE = 1.0e-8
"""Multiplier below which no limit counts as active, whatever the largest one is."""
NO_VIOLATION = 1.0e-7
"""Violation relative to the scale of a limit that is rounding and needs no repair."""


@dataclass(frozen=True, eq=False)
class Posture:
    """Preferred tensions and lengths of the redundant tendons.

    Attributes:
        tensions: (t,) N, preferred tensions, of the actuated tendons or of all cables.
        lengths: (a,) m, preferred rest lengths.
        tension_scale: N and length_scale: m, deviations of equal cost if length_weight is 1.
        length_weight: weight of lengths relative to tensions; above zero.
    """

    tensions: Array
    lengths: Array
    tension_scale: float
    length_scale: float
    length_weight: float = 0.1


@dataclass(frozen=True, eq=False)
class Step:
    """A change of the actuated rest lengths.

    Attributes:
        change: (a,) m.
        progress: fraction of the pose error that the linear prediction removes; 1 for all of it.
        remaining: (p,) pose error that the linear prediction leaves.
        rest: fraction of a present violation of limits that remains.
        binding: rows of the active limits.
        confined: whether the radius limits the step.
        weighted: whether this is the least-squares step and not the straight one.
    """

    change: Array
    progress: float
    remaining: Array
    rest: float
    binding: tuple[int, ...]
    confined: bool
    weighted: bool


def solve_step(
    error: Array,
    pose_jacobian: Array,
    values: Array,
    value_jacobian: Array,
    limits: Limits,
    actuated: tuple[Array, Array, Array],
    posture: Posture,
    radius: float,
    weights: Array | None = None,
    caution: float = 0.0,
) -> Step:
    """Solve the quadratic program of this module.

    Args:
        error: (p,) pose error to remove, m and rad.
        pose_jacobian: (p, a).
        values: (r,) present values of the limited rows, value_jacobian: (r, a).
        actuated: present tensions (t,) N, their Jacobian (t, a) N/m and present rest lengths (a,) m.
        radius: largest change of one rest length [m].
        weights: (p,) W of the least squares; None for the straight line.
        caution: extra cost of change, in units of the length weight; damps steps with a too optimistic prediction.

    Raises:
        TensegrityError: the solver failed: a number is not finite or the scaling is extreme.
    """
    count = pose_jacobian.shape[1]
    scale = posture.length_scale
    jacobian = pose_jacobian * scale
    rows = value_jacobian * scale
    tensions, tension_jacobian, lengths = actuated

    # Variables: u / scale (a), then progress, then rest.
    comfort = tension_jacobian * (scale / posture.tension_scale)
    quadratic = np.zeros((count + 2, count + 2))
    linear = np.zeros(count + 2)
    quadratic[:count, :count] = comfort.T @ comfort + posture.length_weight * (1.0 + caution) * np.eye(count)
    linear[:count] = comfort.T @ ((tensions - posture.tensions) / posture.tension_scale)
    linear[:count] += posture.length_weight * (lengths - posture.lengths) / scale
    equations = None
    if weights is None:
        linear[count], quadratic[count, count] = -PROGRESS, 1.0
        unit = 1.0 / max(float(np.linalg.norm(error)), 1e-12)
        size = min(unit, 1.0 / max(float(np.abs(jacobian).max()), 1e-12))
        matrix = np.column_stack((jacobian, -error, np.zeros(error.size)))
        equations = Equations(size * matrix, np.zeros(error.size))
    else:
        weighted = weights[:, None] * jacobian
        target = weights * error
        size = max(float(target @ target), 1e-8 * float(np.sum(weighted * weighted)), 1e-30)
        quadratic[:count, :count] *= COMFORT_WHEN_BLOCKED
        linear[:count] *= COMFORT_WHEN_BLOCKED
        quadratic[:count, :count] += weighted.T @ weighted / size
        linear[:count] -= weighted.T @ target / size
        quadratic[count, count] = 1.0
    linear[-1] = quadratic[-1, -1] = REPAIR  # the square only makes the program definite

    # Violations at the level of rounding are ignored, since they would spoil the scaling.
    low, high = (limits.low - values) / limits.scale, (limits.high - values) / limits.scale
    low = np.where(low < NO_VIOLATION, np.minimum(low, 0.0), low)
    high = np.where(high > -NO_VIOLATION, np.maximum(high, 0.0), high)
    violation = np.maximum(low, 0.0) + np.minimum(high, 0.0)
    inequality = np.column_stack((rows / limits.scale[:, None], np.zeros(low.size), violation))
    reach = np.full(count, radius / scale)
    program = QuadraticProgram.of(
        Objective(quadratic, linear), equations, Rows(inequality, low, high),
        Bounds(np.concatenate((-reach, [0.0, 0.0])), np.concatenate((reach, [1.0, 1.0]))),
    )  # fmt: skip
    result = CheckedSolver(DEFAULT_SOLVER, program.sizes, stock_of_thread()).solve(program)
    if result.status != SOLVED:
        # No change at all, with `rest` at one, meets every condition. Where they leave hardly more than that, exact
        # solvers fail; an interior point that is close is enough, as every step is checked by its equilibrium.
        result = make_solver("piqp", program.sizes).solve(program)
    if result.status not in (SOLVED, ITERATION_LIMIT) or not np.all(np.isfinite(result.x)):
        raise TensegrityError(
            f"a step of the inverse kinematics has no solution ({result.status}); check the robot's limits."
        )
    change = np.clip(result.x[:count] * scale, -radius, radius)
    if weights is None:
        # The tolerance of the solver is coarser than the desired pose error; this makes the equality exact.
        change += np.linalg.lstsq(pose_jacobian, result.x[count] * error - pose_jacobian @ change, rcond=1e-9)[0]
    pressure = np.abs(result.z)
    binding = np.flatnonzero(pressure > max(PRESSING * float(pressure.max(initial=0.0)), NO_PRESSURE))
    return Step(
        change=change,
        progress=float(np.clip(result.x[count], 0.0, 1.0)) if weights is None else 0.0,
        remaining=error - pose_jacobian @ change,
        rest=float(np.clip(result.x[count + 1], 0.0, 1.0)),
        binding=tuple(int(row) for row in binding),
        confined=bool(np.any(np.abs(change) > 0.999 * radius)),
        weighted=weights is not None,
    )
