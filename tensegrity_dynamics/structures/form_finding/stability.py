"""Stability of an equilibrium: a strict minimum of the energy, tendons on the verge of going slack left out.

A tendon at exactly its rest length resists only one direction, and rounding decides whether it counts as taut. Here
such tendons count as slack, so that a shape is called stable only if it is stiff without them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..energy import free_positions, tangent_stiffness
from ..structure import Structure
from .force_density import null_space, rigid_motions

TOLERANCE_FORCE = 1e-8
"""Tensions below this part of the largest stiffness times rest length count as none."""


def no_force(structure: Structure) -> float:
    """Tension [N] below which a member counts as carrying none."""
    return TOLERANCE_FORCE * float(np.max(structure.stiffness * structure.rest_lengths))


def no_stiffness(structure: Structure) -> float:
    """Stiffness [N/m] below which rounding decides."""
    return 1e-9 * float(structure.stiffness.max())


def stiffness_spectrum(
    structure: Structure, nodes: NDArray[np.float64], lengths: NDArray[np.float64], tensions: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues (e,) [N/m], ascending, and directions (f, e) of the tangent stiffness, without rigid motions.

    Args:
        nodes, lengths, tensions: (n, 3) m, (m,) m and (m,) N; every length above zero. Tendons without tension add
            nothing.
    """
    count = structure.free.size
    matrix = np.zeros((count, count))
    slack = structure.unilateral & (tensions <= no_force(structure))
    tangent_stiffness(
        nodes, structure.members, np.where(slack, 0.0, structure.stiffness), structure.unilateral, lengths,
        np.where(slack, 0.0, tensions), structure.rest_lengths, free_positions(structure.fixed), matrix,
    )  # fmt: skip
    rigid = rigid_motions(structure, nodes)
    if not rigid.shape[1]:
        return np.linalg.eigh(matrix)
    inner = null_space(rigid.T, 1e-9)
    values, vectors = np.linalg.eigh(inner.T @ matrix @ inner)
    return values, inner @ vectors
