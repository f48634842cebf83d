"""Integration steps of a network of point masses: Runge-Kutta, RATTLE and an implicit method, compiled.

| name | order | use |
| --- | --- | --- |
| rk4 | 4 | short runs and damped motion; bars and velocities projected after every step |
| rattle | 2, symplectic without damping | long runs without damping: the energy error stays bounded |
| implicit | 2, L-stable (BDF2) | strings much stiffer than the motion of interest: steps above the shortest period |

If a string becomes slack or taut within a step, every method loses order. At the start of every step, `work` contains
the tensions of the start, which determine the spool speeds; at the end it contains those of the end. So one call with
many steps and many calls with one step give bitwise equal results.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ...numerics.compilation import compiled, for_compiled_callers
from .bar_constraints import close_bars, couple_bars, project_velocities, push, settle_bars, settle_rates
from .momentum import add_angular_momentum, add_torque, is_free, restore_angular_momentum
from .plant import BAD_SET_POINT, checked_end, take_set_points
from .point_masses import (
    DEPENDENT_BARS,
    DIVERGED,
    FRICTION_POWER,
    FRICTION_STEP,
    MEAN,
    Network,
    accelerations,
    add_friction,
    is_damped,
    rub,
    spring_forces,
)
from .rod_masses import add_inverse_mass, kinetic_energy
from .spools import set_speeds, wind, winding_power

StageWorkspace = namedtuple(
    "StageWorkspace",
    "nodes velocities position_sum velocity_sum rest totals system factor right solved columns schur "
    "schur_factor bar_right bar_forces former has_former tight work turning"
)  # fmt: skip


def make_stage_workspace(network: Network, integrator: str) -> StageWorkspace:
    """Scratch arrays of the integrators, and their data between steps.

    `former` (2, n, 3) is the BDF2 state before the last step, and `has_former` (1,) whether there is one (0 at a
    start). `tight` (m + n,) marks the taut strings and the nodes that touch the ground. `work` (3,) accumulates the
    work of the spools, the dissipation of damping and friction together, and that of friction alone [J]. `turning` (8,
    3) begins with the required angular momentum [N m s].
    """
    n, m, c = network.node_masses.size, network.members.shape[0], network.bars.size
    f, d = (network.free.size, c) if integrator == "implicit" else (0, 0)  # explicit methods need no matrices
    return StageWorkspace(
        nodes=np.zeros((n, 3)), velocities=np.zeros((n, 3)), position_sum=np.zeros((n, 3)),
        velocity_sum=np.zeros((n, 3)), rest=np.zeros(m), totals=np.zeros(c),
        system=np.zeros((f, f)), factor=np.zeros((f, f)), right=np.zeros(f), solved=np.zeros(f),
        columns=np.zeros((d, f)), schur=np.zeros((d, d)), schur_factor=np.zeros((d, d)), bar_right=np.zeros(c),
        bar_forces=np.zeros(c), former=np.zeros((2, n, 3)), has_former=np.zeros(1, dtype=np.int64),
        tight=np.zeros(m + n, dtype=np.bool_), work=np.zeros(3),
        turning=np.zeros((8, 3)),
    )  # fmt: skip


@for_compiled_callers
def start_rods(network, spools, nodes, velocities, rest_lengths, step, work, stages):
    """`set_speeds` for driven rigid bars: the speeds depend on their forces, and a new rate is an impulse along the
    bar.

    Afterwards, work contains forces and tensions of the start of the step. Returns (whether the bars are independent,
    dissipated power).
    """
    independent, lost = accelerations(network, nodes, velocities, rest_lengths, work)
    if not independent:
        return False, lost
    if set_speeds(spools, rest_lengths, work.tensions, step, work.rest_rates):
        if not network.gains[0] > 0.0:
            before = kinetic_energy(network, velocities)
            if not project_velocities(network, nodes, velocities, work):
                return False, lost
            stages.work[0] += kinetic_energy(network, velocities) - before
        return accelerations(network, nodes, velocities, rest_lengths, work)
    return True, lost


@for_compiled_callers
def extend_bars(network, rest_lengths):
    """Set the lengths of the bars from those of all members, for driven rods."""
    for c in range(network.bars.shape[0]):
        network.bar_lengths[c] = rest_lengths[network.bars[c]]


@compiled
def runge_kutta(plant, mode, set_points, step, count):
    """Advance in place by `count` steps; returns a status. Friction as in `rattle`."""
    if not take_set_points(plant, mode, set_points):
        return BAD_SET_POINT
    network, spools, nodes, velocities = plant.network, plant.spools, plant.nodes, plant.velocities
    rest_lengths, work, stages = plant.rest_lengths, plant.work, plant.stages
    rubs, closes = network.ground.shape[0] > 0, not network.gains[0] > 0.0
    due, turns = stages.turning[0], closes and is_free(network)
    work.horizon[FRICTION_STEP] = step if rubs else 0.0
    spring_forces(network, nodes, velocities, rest_lengths, work)
    for _ in range(count):
        if spools.rods[0] > 0:
            independent, lost = start_rods(network, spools, nodes, velocities, rest_lengths, step, work, stages)
        else:
            set_speeds(spools, rest_lengths, work.tensions, step, work.rest_rates)
            independent, lost = accelerations(network, nodes, velocities, rest_lengths, work)
        if not independent:
            return DEPENDENT_BARS
        work.ground[:, MEAN:] = 0.0
        stages.rest[:] = rest_lengths
        stages.nodes[:, :] = nodes
        stages.velocities[:, :] = velocities
        stages.position_sum[:, :] = nodes
        stages.velocity_sum[:, :] = velocities
        if turns:
            due[0] = due[1] = due[2] = 0.0
            add_angular_momentum(network, nodes, velocities, 1.0, due)
        for stage in range(4):
            if stage > 0:
                independent, lost = accelerations(network, stages.nodes, stages.velocities, stages.rest, work)
                if not independent:
                    return DEPENDENT_BARS
            weight = step / 6.0 if stage == 0 or stage == 3 else step / 3.0
            stages.work[0] += weight * winding_power(spools, work.tensions)
            stages.work[1] += weight * lost
            if rubs:
                add_friction(work, stages, step, weight / step)
            if turns:
                add_torque(stages.nodes, work.forces, weight, due)
            ahead = step if stage == 2 else 0.5 * step
            if stage == 0 or stage == 2:
                wind(spools, stages.rest, 0.5 * step)
            for i in range(nodes.shape[0]):
                for a in range(3):
                    stages.position_sum[i, a] += weight * stages.velocities[i, a]
                    stages.velocity_sum[i, a] += weight * work.acceleration[i, a]
                    stages.nodes[i, a] = nodes[i, a] + ahead * stages.velocities[i, a]
                    stages.velocities[i, a] = velocities[i, a] + ahead * work.acceleration[i, a]
        nodes[:, :] = stages.position_sum
        velocities[:, :] = stages.velocity_sum
        wind(spools, rest_lengths, step)
        if spools.rods[0] > 0:
            extend_bars(network, rest_lengths)
        if closes:
            independent, gap = settle_bars(network, nodes, velocities, work, stages.totals)
            if not independent:
                return DEPENDENT_BARS
            if not gap < 1e-10:
                return DIVERGED
        if turns:
            restore_angular_momentum(network, nodes, velocities, due, stages.turning[1:])
        spring_forces(network, nodes, velocities, rest_lengths, work)
        if rubs:
            if not (closes or couple_bars(network, nodes, work)):
                return DEPENDENT_BARS
            rub_step(network, velocities, step, work, stages)
            spring_forces(network, nodes, velocities, rest_lengths, work)
    return checked_end(nodes)


@for_compiled_callers
def rub_step(network, velocities, step, work, stages):
    """Friction of sticking nodes at the end of a step, after all other forces; its dissipation is added to stages.work.

    The bar coupling is that of the last `couple_bars`."""
    before = kinetic_energy(network, velocities)
    rub(network, velocities, step, work)
    settle_rates(network, velocities, work)
    drop = before - kinetic_energy(network, velocities)
    stages.work[1] += drop
    stages.work[2] += drop


@compiled
def rattle(plant, mode, set_points, step, count):
    """Advance in place by `count` steps of velocity Verlet with bars (RATTLE; Andersen 1983).

    Dampers and friction at the end of a step use an extrapolated velocity, which keeps the second order. Sticking feet
    keep the friction of the last step, which is corrected implicitly at the end (`rub`). So friction does not limit the
    step, and sticking feet do not creep.
    """
    if not take_set_points(plant, mode, set_points):
        return BAD_SET_POINT
    network, spools, nodes, velocities = plant.network, plant.spools, plant.nodes, plant.velocities
    rest_lengths, work, stages = plant.rest_lengths, plant.work, plant.stages
    damped, rubs, drives = is_damped(network), network.ground.shape[0] > 0, spools.rods[0] > 0
    work.horizon[FRICTION_STEP] = step if rubs else 0.0
    lost = spring_forces(network, nodes, velocities, rest_lengths, work)
    if not couple_bars(network, nodes, work):
        return DEPENDENT_BARS
    for _ in range(count):
        if drives:
            independent, lost = start_rods(network, spools, nodes, velocities, rest_lengths, step, work, stages)
            if not independent:
                return DEPENDENT_BARS
        elif set_speeds(spools, rest_lengths, work.tensions, step, work.rest_rates) and damped:
            lost = spring_forces(network, nodes, velocities, rest_lengths, work)
        stages.work[0] += 0.5 * step * winding_power(spools, work.tensions)
        stages.work[1] += 0.5 * step * lost
        if rubs:
            work.ground[:, MEAN:] = 0.0
            add_friction(work, stages, step, 0.5)
        stages.velocities[:, :] = velocities
        add_inverse_mass(network, work.forces, 0.5 * step, velocities)
        for i in range(nodes.shape[0]):
            for a in range(3):
                nodes[i, a] += step * velocities[i, a]
        wind(spools, rest_lengths, step)
        if drives:
            extend_bars(network, rest_lengths)
        stages.totals[:] = 0.0
        # bar forces at the start of the step give the bars their lengths at its end
        if not close_bars(network, nodes, stages.totals, work) < 1e-10:
            return DIVERGED
        push(network, work.units, stages.totals, 1.0 / step, velocities)
        for i in range(nodes.shape[0]):
            for a in range(3):
                stages.velocities[i, a] = 2.0 * velocities[i, a] - stages.velocities[i, a]
        lost = spring_forces(network, nodes, stages.velocities, rest_lengths, work)
        add_inverse_mass(network, work.forces, 0.5 * step, velocities)
        if not couple_bars(network, nodes, work):
            return DEPENDENT_BARS
        settle_rates(network, velocities, work)
        if rubs:
            add_friction(work, stages, 0.0, 0.5)
            rub_step(network, velocities, step, work, stages)
        if drives:
            independent, lost = accelerations(network, nodes, velocities, rest_lengths, work)
        elif damped or rubs:
            lost = spring_forces(network, nodes, velocities, rest_lengths, work)
        if rubs:
            stages.work[2] += 0.5 * step * work.horizon[FRICTION_POWER]
        stages.work[0] += 0.5 * step * winding_power(spools, work.tensions)
        stages.work[1] += 0.5 * step * lost
    return checked_end(nodes)
