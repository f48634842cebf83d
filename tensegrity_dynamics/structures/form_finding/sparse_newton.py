"""Trust region method of `newton` for large structures: sparse tangent stiffness, factored without pivoting.

Without pivoting, a factorisation also determines whether the matrix is positive definite. The sparsity pattern is
computed once; each step only fills its values. Up to `MIN_KEPT` coordinates, SuperLU computes each factorisation anew
(the signs of the diagonal of U are those of the eigenvalues). Above, `SparseCholesky` reuses the symbolic
factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...numerics.compilation import compiled
from ...numerics.sparse_cholesky import SparseCholesky
from ..energy import add_member_forces, member_tensions, stored_energy
from ..structure import Structure
from ..tension_law import tension_law
from .newton import BALANCED, COINCIDENT, MIN_CAPPED_STEPS, STUCK, Problem, has_collapsed_bar, rounding_floor

MOST_VECTORS, MOST_SOLUTIONS = 30, 300
"""Largest number of Lanczos vectors of one run for the softest motion, and of solutions of all runs."""
CLOSE, MOST_CORRECTIONS = 0.1, 5
"""Largest remaining fraction of the residual after a step, up to which the next step uses the same factors, and largest
number of conjugate gradient corrections for it. A factorisation takes as long as ten corrections, more in large
structures."""
LESS = 0.03
"""Factor on the shift after a step that agrees with the quadratic model."""
MIN_KEPT = 3000
"""Number of free coordinates above which `SparseCholesky` is used, because its loading time pays off."""
ROUND, MOST_ROUNDS = 10, 10
"""Number of gradient steps between two checks whether the stiffness is positive definite, and number of checks."""


@compiled
def fill_values(nodes, members, stiffness, laws, lengths, tensions, rest_lengths, slots, values):
    """Add the blocks of every member to values at the indices slots (m, 36), -1 for held coordinates."""
    values[:] = 0.0
    unit = np.empty(3)
    for k in range(members.shape[0]):
        if laws[k] > 0.0 and lengths[k] <= rest_lengths[k] and tensions[k] <= 0.0:
            continue
        i, j = members[k, 0], members[k, 1]
        slope = tension_law(laws[k], stiffness[k], lengths[k] - rest_lengths[k])[1]
        density = tensions[k] / lengths[k]
        for a in range(3):
            unit[a] = (nodes[i, a] - nodes[j, a]) / lengths[k]
        for a in range(3):
            for b in range(3):
                entry = (slope - density) * unit[a] * unit[b]
                if a == b:
                    entry += density
                for block in range(4):
                    slot = slots[k, 9 * block + 3 * a + b]
                    if slot >= 0:
                        values[slot] += entry if block == 0 or block == 3 else -entry


def _layout(
    problem: Problem,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sparsity pattern of the tangent stiffness by columns (f + 1,) and (e,), both triangles and the diagonal.

    Further results are the indices (m, 36) of the blocks of each member, -1 for held coordinates, and the indices (f,)
    of the diagonal. The pattern is found from pairs of nodes, whose blocks are dense: sorting of single entries would
    need nine times as many keys.
    """
    position, size = problem.position, problem.free.size
    count = len(position)
    wide = (position >= 0).sum(axis=1)
    offset = np.cumsum(wide) - wide  # free coordinates come node by node
    first, second = problem.members[:, [0, 0, 1, 1]], problem.members[:, [0, 1, 0, 1]]
    keys = np.concatenate((second.ravel() * count + first.ravel(), np.arange(count) * (count + 1)))
    pairs, inverse = np.unique(keys, return_inverse=True)
    of, by = pairs // count, pairs % count  # columns of one node, rows of another
    before = np.cumsum(wide[by]) - wide[by]
    begins = np.searchsorted(of, np.arange(count))
    height = np.bincount(of, weights=wide[by], minlength=count).astype(np.int64)
    before -= before[begins][of]
    nodes = np.repeat(np.arange(count), wide)
    starts = np.concatenate(([0], np.cumsum(height[nodes])))
    columns, rows = position[of], position[by]  # (p, 3)
    inside = (columns[:, None, :] >= 0) & (rows[:, :, None] >= 0)  # (p, row, column)
    slots = starts[columns][:, None, :] + (before[:, None] + rows - offset[by][:, None])[:, :, None]
    slots = np.where(inside, slots, -1)
    entries = np.empty(int(starts[-1]), dtype=np.int64)
    entries[slots[inside]] = np.broadcast_to(rows[:, :, None], slots.shape)[inside]
    four = 4 * len(problem.members)
    diagonal = slots[inverse[four:]][:, [0, 1, 2], [0, 1, 2]]
    assert size == starts.size - 1
    return starts, entries, slots[inverse[:four]].reshape(-1, 36), diagonal[diagonal >= 0]


