"""Rigid bars as constraints: how they couple, and what brings positions and velocities back to them.

J has a row of unit vectors for each bar. (J M^-1 J') is block diagonal, a block for each group of bars that share free
nodes; its Cholesky factor keeps that envelope. It is stored dense: meant for up to some hundred bars.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...numerics.compilation import allocation_free, for_compiled_callers
from .rod_masses import inverse_mass_matrix


def dependent_bars(network, nodes: NDArray) -> tuple[int, ...]:
    """Members among the rigid bars whose lengths follow from each other at nodes (n, 3) m; empty where none do."""
    rows = np.zeros((network.bars.size, nodes.shape[0], 3))
    root = np.sqrt(np.stack([np.diag(inverse_mass_matrix(network, axis)) for axis in range(3)], axis=1))
    for c, k in enumerate(network.bars):
        i, j = network.members[k]
        unit = (nodes[i] - nodes[j]) / np.linalg.norm(nodes[i] - nodes[j])
        rows[c, i], rows[c, j] = unit, -unit
    rows *= root[None]
    flat = rows.reshape(network.bars.size, -1)
    norms = np.linalg.norm(flat, axis=1, keepdims=True)
    flat = flat / np.where(norms > 0.0, norms, 1.0)
    values, vectors = np.linalg.eigh(flat @ flat.T)
    weak = np.abs(vectors[:, values < 1e-9])
    return tuple(int(k) for k, part in zip(network.bars, weak, strict=True) if part.size and part.max() > 1e-4)


@allocation_free
def bar_units(network, nodes, units):
    """Fill the unit vectors (c, 3) of the bars."""
    for c in range(network.bars.shape[0]):
        k = network.bars[c]
        i, j = network.members[k, 0], network.members[k, 1]
        x, y, z = nodes[i, 0] - nodes[j, 0], nodes[i, 1] - nodes[j, 1], nodes[i, 2] - nodes[j, 2]
        length = np.sqrt(x * x + y * y + z * z)
        units[c, 0], units[c, 1], units[c, 2] = x / length, y / length, z / length


@for_compiled_callers
def couple_by_axis(network, units, matrix):
    """Fill J M^-1 J' where nodes are held along some axes."""
    for c in range(network.bars.shape[0]):
        for e in range(network.first[c], c + 1):
            matrix[c, e] = 0.0
            for a in range(3):
                matrix[c, e] += network.shared[a, c, e] * units[c, a] * units[e, a]


@allocation_free
def coupling(network, units, work):
    """Fill and factor J M^-1 J' within its envelope; False where bars depend on each other."""
    matrix, factor = work.matrix, work.factor
    if network.shared.shape[0] > 1:
        couple_by_axis(network, units, matrix)
    else:
        for c in range(network.bars.shape[0]):
            for e in range(network.first[c], c + 1):
                cosine = units[c, 0] * units[e, 0] + units[c, 1] * units[e, 1] + units[c, 2] * units[e, 2]
                matrix[c, e] = network.shared[0, c, e] * cosine
    for c in range(network.bars.shape[0]):
        start = network.first[c]
        for e in range(start, c):
            total = matrix[c, e]
            for k in range(start, e):
                total -= factor[c, k] * factor[e, k]
            factor[c, e] = total / factor[e, e]
        total = matrix[c, c]
        for k in range(start, c):
            total -= factor[c, k] * factor[c, k]
        if not total > 1e-12 * matrix[c, c]:
            return False
        factor[c, c] = np.sqrt(total)
    return True


@for_compiled_callers
def apply_coupling(network, right, work):
    """Solve (J M^-1 J') multipliers = right with the factor in work."""
    factor, solution = work.factor, work.multipliers
    count = network.bars.shape[0]
    for c in range(count):
        total = right[c]
        for k in range(network.first[c], c):
            total -= factor[c, k] * solution[k]
        solution[c] = total / factor[c, c]
    for c in range(count - 1, -1, -1):
        solution[c] /= factor[c, c]
        for k in range(network.first[c], c):
            solution[k] -= factor[c, k] * solution[c]


