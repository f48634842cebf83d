"""Rigid bars as constraints: their coupling, and the projection of positions and velocities.

J has a row of unit vectors for each bar. (J M^-1 J') is block diagonal, with a block for each group of bars that share
free nodes. Its factor L D L' keeps this envelope, so that a separate bar needs no factorisation. It is stored as a
dense matrix, for up to some hundred bars.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...numerics.compilation import allocation_free, for_compiled_callers, inlined, inlined_part
from .rod_masses import inverse_mass_matrix


def dependent_bars(network, nodes: NDArray) -> tuple[int, ...]:
    """Rigid bars whose length constraints are dependent at nodes (n, 3) [m]; empty if there are none."""
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


@inlined_part
def bar_units(network, nodes, units):
    """Fill the unit vectors (c, 3) of the bars."""
    for c in range(network.bars.shape[0]):
        k = network.bars[c]
        i, j = network.members[k, 0], network.members[k, 1]
        x, y, z = nodes[i, 0] - nodes[j, 0], nodes[i, 1] - nodes[j, 1], nodes[i, 2] - nodes[j, 2]
        shrink = 1.0 / np.sqrt(x * x + y * y + z * z)
        units[c, 0], units[c, 1], units[c, 2] = shrink * x, shrink * y, shrink * z


@for_compiled_callers
def couple_by_axis(network, units, matrix):
    """Fill J M^-1 J' for nodes that are held along some axes."""
    for c in range(network.bars.shape[0]):
        for e in range(network.first[c], c + 1):
            matrix[c, e] = 0.0
            for a in range(3):
                matrix[c, e] += network.shared[a, c, e] * units[c, a] * units[e, a]


@inlined
def couple_bars(network, nodes, work):
    """Unit vectors of the bars at nodes (n, 3) m, and J M^-1 J' filled and factored within its envelope.

    Below the diagonal, work.factor has L and work.matrix has L D; on the diagonal they have 1 / D. Returns False if
    bars are dependent.
    """
    units, matrix, factor = work.units, work.matrix, work.factor
    bar_units(network, nodes, units)
    if network.shared.shape[0] > 1:
        couple_by_axis(network, units, matrix)
    else:
        for c in range(network.bars.shape[0]):
            for e in range(network.first[c], c + 1):
                cosine = units[c, 0] * units[e, 0] + units[c, 1] * units[e, 1] + units[c, 2] * units[e, 2]
                matrix[c, e] = network.shared[0, c, e] * cosine
    for c in range(network.bars.shape[0]):
        start = network.first[c]
        left = matrix[c, c]
        for e in range(start, c):
            total = matrix[c, e]
            for k in range(start, e):
                total -= matrix[c, k] * factor[e, k]
            matrix[c, e], factor[c, e] = total, total * factor[e, e]
            left -= total * factor[c, e]
        if not left > 1e-12 * matrix[c, c]:
            return False
        factor[c, c] = 1.0 / left
    return True


@inlined_part
def apply_coupling(network, right, work):
    """Solve (J M^-1 J') multipliers = right with the factor in work."""
    matrix, factor, solution = work.matrix, work.factor, work.multipliers
    count = network.bars.shape[0]
    for c in range(count):
        total = right[c]
        for k in range(network.first[c], c):
            total -= factor[c, k] * solution[k]
        solution[c] = total
    for c in range(count - 1, -1, -1):
        solution[c] *= factor[c, c]
        for k in range(network.first[c], c):
            solution[k] -= matrix[c, k] * solution[c]


@for_compiled_callers
def push_by_axis(network, units, multipliers, scale, target):
    """`push` for nodes that are held along some axes."""
    for c in range(network.bars.shape[0]):
        for end in range(2):
            node, part = network.members[network.bars[c], end], (1.0 - 2.0 * end) * scale * multipliers[c]
            for entry in range(network.inverse_first[node], network.inverse_first[node + 1]):
                other = network.inverse_node[entry]
                for a in range(3):
                    target[other, a] += network.inverse_value[a, entry] * part * units[c, a]


@inlined
def push(network, units, multipliers, scale, target):
    """target (n, 3) += scale M^-1 J' multipliers."""
    if network.inverse_value.shape[0] > 1:
        push_by_axis(network, units, multipliers, scale, target)
        return
    for c in range(network.bars.shape[0]):
        i, j = network.members[network.bars[c], 0], network.members[network.bars[c], 1]
        part = scale * multipliers[c]
        x, y, z = part * units[c, 0], part * units[c, 1], part * units[c, 2]
        # `push_node` for both ends, inlined: a call would pass every array of the network
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


@inlined_part
def settle_rates(network, velocities, work):
    """`project_velocities` after `couple_bars` at the nodes."""
    for c in range(network.bars.shape[0]):
        i, j = network.members[network.bars[c], 0], network.members[network.bars[c], 1]
        rate = 0.0
        for a in range(3):
            rate += work.units[c, a] * (velocities[i, a] - velocities[j, a])
        work.right[c] = work.rest_rates[network.bars[c]] - rate
    apply_coupling(network, work.right, work)
    push(network, work.units, work.multipliers, 1.0, velocities)


@allocation_free
def project_velocities(network, nodes, velocities, work):
    """Correct the velocities (n, 3) along M^-1 J' so that the bars have their driven rates (zero for most bars)."""
    if not couple_bars(network, nodes, work):
        return False
    settle_rates(network, velocities, work)
    return True


@inlined
def close_bars(network, nodes, total, work):
    """Move nodes along M^-1 J' (with J from the last `couple_bars`) until every bar has its length.

    If the ends of a bar have the distance vector d and move by s along the old direction u, the bar has its length L
    for |d + s u| = L. This closes a separate bar in one step, and others nearly so. total (c,) accumulates the
    multipliers. Returns the largest remaining relative gap.
    """
    units, worst = work.units, 0.0
    for _ in range(30):
        worst = 0.0
        for c in range(network.bars.shape[0]):
            i, j = network.members[network.bars[c], 0], network.members[network.bars[c], 1]
            square, along = 0.0, 0.0
            for a in range(3):
                part = nodes[i, a] - nodes[j, a]
                square += part * part
                along += part * units[c, a]
            goal = network.bar_lengths[c] * network.bar_lengths[c]
            excess = square - goal
            worst = max(worst, 0.5 * abs(excess) / goal)
            work.right[c] = -excess / (along + np.sqrt(max(along * along - excess, 0.0)))
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
def settle_bars(network, nodes, velocities, work, totals):
    """Project positions and velocities onto the bars; returns whether they are independent, and the remaining gap."""
    if not couple_bars(network, nodes, work):
        return False, 0.0
    gap = close_bars(network, nodes, totals, work)
    return project_velocities(network, nodes, velocities, work), gap
