"""Masses of nodes and rods: the mass of a rod is distributed along it, with the motion given by its two ends.

    T = 1/2 sum m_i v_i^2 - 1/2 sum_k (m_k / 6) |v_i - v_j|^2

with m_i the mass of node i plus half of every member that ends there. For a rod of mass m with the masses a and b at
its ends, this is the block [[m/3 + a, m/6], [m/6, m/3 + b]], with the inverse [[m/3 + b, -m/6], [-m/6, m/3 + a]] /
determinant. The rod keeps its length, so that the block is exact: J = m L^2/12 for a uniform rod, m L^2/4 if the whole
mass is at the ends (003, section 3.4). Rods that share a free node are inverted together.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...errors import PartError, TensegrityError, unknown_name
from ...numerics.compilation import allocation_free, for_compiled_callers, inlined_part
from ..structure import Structure

ROD_MASSES = ("spread", "ends")
MAX_GROUP = 400
"""Largest number of free nodes connected by rods, whose masses are inverted together as a dense matrix."""


def split_masses(structure: Structure, rod_mass: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Masses at the nodes (n,) [kg] and correction of every member, (m,) m_k / 6 [kg].

    Raises:
        TensegrityError: the name is unknown, or a free node has no mass (the message contains it).
    """
    if rod_mass not in ROD_MASSES:
        raise TensegrityError(unknown_name("rod_mass", rod_mass, ROD_MASSES))
    masses = structure.lumped_masses()
    for i in np.flatnonzero(~structure.fixed & ~(masses > 0.0)):
        raise PartError(
            f"node {structure.node_names[i]} has no mass, so that its motion is not determined; give it or a member "
            "that ends there a mass.",
            "nodes",
            structure.node_names[i],
        )
    spread = np.where(structure.unilateral | structure.fixed[structure.members].all(axis=1), 0.0, structure.masses)
    return masses, spread / 6.0 if rod_mass == "spread" else np.zeros(spread.size)