@for_compiled_callers
def push_by_axis(network, units, multipliers, scale, target):
    """`push` where nodes are held along some axes."""
    for c in range(network.bars.shape[0]):
        for end in range(2):
            node, part = network.members[network.bars[c], end], (1.0 - 2.0 * end) * scale * multipliers[c]
            for entry in range(network.inverse_first[node], network.inverse_first[node + 1]):
                other = network.inverse_node[entry]
                for a in range(3):
                    target[other, a] += network.inverse_value[a, entry] * part * units[c, a]


@allocation_free
def push(network, units, multipliers, scale, target):
    """target (n, 3) += scale M^-1 J' multipliers."""
    if network.inverse_value.shape[0] > 1:
        push_by_axis(network, units, multipliers, scale, target)
        return
    for c in range(network.bars.shape[0]):
        i, j = network.members[network.bars[c], 0], network.members[network.bars[c], 1]
        part = scale * multipliers[c]
        x, y, z = part * units[c, 0], part * units[c, 1], part * units[c, 2]
        # `push_node` for both ends, written out: a call would hand over every array of the network
        for entry in range(network.inverse_first[i], network.inverse_first[i + 1]):
            other, value = network.inverse_node[entry], network.inverse_value[0, entry]
            target[other, 0] += value * x
            target[other, 1] += value * y
            target[other, 2] += value * z
        for entry in range(network.inverse_first[j], network.inverse_first[j + 1]):
            other, value = network.inverse_node[entry], network.inverse_value[0, entry]
            target[other, 0] -= value * x
            target[other, 1] -= value * y
            target[other, 2] -= value * z


@allocation_free
def project_velocities(network, nodes, velocities, work):
    """Give the bars in the velocities (n, 3) the rates at which they are driven (most: none), along M^-1 J'."""
    if network.bars.shape[0] == 0:
        return True
    bar_units(network, nodes, work.units)
    if not coupling(network, work.units, work):
        return False
    for c in range(network.bars.shape[0]):
        i, j = network.members[network.bars[c], 0], network.members[network.bars[c], 1]
        rate = 0.0
        for a in range(3):
            rate += work.units[c, a] * (velocities[i, a] - velocities[j, a])
        work.right[c] = work.rest_rates[network.bars[c]] - rate
    apply_coupling(network, work.right, work)
    push(network, work.units, work.multipliers, 1.0, velocities)
    return True


@allocation_free
def close_bars(network, nodes, units, total, work):
    """Move nodes along M^-1 J' (J at `units`, factored in work) until every bar has its length.

    total (c,) collects the multipliers. Returns the largest relative gap left.
    """
    worst = 0.0
    for _ in range(30):
        worst = 0.0
        for c in range(network.bars.shape[0]):
            i, j = network.members[network.bars[c], 0], network.members[network.bars[c], 1]
            square, along = 0.0, 0.0
            for a in range(3):
                part = nodes[i, a] - nodes[j, a]
                square += part * part
                along += part * units[c, a]
            goal = network.bar_lengths[c]
            gap = np.sqrt(square) - goal
            worst = max(worst, abs(gap) / goal)
            work.right[c] = -gap
        if worst <= 4e-16 or not np.isfinite(worst):
            break
        apply_coupling(network, work.right, work)
        push(network, units, work.multipliers, 1.0, nodes)
        for c in range(network.bars.shape[0]):
            total[c] += work.multipliers[c]
        if worst <= 2e-15:
            break
    return worst


@for_compiled_callers
def settle_bars(network, nodes, velocities, work, units, totals):
    """Bars to their lengths and velocities along them out; returns whether they are independent, and the gap left."""
    if network.bars.shape[0] == 0:
        return True, 0.0
    bar_units(network, nodes, units)
    if not coupling(network, units, work):
        return False, 0.0
    gap = close_bars(network, nodes, units, totals, work)
    return project_velocities(network, nodes, velocities, work), gap
