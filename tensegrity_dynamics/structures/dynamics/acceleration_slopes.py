"""Exact derivatives of the accelerations of a structure by its nodes, velocities and lengths: sparse and compiled.

With M a = F + J' t and J a = b (see `dynamics.point_masses`), the differentials are

    M da = dF + dJ' t + J' dt,   J da = db - dJ a
    da = Y - M^-1 J' (J M^-1 J')^-1 (J Y - db + dJ a),   Y = M^-1 (dF + dJ' t)

dF consists of tendons with their dampers (zero for slack ones), drag and the ground (`contact.ground_slopes`). t, the
forces of the bars, and (J M^-1 J') are the results of `accelerations`. Bars couple only the nodes of their group, so
that the rows of a group are one dense block; a node without bars is a separate group. The sparsity pattern is that of
the connections, independent of the state.

Columns: free coordinates of the nodes (f), their velocities (f), lengths of chosen members (e: rest lengths, and
lengths of rigid bars), their rates (e), and their second rates (e, of rigid bars alone).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...contact.ground_slopes import SCRATCH_ROWS, point_slopes
from ...numerics.compilation import compiled, for_compiled_callers, inlined, inlined_part
from ..tension_law import HARD, tension_law
from .point_masses import Network, accelerations

Pattern = namedtuple(
    "Pattern",
    "group_start group_nodes bar_start column_start columns row_start incident_start incident lengths_of sizes",
)
"""group_start (g + 1,), group_nodes (n',): free nodes by group; bar_start (g + 1,): rows of `network.bars` by group;
column_start (g + 1,), columns: columns that the rows of a group have; row_start (f + 1,): where the data of a row
begin; incident_start, incident: members at each node; lengths_of (m,): index among the chosen lengths or -1; sizes: f,
e, widest group in columns, most bars of a group."""

Slopes = namedtuple(
    "Slopes",
    "pattern run_start runs values state rate column_of local block solved rates by_position by_velocity ground",
)
"""What `fill_model` fills and works in: values, of which those of row r of the accelerations stand where runs
run_start[r] to run_start[r + 1] say: columns of the row, from and to, and where the first stands; state and rate (2 f
or more,) begin with nodes and velocities, and with velocities and accelerations. A group's rows of `block` and `solved`
follow each other without gaps, `wide` numbers each, so that those of a node are one run of numbers."""


def group_nodes(network: Network) -> tuple[list[list[int]], list[int]]:
    """Groups of free nodes coupled by bars or masses, and first bar of each group (one entry more than groups)."""
    groups: list[list[int]] = []
    starts, taken = [], set[int]()
    for c, k in enumerate(network.bars.tolist()):
        if network.first[c] == c:
            groups.append([])
            starts.append(c)
        for i in network.members[k].tolist():
            if network.position[i] >= 0 and i not in taken:
                taken.add(i)
                groups[-1].append(i)
    others: list[list[int]] = []
    for i in np.flatnonzero(network.position >= 0).tolist():
        if i not in taken:  # elastic bars also couple masses; a row of masses has its whole group
            others.append(network.inverse_node[network.inverse_first[i] : network.inverse_first[i + 1]].tolist())
            taken |= set(others[-1])
    groups = [sorted(group) for group in groups + others]
    starts += [network.bars.size] * (len(others) + 1)
    return groups, starts


def make_pattern(network: Network, chosen: Sequence[int]) -> tuple[Pattern, NDArray[np.int64]]:
    """Sparsity pattern, and the column of each entry; chosen: members whose lengths are columns."""
    position, members = network.position, network.members
    f, e = network.free.size, len(chosen)
    lengths_of = np.full(members.shape[0], -1, dtype=np.int64)
    lengths_of[list(chosen)] = np.arange(e)
    at_node: list[list[int]] = [[] for _ in position]
    for k, (i, j) in enumerate(members.tolist()):
        if network.stiffness[k] > 0.0:
            at_node[i].append(k)
            at_node[j].append(k)
    groups, bar_start = group_nodes(network)
    has_ground = network.ground.size > 0
    column_lists = []
    for g, nodes in enumerate(groups):
        by_position, moving = set(nodes), set[int]()
        lengths, rates, seconds = set[int](), set[int](), set[int]()
        if bar_start[g] < bar_start[g + 1]:
            moving |= by_position
        for i in nodes:
            if network.drag[i] > 0.0 or has_ground:
                moving.add(i)
            for k in at_node[i]:
                ends = {int(j) for j in members[k] if position[j] >= 0}
                by_position |= ends
                if network.damping[k] > 0.0:
                    moving |= ends
                if lengths_of[k] >= 0:
                    lengths.add(int(lengths_of[k]))
                    if network.damping[k] > 0.0:
                        rates.add(int(lengths_of[k]))
        for c in range(bar_start[g], bar_start[g + 1]):
            if lengths_of[network.bars[c]] >= 0:
                seconds.add(int(lengths_of[network.bars[c]]))
                if network.gains[0] > 0.0:
                    lengths.add(int(lengths_of[network.bars[c]]))
                    rates.add(int(lengths_of[network.bars[c]]))
        classes = [
            [int(position[i]) + a for i in sorted(by_position, key=lambda i: position[i]) for a in range(3)],
            [f + int(position[i]) + a for i in sorted(moving, key=lambda i: position[i]) for a in range(3)],
            [2 * f + k for k in sorted(lengths)],
            [2 * f + e + k for k in sorted(rates)],
            [2 * f + 2 * e + k for k in sorted(seconds)],
        ]
        column_lists.append([column for each in classes for column in each])
    group_of = np.zeros(f, dtype=np.int64)
    for g, nodes in enumerate(groups):
        for i in nodes:
            group_of[position[i] : position[i] + 3] = g
    indices = np.array([column for g in group_of for column in column_lists[g]], dtype=np.int64)
    bars = [bar_start[g + 1] - bar_start[g] for g in range(len(groups))]
    pattern = Pattern(
        group_start=_starts([len(nodes) for nodes in groups]),
        group_nodes=np.array([i for nodes in groups for i in nodes], dtype=np.int64),
        bar_start=np.array(bar_start, dtype=np.int64),
        column_start=_starts([len(each) for each in column_lists]),
        columns=np.array([column for each in column_lists for column in each], dtype=np.int64),
        row_start=_starts([len(column_lists[g]) for g in group_of]),
        incident_start=_starts([len(each) for each in at_node]),
        incident=np.array([k for each in at_node for k in each], dtype=np.int64), lengths_of=lengths_of,
        sizes=np.array(
            [f, e, max(map(len, column_lists), default=0), max(bars, default=0)], dtype=np.int64
        ),
    )  # fmt: skip
    return pattern, indices


def _starts(counts: Sequence[int] | NDArray) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(np.asarray(counts, dtype=np.int64)))).astype(np.int64)


def make_slopes(
    network: Network, pattern: Pattern, target: NDArray, values: NDArray, state: NDArray, rate: NDArray
) -> Slopes:
    """Work arrays for `fill_model`; target: index in values of each entry of the rows, negative for unused entries."""
    f, e, width, bars = pattern.sizes.tolist()
    tallest, wide = 3 * int(np.diff(pattern.group_start).max(initial=0)), _padded(width)
    row_of = np.repeat(np.arange(f), np.diff(pattern.row_start))
    begins = np.flatnonzero((np.diff(target, prepend=-2) != 1) | (np.diff(row_of, prepend=-1) != 0))
    counts = np.diff(begins, append=target.size)
    begins, counts = begins[target[begins] >= 0], counts[target[begins] >= 0]
    columns = begins - pattern.row_start[row_of[begins]]
    return Slopes(
        pattern=pattern, run_start=np.searchsorted(row_of[begins], np.arange(f + 1)),
        runs=np.stack((columns, columns + counts, target[begins]), axis=1), values=values, state=state, rate=rate,
        column_of=np.zeros(2 * f + 3 * e, dtype=np.int64), local=np.zeros(network.position.size, dtype=np.int64),
        block=np.zeros(tallest * wide), solved=np.zeros(tallest * wide), rates=np.zeros(bars * wide),
        by_position=np.zeros((3, 3)), by_velocity=np.zeros((3, 3)), ground=np.zeros((SCRATCH_ROWS, 3)),
    )  # fmt: skip


@inlined
def _padded(width):
    """Number of columns of a row with padding, so that loops over them use full vector registers."""
    return (width + 7) // 8 * 8


@inlined_part
def tension_slopes(network, work, k, stretch, rate):
    """Derivatives of the tension of member k by its length [N/m] and by its elongation rate [N s/m]."""
    law, stiffness, damping = network.laws[k], network.stiffness[k], network.damping[k]
    if stiffness == 0.0 or (0.0 < law <= HARD and stretch <= 0.0):
        return 0.0, 0.0
    if law != 0.0 and damping > 0.0 and work.tensions[k] <= 0.0:
        return 0.0, 0.0
    tension, slope, _ = tension_law(law, stiffness, stretch)
    if law > HARD and slope != stiffness:  # closing, or slack
        opens = stiffness * (law - HARD)
        return slope + damping * rate * slope / opens, damping * tension / opens
    if law < 0.0:
        root = np.sqrt(stretch * stretch + law * law)
        return slope + damping * rate * 0.5 * law * law / (root * root * root), damping * slope / stiffness
    return slope, damping


@inlined_part
def add_member_slopes(network, pattern, slopes, nodes, velocities, rest_lengths, work, k, node, wide):
    """Add the derivatives of the force of spring k on one end (`node`) to the rows of this node."""
    i, j = network.members[k, 0], network.members[k, 1]
    shrink = 1.0 / work.lengths[k]
    density = work.tensions[k] * shrink
    f, e, block = pattern.sizes[0], pattern.sizes[1], slopes.block
    x, y, z = nodes[i, 0] - nodes[j, 0], nodes[i, 1] - nodes[j, 1], nodes[i, 2] - nodes[j, 2]
    unit = (shrink * x, shrink * y, shrink * z)
    relative = (
        velocities[i, 0] - velocities[j, 0], velocities[i, 1] - velocities[j, 1], velocities[i, 2] - velocities[j, 2]
    )  # fmt: skip
    along = unit[0] * relative[0] + unit[1] * relative[1] + unit[2] * relative[2]
    stretch = work.lengths[k] - rest_lengths[k]
    stiffness, damping = tension_slopes(network, work, k, stretch, along - work.rest_rates[k])
    if stiffness == 0.0 and density == 0.0:
        return
    sign = -1.0 if node == i else 1.0
    begin, chosen = slopes.local[node], pattern.lengths_of[k]
    first, second = network.position[i], network.position[j]
    at, other = slopes.column_of[max(first, 0)], slopes.column_of[max(second, 0)]
    for a in range(3):
        row = begin + a * wide
        for b in range(3):
            pull = (stiffness - density) * unit[b] + damping * shrink * (relative[b] - along * unit[b])
            entry = sign * unit[a] * pull
            if a == b:
                entry += sign * density
            if first >= 0:
                block[row + at + b] += entry
            if second >= 0:
                block[row + other + b] -= entry
        if chosen >= 0:
            block[row + slopes.column_of[2 * f + chosen]] -= sign * stiffness * unit[a]
    if damping == 0.0:
        return
    at, other = slopes.column_of[f + max(first, 0)], slopes.column_of[f + max(second, 0)]
    for a in range(3):
        row = begin + a * wide
        for b in range(3):
            entry = sign * damping * unit[a] * unit[b]
            if first >= 0:
                block[row + at + b] += entry
            if second >= 0:
                block[row + other + b] -= entry
        if chosen >= 0:
            block[row + slopes.column_of[2 * f + e + chosen]] -= sign * damping * unit[a]


@inlined_part
def add_bar_slopes(network, pattern, slopes, velocities, work, c, rates_begin, wide):
    """Add dJ' t of bar c to the rows of its ends, and set its row of J Y - db + dJ a, still without J Y."""
    k = network.bars[c]
    i, j, shrink = network.members[k, 0], network.members[k, 1], 1.0 / work.lengths[k]
    density = shrink * work.multipliers[c]
    f, e = pattern.sizes[0], pattern.sizes[1]
    along, square, pulled = 0.0, 0.0, 0.0
    for a in range(3):
        relative = velocities[i, a] - velocities[j, a]
        along += work.units[c, a] * relative
        square += relative * relative
        pulled += work.units[c, a] * (work.acceleration[i, a] - work.acceleration[j, a])
    across = square - along * along
    holds, stiff, damp, goal, moved = network.gains[0] > 0.0, 0.0, 0.0, network.bar_lengths[c], work.rest_rates[k]
    if holds:
        stiff, damp = network.gains[1], network.gains[2]
        across = square - moved * moved - 0.5 * stiff * goal * goal - damp * goal * moved
    for end in range(2):
        column_node = network.members[k, end]
        first = network.position[column_node]
        if first < 0:
            continue
        sign = 1.0 if end == 0 else -1.0
        at, at_rate = slopes.column_of[first], slopes.column_of[f + first]
        for b in range(3):
            unit = work.units[c, b]
            relative = velocities[i, b] - velocities[j, b]
            apart = work.acceleration[i, b] - work.acceleration[j, b]
            swing = shrink * (relative - along * unit)
            turn = shrink * (apart - pulled * unit - shrink * across * unit)
            if holds:
                slopes.rates[rates_begin + at + b] += sign * (turn + 0.5 * stiff * unit + damp * swing)
                slopes.rates[rates_begin + at_rate + b] += sign * (2.0 * shrink * relative + damp * unit)
            else:
                slopes.rates[rates_begin + at + b] += sign * (turn - 2.0 * shrink * along * swing)
                slopes.rates[rates_begin + at_rate + b] += sign * 2.0 * swing
            for a in range(3):
                entry = -work.units[c, a] * unit
                if a == b:
                    entry += 1.0
                entry *= sign * density
                if network.position[i] >= 0:
                    slopes.block[slopes.local[i] + a * wide + at + b] += entry
                if network.position[j] >= 0:
                    slopes.block[slopes.local[j] + a * wide + at + b] -= entry
    chosen = pattern.lengths_of[k]
    if chosen >= 0:
        slopes.rates[rates_begin + slopes.column_of[2 * f + 2 * e + chosen]] -= 1.0
        if holds:
            slopes.rates[rates_begin + slopes.column_of[2 * f + chosen]] -= shrink * (stiff * goal + damp * moved)
            slopes.rates[rates_begin + slopes.column_of[2 * f + e + chosen]] -= shrink * (2.0 * moved + damp * goal)


@inlined_part
def add_row(target, source, factor):
    """target (n,) += factor source; for slices, whose indices need no further check."""
    for at in range(target.shape[0]):
        target[at] += factor * source[at]


@inlined_part
def solve_bars(pattern, slopes, work, g, wide):
    """Solve for the multipliers of a group from its rows of J Y - db + dJ a, with the factor in work."""
    begin, count = pattern.bar_start[g], pattern.bar_start[g + 1] - pattern.bar_start[g]
    for c in range(count):
        row = slopes.rates[c * wide : (c + 1) * wide]
        for k in range(c):
            factor = work.factor[begin + c, begin + k]
            if factor != 0.0:
                add_row(row, slopes.rates[k * wide : (k + 1) * wide], -factor)
    for c in range(count - 1, -1, -1):
        row = slopes.rates[c * wide : (c + 1) * wide]
        for at in range(wide):
            row[at] *= work.factor[begin + c, begin + c]
        for k in range(c):
            factor = work.matrix[begin + c, begin + k]
            if factor != 0.0:
                add_row(slopes.rates[k * wide : (k + 1) * wide], row, -factor)


@compiled
def fill_model(plant):
    """Accelerations and their derivatives at the state of a `Plant` with `Slopes` as stages; False: dependent bars."""
    network, work, slopes = plant.network, plant.work, plant.stages
    nodes, velocities, rest_lengths, pattern = plant.nodes, plant.velocities, plant.rest_lengths, slopes.pattern
    independent, _ = accelerations(network, nodes, velocities, rest_lengths, work)
    if independent:
        fill_slopes(network, pattern, nodes, velocities, rest_lengths, work, slopes)
    return independent


@for_compiled_callers
def fill_slopes(network, pattern, nodes, velocities, rest_lengths, work, slopes):
    """Fill values, state and rate of slopes at the last state of `accelerations`, whose results are in work."""
    f, block, solved, rates = pattern.sizes[0], slopes.block, slopes.solved, slopes.rates
    for g in range(pattern.bar_start.shape[0] - 1):
        begin = pattern.column_start[g]
        width = pattern.column_start[g + 1] - begin
        wide = _padded(width)
        for column in range(width):
            slopes.column_of[pattern.columns[begin + column]] = column
        first_node, count = pattern.group_start[g], pattern.group_start[g + 1] - pattern.group_start[g]
        for r in range(count):
            slopes.local[pattern.group_nodes[first_node + r]] = 3 * r * wide
        for at in range(3 * count * wide):
            block[at] = 0.0
        for r in range(count):
            i = pattern.group_nodes[first_node + r]
            for m in range(pattern.incident_start[i], pattern.incident_start[i + 1]):
                add_member_slopes(
                    network, pattern, slopes, nodes, velocities, rest_lengths, work, pattern.incident[m], i, wide
                )
            first, row = network.position[i], 3 * r * wide
            if network.drag[i] > 0.0:
                for a in range(3):
                    block[row + a * wide + slopes.column_of[f + first + a]] -= network.drag[i]
            if network.ground.shape[0] > 0 and point_slopes(
                network.ground, nodes[i, 0], nodes[i, 1], nodes[i, 2], velocities[i], slopes.by_position,
                slopes.by_velocity, slopes.ground,
            ):  # fmt: skip
                for a in range(3):
                    for b in range(3):
                        block[row + a * wide + slopes.column_of[first + b]] += slopes.by_position[a, b]
                        block[row + a * wide + slopes.column_of[f + first + b]] += slopes.by_velocity[a, b]
        first_bar, bars = pattern.bar_start[g], pattern.bar_start[g + 1] - pattern.bar_start[g]
        for at in range(bars * wide):
            rates[at] = 0.0
        for c in range(bars):
            add_bar_slopes(network, pattern, slopes, velocities, work, first_bar + c, c * wide, wide)
        for at in range(3 * count * wide):
            solved[at] = 0.0
        for r in range(count):
            i, row = pattern.group_nodes[first_node + r], 3 * r * wide
            for entry in range(network.inverse_first[i], network.inverse_first[i + 1]):
                other = slopes.local[network.inverse_node[entry]]
                add_row(solved[row : row + 3 * wide], block[other : other + 3 * wide], network.inverse_value[0, entry])
        for c in range(bars):
            for end in range(2):
                node, sign = network.members[network.bars[first_bar + c], end], 1.0 - 2.0 * end
                if network.position[node] >= 0:
                    for a in range(3):
                        row = slopes.local[node] + a * wide
                        factor = sign * work.units[first_bar + c, a]
                        add_row(rates[c * wide : (c + 1) * wide], solved[row : row + wide], factor)
        solve_bars(pattern, slopes, work, g, wide)
        for c in range(bars):
            for end in range(2):
                node, sign = network.members[network.bars[first_bar + c], end], 2.0 * end - 1.0
                for entry in range(network.inverse_first[node], network.inverse_first[node + 1]):
                    part = sign * network.inverse_value[0, entry]
                    for a in range(3):
                        row = slopes.local[network.inverse_node[entry]] + a * wide
                        factor = part * work.units[first_bar + c, a]
                        add_row(solved[row : row + wide], rates[c * wide : (c + 1) * wide], factor)
        for r in range(count):
            i = pattern.group_nodes[first_node + r]
            for a in range(3):
                row, at = network.position[i] + a, (3 * r + a) * wide
                slopes.state[row], slopes.state[f + row] = nodes[i, a], velocities[i, a]
                slopes.rate[row], slopes.rate[f + row] = velocities[i, a], work.acceleration[i, a]
                for run in range(slopes.run_start[row], slopes.run_start[row + 1]):
                    first, last, to = slopes.runs[run, 0], slopes.runs[run, 1], slopes.runs[run, 2]
                    source, target = solved[at + first : at + last], slopes.values[to : to + last - first]
                    for column in range(last - first):
                        target[column] = source[column]
