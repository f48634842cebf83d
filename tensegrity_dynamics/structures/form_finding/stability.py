"""Stability of an equilibrium: a strict minimum of the energy, apart from motions as one rigid body that cost nothing.

A tendon at exactly its rest length resists only one direction, and rounding decides whether it counts as taut. Such
tendons count with what they resist in the direction that is looked at: the weakest direction decides (`one_sided`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...numerics.one_sided import weakest_direction
from ..energy import free_positions, tangent_stiffness
from ..structure import Structure
from .force_density import equilibrium_matrix, moving_members, null_space, rigid_motions

TOLERANCE_FORCE = 1e-8
"""Tensions below this part of the largest stiffness times rest length count as none."""


def no_force(structure: Structure) -> float:
    """Tension [N] below which a member counts as carrying none."""
    return TOLERANCE_FORCE * float(np.max(structure.stiffness * structure.rest_lengths))


def no_stiffness(structure: Structure) -> float:
    """Stiffness [N/m] below which rounding decides."""
    return 1e-9 * float(structure.stiffness.max())


def stiffness_without_slack(
    structure: Structure, nodes: NDArray[np.float64], lengths: NDArray[np.float64], tensions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(f, f) N/m, the tangent stiffness to which tendons without tension add nothing."""
    count = structure.free.size
    matrix = np.zeros((count, count))
    slack = structure.unilateral & (tensions <= no_force(structure))
    tangent_stiffness(
        nodes, structure.members, np.where(slack, 0.0, structure.stiffness), structure.laws, lengths,
        np.where(slack, 0.0, tensions), structure.rest_lengths, free_positions(structure.supports), matrix,
    )  # fmt: skip
    return matrix


def stiffness_spectrum(
    structure: Structure, nodes: NDArray[np.float64], lengths: NDArray[np.float64], tensions: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues (e,) [N/m], ascending, and directions (f, e) of the tangent stiffness, without rigid motions.

    Args:
        nodes, lengths, tensions: (n, 3) m, (m,) m and (m,) N; every length above zero.
    """
    matrix = stiffness_without_slack(structure, nodes, lengths, tensions)
    rigid = rigid_motions(structure, nodes)
    if not rigid.shape[1]:
        return np.linalg.eigh(matrix)
    inner = null_space(rigid.T, 1e-9)
    values, vectors = np.linalg.eigh(inner.T @ matrix @ inner)
    return values, inner @ vectors


def edge_members(
    structure: Structure, lengths: NDArray[np.float64], rest_lengths: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Tendons and springs at the edge between slack and tight: the force that their stretch would make is none.

    The soft-plus law has no such edge.
    """
    if structure.smoothness > 0.0:
        return np.zeros(0, dtype=np.int64)
    force = structure.stiffness * (lengths - rest_lengths)
    movable = ~structure.fixed[structure.members].all(axis=1)
    return np.flatnonzero(structure.unilateral & movable & (np.abs(force) <= no_force(structure)))


def stiffness_at_the_edge(
    structure: Structure,
    nodes: NDArray[np.float64],
    lengths: NDArray[np.float64],
    tensions: NDArray[np.float64],
    edge: NDArray[np.int64],
    without: NDArray[np.float64],
    ground: NDArray[np.float64] | None = None,
) -> tuple[float, NDArray[np.float64]]:
    """Least stiffness [N/m] over all directions, one-sided ones among them, and the direction (f,).

    Args:
        edge: from `edge_members`; their tensions count as zero.
        without: (f, k) orthonormal motions that are left out, such as those as one rigid body.
        ground: (f, f) N/m, stiffness of what the nodes stand on, or None.
    """
    matrix = stiffness_without_slack(structure, nodes, lengths, tensions)
    if ground is not None:
        matrix += ground
    moving = moving_members(structure)
    rows = equilibrium_matrix(structure, nodes).T[np.searchsorted(moving, edge)]
    inner = null_space(without.T, 1e-9) if without.shape[1] else np.eye(len(matrix))
    value, vector = weakest_direction(inner.T @ matrix @ inner, rows @ inner, structure.stiffness[edge])
    return value, inner @ vector
