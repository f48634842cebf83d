"""Implicit steps of a network: BDF2 with Newton's method; the bars have their lengths at the end of every step.

    v = v^ + g a(x, v),   x = x^ + g v,   |bar| = L,      g = 2 h / 3,   x^ = (4 x_n - x_n-1) / 3,   v^ likewise

(Hairer and Wanner, Solving Ordinary Differential Equations II, chapters V.1 and VII.3.) The first step after a start is
an implicit Euler step: g = h, x^ = x_n, v^ = v_n. The same holds for a step in which a string becomes slack or taut,
and for the following one, because the extrapolation of x^ and v^ over a jump would gain energy. Each Newton step solves

    (M + g C + g^2 K) dv + J' m = g F - M (v - v^),   J dv = (L - |bar|) / g

with stiffness K and damping C of the taut strings of this iterate, so that strings that become slack or taut within the
step are detected, and with the geometric stiffness of the bar forces. The method has numerical damping: in each step,
an oscillation with the angular frequency w loses the fraction (w h)^4 / 4 of its amplitude for small w h, a quarter at
w h = 2, half at 5 and four fifths at 20. Strings that are too stiff for the step come to rest at their equilibrium
elongation.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import compiled, compiled_part
from ...numerics.linear_algebra import cholesky_apply, cholesky_shifted
from ..tension_law import tension_law
from .bar_constraints import bar_units, settle_bars
from .plant import BAD_SET_POINT, checked_end, take_set_points
from .point_masses import (
    AWAY,
    COMPLETED,
    DAMPER,
    DEPENDENT_BARS,
    DIVERGED,
    FRICTION_POWER,
    LAW_SLOPE,
    NORMAL_FORCE,
    RUB,
    TOUCH,
    spring_forces,
)
from .spools import set_speeds, wind, winding_power

MAX_FULL_NEWTON_STEPS, MAX_NEWTON_STEPS = 12, 40
"""Largest number of full Newton steps, and of all Newton steps. The later ones are shortened, for iterations that
alternate between both sides of the transition between slack and taut."""


@compiled_part
def add_member(system, position, i, j, unit, along, across):
    """Add the block along u u' + across (I - u u') of a member between nodes i and j."""
    for a in range(3):
        for b in range(3):
            entry = (along - across) * unit[a] * unit[b]
            if a == b:
                entry += across
            if position[i] >= 0:
                system[position[i] + a, position[i] + b] += entry
            if position[j] >= 0:
                system[position[j] + a, position[j] + b] += entry
            if position[i] >= 0 and position[j] >= 0:
                system[position[i] + a, position[j] + b] -= entry
                system[position[j] + a, position[i] + b] -= entry


@compiled
def add_ground(network, ahead, work, stages):
    """Add g C + g^2 K of the ground to the system, from the results of `point_force` in work.

    For friction the secant (force divided by speed) is used, without the dependence on the normal force. So the matrix
    is symmetric and not negative, and Newton's method descends at any speed. This costs iterations, but no accuracy.
    """
    for i in range(network.position.shape[0]):
        first, here = network.position[i], work.ground[i]
        if first < 0 or not here[LAW_SLOPE] > 0.0:
            continue
        away = here[AWAY:TOUCH]
        square = away[0] * away[0] + away[1] * away[1] + away[2] * away[2]
        normal = ahead * ahead * here[LAW_SLOPE] + ahead * here[DAMPER] - ahead * here[RUB] / square
        for a in range(3):
            for b in range(3):
                stages.system[first + a, first + b] += normal * away[a] * away[b]
            stages.system[first + a, first + a] += ahead * here[RUB]


@compiled_part
def fill_system(network, nodes, rest_lengths, ahead, work, stages, exact):
    """Fill and factor M + g C + g^2 K over the free coordinates, and the bar systems; False if it is singular.

    Lengths, tensions and unit vectors of the bars are those in work. Without `exact`, compression adds no (negative)
    geometric stiffness: the convergence is slower, but the matrix is always positive definite.
    """
    system, position, members = stages.system, network.position, network.members
    system[:, :] = 0.0
    for i in range(nodes.shape[0]):
        if position[i] >= 0:
            for a in range(3):
                system[position[i] + a, position[i] + a] = network.node_masses[i] + ahead * network.drag[i]
    unit = np.empty(3)
    for k in range(members.shape[0]):
        i, j = members[k, 0], members[k, 1]
        if network.spread[k] > 0.0:
            unit[:] = 0.0
            add_member(system, position, i, j, unit, -network.spread[k], -network.spread[k])
        if network.stiffness[k] == 0.0 or (network.laws[k] != 0.0 and work.tensions[k] <= 0.0):
            continue
        slope = tension_law(network.laws[k], network.stiffness[k], work.lengths[k] - rest_lengths[k])[1]
        for a in range(3):
            unit[a] = (nodes[i, a] - nodes[j, a]) / work.lengths[k]
        density = work.tensions[k] / work.lengths[k]
        if not exact:
            density = max(0.0, density)
        along = ahead * ahead * slope
        if work.catching[k]:
            along += ahead * ahead * network.damping[k] / work.horizon[0]
        else:
            along += ahead * network.damping[k] * slope / network.stiffness[k]
        add_member(system, position, i, j, unit, along, ahead * ahead * density)
    if network.ground.shape[0] > 0:
        add_ground(network, ahead, work, stages)
    largest = 0.0
    for f in range(system.shape[0]):
        largest = max(largest, system[f, f])
    for c in range(network.bars.shape[0]):
        k = network.bars[c]
        density = -stages.bar_forces[c] / work.lengths[k]
        if not exact:
            density = max(0.0, density)
        # the part along the bar does not change the solution (J dv is given); it keeps the matrix positive definite
        add_member(
            system, position, members[k, 0], members[k, 1], work.units[c], 10.0 * largest, ahead * ahead * density
        )
    if not cholesky_shifted(system, 0.0, stages.factor):
        return False
    for c in range(network.bars.shape[0]):
        stages.right[:] = 0.0
        i, j = members[network.bars[c], 0], members[network.bars[c], 1]
        for a in range(3):
            if position[i] >= 0:
                stages.right[position[i] + a] += work.units[c, a]
            if position[j] >= 0:
                stages.right[position[j] + a] -= work.units[c, a]
        cholesky_apply(stages.factor, stages.right, stages.columns[c])
        for e in range(c + 1):
            stages.schur[c, e] = along_bar(network, work.units, e, stages.columns[c])
            stages.schur[e, c] = stages.schur[c, e]
    return network.bars.shape[0] == 0 or cholesky_shifted(stages.schur, 0.0, stages.schur_factor)


@compiled_part
def along_bar(network, units, c, vector):
    """Row c of J times a vector over the free coordinates."""
    i, j = network.members[network.bars[c], 0], network.members[network.bars[c], 1]
    total = 0.0
    for a in range(3):
        if network.position[i] >= 0:
            total += units[c, a] * vector[network.position[i] + a]
        if network.position[j] >= 0:
            total -= units[c, a] * vector[network.position[j] + a]
    return total


@compiled_part
def newton_direction(network, ahead, work, stages):
    """Fill stages.solved with dv of the equation of the module, and stages.bar_forces with the bar forces [N]."""
    position, count = network.position, network.bars.shape[0]
    for i in range(position.shape[0]):
        if position[i] >= 0:
            for a in range(3):
                stages.right[position[i] + a] = ahead * work.forces[i, a] - (
                    (stages.velocities[i, a] - stages.velocity_sum[i, a]) * network.node_masses[i]
                )
    for k in range(network.spread.shape[0]):
        if network.spread[k] > 0.0:
            i, j = network.members[k, 0], network.members[k, 1]
            for a in range(3):
                part = network.spread[k] * (
                    stages.velocities[i, a] - stages.velocity_sum[i, a]
                    - stages.velocities[j, a] + stages.velocity_sum[j, a]
                )  # fmt: skip
                if position[i] >= 0:
                    stages.right[position[i] + a] += part
                if position[j] >= 0:
                    stages.right[position[j] + a] -= part
    cholesky_apply(stages.factor, stages.right, stages.solved)
    if count == 0:
        return
    for c in range(count):
        gap = network.bar_lengths[c] - work.lengths[network.bars[c]]
        stages.bar_right[c] = gap / ahead - along_bar(network, work.units, c, stages.solved)
    cholesky_apply(stages.schur_factor, stages.bar_right, stages.bar_right)
    for c in range(count):
        stages.bar_forces[c] = stages.bar_right[c] / ahead
        for f in range(stages.solved.shape[0]):
            stages.solved[f] += stages.columns[c, f] * stages.bar_right[c]


@compiled_part
def solve_step(network, rest_lengths, ahead, work, stages):
    """Iterate stages.nodes and stages.velocities from an initial guess to the end of the step; returns a status."""
    position, size = network.position, 0.0
    for k in range(network.members.shape[0]):
        size = max(size, rest_lengths[k])
    size = max(size, 1e-9)
    part = 1.0
    for sweep in range(MAX_NEWTON_STEPS):
        spring_forces(network, stages.nodes, stages.velocities, rest_lengths, work)
        bar_units(network, stages.nodes, work.units)
        if not fill_system(network, stages.nodes, rest_lengths, ahead, work, stages, True):
            if not fill_system(network, stages.nodes, rest_lengths, ahead, work, stages, False):
                return DEPENDENT_BARS
        newton_direction(network, ahead, work, stages)
        largest = 0.0
        if sweep >= MAX_FULL_NEWTON_STEPS:
            part = max(0.5 * part, 0.05)
        for i in range(position.shape[0]):
            if position[i] >= 0:
                for a in range(3):
                    change = part * stages.solved[position[i] + a]
                    stages.velocities[i, a] += change
                    stages.nodes[i, a] += ahead * change
                    largest = max(largest, abs(ahead * change))
        if not largest < 1e6 * size:
            return DIVERGED
        if largest <= 1e-11 * size:
            return COMPLETED
    return COMPLETED if largest <= 1e-7 * size else DIVERGED


@compiled_part
def predict(network, nodes, velocities, step, has_former, stages):
    """Fill x^, v^ and the initial guess for the end of the step; returns g."""
    former = stages.former
    ahead, now, before = step, 1.0, 0.0
    if has_former:
        ahead, now, before = 2.0 * step / 3.0, 4.0 / 3.0, 1.0 / 3.0
    for i in range(nodes.shape[0]):
        for a in range(3):
            stages.position_sum[i, a] = now * nodes[i, a] - before * former[0, i, a]
            stages.velocity_sum[i, a] = now * velocities[i, a] - before * former[1, i, a]
            stages.velocities[i, a] = velocities[i, a]
            stages.nodes[i, a] = nodes[i, a]
            if network.position[i] >= 0:
                stages.nodes[i, a] = stages.position_sum[i, a] + ahead * velocities[i, a]
    return ahead


@compiled_part
def has_changed(network, work, stages):
    """Whether a string has become slack or taut, or a node has touched or left the ground, since the last call."""
    changed = False
    if network.ground.shape[0] > 0:
        for i in range(network.position.shape[0]):
            touches = work.ground[i, NORMAL_FORCE] > 0.0
            if touches != stages.tight[network.members.shape[0] + i]:
                changed = True
            stages.tight[network.members.shape[0] + i] = touches
    for k in range(network.members.shape[0]):
        tight = work.tensions[k] > 0.0
        if network.laws[k] != 0.0 and tight != stages.tight[k]:
            changed = True
        stages.tight[k] = tight
    return changed


@compiled
def bdf2(plant, mode, set_points, step, count):
    """Advance in place by `count` steps; returns a status. `stages.former` holds the state before the last step."""
    if not take_set_points(plant, mode, set_points):
        return BAD_SET_POINT
    network, spools, nodes, velocities = plant.network, plant.spools, plant.nodes, plant.velocities
    rest_lengths, work, stages = plant.rest_lengths, plant.work, plant.stages
    former, lost = stages.former, spring_forces(network, nodes, velocities, rest_lengths, work)
    has_changed(network, work, stages)
    for _ in range(count):
        if set_speeds(spools, rest_lengths, work.tensions, step, work.rest_rates):
            lost = spring_forces(network, nodes, velocities, rest_lengths, work)
        stages.work[0] += 0.5 * step * winding_power(spools, work.tensions)
        stages.work[1] += 0.5 * step * lost
        stages.work[2] += 0.5 * step * work.horizon[FRICTION_POWER]
        wind(spools, rest_lengths, step)
        ahead = predict(network, nodes, velocities, step, stages.has_former[0] > 0, stages)
        status = solve_step(network, rest_lengths, ahead, work, stages)
        if status == COMPLETED:
            spring_forces(network, stages.nodes, stages.velocities, rest_lengths, work)
        if stages.has_former[0] > 0 and (status != COMPLETED or has_changed(network, work, stages)):
            stages.has_former[0] = 0
            ahead = predict(network, nodes, velocities, step, False, stages)
            status = solve_step(network, rest_lengths, ahead, work, stages)
        elif status == COMPLETED:
            stages.has_former[0] = 1
        if status != COMPLETED:
            return status
        former[0], former[1] = nodes, velocities
        nodes[:, :] = stages.nodes
        velocities[:, :] = stages.velocities
        independent, gap = settle_bars(network, nodes, velocities, work, stages.totals)
        if not independent:
            return DEPENDENT_BARS
        if not gap < 1e-10:
            return DIVERGED
        lost = spring_forces(network, nodes, velocities, rest_lengths, work)
        if has_changed(network, work, stages):
            stages.has_former[0] = 0
        stages.work[0] += 0.5 * step * winding_power(spools, work.tensions)
        stages.work[1] += 0.5 * step * lost
        stages.work[2] += 0.5 * step * work.horizon[FRICTION_POWER]
    return checked_end(nodes)
