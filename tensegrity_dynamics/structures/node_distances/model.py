"""Motion of a free structure in node distances (004, sections 3, 4 and 7), elastic bars and cables as in the document.

There are two methods for the accelerations: the linear system of (7.1) with multipliers for the constraints, and H*
(Theorem 3). The equations in node positions are included for comparison. The weight acts on the centre of mass only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp
from scipy.linalg import lu_factor, lu_solve

from ...errors import TensegrityError, unknown_name
from ..structure import Structure
from .constraints import orthonormal_basis
from .forces import make_elasticity
from .inertia import apply_inverse, checked_masses, pair_masses
from .pairs import Pairs, connected_pairs

METHODS = ("applied", "multipliers")


@dataclass(frozen=True, eq=False)
class DistanceMotion:
    """Simulated motion.

    Attributes:
        times: (k,) s. distances: (k, p, 3) m. centre: (k, 3) m. nodes: (k, n, 3) m, computed from both.
        evaluations: number of evaluations of the accelerations.
    """

    times: NDArray[np.float64]
    distances: NDArray[np.float64]
    centre: NDArray[np.float64]
    nodes: NDArray[np.float64]
    evaluations: int


class NodeDistanceModel:
    """Structure in node distances.

    Args:
        structure: free structure without ground, with a mass at every node; dampers of members are neglected, as in the
            document.
        pairs: pairs that are its coordinates; `connected_pairs` by default.

    Attributes:
        pairs: pairs of nodes. masses: (n,) kg. elasticity: see `PairElasticity`.

    Raises:
        TensegrityError: a node is fixed or has no mass, there is a ground, or the pairs do not connect all nodes.
    """

    def __init__(self, structure: Structure, pairs: Pairs | None = None) -> None:
        names = structure.node_names
        structure.check_no_rollers("the model of node distances", "use node positions")
        if structure.fixed.any():
            held = names[int(np.flatnonzero(structure.fixed)[0])]
            raise TensegrityError(f"node distances are for free structures; node {held} is fixed. Use node positions.")
        if structure.ground is not None:
            raise TensegrityError(
                "node distances leave out the ground, whose forces depend on where the nodes are. Use node positions."
            )
        for k in np.flatnonzero(structure.initial_tensions > 0.0):
            raise TensegrityError(
                f"node distances know no initial tensions; {structure.member_names[k]} has one. Use node positions."
            )
        masses = structure.lumped_masses()
        for i in np.flatnonzero(masses <= 0.0):
            raise TensegrityError(f"node {names[i]} has no mass; node distances divide by it: give every node some.")
        self.structure, self.masses = structure, checked_masses(masses)
        self.pairs = connected_pairs(structure) if pairs is None else pairs
        self.pairs.check_connected()
        self.elasticity = make_elasticity(structure, self.pairs)
        self._inverse_masses = 1.0 / self.masses
        self._factors: object = None
        self._basis: NDArray[np.float64] | None = None

    def accelerations(self, distances: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
        """(p, 3) accelerations [m/s^2] by application of H*, with the cost O(p)."""
        return apply_inverse(self.pairs, self._inverse_masses, self.elasticity.forces(distances, rest))

    def use_basis(self, basis: NDArray[np.float64]) -> None:
        """Set the basis (p, c) of the constraints for the multipliers, sparse or orthonormal."""
        count, size = basis.shape[1], len(self.pairs)
        system = np.zeros((size + count, size + count))
        system[:size, :size] = np.diag(pair_masses(self.pairs, self.masses))
        system[:size, size:], system[size:, :size] = basis, basis.T
        self._basis, self._factors = basis, lu_factor(system)

    def accelerations_by_multipliers(
        self, distances: NDArray[np.float64], rest: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(p, 3) accelerations [m/s^2] by (7.1), right-hand side [f; f_e; 0]; for all pairs only.

        The motion of the centre of mass is separate."""
        if self._basis is None:
            self.use_basis(orthonormal_basis(self.pairs))
        forces = self.elasticity.forces(distances, rest)
        assert self._basis is not None
        right = np.vstack((forces, np.zeros((self._basis.shape[1], 3))))
        return np.asarray(lu_solve(self._factors, right)[: len(self.pairs)])

    def centre(self, nodes: ArrayLike) -> NDArray[np.float64]:
        """(3,) centre of mass of nodes, or its velocity for node velocities."""
        return np.asarray(self.masses @ np.asarray(nodes) / self.masses.sum())

    def energy(self, distances: NDArray[np.float64], rates: NDArray[np.float64], rest: NDArray[np.float64]) -> float:
        """Elastic energy plus kinetic energy about the centre of mass [J], for delta and its rates (p, 3)."""
        velocities = self.pairs.positions(rates, np.zeros(3), self.masses)
        kinetic = 0.5 * float(np.sum(self.masses[:, None] * velocities**2))
        return kinetic + self.elasticity.energy(distances, rest)

    def simulate(
        self,
        nodes: ArrayLike,
        velocities: ArrayLike,
        duration: float,
        *,
        method: str = METHODS[0],
        rest: NDArray[np.float64] | None = None,
        tolerance: float = 1e-12,
        points: int = 50,
    ) -> DistanceMotion:
        """Simulate the motion from nodes and velocities (n, 3) with a variable step Runge-Kutta method (DOP853).

        Args:
            duration: duration [s]. method: one of `METHODS`. rest: (m,) rest lengths [m], by default those of the
                structure.
            tolerance: relative tolerance of the integration. points: number of stored times.

        Raises:
            TensegrityError: the method is unknown, or the integration fails.
        """
        if method not in METHODS:
            raise TensegrityError(unknown_name("method", method, METHODS))
        accelerate = self.accelerations if method == METHODS[0] else self.accelerations_by_multipliers
        lengths = self.structure.rest_lengths if rest is None else rest
        start, moving = np.asarray(nodes, dtype=np.float64), np.asarray(velocities, dtype=np.float64)
        times, states, count = _integrated(
            lambda delta: accelerate(delta, lengths), self.pairs.distances(start), self.pairs.distances(moving),
            duration, tolerance, points,
        )  # fmt: skip
        weight = self.structure.gravity
        centre = self.centre(start) + times[:, None] * self.centre(moving) + 0.5 * times[:, None] ** 2 * weight
        found = [self.pairs.positions(delta, c, self.masses) for delta, c in zip(states, centre, strict=True)]
        return DistanceMotion(times, states, centre, np.array(found), count)

    def simulate_positions(
        self,
        nodes: ArrayLike,
        velocities: ArrayLike,
        duration: float,
        *,
        tolerance: float = 1e-12,
        points: int = 50,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times (k,) and nodes (k, n, 3) by (2.4) in node positions, with the forces of the members."""
        structure, lengths = self.structure, self.structure.rest_lengths
        first, second = structure.members[:, 0], structure.members[:, 1]

        def accelerate(positions: NDArray[np.float64]) -> NDArray[np.float64]:
            along = positions[first] - positions[second]
            size = np.linalg.norm(along, axis=1)
            pull = structure.stiffness * (size - lengths)
            pull = np.where(structure.unilateral, np.maximum(pull, 0.0), pull)
            force = (pull / size)[:, None] * along
            total = np.zeros_like(positions)
            np.add.at(total, first, -force)
            np.add.at(total, second, force)
            return total / self.masses[:, None] + structure.gravity

        start, moving = np.asarray(nodes, dtype=np.float64), np.asarray(velocities, dtype=np.float64)
        times, states, _ = _integrated(accelerate, start, moving, duration, tolerance, points)
        return times, states


def _integrated(
    accelerate: Callable[[NDArray[np.float64]], NDArray[np.float64]], start: NDArray[np.float64],
    rates: NDArray[np.float64], duration: float, tolerance: float, points: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:  # fmt: skip
    """Times, states (k, ..., 3) and number of evaluations of the accelerations."""
    shape, size = start.shape, start.size

    def slope(_: float, state: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate((state[size:], accelerate(state[:size].reshape(shape)).ravel()))

    times = np.linspace(0.0, duration, points)
    found = solve_ivp(
        slope, (0.0, duration), np.concatenate((start.ravel(), rates.ravel())), "DOP853", times, rtol=tolerance,
        atol=tolerance,
    )  # fmt: skip
    if not found.success:
        raise TensegrityError(f"the motion was followed up to {found.t[-1]:.3g} s only: {found.message}")
    return times, found.y[:size].T.reshape(-1, *shape), int(found.nfev)
