"""Steps of a network of point masses: Runge-Kutta, RATTLE and an implicit method, compiled.

| name | order | for |
| --- | --- | --- |
| rk4 | 4 | short runs and damped motion; bars and velocities projected after every step |
| rattle | 2, symplectic without damping | long runs without damping: the energy error stays bounded |
| implicit | 2, L-stable | strings much stiffer than the motion of interest: steps far above the shortest period |

A string that goes slack or tight within a step costs order, whatever the method. Every step begins with the tensions
of its start in `room`, from which the spools take their speeds, and leaves those of its end there, so that one call of
many steps and many calls of one give the same bits.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from .compilation import compiled
from .network.point_masses import (
    Network,
    accelerations,
    bar_units,
    close_bars,
    coupling,
    is_damped,
    project_velocities,
    push,
    spring_forces,
)
from .spools import set_speeds, wind, winding_power
from .statics.dense import cholesky_apply, cholesky_shifted

DONE, DEPENDENT_BARS, LOST = 0, 1, 2
GAMMA = 1.0 - 1.0 / np.sqrt(2.0)

Stages = namedtuple(
    "Stages", "nodes velocities position_sum velocity_sum rest totals units system factor right solved columns schur "
    "schur_factor first second bar_right work"
)  # fmt: skip


def make_stages(network: Network) -> Stages:
    """Scratch arrays of the integrators; `work` (2,) collects the energy put in by spools and taken by damping [J]."""
    n, m, c, f = network.inverse_mass.size, network.members.shape[0], network.bars.size, network.free.size
    return Stages(
        nodes=np.zeros((n, 3)), velocities=np.zeros((n, 3)), position_sum=np.zeros((n, 3)),
        velocity_sum=np.zeros((n, 3)), rest=np.zeros(m), totals=np.zeros(c), units=np.zeros((c, 3)),
        system=np.zeros((f, f)), factor=np.zeros((f, f)), right=np.zeros(f), solved=np.zeros(f),
        columns=np.zeros((c, f)), schur=np.zeros((c, c)), schur_factor=np.zeros((c, c)), first=np.zeros((2, n, 3)),
        second=np.zeros((2, n, 3)), bar_right=np.zeros(c), work=np.zeros(2),
    )  # fmt: skip


@compiled
def runge_kutta(network, spools, nodes, velocities, rest_lengths, step, count, room, stages):
    """Advance in place by `count` steps; returns a status."""
    spring_forces(network, nodes, velocities, rest_lengths, room)
    for _ in range(count):
        set_speeds(spools, rest_lengths, room.tensions, step, room.rest_rates)
        independent, lost = accelerations(network, nodes, velocities, rest_lengths, room)
        if not independent:
            return DEPENDENT_BARS
        stages.rest[:] = rest_lengths
        stages.nodes[:, :] = nodes
        stages.velocities[:, :] = velocities
        stages.position_sum[:, :] = nodes
        stages.velocity_sum[:, :] = velocities
        for stage in range(4):
            if stage > 0:
                independent, lost = accelerations(network, stages.nodes, stages.velocities, stages.rest, room)
                if not independent:
                    return DEPENDENT_BARS
            weight = step / 6.0 if stage == 0 or stage == 3 else step / 3.0
            stages.work[0] += weight * winding_power(spools, room.tensions)
            stages.work[1] += weight * lost
            ahead = step if stage == 2 else 0.5 * step
            if stage == 0 or stage == 2:
                wind(spools, stages.rest, 0.5 * step)
            for i in range(nodes.shape[0]):
                for a in range(3):
                    stages.position_sum[i, a] += weight * stages.velocities[i, a]
                    stages.velocity_sum[i, a] += weight * room.acceleration[i, a]
                    stages.nodes[i, a] = nodes[i, a] + ahead * stages.velocities[i, a]
                    stages.velocities[i, a] = velocities[i, a] + ahead * room.acceleration[i, a]
        nodes[:, :] = stages.position_sum
        velocities[:, :] = stages.velocity_sum
        wind(spools, rest_lengths, step)
        status, _ = finish(network, nodes, velocities, rest_lengths, room, stages)
        if status != DONE:
            return status
    return DONE


@compiled
def finish(network, nodes, velocities, rest_lengths, room, stages):
    """Bars to their lengths, velocities along them out; returns a status and the power that damping takes out [W]."""
    if network.bars.shape[0] > 0:
        bar_units(network, nodes, stages.units)
        if not coupling(network, stages.units, room):
            return DEPENDENT_BARS, 0.0
        if not close_bars(network, nodes, stages.units, stages.totals, room) < 1e-10:
            return LOST, 0.0
        if not project_velocities(network, nodes, velocities, room):
            return DEPENDENT_BARS, 0.0
    return DONE, spring_forces(network, nodes, velocities, rest_lengths, room)


@compiled
def rattle(network, spools, nodes, velocities, rest_lengths, step, count, room, stages):
    """Advance in place by `count` steps of velocity Verlet with bars (RATTLE; Andersen 1983).

    Dampers at the end of a step see the velocity there by extrapolation, which keeps the second order.
    """
    damped = is_damped(network)
    lost = spring_forces(network, nodes, velocities, rest_lengths, room)
    for _ in range(count):
        if set_speeds(spools, rest_lengths, room.tensions, step, room.rest_rates) and damped:
            lost = spring_forces(network, nodes, velocities, rest_lengths, room)
        stages.work[0] += 0.5 * step * winding_power(spools, room.tensions)
        stages.work[1] += 0.5 * step * lost
        bar_units(network, nodes, stages.units)
        if not coupling(network, stages.units, room):
            return DEPENDENT_BARS
        stages.velocities[:, :] = velocities
        for i in range(nodes.shape[0]):
            for a in range(3):
                velocities[i, a] += 0.5 * step * network.inverse_mass[i] * room.forces[i, a]
                nodes[i, a] += step * velocities[i, a]
        stages.totals[:] = 0.0
        # forces along the bars at the start of the step bring the bars of its end to their lengths
        if not close_bars(network, nodes, stages.units, stages.totals, room) < 1e-10:
            return LOST
        push(network, stages.units, stages.totals, 1.0 / step, velocities)
        wind(spools, rest_lengths, step)
        for i in range(nodes.shape[0]):
            for a in range(3):
                stages.velocities[i, a] = 2.0 * velocities[i, a] - stages.velocities[i, a]
        lost = spring_forces(network, nodes, stages.velocities, rest_lengths, room)
        for i in range(nodes.shape[0]):
            for a in range(3):
                velocities[i, a] += 0.5 * step * network.inverse_mass[i] * room.forces[i, a]
        if not project_velocities(network, nodes, velocities, room):
            return DEPENDENT_BARS
        if damped:
            lost = spring_forces(network, nodes, velocities, rest_lengths, room)
        stages.work[0] += 0.5 * step * winding_power(spools, room.tensions)
        stages.work[1] += 0.5 * step * lost
    return DONE


@compiled
def fill_system(network, nodes, rest_lengths, step, room, stages):
    """Fill M + g h C + (g h)^2 K over the free coordinates at the lengths and tensions in room, and factor it."""
    system, position = stages.system, network.position
    system[:, :] = 0.0
    ahead = GAMMA * step
    for i in range(nodes.shape[0]):
        if position[i] >= 0:
            for a in range(3):
                system[position[i] + a, position[i] + a] = 1.0 / network.inverse_mass[i] + ahead * network.drag[i]
    unit = np.empty(3)
    for k in range(network.members.shape[0]):
        if network.stiffness[k] == 0.0 or (network.unilateral[k] and room.lengths[k] <= rest_lengths[k]):
            continue
        i, j = network.members[k, 0], network.members[k, 1]
        for a in range(3):
            unit[a] = (nodes[i, a] - nodes[j, a]) / room.lengths[k]
        density = max(0.0, room.tensions[k]) / room.lengths[k]
        along = ahead * ahead * (network.stiffness[k] - density) + ahead * network.damping[k]
        for a in range(3):
            for b in range(3):
                entry = along * unit[a] * unit[b]
                if a == b:
                    entry += ahead * ahead * density
                if position[i] >= 0:
                    system[position[i] + a, position[i] + b] += entry
                if position[j] >= 0:
                    system[position[j] + a, position[j] + b] += entry
                if position[i] >= 0 and position[j] >= 0:
                    system[position[i] + a, position[j] + b] -= entry
                    system[position[j] + a, position[i] + b] -= entry
    if not cholesky_shifted(system, 0.0, stages.factor):
        return False
    # the bars' columns of the system, and the Schur complement J S^-1 J'
    for c in range(network.bars.shape[0]):
        stages.right[:] = 0.0
        i, j = network.members[network.bars[c], 0], network.members[network.bars[c], 1]
        for a in range(3):
            if position[i] >= 0:
                stages.right[position[i] + a] += room.units[c, a]
            if position[j] >= 0:
                stages.right[position[j] + a] -= room.units[c, a]
        cholesky_apply(stages.factor, stages.right, stages.columns[c])
        for e in range(c + 1):
            stages.schur[c, e] = along_bar(network, room.units, e, stages.columns[c])
            stages.schur[e, c] = stages.schur[c, e]
    return network.bars.shape[0] == 0 or cholesky_shifted(stages.schur, 0.0, stages.schur_factor)


@compiled
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


@compiled
def implicit_slope(network, nodes, rest_lengths, rates, accelerated, step, room, stages, out):
    """Fill out (2, n, 3) with k of (1 - g h W) k = (rates, accelerated), W the Jacobian with bars held straight."""
    ahead, position = GAMMA * step, network.position
    # M k_v + g h C k_v + (g h)^2 K k_v = M a - g h K rates, and J k_v = J a
    stages.right[:] = 0.0
    unit = np.empty(3)
    for k in range(network.members.shape[0]):
        if network.stiffness[k] == 0.0 or (network.unilateral[k] and room.lengths[k] <= rest_lengths[k]):
            continue
        i, j = network.members[k, 0], network.members[k, 1]
        along = 0.0
        for a in range(3):
            unit[a] = (nodes[i, a] - nodes[j, a]) / room.lengths[k]
            along += unit[a] * (rates[i, a] - rates[j, a])
        density = max(0.0, room.tensions[k]) / room.lengths[k]
        for a in range(3):
            force = (network.stiffness[k] - density) * along * unit[a] + density * (rates[i, a] - rates[j, a])
            if position[i] >= 0:
                stages.right[position[i] + a] -= ahead * force
            if position[j] >= 0:
                stages.right[position[j] + a] += ahead * force
    for i in range(nodes.shape[0]):
        if position[i] >= 0:
            for a in range(3):
                stages.right[position[i] + a] += accelerated[i, a] / network.inverse_mass[i]
    cholesky_apply(stages.factor, stages.right, stages.solved)
    count = network.bars.shape[0]
    if count > 0:
        for c in range(count):
            i, j = network.members[network.bars[c], 0], network.members[network.bars[c], 1]
            wanted = 0.0
            for a in range(3):
                wanted += room.units[c, a] * (accelerated[i, a] - accelerated[j, a])
            stages.bar_right[c] = wanted - along_bar(network, room.units, c, stages.solved)
        cholesky_apply(stages.schur_factor, stages.bar_right, stages.bar_right)
        for c in range(count):
            for f in range(stages.solved.shape[0]):
                stages.solved[f] += stages.columns[c, f] * stages.bar_right[c]
    out[:, :, :] = 0.0
    for i in range(nodes.shape[0]):
        if position[i] >= 0:
            for a in range(3):
                out[1, i, a] = stages.solved[position[i] + a]
                out[0, i, a] = rates[i, a] + ahead * out[1, i, a]


@compiled
def implicit(network, spools, nodes, velocities, rest_lengths, step, count, room, stages):
    """Advance in place by `count` steps of ROS2, a Rosenbrock method of order 2 for any approximate Jacobian.

    (1 - g h W) k1 = f(u), (1 - g h W) k2 = f(u + h k1) - 2 k1, u += h (3 k1 + k2) / 2, g = 1 - 1/sqrt 2 (Verwer et
    al. 1999). Motions much faster than the step are damped out; slower ones keep their energy to second order.
    """
    first, second = stages.first, stages.second
    spring_forces(network, nodes, velocities, rest_lengths, room)
    for _ in range(count):
        set_speeds(spools, rest_lengths, room.tensions, step, room.rest_rates)
        independent, lost = accelerations(network, nodes, velocities, rest_lengths, room)
        if not independent:
            return DEPENDENT_BARS
        stages.work[0] += 0.5 * step * winding_power(spools, room.tensions)
        stages.work[1] += 0.5 * step * lost
        if not fill_system(network, nodes, rest_lengths, step, room, stages):
            return DEPENDENT_BARS
        stages.position_sum[:, :] = velocities
        stages.velocity_sum[:, :] = room.acceleration
        # keep what the system was built from: the second stage uses the same Jacobian
        implicit_slope(
            network, nodes, rest_lengths, stages.position_sum, stages.velocity_sum, step, room, stages, first
        )
        stages.rest[:] = rest_lengths
        wind(spools, stages.rest, step)
        for i in range(nodes.shape[0]):
            for a in range(3):
                stages.nodes[i, a] = nodes[i, a] + step * first[0, i, a]
                stages.velocities[i, a] = velocities[i, a] + step * first[1, i, a]
        independent, _ = accelerations(network, stages.nodes, stages.velocities, stages.rest, room)
        if not independent:
            return DEPENDENT_BARS
        for i in range(nodes.shape[0]):
            for a in range(3):
                stages.position_sum[i, a] = stages.velocities[i, a] - 2.0 * first[0, i, a]
                stages.velocity_sum[i, a] = room.acceleration[i, a] - 2.0 * first[1, i, a]
        bar_units(network, nodes, room.units)
        spring_forces(network, nodes, velocities, rest_lengths, room)
        implicit_slope(
            network, nodes, rest_lengths, stages.position_sum, stages.velocity_sum, step, room, stages, second
        )
        for i in range(nodes.shape[0]):
            for a in range(3):
                nodes[i, a] += step * (1.5 * first[0, i, a] + 0.5 * second[0, i, a])
                velocities[i, a] += step * (1.5 * first[1, i, a] + 0.5 * second[1, i, a])
        wind(spools, rest_lengths, step)
        status, lost = finish(network, nodes, velocities, rest_lengths, room, stages)
        if status != DONE:
            return status
        stages.work[0] += 0.5 * step * winding_power(spools, room.tensions)
        stages.work[1] += 0.5 * step * lost
        if not np.isfinite(nodes[0, 0] + nodes[-1, 2]):
            return LOST
    return DONE


INTEGRATORS = {"rk4": runge_kutta, "rattle": rattle, "implicit": implicit}