@dataclass(frozen=True, eq=False)
class SparseResult:
    """Result of the sparse trust region; see `StructureEquilibrium` for the meaning."""

    status: int
    iterations: int
    residual: float
    lengths: NDArray[np.float64]
    tensions: NDArray[np.float64]
    forces: NDArray[np.float64]
    softest: float
    direction: NDArray[np.float64]
    stable: bool


class SparseMinimiser:
    """Trust region method for the total energy of one large structure."""

    def __init__(self, structure: Structure, problem: Problem, reach: float) -> None:
        import scipy.sparse as sparse  # imported here to keep the package import fast

        self.problem, self.reach = problem, reach
        starts, rows, self._slots, self._diagonal = _layout(problem)
        size = problem.free.size
        self._matrix = sparse.csc_matrix((np.zeros(rows.size), rows, starts), shape=(size, size))
        self._values = np.zeros(rows.size)
        self._kept: SparseCholesky | None = None
        if size >= MIN_KEPT:
            nodes, groups = np.unique(problem.free // 3, return_inverse=True)
            self._kept = SparseCholesky(starts, rows, groups, structure.nodes[nodes])
        self._lengths, self._tensions = np.zeros(len(problem.members)), np.zeros(len(problem.members))
        self._forces = np.zeros((structure.nodes.shape[0], 3))

    def minimise(
        self, nodes: NDArray, rest: NDArray, forces: NDArray, tolerance: float, maximum_iterations: int
    ) -> SparseResult:
        """Move nodes (n, 3) in place to a minimum of the total energy."""
        problem, free, shift, escapes = self.problem, self.problem.free, 0.0, 0
        stride, full, before = self.reach, 0, np.inf
        residual = self._residual(nodes, rest, forces)
        energy = self._energy(nodes, rest, forces)
        status, iteration = STUCK, 0
        if not np.all(self._lengths > 0.0):
            return self._result(COINCIDENT, 0, residual, None, 0.0)
        factor, scale, least, direction, fallen = None, 1.0, 0.0, np.zeros(free.size), 1.0
        for iteration in range(maximum_iterations + 1):
            worst = float(np.max(np.abs(residual)))
            self._refill(nodes, rest)
            scale = float(np.max(self._values[self._diagonal], initial=1e-12))
            settled = worst > 0.5 * before and worst <= rounding_floor(nodes, forces, scale)
            escaping, before = worst <= tolerance or settled, worst
            if escaping:
                factor = self._factor(0.0)
                if factor is not None:
                    status = BALANCED
                    break
                least, direction = self._negative_direction(scale)
                if least > -1e-9 * scale or escapes > 20:
                    status = BALANCED
                    break
                escapes += 1
                step = 0.1 * self.reach * direction / np.max(np.abs(direction))
            else:
                last = worst <= 10.0 * max(tolerance, rounding_floor(nodes, forces, scale))
                near = None
                if factor is not None and (fallen <= CLOSE or last):
                    near = self._corrected(factor, shift, residual, fallen)
                if near is None:
                    used, factor = shift, self._factor(shift)
                    if factor is None and iteration == 0:
                        residual, factor = self._relax(nodes, rest, forces, residual)
                        energy, worst = self._energy(nodes, rest, forces), float(np.max(np.abs(residual)))
                        before = worst
                    while factor is None:
                        used = max(1e-5 * scale, 4.0 * used)
                        factor = self._factor(used)
                    near, shift = factor.solve(residual), used
                step = near
            accepted, capped = False, False
            for _ in range(60):
                cut = min(1.0, stride / max(float(np.max(np.abs(step))), 1e-300))
                step, capped = step * cut, cut < 1.0
                trial = nodes.copy()
                trial.ravel()[free] += step
                predicted = _inner(residual - 0.5 * (self._matrix @ step), step)
                new = self._energy(trial, rest, forces)
                rounding = 1e-13 * (abs(energy) + abs(new))
                if (
                    np.isfinite(new)
                    and (energy - new >= 1e-4 * predicted or abs(predicted) <= rounding)
                    and not has_collapsed_bar(trial, problem.members, problem.laws, rest)
                ):
                    accepted = True
                    break
                if escaping:  # the opposite direction, and shorter
                    step = -0.5 * step
                    continue
                stride, full = self.reach, 0
                shift = max(1e-6 * scale, 4.0 * shift)
                factor = self._factor(shift)
                while factor is None:
                    shift *= 4.0
                    factor = self._factor(shift)
                step = factor.solve(residual)
            if not accepted:
                status = BALANCED if escaping else STUCK
                break
            ratio = (energy - new) / predicted if abs(predicted) > rounding else 1.0
            full = full + 1 if capped and ratio > 0.25 else 0
            stride = 2.0 * stride if full >= MIN_CAPPED_STEPS else stride if capped else self.reach
            nodes[:], energy = trial, new
            residual = self._residual(nodes, rest, forces)
            fallen = float(np.max(np.abs(residual))) / worst if worst > 0.0 else 1.0
            if ratio > 0.75:
                # a shift proportional to the out-of-balance force keeps the convergence order of Newton's method
                shift = min(LESS, fallen) * shift if shift > 1e-9 * scale else 0.0
            elif ratio < 0.25:
                shift = max(1e-6 * scale, 4.0 * shift)
        return self._result(status, iteration, residual, factor, scale, least, direction)

    def assess(self, nodes: NDArray, rest: NDArray, forces: NDArray) -> SparseResult:
        """Force balance and softest motion at given nodes (n, 3)."""
        residual = self._residual(nodes, rest, forces)
        self._refill(nodes, rest)
        scale = float(np.max(self._values[self._diagonal], initial=1e-12))
        factor = self._factor(0.0)
        least, direction = self._negative_direction(scale) if factor is None else (0.0, None)
        return self._result(BALANCED, 0, residual, factor, scale, least, direction)

    # -- parts ----------------------------------------------------------------------------------------------------

    def _relax(self, nodes: NDArray, rest: NDArray, forces: NDArray, residual: NDArray):
        """Decrease the energy in place until the stiffness is positive definite; returns the residual and its factors.

        It uses conjugate gradients (Polak and Ribiere). The errors of a start far from equilibrium are mostly local
        between nodes, and a few dozen steps remove them; a factorisation with a sufficient shift would cost as much. No
        block of a member is stiffer than its K, so that half of the step residual / (sum of K at each node) always
        decreases the energy.
        """
        problem, free = self.problem, self.problem.free
        energy, trial = self._energy(nodes, rest, forces), nodes.copy()
        at_nodes = np.bincount(problem.members.ravel(), np.repeat(problem.stiffness, 2), len(nodes))
        softness = 1.0 / np.maximum(at_nodes, 1e-12 * float(np.max(at_nodes)))[free // 3]
        direction, length, factor = np.zeros(residual.size), 0.5, None
        for _ in range(MOST_ROUNDS):
            size, across = 0.0, 0.0
            for _ in range(ROUND):
                scaled = softness * residual
                new_size = _inner(residual, scaled)
                if size > 0.0:
                    direction *= max(0.0, (new_size - across) / size)
                else:
                    direction[:] = 0.0
                direction += scaled
                slope, size = _inner(residual, direction), new_size
                if slope <= 0.0:
                    direction, slope = scaled, new_size
                length = min(length, self.reach / max(float(np.max(np.abs(direction))), 1e-300))
                for _ in range(30):
                    trial.ravel()[free] = nodes.ravel()[free] + length * direction
                    new = self._energy(trial, rest, forces)
                    if new <= energy - 1e-4 * length * slope and not has_collapsed_bar(
                        trial, self.problem.members, self.problem.laws, rest
                    ):
                        break
                    length *= 0.4
                else:
                    return self._residual(nodes, rest, forces), None
                nodes[:], energy = trial, new
                residual = self._residual(nodes, rest, forces)
                across = _inner(residual, scaled)
                bent = slope - _inner(residual, direction)
                length *= min(4.0, slope / bent) if bent > 0.0 else 2.0
            self._refill(nodes, rest)
            factor = self._factor(0.0)
            if factor is not None:
                break
        return residual, factor

    def _energy(self, nodes: NDArray, rest: NDArray, forces: NDArray) -> float:
        problem = self.problem
        elastic = stored_energy(nodes, problem.members, problem.stiffness, rest, problem.laws)
        return float(elastic - np.sum(forces * nodes))

    def _residual(self, nodes: NDArray, rest: NDArray, forces: NDArray) -> NDArray[np.float64]:
        problem = self.problem
        member_tensions(nodes, problem.members, problem.stiffness, rest, problem.laws, self._lengths, self._tensions)
        self._forces[:] = forces
        add_member_forces(nodes, problem.members, self._lengths, self._tensions, self._forces)
        return self._forces.ravel()[problem.free]

    def _refill(self, nodes: NDArray, rest: NDArray) -> None:
        problem = self.problem
        fill_values(
            nodes, problem.members, problem.stiffness, problem.laws, self._lengths, self._tensions, rest,
            self._slots, self._values,
        )  # fmt: skip
        self._matrix.data[:] = self._values

    def _factor(self, shift: float):
        """Factors of K + shift, or None if it is not positive definite; the previous factors become invalid."""
        if self._kept is not None:
            least = 1e-15 * float(np.max(self._values))
            return self._kept if self._kept.factor(self._values, shift, least) else None
        from scipy.sparse.linalg import splu  # imported here to keep the package import fast

        shifted = self._matrix.copy()
        shifted.data[self._diagonal] += shift
        try:
            factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:  # exactly singular
            return None
        return factor if np.all(factor.U.diagonal() > 1e-15 * np.max(self._values)) else None

    def _corrected(self, factor, shift: float, residual: NDArray, fallen: float) -> NDArray | None:
        """(K + shift)^-1 residual by conjugate gradients with the factors of a previous step; None if they differ too
        much."""
        step, left = np.zeros(residual.size), residual.copy()
        goal = min(0.01, fallen) * np.sqrt(_inner(left, left))
        direction, before = np.zeros(residual.size), np.inf
        for _ in range(MOST_CORRECTIONS):
            solved = factor.solve(left)
            size = _inner(left, solved)
            direction = solved + size / before * direction
            pulled = self._matrix @ direction + shift * direction
            curvature = _inner(direction, pulled)
            if not (curvature > 0.0 and size > 0.0):
                return None
            step += size / curvature * direction
            left -= size / curvature * pulled
            if _inner(left, left) <= goal * goal:
                return step
            before = size
        return None

    def _negative_direction(self, scale: float) -> tuple[float, NDArray[np.float64]]:
        shift, factor = 1e-6 * scale, None
        while factor is None:
            factor = self._factor(shift)
            shift *= 4.0
        value, direction = _inverse_iteration(factor, self.problem.free.size)
        return value - shift / 4.0, direction

    def _result(
        self, status: int, iterations: int, residual: NDArray, factor, scale: float, least: float = 0.0,
        direction: NDArray | None = None,
    ) -> SparseResult:  # fmt: skip
        """Result with the softest motion from the factors at a minimum; elsewhere with the least known stiffness."""
        softest, stable = least, False
        if status == BALANCED and factor is not None:
            softest, direction = _inverse_iteration(factor, residual.size)
            stable = softest > 1e-10 * scale
        if direction is None:
            direction = np.zeros(residual.size)
        return SparseResult(
            status, iterations, float(np.max(np.abs(residual))), self._lengths.copy(), self._tensions.copy(),
            self._forces.copy(), softest, direction, stable,
        )  # fmt: skip


def _inverse_iteration(factor, size: int) -> tuple[float, NDArray[np.float64]]:
    """Least eigenvalue and its direction from the factors of a positive definite matrix.

    The Lanczos method is applied to the inverse. If it does not converge within `MOST_VECTORS`, it is restarted from
    the best direction. For close eigenvalues, it needs far fewer solutions than inverse iteration, and never more.
    """
    vector, last, value = np.cos(1.0 + 1.7 * np.arange(size)), 0.0, 0.0
    for _ in range(MOST_SOLUTIONS // MOST_VECTORS):
        most = min(MOST_VECTORS, size)
        basis, across = np.empty((most, size)), np.zeros((most, most))
        basis[0] = vector / np.sqrt(_inner(vector, vector))
        for k in range(most):
            solved = factor.solve(basis[k])
            for j in range(k + 1):  # full and sequential, so that results are bitwise independent of libraries
                part = _inner(solved, basis[j])
                across[j, k] = across[k, j] = part
                solved = solved - part * basis[j]
            values, motions = np.linalg.eigh(across[: k + 1, : k + 1])
            value, length = 1.0 / float(values[-1]), np.sqrt(_inner(solved, solved))
            done = abs(value - last) <= 1e-10 * abs(value) or length <= 1e-14 * float(values[-1])
            if done or k + 1 == most:
                break
            last = value
            basis[k + 1] = solved / length
        vector = motions[:, -1] @ basis[: k + 1]
        if done:
            break
        last = value
    return value, vector / np.sqrt(_inner(vector, vector))


def _inner(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Inner product of long vectors without a library, whose threads would need more processor time than the sums."""
    return float(np.sum(first * second))
