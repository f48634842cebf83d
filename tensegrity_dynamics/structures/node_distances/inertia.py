"""Inertia in node distances: H_delta, its constrained inverse H*, and the application of H* without forming it.

With all pairs, the kinetic energy about the centre of mass is that of the masses m_i m_j / M at the distances (4.1):

    H_delta = diag(m_i m_j / M),   H* = D H^-1 D^T   (Theorem 3)

H* is not a pseudo-inverse of H_delta: it is N (N^T H_delta N)^-1 N^T, where N spans the columns of D; this is the
inverse on the set of feasible distances. For fewer pairs there is no diagonal H_delta, but H* has the same formula and
is sufficient for the motion: forces of pairs are summed at the nodes, divided by the masses, and differenced.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ...errors import TensegrityError
from .pairs import Pairs


def pair_masses(pairs: Pairs, masses: ArrayLike) -> NDArray[np.float64]:
    """(p,) diagonal of H_delta, m_i m_j / M [kg], for all pairs.

    Raises:
        TensegrityError: some pairs are missing; then there is no diagonal H_delta.
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
    """(p, 3) accelerations H* f for forces (p, 3) [N] on the pairs, with linear cost in the number of pairs."""
    return pairs.distances(inverse_masses[:, None] * pairs.gathered(forces))


def inverse_matrix(pairs: Pairs, masses: ArrayLike, *, dense: bool = False) -> sparse.csr_array | NDArray[np.float64]:
    """(p, p) matrix H* over pairs, for comparison; H* of the document is this times the 3 x 3 identity."""
    weights = checked_masses(masses)
    if dense:
        incidence = pairs.incidence.toarray()
        return np.asarray((incidence / weights) @ incidence.T)
    return sparse.csr_array(pairs.incidence @ sparse.diags_array(1.0 / weights) @ pairs.incidence.T)


def checked_masses(masses: ArrayLike) -> NDArray[np.float64]:
    """(n,) masses [kg]. Raises TensegrityError if one is not positive."""
    weights = np.asarray(masses, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0.0)))
    if bad.size:
        raise TensegrityError(
            f"node {int(bad[0])} has a mass of {weights[bad[0]]:g} kg; H* divides by it: give every node some."
        )
    return weights
