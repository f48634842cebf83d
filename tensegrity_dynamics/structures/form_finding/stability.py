"""Stability of an equilibrium: strict minimum of the energy, apart from rigid body motions without stiffness.

A tendon at exactly its rest length resists only in one direction, and rounding errors determine whether it is taut. The
stiffness of such tendons depends on the direction of the motion: the least stiffness over all directions determines the
stability (`one_sided`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...numerics.one_sided import weakest_direction
from ..energy import free_positions, tangent_stiffness
from ..structure import Structure
from .force_density import equilibrium_matrix, moving_members, null_space, rigid_motions

TOLERANCE_FORCE = 1e-8
"""Tension relative to the largest stiffness times rest length, below which it counts as zero."""


def no_force(structure: Structure) -> float:
    """Tension [N] below which a member counts as having no tension."""
    return TOLERANCE_FORCE * float(np.max(structure.stiffness * structure.rest_lengths))


def no_stiffness(structure: Structure) -> float:
    """Stiffness [N/m] below which values are rounding errors."""
    return 1e-9 * float(structure.stiffness.max())


def stiffness_without_slack(
    structure: Structure, nodes: NDArray[np.float64], lengths: NDArray[np.float64], tensions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(f, f) tangent stiffness [N/m] without contribution of tendons without tension."""
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
    """Eigenvalues (e,) [N/m], ascending, and directions (f, e) of the tangent stiffness, without rigid body motions.

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
    """Tendons and springs at the transition between slack and taut: the force of their elongation is negligible.

    The soft-plus law has no such transition.
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
    """Least stiffness [N/m] over all directions, including one-sided ones, and its direction (f,).

    Args:
        edge: result of `edge_members`; their tensions count as zero.
        without: (f, k) orthonormal motions that are excluded, such as rigid body motions.
        ground: (f, f) stiffness of the ground contacts [N/m], or None.
    """
    matrix = stiffness_without_slack(structure, nodes, lengths, tensions)
    if ground is not None:
        matrix += ground
    moving = moving_members(structure)
    rows = equilibrium_matrix(structure, nodes).T[np.searchsorted(moving, edge)]
    inner = null_space(without.T, 1e-9) if without.shape[1] else np.eye(len(matrix))
    value, vector = weakest_direction(inner.T @ matrix @ inner, rows @ inner, structure.stiffness[edge])
    return value, inner @ vector
