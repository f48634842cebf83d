"""Least stiffness of a system with unilateral members, which resist in one direction only.

At the transition between slack and taut, a tendon resists elongation only. To second order, the energy of a small
motion u is half of

    q(u) = u' K u + sum_i k_i max(0, g_i u)^2

with the stiffness K of all other members, the stiffness k_i of a member at the transition and its change of length g_i.
The point is a strict minimum if q > 0 for every u. q is continuously differentiable, so that its least value over unit
vectors is an eigenvalue of K + sum_S k_i g_i g_i', where S are the members that the eigenvector elongates.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

MAX_EDGE_MEMBERS = 8
"""Largest number of members at the transition for which every set of elongated members is tested. With more members
fewer starts are used, and the system counts as stiff only if it is stiff without them."""
MAX_STEPS = 300


def weakest_direction(
    stiffness: NDArray[np.float64], gradients: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Least q(u) over unit vectors u, and this u.

    Args:
        stiffness: K (n, n), symmetric, n above zero. gradients: g (m, n). weights: k (m,), not negative.
    """
    values, vectors = np.linalg.eigh(stiffness)
    best, direction = float(values[0]), vectors[:, 0]
    if not weights.size:
        return best, direction
    everything = stiffness + (gradients.T * weights) @ gradients
    bound = float(np.linalg.eigvalsh(everything)[-1])
    if weights.size > MAX_EDGE_MEMBERS and best <= 1e-9 * abs(bound):
        return best, direction  # too many to decide by trying: the answer on the safe side
    count = weights.size
    sets = [frozenset(range(count)), frozenset[int]()]
    if count <= MAX_EDGE_MEMBERS:
        sets = [frozenset(s) for r in range(count + 1) for s in itertools.combinations(range(count), r)]
    shift = max(0.0, -best) + 1e-3 * max(abs(best), abs(bound)) + 1e-300
    least, found = np.inf, direction
    starts = []
    for chosen in sets:
        rows = sorted(chosen)
        part = stiffness + (gradients[rows].T * weights[rows]) @ gradients[rows]
        own = np.linalg.eigh(part)[1]
        starts += [own[:, 0], -own[:, 0]]
    # projection onto the cone without elongated edge members, within the softest motions of the other members
    soft = vectors[:, values <= max(0.0, best) + 1e-6 * abs(bound)]
    if soft.shape[1]:
        inward = -soft @ (soft.T @ (gradients * np.sqrt(weights)[:, None]).sum(axis=0))
        if np.linalg.norm(inward) > 0.0:
            starts.append(inward / np.linalg.norm(inward))
    for start in starts:
        value, at = _descend(stiffness, gradients, weights, shift, start)
        if value < least:
            least, found = value, at
    return least, found


def one_sided_energy(
    stiffness: NDArray[np.float64], gradients: NDArray[np.float64], weights: NDArray[np.float64], u: NDArray[np.float64]
) -> float:
    """q(u)."""
    return float(u @ stiffness @ u + np.sum(weights * np.maximum(0.0, gradients @ u) ** 2))


def _descend(
    stiffness: NDArray[np.float64], gradients: NDArray[np.float64], weights: NDArray[np.float64], shift: float,
    start: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64]]:  # fmt: skip
    """Inverse iteration on the unit sphere: each step minimises q(v) + shift (v - u)^2, so that q never increases."""
    u = start
    value = one_sided_energy(stiffness, gradients, weights, u)
    identity = np.eye(u.size)
    for _ in range(MAX_STEPS):
        stretched = gradients @ u > 0.0
        v = u
        for _ in range(20):  # finds the members that the minimiser elongates
            part = stiffness + shift * identity + (gradients[stretched].T * weights[stretched]) @ gradients[stretched]
            v = np.linalg.solve(part, shift * u)
            now = gradients @ v > 0.0
            if np.array_equal(now, stretched):
                break
            stretched = now
        norm = float(np.linalg.norm(v))
        if not norm > 0.0:
            break
        v = v / norm
        new = one_sided_energy(stiffness, gradients, weights, v)
        if new > value:
            break
        change, u = float(np.linalg.norm(v - u)), v
        value = new
        if change < 1e-9:
            break
    return value, u
