"""Equilibria with rigid bars from any start: the method of multipliers, finished by Newton's method with multipliers.

The rest lengths of elastic bars are shifted by -t / K, with their tension t of the previous iteration. So the bars
approach their lengths in every iteration, and each iteration ends at a minimum of the energy, as does the limit. The
stiffness of the bars has no effect on the result; soft bars get the stiffness of the stiffest member, which needs fewer
iterations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import NoEquilibriumError, TensegrityError
from ..energy import free_positions, tangent_stiffness
from ..form_finding.softest_mode import softest_mode
from ..structure import Structure
from .newton import BALANCED, Problem, Workspace, minimise, rounding_floor
from .rigid_bars import Rigid, newton_rigid, rigid_residual

MAX_ROUNDS = 30


class RigidResult(NamedTuple):
    """Result of `RigidSolver`; status as in `minimise`, for the rest see `StructureEquilibrium`."""

    status: int
    nodes: NDArray[np.float64]
    iterations: int
    residual: float
    softest: float = 0.0
    direction: NDArray[np.float64] | None = None
    stable: bool = False
    converged: bool = True


class RigidSolver:
    """Equilibria of one structure with rigid bars, in the scratch arrays of its `StructureEquilibriumSolver`."""

    def __init__(
        self, structure: Structure, problem: Problem, arrays: Rigid, work: Workspace, basis: NDArray, tolerance: float
    ) -> None:
        self.structure, self.arrays, self.work, self.tolerance = structure, arrays, work, tolerance
        stiffest = float(np.max(structure.stiffness, initial=0.0))
        self.problem = problem._replace(
            stiffness=np.where(structure.unilateral, structure.stiffness, np.maximum(structure.stiffness, stiffest))
        )
        self._basis = basis

    def solve(
        self,
        nodes: NDArray,
        rest: NDArray,
        forces: NDArray,
        warm: NDArray | None,
        reach: float,
        maximum_iterations: int,
    ) -> RigidResult:
        """Solve from nodes (n, 3) and, for a warm start, the member tensions (m,) of a nearby equilibrium."""
        problem, rigid, work = self.problem, self.arrays, self.work
        newton = (problem, rest, forces, self.tolerance, 0.2 * reach, 25, rigid, work, 0.0)
        taken = 0
        if warm is not None:
            rigid.tensions[:] = warm[rigid.bars]
            trial = nodes.copy()
            converged, taken, residual = newton_rigid(trial, *newton)
            if converged:
                return self._result(trial, taken, residual)
        stiffness, shifted = problem.stiffness[rigid.bars], np.array(rest)
        rough = max(self.tolerance, 1e-10 * float(np.max(stiffness * rest[rigid.bars])))
        tensions = np.zeros(rigid.bars.size)
        for _ in range(MAX_ROUNDS):
            shifted[rigid.bars] = rest[rigid.bars] - tensions / stiffness
            status, iterations, residual = minimise(
                nodes, problem, shifted, forces, rough, reach, maximum_iterations, work
            )
            taken += iterations
            if status != BALANCED:
                if not tensions.any():
                    return RigidResult(status, nodes, taken, residual)
                break  # tensions grow in every iteration: the bar lengths are not feasible
            tensions = work.tensions[rigid.bars].copy()
            rigid.tensions[:] = tensions
            trial = nodes.copy()
            converged, iterations, residual = newton_rigid(trial, *newton)
            taken += iterations
            if converged:
                return self._result(trial, taken, residual)
        rigid.tensions[:] = tensions
        return self._last_resort(nodes, rest, forces, taken)

    def _result(self, nodes: NDArray, iterations: int, residual: float) -> RigidResult:
        problem, work = self.problem, self.work
        balance = work.residual.copy()
        softest, _ = softest_mode(problem, self.arrays, work, True, self._basis)
        work.residual[:] = balance
        stable = softest > 1e-10 * float(np.abs(work.matrix.diagonal()).max())
        return RigidResult(BALANCED, nodes, iterations, residual, softest, work.direction.copy(), stable)

    def _last_resort(self, nodes: NDArray, rest: NDArray, forces: NDArray, iterations: int) -> RigidResult:
        """Result for a singular last system: a motion without stiffness, dependent bars, or no equilibrium."""
        structure, problem, rigid, work = self.structure, self.problem, self.arrays, self.work
        scale = float(np.max(problem.stiffness))
        trial, tensions = nodes.copy(), rigid.tensions.copy()
        reach = float(np.max(rest[rigid.bars]))
        closed, more, _ = newton_rigid(
            trial, problem, rest, forces, self.tolerance, reach, 100, rigid, work, 1e-6 * scale
        )
        iterations += more
        if closed:
            nodes = trial
        else:
            rigid.tensions[:] = tensions
        residual, gap = rigid_residual(nodes, problem, rest, forces, rigid, work)
        names = [structure.member_names[k] for k in rigid.bars]
        if gap > 1e-6 * float(np.max(rest[rigid.bars])):
            worst = int(np.argmax(np.abs(rigid.gap)))
            raise NoEquilibriumError(
                f"the rigid bars do not all fit here: {names[worst]} is {rigid.gap[worst]:+.3g} m off its rest "
                f"length of {rest[rigid.bars[worst]]:.4g} m. Change rest lengths, take a bar out, start nearer, or use "
                "elastic bars."
            )
        normals = bar_directions(nodes, structure, rigid.bars)
        weights = dependence(normals)
        if weights is not None:
            involved = ", ".join(name for name, weight in zip(names, weights, strict=True) if weight > 1e-3)
            raise TensegrityError(
                f"rigid bars depend on each other here ({involved}): the length of one follows from the others, so "
                "that their forces are not determined. Take one out, or use elastic bars."
            )
        floor = max(self.tolerance, float(rounding_floor(nodes, forces, scale)))
        if residual > max(1e-9 * scale * float(np.max(rest)), floor):
            raise NoEquilibriumError(
                f"no equilibrium with rigid bars after {iterations} iterations: {residual:.3g} N are left. Start "
                "nearer, or use elastic bars."
            )
        matrix = np.zeros((structure.free.size, structure.free.size))
        tangent_stiffness(
            nodes, problem.members, problem.stiffness, problem.laws, work.lengths, work.tensions, rest,
            free_positions(structure.supports), matrix,
        )  # fmt: skip
        allowed = np.linalg.svd(normals)[2][rigid.bars.size :].T
        if not allowed.shape[1]:  # the bars alone constrain every node
            return RigidResult(
                BALANCED, nodes, iterations, residual, np.inf, np.zeros(structure.free.size), True, residual <= floor
            )
        values, vectors = np.linalg.eigh(allowed.T @ matrix @ allowed)
        stable = bool(values[0] > 1e-10 * scale)
        direction = allowed @ vectors[:, 0]
        return RigidResult(
            BALANCED, nodes, iterations, residual, float(values[0]), direction, stable, residual <= floor
        )


def bar_directions(nodes: NDArray, structure: Structure, bars: NDArray[np.int64]) -> NDArray[np.float64]:
    """A (c, f): derivative of the length of each bar with respect to the free coordinates."""
    normals = np.zeros((bars.size, nodes.size))
    for row, (i, j) in enumerate(structure.members[bars]):
        along = (nodes[i] - nodes[j]) / np.linalg.norm(nodes[i] - nodes[j])
        normals[row, 3 * i : 3 * i + 3] += along
        normals[row, 3 * j : 3 * j + 3] -= along
    return normals[:, structure.free]


def dependence(normals: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """(c,) participation of each row in linear dependences between the rows, or None if they are independent."""
    left, values, _ = np.linalg.svd(normals, full_matrices=True)
    rank = int(np.count_nonzero(values > 1e-7 * values[0]))
    return None if rank == normals.shape[0] else np.linalg.norm(left[:, rank:], axis=1)
