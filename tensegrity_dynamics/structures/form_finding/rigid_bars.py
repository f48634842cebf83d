"""Equilibrium with bars of exactly constant length: Newton's method on nodes and bar tensions.

    K_t dx + A' dt = r,   A dx = -(l - d)

A contains the unit vectors of the bars, K_t the tangent stiffness of tendons and the geometric stiffness of the bars.
The elastic stiffness of the bars is added to both sides. This does not change the solution, and the upper block becomes
the ordinary tangent stiffness, which is positive definite at a stable shape. So the system is solved with a Cholesky
factor and a small Schur complement.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ...numerics.compilation import compiled, compiled_part
from ...numerics.linear_algebra import cholesky_apply, cholesky_shifted
from ..energy import add_member_forces, member_tensions
from .newton import TOLERANCE_ROUNDING, fill_stiffness, rounding_floor

Rigid = namedtuple("Rigid", "bars normals solved schur schur_factor gap change tensions")
"""bars (c,) member indices; A (c, f), K^-1 A' (c, f), Schur complement and its factor (c, c), gaps (c,) m."""


def make_rigid_bars(members: np.ndarray, unilateral: np.ndarray, fixed: np.ndarray, free_count: int) -> Rigid:
    """Arrays for the bars with at least one free end."""
    bars = np.flatnonzero(~unilateral & ~(fixed[members[:, 0]] & fixed[members[:, 1]])).astype(np.int64)
    c = bars.size
    return Rigid(
        bars=bars, normals=np.zeros((c, free_count)), solved=np.zeros((c, free_count)), schur=np.zeros((c, c)),
        schur_factor=np.zeros((c, c)), gap=np.zeros(c), change=np.zeros(c), tensions=np.zeros(c),
    )  # fmt: skip


@compiled
def rigid_residual(nodes, problem, rest_lengths, forces, rigid, work):
    """Fill residual, gaps and tensions for the bar tensions rigid.tensions; returns (largest residual, largest gap)."""
    member_tensions(nodes, problem.members, problem.stiffness, rest_lengths, problem.laws, work.lengths, work.tensions)
    widest = 0.0
    for c in range(rigid.bars.shape[0]):
        k = rigid.bars[c]
        rigid.gap[c] = work.lengths[k] - rest_lengths[k]
        work.tensions[k] = rigid.tensions[c]
        widest = max(widest, abs(rigid.gap[c]))
    work.forces[:, :] = forces
    add_member_forces(nodes, problem.members, work.lengths, work.tensions, work.forces)
    flat = work.forces.ravel()
    worst = 0.0
    for i in range(problem.free.shape[0]):
        work.residual[i] = flat[problem.free[i]]
        worst = max(worst, abs(work.residual[i]))
    return worst, widest


@compiled_part
def factor_rigid(nodes, problem, rest_lengths, rigid, work, shift):
    """Factor the system at the state in work, plus shift [N/m]; False if it is not that of a stable shape."""
    fill_stiffness(nodes, problem, rest_lengths, work)
    if not cholesky_shifted(work.matrix, shift, work.factor):
        return False
    rigid.normals[:, :] = 0.0
    for c in range(rigid.bars.shape[0]):
        k = rigid.bars[c]
        i, j = problem.members[k, 0], problem.members[k, 1]
        for a in range(3):
            unit = (nodes[i, a] - nodes[j, a]) / work.lengths[k]
            if problem.position[i, a] >= 0:
                rigid.normals[c, problem.position[i, a]] += unit
            if problem.position[j, a] >= 0:
                rigid.normals[c, problem.position[j, a]] -= unit
        cholesky_apply(work.factor, rigid.normals[c], rigid.solved[c])
    for c in range(rigid.bars.shape[0]):
        for e in range(c + 1):
            total = 0.0
            for i in range(problem.free.shape[0]):
                total += rigid.normals[c, i] * rigid.solved[e, i]
            rigid.schur[c, e] = total
            rigid.schur[e, c] = total
    return cholesky_shifted(rigid.schur, 0.0, rigid.schur_factor)


@compiled_part
def solve_rigid(problem, rigid, work, gap_weight):
    """Fill work.step and rigid.change for the residual in work and gap_weight times the gaps, after factor_rigid."""
    count, bars = problem.free.shape[0], rigid.bars.shape[0]
    for i in range(count):
        work.scratch[i] = work.residual[i]
    for c in range(bars):
        force = gap_weight * problem.stiffness[rigid.bars[c]] * rigid.gap[c]
        for i in range(count):
            work.scratch[i] -= rigid.normals[c, i] * force
    cholesky_apply(work.factor, work.scratch, work.step)
    for c in range(bars):
        total = gap_weight * rigid.gap[c]
        for i in range(count):
            total += rigid.normals[c, i] * work.step[i]
        rigid.change[c] = total
    cholesky_apply(rigid.schur_factor, rigid.change, rigid.change)
    for c in range(bars):
        for i in range(count):
            work.step[i] -= rigid.solved[c, i] * rigid.change[c]


@compiled
def newton_rigid(nodes, problem, rest_lengths, forces, tolerance, reach, maximum_iterations, rigid, work, shift):
    """Newton's method from nodes and rigid.tensions, in place.

    Returns (converged, iterations, largest residual). Converged means a stable equilibrium with closed bars. If the
    rounding error exceeds the tolerance, the iteration ends at the rounding error. A shift [N/m] of the stiffness also
    closes the bars of shapes with motions without stiffness.
    """
    worst, widest = rigid_residual(nodes, problem, rest_lengths, forces, rigid, work)
    flat = nodes.ravel()
    longest_bar, before = 0.0, np.inf
    for c in range(rigid.bars.shape[0]):
        longest_bar = max(longest_bar, rest_lengths[rigid.bars[c]])
    for iteration in range(maximum_iterations + 1):
        if not factor_rigid(nodes, problem, rest_lengths, rigid, work, shift):
            return False, iteration, worst
        farthest, scale = 0.0, 0.0
        for i in range(flat.shape[0]):
            farthest = max(farthest, abs(flat[i]))
        for i in range(problem.free.shape[0]):
            scale = max(scale, work.matrix[i, i])
        settled = worst > 0.5 * before and worst <= rounding_floor(nodes, forces, scale)
        if (worst <= tolerance or settled) and widest <= 1e-13 * longest_bar + TOLERANCE_ROUNDING * farthest:
            return True, iteration, worst
        if iteration == maximum_iterations:
            break
        solve_rigid(problem, rigid, work, 1.0)
        longest = 0.0
        for i in range(problem.free.shape[0]):
            longest = max(longest, abs(work.step[i]))
        if not longest < reach:
            return False, iteration, worst
        for i in range(problem.free.shape[0]):
            flat[problem.free[i]] += work.step[i]
        for c in range(rigid.bars.shape[0]):
            rigid.tensions[c] += rigid.change[c]
        before = worst
        worst, widest = rigid_residual(nodes, problem, rest_lengths, forces, rigid, work)
        if not np.isfinite(worst):
            return False, iteration, worst
    return False, maximum_iterations, worst
