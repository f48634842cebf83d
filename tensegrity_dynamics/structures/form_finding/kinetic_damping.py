"""Equilibrium by kinetic-energy damping: undamped motion that is stopped wherever its kinetic energy peaks.

    v <- v + R / m,   x <- x + v   (unit time step; Zhang, Maurin and Motro, cited in 001, section 5.3)

The kinetic energy is largest where the total energy is least, so the nodes are put back to the peak, where the
velocity is reset to zero. Each node's fictitious mass is half the stiffness that meets at it: by Gershgorin's theorem
no motion, at any position, is then faster than the time step can follow. A cycle from rest to rest is accepted only if
the total energy has not grown; else it is repeated from its start with a shorter step.
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
    """Elastic energy less the work of the external forces [J]."""
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
    """Up to `steps` iterations in place; returns (status, iterations done, size of the last residual).

    beginning (n, 3) is where the running cycle started from rest. state (5,) is time step, kinetic energy, total energy
    at the beginning, cycles accepted, and the size of the energies, which sets what rounding may add. energies (c,)
    takes the total energy after each of the first c accepted cycles.
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
        share = 0.5 if last == 0.0 else 1.0  # from rest, the first half step only
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
        # The peak lies between the last two half steps: one step and a half before the position that the new velocity
        # would lead to, half a step back from here.
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
    """Nodes (n, 3) m at rest, the iterations this took, and the size of the last residual [N].

    Args:
        structure: with the rest lengths to use.
        forces: (n, 3) N, all external forces with the weight.
        start: (n, 3) m.
        tolerance: N, see `norm`.
        maximum_iterations: then NoEquilibriumError says which residual is left.
        norm: "component" (largest component of the force on a node), "node" or "total".
        masses: (n,) kg for a time step of 1 s, above zero; by default half the stiffness at each node. Lighter ones
            move faster until cycles are rejected for growing energy.
        energies: (c,) filled with the total energy [J] after the first c cycles, the rest with NaN.

    Raises:
        NoEquilibriumError: not there in time. TensegrityError: an option out of its range, or two nodes of one member
        at the same position, or a ground.
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
            f"{tolerance:.3g} N were asked for. Raise maximum_iterations or the tolerance, or use method 'newton'."
        )
    return nodes, done, residual


def fictitious_masses(structure: Structure) -> NDArray[np.float64]:
    """(n,) kg for a time step of 1 s: half the sum of the stiffnesses [N/m] that meet at each node."""
    total = np.zeros(len(structure.node_names))
    for end in (0, 1):
        np.add.at(total, structure.members[:, end], structure.stiffness)
    # a node that no member holds still needs some mass to fall with
    return 0.5 * np.where(total > 0.0, total, max(float(total.max(initial=0.0)), 1e-300))