def inverse_masses(
    structure: Structure, masses: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Inverse of the mass matrix over the free nodes by rows: start of each row (n + 1,), nodes and values [1/kg].

    A row begins with its own node; rows of fixed nodes are empty. The values are (1, e), equal along all axes, or (3,
    e) by axis if nodes are held along some axes: the inverse mass of a held coordinate is zero.

    Raises:
        TensegrityError: too many rods are connected for a dense inverse.
    """
    count = masses.size
    own = np.array(masses)
    partners: list[list[int]] = [[] for _ in range(count)]
    for k in np.flatnonzero(spread > 0.0):
        i, j = map(int, structure.members[k])
        own[i] -= spread[k]
        own[j] -= spread[k]
        if not (structure.fixed[i] or structure.fixed[j]):
            partners[i].append(int(k))
            partners[j].append(int(k))
    axes = 3 if structure.rollers.any() else 1
    rows: list[tuple[list[int], list[list[float]]]] = [([], []) for _ in range(count)]
    done = np.array(structure.fixed)
    for begin in range(count):
        if done[begin]:
            continue
        done[begin] = True
        group = [begin]
        for node in group:  # the group grows during the loop
            for rod in partners[node]:
                for other in map(int, structure.members[rod]):
                    if not done[other]:
                        done[other] = True
                        group.append(other)
        if len(group) > MAX_GROUP:
            raise PartError(
                f"{len(group)} free nodes hang together by rods (node {structure.node_names[begin]} among them), up to "
                f"{MAX_GROUP} can have spread masses; simulate with rod_mass='ends'.",
                "nodes",
                structure.node_names[begin],
            )
        row_of = {node: row for row, node in enumerate(group)}
        block: NDArray[np.float64] = np.diag(own[group])
        for rod in {rod for node in group for rod in partners[node]}:
            i, j = (row_of[int(node)] for node in structure.members[rod])
            block[i, j] += spread[rod]
            block[j, i] += spread[rod]
        inverse = np.zeros((axes, *block.shape))
        for axis in range(axes):
            free = np.flatnonzero(~structure.supports[group, axis])
            if free.size:
                inverse[axis][np.ix_(free, free)] = _inverse(block[np.ix_(free, free)])
        for row, node in enumerate(group):
            order = [row] + [c for c in range(len(group)) if c != row]
            rows[node] = ([group[c] for c in order], inverse[:, row, order].T.tolist())
    first = np.concatenate(([0], np.cumsum([len(nodes) for nodes, _ in rows]))).astype(np.int64)
    return (
        first,
        np.array([node for nodes, _ in rows for node in nodes], dtype=np.int64),
        np.array([value for _, values in rows for value in values], dtype=np.float64).reshape(-1, axes).T.copy(),
    )


def _inverse(block: NDArray[np.float64]) -> NDArray[np.float64]:
    """Symmetric inverse of the masses of one group (g, g); for a single node or rod by the closed form."""
    if len(block) == 1:
        return np.array([[1.0 / block[0, 0]]])
    if len(block) == 2:
        determinant = block[0, 0] * block[1, 1] - block[0, 1] ** 2
        return np.array([[block[1, 1], -block[0, 1]], [-block[0, 1], block[0, 0]]]) / determinant
    inverse = np.linalg.inv(block)
    return np.asarray(0.5 * (inverse + inverse.T), dtype=np.float64)


def inverse_mass_matrix(network, axis: int = 0) -> NDArray[np.float64]:
    """Inverse masses of a network along an axis as one matrix (n, n) [1/kg]; zero at held nodes."""
    count = network.node_masses.size
    values = network.inverse_value[axis % len(network.inverse_value)]
    matrix = np.zeros((count, count))
    for i in range(count):
        for entry in range(network.inverse_first[i], network.inverse_first[i + 1]):
            matrix[i, network.inverse_node[entry]] = values[entry]
    return matrix


def coupling_weights(
    members: NDArray[np.int64],
    bars: NDArray[np.int64],
    first: NDArray[np.int64],
    inverse: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """(1, c, c) coefficients [1/kg] of J M^-1 J' of the bars, to be multiplied by the cosines between bars of a block.

    If the inverse masses depend on the axis, (3, c, c), to be multiplied by the products of the direction cosines.
    """
    begins, nodes, by_axis = inverse
    weights = np.zeros((len(by_axis), bars.size, bars.size))
    for axis, values in enumerate(by_axis):
        rows = [dict(zip(nodes[b:e].tolist(), values[b:e].tolist(), strict=True)) for b, e in pairwise(begins)]
        for c, k in enumerate(bars):
            i, j = map(int, members[k])
            for e in range(first[c], c + 1):
                p, q = map(int, members[bars[e]])
                weights[axis, c, e] = (
                    rows[i].get(p, 0.0) + rows[j].get(q, 0.0) - rows[i].get(q, 0.0) - rows[j].get(p, 0.0)
                )
    return weights


@for_compiled_callers
def add_inverse_mass_by_axis(network, forces, scale, target):
    """`add_inverse_mass` for nodes that are held along some axes."""
    for i in range(target.shape[0]):
        for entry in range(network.inverse_first[i], network.inverse_first[i + 1]):
            other = network.inverse_node[entry]
            for a in range(3):
                target[i, a] += scale * network.inverse_value[a, entry] * forces[other, a]


@inlined_part
def add_inverse_mass(network, forces, scale, target):
    """target (n, 3) += scale M^-1 forces."""
    if network.inverse_value.shape[0] > 1:
        add_inverse_mass_by_axis(network, forces, scale, target)
        return
    for i in range(target.shape[0]):
        for entry in range(network.inverse_first[i], network.inverse_first[i + 1]):
            other, part = network.inverse_node[entry], scale * network.inverse_value[0, entry]
            for a in range(3):
                target[i, a] += part * forces[other, a]


@inlined_part
def push_node(network, i, x, y, z, target):
    """target (n, 3) += M^-1 times an impulse at node i, for inverse masses that are equal along all axes."""
    for entry in range(network.inverse_first[i], network.inverse_first[i + 1]):
        other, part = network.inverse_node[entry], network.inverse_value[0, entry]
        target[other, 0] += part * x
        target[other, 1] += part * y
        target[other, 2] += part * z


@allocation_free
def kinetic_energy(network, velocities):
    """Kinetic energy [J]."""
    energy = 0.0
    for i in range(velocities.shape[0]):
        if network.position[i] >= 0:
            square = velocities[i, 0] ** 2 + velocities[i, 1] ** 2 + velocities[i, 2] ** 2
            energy += 0.5 * square * network.node_masses[i]
    for k in range(network.spread.shape[0]):
        if network.spread[k] > 0.0:
            i, j = network.members[k, 0], network.members[k, 1]
            for a in range(3):
                energy -= 0.5 * network.spread[k] * (velocities[i, a] - velocities[j, a]) ** 2
    return energy
