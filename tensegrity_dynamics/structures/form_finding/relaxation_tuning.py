"""Tuning of relaxation: simplex search of delta and epsilon for the fewest iterations (001, section 5.3, table 7).

The search variables are log(delta) and log(epsilon / (2 - epsilon)), so that every point is a valid pair. Pairs that
are unstable at the equilibrium, exceed the largest number of iterations or end at another equilibrium have a higher
cost than all others. Their cost increases with delta epsilon lambda_max / (4 - 2 epsilon), which leads the simplex back
to stable pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import NoEquilibriumError, TensegrityError
from ...robots.robot import Robot
from ..structure import Structure
from .equilibrium_solver import StructureEquilibriumSolver
from .viscous_relaxation import DEFAULT_EPSILON, SAFETY_FACTOR, largest_stiffness, relax, stable_delta, stiffness_bound


@dataclass(frozen=True)
class Tuning:
    """Result of the tuner.

    Attributes:
        delta: m/N. epsilon: between 0 and 2. iterations: number of iterations with these values.
        margin: delta epsilon lambda_max / (4 - 2 epsilon) at the equilibrium; stable below 1.
        threshold: tolerance [N]. evaluations: number of relaxations of the search.
    """

    delta: float
    epsilon: float
    iterations: int
    margin: float
    threshold: float
    evaluations: int


def tune_relaxation(
    robot: Robot | Structure,
    *,
    threshold: float,
    pairs: tuple[tuple[float, float], ...] = (),
    maximum_iterations: int = 50_000,
    maximum_evaluations: int = 200,
) -> Tuning:
    """Pair (delta, epsilon) with which relaxation reaches the threshold in the fewest iterations.

    Args:
        threshold: largest remaining force component [N]. The pair is tuned for the start nodes of the structure.
        pairs: additional start pairs (delta, epsilon) of the search, besides the default and an underdamped pair.
        maximum_iterations: number of iterations above which a pair counts as failed.
        maximum_evaluations: number of relaxations per start pair.

    Raises:
        NoEquilibriumError: no tested pair reaches the threshold, or there is no equilibrium.
    """
    from scipy.optimize import minimize  # imported here to keep the package import fast

    structure = robot.structure if isinstance(robot, Robot) else robot
    for delta, epsilon in pairs:
        if not (np.isfinite(delta) and delta > 0.0 and 0.0 < epsilon < 2.0):
            raise TensegrityError(f"pair ({delta}, {epsilon}): delta must be above zero, epsilon between 0 and 2.")
    solver = StructureEquilibriumSolver(structure)
    total, first = solver.total_forces(None, None), solver.start_nodes(None)
    goal = solver.solve(start=first).nodes
    largest, bound = largest_stiffness(structure, goal), stiffness_bound(structure)
    near = 0.1 * float(np.ptp(goal, axis=0).max())
    tried: dict[tuple[float, float], float] = {}

    def count(delta: float, epsilon: float) -> int | None:
        try:
            nodes, iterations, _ = relax(
                structure, total, first, threshold,
                delta=delta, epsilon=epsilon, maximum_iterations=maximum_iterations,
            )  # fmt: skip
        except (NoEquilibriumError, TensegrityError):
            return None
        return iterations if float(np.abs(nodes - goal).max()) <= near else None

    def cost(point: NDArray[np.float64]) -> float:
        # far outside, the numbers would overflow before the pair is rejected
        delta, epsilon = _pair(np.clip(point, -40.0, 40.0))
        margin = delta / stable_delta(epsilon, largest)
        # an unstable pair can reach the threshold by chance from this start only: it is not tested
        iterations = count(delta, epsilon) if margin < 1.0 else None
        if iterations is None:
            return float(np.log(maximum_iterations) + 1.0 + np.log1p(margin))
        tried[delta, epsilon] = float(iterations)
        return float(np.log(max(iterations, 1)))

    def stable(delta: float, epsilon: float) -> tuple[float, float]:
        return min(delta, 0.9 * stable_delta(epsilon, largest)), epsilon

    default = (SAFETY_FACTOR * stable_delta(DEFAULT_EPSILON, bound), DEFAULT_EPSILON)
    swinging = (SAFETY_FACTOR * stable_delta(0.3, largest), 0.3)
    evaluations = 0
    for pair in dict.fromkeys(stable(*pair) for pair in (default, swinging, *pairs)):
        corner = _point(*pair)
        simplex = np.array([corner, corner + [-0.7, 0.0], corner + [0.0, 0.7]])
        search = minimize(
            cost, corner, method="Nelder-Mead",
            options={"initial_simplex": simplex, "maxfev": maximum_evaluations, "xatol": 1e-3, "fatol": 1e-4},
        )  # fmt: skip
        evaluations += int(search.nfev)
    if not tried:
        raise NoEquilibriumError(
            f"no pair (delta, epsilon) out of {evaluations} reached {threshold:.3g} N within {maximum_iterations} "
            "iterations; raise maximum_iterations or the threshold."
        )
    delta, epsilon = min(tried, key=lambda pair: tried[pair])
    return Tuning(
        delta,
        epsilon,
        int(tried[delta, epsilon]),
        delta / stable_delta(epsilon, largest),
        float(threshold),
        evaluations,
    )


def _point(delta: float, epsilon: float) -> NDArray[np.float64]:
    return np.array([np.log(delta), np.log(epsilon / (2.0 - epsilon))])


def _pair(point: NDArray[np.float64]) -> tuple[float, float]:
    return float(np.exp(point[0])), float(2.0 / (1.0 + np.exp(-point[1])))
