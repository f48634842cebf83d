"""Equilibrium by kinetic-energy damping: undamped motion that is stopped at every peak of its kinetic energy.

    v <- v + R / m,   x <- x + v   (unit time step; Zhang, Maurin and Motro, cited in 001, section 5.3)

The kinetic energy is largest where the potential energy is least. So the nodes are moved back to the peak, and the
velocity is set to zero there. The fictitious mass of each node is half the sum of the stiffnesses at this node: by
Gershgorin's theorem, no motion at any position is then too fast for the time step. A cycle from rest to rest is
accepted only if the total energy has not increased; else it is repeated from its start with a shorter step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, TensegrityError
from ...numerics.compilation import compiled
from ..energy import stored_energy
from ..structure import Structure
from .viscous_relaxation import (
    COINCIDENT,
    EXHAUSTED,
    NORMS,
    RELAXED,
    balance,
    check_settings,
    iterate,
    out_of_balance_norm,
)


@compiled
def work_energy(nodes, members, stiffness, rest_lengths, laws, external):
    """Elastic energy minus the work of the external forces [J]."""
    energy = stored_energy(nodes, members, stiffness, rest_lengths, laws)
    for i in range(nodes.shape[0]):
        for axis in range(3):
            energy -= external[i, axis] * nodes[i, axis]
    return energy


@compiled
def kinetic_steps(
    nodes, velocities, beginning, state, members, stiffness, rest_lengths, laws, supports, external, lengths,
    tensions, forces, masses, tolerance, norm, steps, energies,
):  # fmt: skip
    """Make up to `steps` iterations in place; returns (status, number of iterations, size of the last residual).

    beginning (n, 3) are the nodes at the start of the present cycle. state (5,) is time step, kinetic energy, total
    energy at the beginning, number of accepted cycles, and magnitude of the energies, which defines their rounding
    error. energies (c,) is filled with the total energy after each of the first c accepted cycles.
    """
    residual = np.inf
    for iteration in range(steps + 1):
        if not balance(nodes, members, stiffness, rest_lengths, laws, external, lengths, tensions, forces):
            return COINCIDENT, iteration, residual
        residual = out_of_balance_norm(forces, supports, norm)
        if residual <= tolerance:
            return RELAXED, iteration, residual
        if iteration == steps:
            break
        step, last = state[0], state[1]
        share = 0.5 if last == 0.0 else 1.0  # from rest: only the first half step
        kinetic = 0.0
        for i in range(nodes.shape[0]):
            for axis in range(3):
                if supports[i, axis]:
                    continue
                velocities[i, axis] += share * step * forces[i, axis] / masses[i]
                kinetic += 0.5 * masses[i] * velocities[i, axis] * velocities[i, axis]
        if kinetic >= last and np.isfinite(kinetic):
            state[1] = kinetic
            for i in range(nodes.shape[0]):
                for axis in range(3):
                    nodes[i, axis] += step * velocities[i, axis]
            continue
        # The peak lies between the last two half steps: half a step before the present position, one and a half steps
        # before the next one.
        for i in range(nodes.shape[0]):
            for axis in range(3):
                if supports[i, axis]:
                    continue
                before = velocities[i, axis] - step * forces[i, axis] / masses[i]
                nodes[i, axis] -= 0.5 * step * before
        energy = work_energy(nodes, members, stiffness, rest_lengths, laws, external)
        if np.isfinite(energy) and energy <= state[2] + 1e-13 * state[4]:
            count = int(state[3])
            if count < energies.shape[0]:
                energies[count] = energy
            beginning[:, :] = nodes
            state[0], state[2], state[3] = min(1.0, 1.2 * step), min(energy, state[2]), state[3] + 1.0
        else:
            nodes[:, :] = beginning
            state[0] = 0.5 * step
        velocities[:, :] = 0.0
        state[1] = 0.0
    return EXHAUSTED, steps, residual


def relax_kinetic(
    structure: Structure,
    forces: ArrayLike,
    start: ArrayLike,
    tolerance: float,
    *,
    maximum_iterations: int = 3_000_000,
    norm: str = "component",
    masses: ArrayLike | None = None,
    energies: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], int, float]:
    """Equilibrium by kinetic damping: nodes (n, 3) [m], number of iterations, and size of the last residual [N].

    Args:
        structure: structure with the rest lengths to use.
        forces: (n, 3) all external forces including the weight [N].
        start: (n, 3) start nodes [m].
        tolerance: tolerance of the residual [N], see `norm`.
        maximum_iterations: number of iterations after which NoEquilibriumError is raised, with the remaining residual.
        norm: "component" (largest component of the force on a node), "node" or "total".
        masses: (n,) masses for a time step of 1 s [kg], above zero; by default half the stiffness at each node. Smaller
            masses are faster, until cycles are rejected because of increasing energy.
        energies: (c,) filled with the total energy [J] after the first c cycles, the rest with NaN.

    Raises:
        NoEquilibriumError: the tolerance was not reached.
        TensegrityError: an option is out of range, two nodes of one member have the same position, or there is a
            ground.
    """
    check_settings(structure, "kinetic", norm, tolerance, maximum_iterations)
    nodes, external = np.array(start, dtype=np.float64), np.array(forces, dtype=np.float64)
    m = len(structure.member_names)
    weights = fictitious_masses(structure) if masses is None else np.array(masses, dtype=np.float64)
    if weights.shape != (len(nodes),) or not (np.all(np.isfinite(weights)) and np.all(weights > 0.0)):
        raise TensegrityError(f"masses must be {len(nodes)} finite numbers above zero, one per node, found {masses!r}.")
    record = np.zeros(0) if energies is None else energies
    record[:] = np.nan
    problem = (structure.members, structure.stiffness, structure.rest_lengths, structure.laws)
    energy, work = work_energy(nodes, *problem, external), float(np.abs(external * nodes).sum())
    state = np.array([1.0, 0.0, energy, 0.0, abs(energy) + 2.0 * work])
    scratch = (np.zeros(m), np.zeros(m), np.zeros_like(nodes), weights)
    velocities, beginning = np.zeros_like(nodes), nodes.copy()
    status, done, residual = iterate(
        structure, nodes, maximum_iterations,
        lambda steps: kinetic_steps(
            nodes, velocities, beginning, state, *problem, structure.supports, external, *scratch, tolerance,
            NORMS.index(norm), steps, record,
        ),
    )  # fmt: skip
    if status != RELAXED:
        raise NoEquilibriumError(
            f"kinetic relaxation: {residual:.3g} N are left after {done} iterations ({int(state[3])} energy peaks), "
            f"{tolerance:.3g} N are required. Raise maximum_iterations or the tolerance, or use method 'newton'."
        )
    return nodes, done, residual


def fictitious_masses(structure: Structure) -> NDArray[np.float64]:
    """(n,) fictitious masses for a time step of 1 s [kg]: half the sum of the stiffnesses [N/m] at each node."""
    total = np.zeros(len(structure.node_names))
    for end in (0, 1):
        np.add.at(total, structure.members[:, end], structure.stiffness)
    # a node without members also needs a mass
    return 0.5 * np.where(total > 0.0, total, max(float(total.max(initial=0.0)), 1e-300))
