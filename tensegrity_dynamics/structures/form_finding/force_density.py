"""Matrices of a pin-jointed network: equilibrium, compatibility, force densities, rigid motions.

The tension t_k of member k exerts the force t_k (n_j - n_i) / l_k on node i. Over the free coordinates, the forces of
all members are -A t, where A (f, a) is the equilibrium matrix of the a members with a free end, and A' maps node
motions to changes of length. With force densities q_k = t_k / l_k, the same forces are -(D kron I) x, where D = C'
diag(q) C is the stress matrix (C: 001, table 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...numerics.rotations import cross_matrix
from ..structure import Structure


def moving_members(structure: Structure) -> NDArray[np.int64]:
    """(a,) indices of the members with at least one free end; the others cannot change their length."""
    return np.flatnonzero(~structure.fixed[structure.members].all(axis=1))


def member_directions(structure: Structure, nodes: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
    """Unit vectors (m, 3) from the second to the first node of each member, and lengths (m,) [m]."""
    along = nodes[structure.members[:, 0]] - nodes[structure.members[:, 1]]
    lengths = np.linalg.norm(along, axis=1)
    return along / np.where(lengths > 0.0, lengths, 1.0)[:, None], lengths


def equilibrium_matrix(structure: Structure, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
    """A (f, a): A t is the external force on the free coordinates in balance with the tensions t of the moving members.

    A' maps motions of the free coordinates [m] to changes of length [m], to first order.
    """
    moving = moving_members(structure)
    directions, _ = member_directions(structure, nodes)
    matrix = np.zeros((nodes.size, moving.size))
    columns = np.arange(moving.size)
    for end, sign in ((0, 1.0), (1, -1.0)):
        rows = 3 * structure.members[moving, end]
        for axis in range(3):
            matrix[rows + axis, columns] += sign * directions[moving, axis]
    return matrix[structure.free]


def stress_matrix(structure: Structure, densities: NDArray[np.float64]) -> NDArray[np.float64]:
    """D kron I (f, f) N/m over the free coordinates for force densities (m,) N/m.

    Half of its quadratic form is the second-order work of the tensions on a motion, in addition to the first-order
    changes of length. For a mechanism this is the whole stiffness (product forces of Pellegrino and Calladine).
    """
    connectivity = structure.connectivity()
    matrix = np.kron(connectivity.T @ (densities[:, None] * connectivity), np.eye(3))
    return matrix[np.ix_(structure.free, structure.free)]


def rigid_motions(structure: Structure, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(f, r) orthonormal basis of the rigid body motions that the supports allow; r is 6 without supports."""
    centred = nodes - nodes.mean(axis=0)
    size = max(float(np.abs(centred).max()), 1e-300)
    motions = np.zeros((nodes.size, 6))
    for i, point in enumerate(centred):
        motions[3 * i : 3 * i + 3, :3] = np.eye(3)
        motions[3 * i : 3 * i + 3, 3:] = -cross_matrix(point) / size
    held = structure.supports.ravel()
    if held.any():
        motions = motions @ null_space(motions[held], 1e-9)
    if not motions.shape[1]:
        return np.zeros((structure.free.size, 0))
    u, values, _ = np.linalg.svd(motions[structure.free], full_matrices=False)
    return u[:, values > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)]


def null_space(matrix: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """Orthonormal basis of the null space, with a tolerance relative to the largest singular value."""
    if not matrix.shape[0] or not matrix.shape[1]:
        return np.eye(matrix.shape[1])
    _, values, rows = np.linalg.svd(matrix, full_matrices=matrix.shape[0] < matrix.shape[1])
    rank = int(np.count_nonzero(values > tolerance * max(float(values[0]), 1e-300)))
    return rows[rank:].T
