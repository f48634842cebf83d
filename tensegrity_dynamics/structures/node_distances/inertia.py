"""Inertia in node distances: H_delta, its constrained inverse H*, and how the latter is applied without being formed.

With all pairs the kinetic energy about the centre of mass is that of masses m_i m_j / M at the distances (4.1):

    H_delta = diag(m_i m_j / M),   H* = D H^-1 D^T   (Theorem 3)

H* is no pseudo-inverse of H_delta: it is N (N^T H_delta N)^-1 N^T with the columns of N spanning those of D, the
inverse on the distances that positions can make. For fewer pairs no diagonal H_delta exists, but H* is the same
formula, and all that motion needs: forces of pairs are gathered on nodes, divided by masses, and differenced.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ...errors import TensegrityError
from .pairs import Pairs


def pair_masses(pairs: Pairs, masses: ArrayLike) -> NDArray[np.float64]:
    """(p,) kg: the diagonal of H_delta, m_i m_j / M, for all pairs.

    Raises:
        TensegrityError: some pairs are missing; then there is no diagonal one.
    """
    weights = checked_masses(masses)
    n = weights.size
    if len(pairs) != n * (n - 1) // 2:
        raise TensegrityError(
            f"H_delta is diagonal for all {n * (n - 1) // 2} pairs of {n} nodes, here are {len(pairs)}: apply H*."
        )
    return np.asarray(weights[pairs.ends[:, 0]] * weights[pairs.ends[:, 1]] / weights.sum())


def apply_inverse(
    pairs: Pairs, inverse_masses: NDArray[np.float64], forces: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(p, 3) accelerations H* f of forces (p, 3) N on the pairs, in a time that grows like their number."""
    return pairs.distances(inverse_masses[:, None] * pairs.gathered(forces))


def inverse_matrix(pairs: Pairs, masses: ArrayLike, *, dense: bool = False) -> sparse.csr_array | NDArray[np.float64]:
    """(p, p) H* over pairs, times the 3 x 3 identity the document's; formed, for comparison."""
    weights = checked_masses(masses)
    if dense:
        incidence = pairs.incidence.toarray()
        return np.asarray((incidence / weights) @ incidence.T)
    return sparse.csr_array(pairs.incidence @ sparse.diags_array(1.0 / weights) @ pairs.incidence.T)


def checked_masses(masses: ArrayLike) -> NDArray[np.float64]:
    """(n,) kg. Raises TensegrityError where one is not above zero."""
    weights = np.asarray(masses, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0.0)))
    if bad.size:
        raise TensegrityError(
            f"node {int(bad[0])} has a mass of {weights[bad[0]]:g} kg; H* divides by it: give every node some."
        )
    return weights
