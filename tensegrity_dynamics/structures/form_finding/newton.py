"""Equilibrium as a minimum of the total energy: trust region method with the exact tangent stiffness, compiled.

Each step solves (K + s) dx = r with the out-of-balance force r and the multiplier s >= 0 of a trust region. s increases
if the energy decreases less than in the quadratic model or if K + s is not positive definite, and decreases towards
Newton's method if the model is good. At an equilibrium that is not a minimum, the step follows the direction of
negative stiffness.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ...numerics.compilation import compiled, compiled_part
from ...numerics.linear_algebra import cholesky_apply, cholesky_shifted, least_eigenvector
from ..energy import add_member_forces, member_tensions, stored_energy, tangent_stiffness

BALANCED, STUCK, COINCIDENT = 0, 1, 2
MIN_CAPPED_STEPS = 20
"""Number of successive steps of full length after which the trust region grows (falling chain, large load)."""
TOLERANCE_ROUNDING = 4.4e-16
"""Twice the machine precision; times stiffness times coordinates, it is the rounding error of the force balance."""

Problem = namedtuple("Problem", "members stiffness laws position free")
"""Connectivity of a structure: members (m, 2), stiffness and laws (m,), rows by coordinate (n, 3), free (f,)."""

Workspace = namedtuple("Workspace", "lengths tensions forces residual matrix factor step trial direction scratch")
"""Scratch arrays of one solver."""


def make_workspace(node_count: int, member_count: int, free_count: int) -> Workspace:
    """Scratch arrays for a structure with these numbers of nodes, members and free coordinates."""
    return Workspace(
        lengths=np.zeros(member_count), tensions=np.zeros(member_count), forces=np.zeros((node_count, 3)),
        residual=np.zeros(free_count), matrix=np.zeros((free_count, free_count)),
        factor=np.zeros((free_count, free_count)), step=np.zeros(free_count), trial=np.zeros((node_count, 3)),
        direction=np.zeros(free_count), scratch=np.zeros(free_count),
    )  # fmt: skip


@compiled
def out_of_balance(nodes, problem, rest_lengths, forces, work):
    """Fill lengths, tensions and the residual force (f,) N; returns its largest component."""
    member_tensions(nodes, problem.members, problem.stiffness, rest_lengths, problem.laws, work.lengths, work.tensions)
    work.forces[:, :] = forces
    add_member_forces(nodes, problem.members, work.lengths, work.tensions, work.forces)
    worst = 0.0
    flat = work.forces.ravel()
    for i in range(problem.free.shape[0]):
        work.residual[i] = flat[problem.free[i]]
        worst = max(worst, abs(work.residual[i]))
    return worst


@compiled_part
def total_energy(nodes, problem, rest_lengths, forces):
    """Elastic energy less the work of the external forces [J]."""
    energy = stored_energy(nodes, problem.members, problem.stiffness, rest_lengths, problem.laws)
    for i in range(nodes.shape[0]):
        for a in range(3):
            energy -= forces[i, a] * nodes[i, a]
    return energy


@compiled_part
def fill_stiffness(nodes, problem, rest_lengths, work):
    """Fill the tangent stiffness for the lengths and tensions in work."""
    tangent_stiffness(
        nodes, problem.members, problem.stiffness, problem.laws, work.lengths, work.tensions, rest_lengths,
        problem.position, work.matrix,
    )  # fmt: skip


@compiled
def rounding_floor(nodes, forces, scale):
    """Rounding error of the out-of-balance force [N], if the stiffest node has the stiffness `scale` [N/m]."""
    farthest, strongest = 0.0, 0.0
    for i in range(nodes.shape[0]):
        for a in range(3):
            farthest = max(farthest, abs(nodes[i, a]))
            strongest = max(strongest, abs(forces[i, a]))
    return TOLERANCE_ROUNDING * (scale * farthest + 4.0 * strongest)


@compiled
def has_collapsed_bar(nodes, members, laws, rest_lengths):
    """Whether a bar has zero length and so no direction; slack tendons need no direction."""
    for k in range(members.shape[0]):
        if laws[k] == 0.0:
            i, j = members[k, 0], members[k, 1]
            square = 0.0
            for a in range(3):
                square += (nodes[i, a] - nodes[j, a]) ** 2
            if not square > (1e-9 * rest_lengths[k]) ** 2:
                return True
    return False


@compiled_part
def soft_shift(work, scale):
    """Shift that makes K + shift positive definite, from the least eigenvalue, whose direction is in work.direction.

    Returns (shift, least eigenvalue).
    """
    shift = 1e-6 * scale
    while not cholesky_shifted(work.matrix, shift, work.factor):
        shift *= 4.0
    estimate, _ = least_eigenvector(work.factor, work.direction, work.scratch, 60)
    return shift, estimate - shift


@compiled
def minimise(nodes, problem, rest_lengths, forces, tolerance, reach, maximum_iterations, work):
    """Move nodes (n, 3) in place to a minimum of the total energy.

    Args:
        tolerance: largest residual component [N]. reach: largest change of a coordinate in one step [m]; it grows after
            `MIN_CAPPED_STEPS` of this length.

    Returns:
        (status, iterations, largest residual). The status is also BALANCED if the rounding error exceeds the tolerance
        (the caller compares), and if the stiffness is only semi-definite (the caller checks the eigenvalues).
    """
    count = problem.free.shape[0]
    worst = out_of_balance(nodes, problem, rest_lengths, forces, work)
    energy = total_energy(nodes, problem, rest_lengths, forces)
    for k in range(work.lengths.shape[0]):
        if not work.lengths[k] > 0.0:
            return COINCIDENT, 0, worst
    trial = work.trial.ravel()
    for i in range(count):
        work.direction[i] = np.cos(1.0 + 1.7 * i)  # not symmetric, and reproducible
    shift, escapes, stride, full, before = 0.0, 0, reach, 0, np.inf
    for iteration in range(maximum_iterations + 1):
        fill_stiffness(nodes, problem, rest_lengths, work)
        scale = 0.0
        for i in range(count):
            scale = max(scale, abs(work.matrix[i, i]))
        scale = max(scale, 1e-12)
        used = shift
        definite = cholesky_shifted(work.matrix, used, work.factor)
        settled = worst > 0.5 * before and worst <= rounding_floor(nodes, forces, scale)
        before = worst
        escaping = worst <= tolerance or settled
        if escaping:
            if definite and (used == 0.0 or cholesky_shifted(work.matrix, 0.0, work.factor)):
                return BALANCED, iteration, worst
            _, least = soft_shift(work, scale)
            if least > -1e-9 * scale or escapes > 20:
                return BALANCED, iteration, worst
            escapes += 1
            norm = 0.0
            for i in range(count):
                norm = max(norm, abs(work.direction[i]))
            for i in range(count):
                work.step[i] = 0.1 * reach * work.direction[i] / norm
        else:
            if iteration == maximum_iterations:
                break
            while not definite:
                used = max(1e-5 * scale, 4.0 * used)
                definite = cholesky_shifted(work.matrix, used, work.factor)
            cholesky_apply(work.factor, work.residual, work.step)
        # trust region: never farther than reach in one step, and shorter if the model fails
        accepted, capped = False, False
        for _ in range(60):
            longest = 0.0
            for i in range(count):
                longest = max(longest, abs(work.step[i]))
            cut = min(1.0, stride / longest) if longest > 0.0 else 1.0
            capped = cut < 1.0
            work.trial[:, :] = nodes
            gain, slope = 0.0, 0.0
            for i in range(count):
                work.step[i] *= cut
                trial[problem.free[i]] += work.step[i]
                slope += work.residual[i] * work.step[i]
            for i in range(count):
                row = 0.0
                for j in range(count):
                    row += work.matrix[i, j] * work.step[j]
                gain += 0.5 * row * work.step[i]
            predicted = slope - gain
            new = total_energy(work.trial, problem, rest_lengths, forces)
            actual = energy - new
            rounding = 1e-13 * (abs(energy) + abs(new) + 1e-300)
            if (
                np.isfinite(new)
                and (actual >= 1e-4 * predicted or abs(predicted) <= rounding)
                and not has_collapsed_bar(work.trial, problem.members, problem.laws, rest_lengths)
            ):
                accepted = True
                break
            if escaping:  # the opposite direction, and shorter: they differ if a tendon becomes taut
                for i in range(count):
                    work.step[i] *= -0.5
                continue
            stride, full = reach, 0
            used = max(1e-6 * scale, 4.0 * used)
            while not cholesky_shifted(work.matrix, used, work.factor):
                used *= 4.0
            cholesky_apply(work.factor, work.residual, work.step)
        if not accepted:
            return BALANCED if escaping else STUCK, iteration, worst
        nodes[:, :] = work.trial
        energy = new
        ratio = actual / predicted if abs(predicted) > rounding else 1.0
        if ratio > 0.75:
            shift = 0.25 * used if used > 1e-9 * scale else 0.0
        elif ratio < 0.25:
            shift = max(1e-6 * scale, 4.0 * used)
        else:
            shift = used
        full = full + 1 if capped and ratio > 0.25 else 0
        if full >= MIN_CAPPED_STEPS:
            stride *= 2.0
        elif not capped:
            stride = reach
        worst = out_of_balance(nodes, problem, rest_lengths, forces, work)
    return STUCK, maximum_iterations, worst
