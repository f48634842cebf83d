"""Finite mechanisms: motions without elongation of members, followed over a given distance.

An infinitesimal mechanism u keeps all lengths to first order only. To distinguish both kinds, the nodes are moved by h
along u, and Newton's method finds the motion with the least elongation: minimise sum r_k^2 with the length errors r_k,
subject to u'(x - x0) = h and without rigid body motion. Along a finite mechanism, r decreases to rounding errors; along
an infinitesimal one, it stays of the order h^2. Bars and tendons under tension must keep their length. A tendon without
tension can become shorter, and can become longer until it is taut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..form_finding.force_density import (
    equilibrium_matrix,
    member_directions,
    moving_members,
    null_space,
    rigid_motions,
)
from ..structure import Structure

CONTINUATION_STEPS = 4
TRIES = 8
"""Number of tested mechanisms, and of tested random combinations of all mechanisms, in both directions."""
TOLERANCE_LENGTH = 1e-9
"""Tolerance of a constant length, relative to the size of the structure."""


@dataclass(frozen=True, eq=False)
class FiniteMechanism:
    """Motion without elongation that was followed over a finite distance.

    Attributes:
        direction: (n, 3) direction from the start to `nodes`, unit norm.
        nodes: (n, 3) nodes at its end [m].
        travel: largest displacement of a node [m].
        dimension: number of independent free motions at `nodes`.
    """

    direction: NDArray[np.float64]
    nodes: NDArray[np.float64]
    travel: float
    dimension: int


@dataclass(frozen=True, eq=False)
class _Lengths:
    """Length conditions of the moving members."""

    structure: Structure
    moving: NDArray[np.int64]
    goals: NDArray[np.float64]  # (a,) m
    kept: NDArray[np.bool_]  # (a,) members that keep their length; the others must not become longer

    def errors(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        lengths = member_directions(self.structure, nodes)[1][self.moving]
        error = lengths - self.goals
        return np.where(self.kept, error, np.maximum(error, 0.0))

    def touching(self, nodes: NDArray[np.float64], slack: float) -> NDArray[np.bool_]:
        """(a,) members without tension whose length has reached its upper limit."""
        lengths = member_directions(self.structure, nodes)[1][self.moving]
        return ~self.kept & (lengths > self.goals - slack)


def find_free_motion(
    structure: Structure,
    nodes: NDArray[np.float64],
    tensions: NDArray[np.float64],
    *,
    force_scale: float,
    tolerance: float = 1e-6,
    distance: float | None = None,
    preferred: NDArray[np.float64] | None = None,
) -> FiniteMechanism | None:
    """Finite mechanism with the largest dimension, or None if every mechanism is infinitesimal.

    Args:
        structure: structure with the present rest lengths.
        nodes, tensions: (n, 3) m and (m,) N at the start.
        force_scale: tensions below this value [N] count as zero.
        tolerance: tolerance of rank decisions, relative to the largest singular value.
        distance: distance along the unit direction [m]; by default a twentieth of the size of the structure.
        preferred: (p, 3 n) motions that are tested first, such as those that move the output.
    """
    size = float(np.ptp(nodes, axis=0).max())
    distance = 0.05 * size if distance is None else distance
    moving = moving_members(structure)
    kept = ~structure.unilateral[moving] | (tensions[moving] > force_scale)
    lengths = member_directions(structure, nodes)[1][moving]
    goals = np.where(kept, lengths, np.maximum(lengths, structure.rest_lengths[moving]))
    rules = _Lengths(structure, moving, goals, kept)
    best: FiniteMechanism | None = None
    preferred_motions = np.zeros((0, structure.free.size)) if preferred is None else preferred[:, structure.free]
    most, directions = _directions(rules, nodes, preferred_motions, tolerance, TOLERANCE_LENGTH * size)
    for direction in directions:
        reached = _follow(rules, nodes, direction, distance, TOLERANCE_LENGTH * size)
        if reached is None:
            continue
        dimension = _mechanisms(rules, reached, tolerance, TOLERANCE_LENGTH * size).shape[1]
        if best is None or dimension > best.dimension:
            along = reached - nodes
            travel = float(np.linalg.norm(along, axis=1).max())
            best = FiniteMechanism(along / np.linalg.norm(along), reached, travel, dimension)
            if dimension >= most:
                break
    return best


def _mechanisms(rules: _Lengths, nodes: NDArray, tolerance: float, slack: float) -> NDArray[np.float64]:
    """(f, k) motions that keep the lengths of all relevant members at these nodes, without rigid body motions."""
    rows = equilibrium_matrix(rules.structure, nodes).T[rules.kept | rules.touching(nodes, slack)]
    return null_space(np.vstack((rows, rigid_motions(rules.structure, nodes).T)), tolerance)


def _directions(
    rules: _Lengths, nodes: NDArray, preferred_motions: NDArray, tolerance: float, slack: float
) -> tuple[int, list[NDArray[np.float64]]]:
    """Largest possible dimension of a free motion, and unit motions (f,) without elongation to first order."""
    from scipy.optimize import nnls  # imported here to keep the package import fast

    compatibility = equilibrium_matrix(rules.structure, nodes).T
    rigid = rigid_motions(rules.structure, nodes)
    basis = null_space(np.vstack((compatibility[rules.kept], rigid.T)), tolerance)
    if not basis.shape[1]:
        return 0, []
    one_sided = compatibility[rules.touching(nodes, 1e3 * slack)] @ basis
    generator = np.random.default_rng(0)
    trials = np.vstack((np.eye(basis.shape[1])[:TRIES], generator.normal(size=(TRIES, basis.shape[1]))))
    preferred_motions = preferred_motions @ basis
    ranked: list[tuple[float, NDArray[np.float64]]] = []
    for k, trial in enumerate(np.vstack((preferred_motions, -preferred_motions, trials, -trials))):
        size = float(np.linalg.norm(trial))
        if size < 1e-9:
            continue
        # motion nearest to the trial that elongates no taut tendon (projection onto a cone)
        try:
            motion = trial - one_sided.T @ nnls(one_sided.T, trial)[0] if one_sided.size else trial
        except RuntimeError:  # too many iterations: other trials follow
            continue
        part = float(np.linalg.norm(motion)) / size
        if part < 1e-6:
            continue
        direction = basis @ motion
        # preferred motions first, ordered by the change due to the projection
        rank = 1.0 - part if k < 2 * len(preferred_motions) else 2.0
        ranked.append((rank, direction / np.linalg.norm(direction)))
    ranked.sort(key=lambda each: each[0])
    return basis.shape[1], [direction for _, direction in ranked]


def _follow(
    rules: _Lengths, nodes: NDArray, direction: NDArray, distance: float, allowed: float
) -> NDArray[np.float64] | None:
    """Nodes (n, 3) [m] at this distance along the direction with all lengths kept, or None."""
    structure, free = rules.structure, rules.structure.free
    rigid = rigid_motions(structure, nodes)
    across = null_space(np.vstack((direction[None, :], rigid.T)), 1e-9)

    def moved_by(part: NDArray, along: float) -> NDArray[np.float64]:
        moved = nodes.copy()
        moved.ravel()[free] += along * direction + across @ part
        return moved

    from scipy.optimize import least_squares  # imported here to keep the package import fast

    part, moved = np.zeros(across.shape[1]), nodes
    for step in range(1, CONTINUATION_STEPS + 1):
        along = distance * step / CONTINUATION_STEPS

        def errors(part: NDArray, along: float = along) -> NDArray[np.float64]:
            return rules.errors(moved_by(part, along)) / distance

        def slopes(part: NDArray, along: float = along) -> NDArray[np.float64]:
            moved = moved_by(part, along)
            rows = equilibrium_matrix(structure, moved).T
            counted = rules.kept | (rules.errors(moved) > 0.0)
            return (rows * counted[:, None]) @ across / distance

        if across.shape[1]:
            part = least_squares(errors, part, slopes, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=60).x
        moved = moved_by(part, along)
        if float(np.abs(rules.errors(moved)).max(initial=0.0)) > allowed:
            return None
    return moved
