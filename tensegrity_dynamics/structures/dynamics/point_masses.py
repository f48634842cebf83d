"""Point masses at the nodes, bars as constraints (003, section 3.4, corrected).

    M a = F + J' t,   J a = -|w|^2 / l

F consists of strings with damping, weight, applied forces and drag. J contains the unit vectors of the bars, t their
(compressive) forces, and w is the relative velocity of the ends perpendicular to the bar. M is that of `rod_masses`.
Multiplied by the bar length, these are equations 3.26 to 3.37 of 003. Instead of the printed stabilisation (whose sign
is wrong in 3.37), positions and velocities are projected after every step, so that no drift remains. With the gains k_s
and k_d it is 3.36 as printed, also for driven bars (with the length rate L'):

    J a = (L'^2 - |v|^2 - k_s G / 2 - k_d G' / 2) / l,   G = l^2 - L^2,   G' = 2 (l u v - L L')

(J M^-1 J') is block diagonal, with a block for each group of bars that share free nodes; its Cholesky factor keeps this
envelope.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numpy.typing import NDArray

from ...contact.collision import collision_forces, flatten_collision, rod_pairs
from ...contact.ground_forces import DAMPING, FRICTION, SPEED, VISCOUS, flatten, point_force
from ...numerics.compilation import allocation_free, for_compiled_callers, inlined_part
from ..structure import Structure
from ..tension_law import HARD, tension_law
from .bar_constraints import apply_coupling, couple_bars, push
from .rod_masses import add_inverse_mass, coupling_weights, inverse_masses, push_node, split_masses

COMPLETED, DEPENDENT_BARS, DIVERGED = 0, 1, 2
"""Status of a compiled run of steps: all steps completed; dependent rigid bars; numbers that are not finite, or bars
that cannot be closed."""

Network = namedtuple(
    "Network",
    "members stiffness damping laws node_masses spread inverse_first inverse_node inverse_value weight load drag bars "
    "bar_lengths first shared gains free position ground "
    "collisions",
)
"""Structure for the compiled steps. Members with nonzero stiffness are springs. `bars` are constraints with the lengths
`bar_lengths` (c,) [m], which driven ones change; `first` is the start of the block of each bar. Masses are those of
`rod_masses`. `load` (n, 3) [N] is weight and applied forces, `drag` (n,) [N s/m] the air drag. `gains` (3,): positive
if the bars are stabilised with k_s and k_d, then these two gains. `ground` is the result of `flatten`, `collisions`
that of `flatten_collision`. `position` (n,) is the index of the first free coordinate of each node, negative for fixed
nodes; with rollers only its sign is used."""

Workspace = namedtuple(
    "Workspace",
    "forces acceleration units matrix factor right multipliers lengths tensions rest_rates catching horizon ground",
)
"""Scratch arrays, last evaluated quantities, and: rest_rates (m,) [m/s] of the spools; catching (m,): whether the
horizon limits a damper; horizon (3,): horizon of `spring_forces` [s], power of friction [W], and step of an explicit
integrator [s], zero for others; ground (n, 18): for every node the ground force, `away` and `out` of `point_force`, and
for an explicit integrator the held friction [N] (`held_friction`) and its mean over the step. The number of arrays is
small, because compiled functions pass on every one of them."""
HORIZON, FRICTION_POWER, FRICTION_STEP = 0, 1, 2
CONTACT, AWAY, TOUCH, HELD, MEAN, ROW = 0, 3, 6, 12, 15, 18
NORMAL_FORCE, DAMPER_POWER, RUB_POWER, LAW_SLOPE, DAMPER, RUB = 6, 7, 8, 9, 10, 11
SLIPS = 0.5
"""Fraction of the sliding speed that friction removes from a node in a step; below it friction is treated like any
other force."""


def make_network(
    structure: Structure,
    *,
    rigid_bars: bool = True,
    air_damping: float = 0.0,
    rod_mass: str = "spread",
    stabilisation: tuple[float, float] | None = None,
) -> Network:
    """Network of a structure.

    Args:
        rigid_bars: whether bars are constraints; else they are springs. air_damping: drag of every free node [N s/m].
        rod_mass: mass distribution of bars, "spread" along them or at their "ends".
        stabilisation: k_s [1/s^2] and k_d [1/s] of 003, 3.36, in place of projection.

    Raises:
        TensegrityError: a free node has no mass (the message contains it), or too many rods are connected.
    """
    masses, spread = split_masses(structure, rod_mass)
    inverse = inverse_masses(structure, masses, spread)
    ends_fixed = structure.fixed[structure.members]
    is_bar = ~structure.unilateral & ~ends_fixed.all(axis=1) & rigid_bars
    bars = _grouped(np.flatnonzero(is_bar), structure)
    stiffness = np.where(is_bar, 0.0, structure.stiffness)
    free = np.array(structure.free)
    position = np.full(masses.size, -1, dtype=np.int64)
    position[~structure.fixed] = 3 * np.arange(int(np.count_nonzero(~structure.fixed)))
    order, first = bars
    return Network(
        members=np.array(structure.members), stiffness=stiffness,
        damping=np.where(is_bar, 0.0, structure.damping), laws=np.array(structure.laws), node_masses=masses,
        spread=spread, inverse_first=inverse[0], inverse_node=inverse[1], inverse_value=inverse[2],
        weight=structure.weights(), load=structure.steady_forces(),
        drag=np.where(structure.fixed, 0.0, air_damping), bars=order, bar_lengths=structure.rest_lengths[order],
        first=first, shared=coupling_weights(structure.members, order, first, inverse),
        gains=np.zeros(3) if stabilisation is None else np.array([1.0, *stabilisation]),
        free=free, position=position, ground=flatten(structure.ground), collisions=_collisions(structure),
    )  # fmt: skip


def _collisions(structure: Structure) -> NDArray[np.float64]:
    if structure.collision is None:
        return flatten_collision(None, np.zeros((0, 4), dtype=np.int64))
    rods = structure.members[~structure.unilateral]
    return flatten_collision(structure.collision, rod_pairs(rods, rods, structure.fixed))


def _grouped(rows: NDArray, structure: Structure) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bars ordered by groups that share free nodes, and the start of the group of each bar."""
    group = {int(k): int(k) for k in rows}

    def root(k: int) -> int:
        while group[k] != k:
            k = group[k]
        return k

    seen: dict[int, int] = {}
    for k in map(int, rows):
        for node in map(int, structure.members[k]):
            if structure.fixed[node]:
                continue
            if node in seen:
                group[root(k)] = root(seen[node])
            seen[node] = k
    order = sorted(group, key=lambda k: (root(k), k))
    first, start = [], 0
    for i, k in enumerate(order):
        if i and root(k) != root(order[i - 1]):
            start = i
        first.append(start)
    return np.array(order, dtype=np.int64), np.array(first, dtype=np.int64)


def make_workspace(network: Network) -> Workspace:
    """Scratch arrays of one simulation."""
    n, m, c = network.node_masses.size, network.members.shape[0], network.bars.size
    return Workspace(
        forces=np.zeros((n, 3)), acceleration=np.zeros((n, 3)), units=np.zeros((c, 3)), matrix=np.zeros((c, c)),
        factor=np.zeros((c, c)), right=np.zeros(c), multipliers=np.zeros(c), lengths=np.zeros(m), tensions=np.zeros(m),
        rest_rates=np.zeros(m), catching=np.zeros(m, dtype=np.bool_), horizon=np.zeros(3),
        ground=np.zeros((n, ROW)),
    )  # fmt: skip


@allocation_free
def spring_forces(network, nodes, velocities, rest_lengths, work):
    """Fill work.forces (n, 3) [N] with load, drag and strings; also lengths and tensions of all members (bars: zero).

    Damping acts on the elongation rate: length rate minus work.rest_rates, the rate of the spool.

    Returns the power [W] dissipated by damping. A slack string has no tension, and the sum of elastic and damping force
    of a string is limited to at least zero: a damper never pushes. The force of a damper jumps when a string becomes
    taut. With a horizon (the step of an implicit method), it acts only for the fraction of the step in which the string
    was taut, so that its rate is at most elongation / horizon, and the force is continuous. The damping of a soft-plus
    string is scaled by its present stiffness relative to K, and that of a closing extension spring by its tension
    relative to the initial tension.
    """
    forces, lengths, tensions = work.forces, work.lengths, work.tensions
    lost = 0.0
    for i in range(nodes.shape[0]):
        drag = network.drag[i]
        for a in range(3):
            forces[i, a] = network.load[i, a] - drag * velocities[i, a]
            lost += drag * velocities[i, a] * velocities[i, a]
    for k in range(network.members.shape[0]):
        i, j = network.members[k, 0], network.members[k, 1]
        x, y, z = nodes[i, 0] - nodes[j, 0], nodes[i, 1] - nodes[j, 1], nodes[i, 2] - nodes[j, 2]
        length = np.sqrt(x * x + y * y + z * z)
        lengths[k] = length
        tensions[k] = 0.0
        work.catching[k] = False
        if network.stiffness[k] == 0.0:
            continue
        stretch, law = length - rest_lengths[k], network.laws[k]
        tension, slope, _ = tension_law(law, network.stiffness[k], stretch)
        if law > 0.0 and tension <= 0.0:
            continue
        shrink = 1.0 / length
        x, y, z = shrink * x, shrink * y, shrink * z
        if network.damping[k] > 0.0:
            rate = (
                x * (velocities[i, 0] - velocities[j, 0])
                + y * (velocities[i, 1] - velocities[j, 1])
                + z * (velocities[i, 2] - velocities[j, 2])
                - work.rest_rates[k]
            )
            if law == HARD and rate * work.horizon[0] > stretch:
                work.catching[k] = True
                damped = tension + network.damping[k] * stretch / work.horizon[0]
            else:
                part = 1.0
                if law < 0.0:
                    part = slope / network.stiffness[k]
                elif law > HARD:  # increases with the tension until the coils are open
                    part = min(1.0, tension / (network.stiffness[k] * (law - HARD)))
                damped = tension + network.damping[k] * part * rate
            if law != 0.0 and damped < 0.0:
                damped = 0.0
            lost += (damped - tension) * rate
            tension = damped
        tensions[k] = tension
        forces[i, 0] -= tension * x
        forces[i, 1] -= tension * y
        forces[i, 2] -= tension * z
        forces[j, 0] += tension * x
        forces[j, 1] += tension * y
        forces[j, 2] += tension * z
    if network.ground.shape[0] > 0:
        lost += ground_forces(network, nodes, velocities, work)
    if network.collisions.shape[0] > 0:
        lost += collision_forces(network.collisions, nodes, velocities, forces)
    return lost


@inlined_part
def ground_forces(network, nodes, velocities, work):
    """Add the ground forces on the free nodes to work.forces; fill work.ground and the power of friction.

    Returns the power [W] dissipated by damping and friction of the ground.
    """
    lost, rubbed = 0.0, 0.0
    step = work.horizon[FRICTION_STEP]
    for i in range(nodes.shape[0]):
        if network.position[i] < 0:
            continue
        here = work.ground[i]
        away, force = here[AWAY:TOUCH], here[CONTACT:AWAY]
        touches = point_force(
            network.ground, nodes[i, 0], nodes[i, 1], nodes[i, 2], velocities[i], work.horizon[HORIZON], away, force,
            here[TOUCH:],
        )  # fmt: skip
        if not touches:
            for a in range(3):
                here[HELD + a] = 0.0
            continue
        lost += here[DAMPER_POWER]
        if step > 0.0:
            rubbed += held_friction(network, i, velocities[i], step, here)
            push = here[NORMAL_FORCE] / np.sqrt(away[0] * away[0] + away[1] * away[1] + away[2] * away[2])
            for a in range(3):
                work.forces[i, a] += push * away[a] + here[HELD + a]
            continue
        rubbed += here[RUB_POWER]
        for a in range(3):
            work.forces[i, a] += force[a]
    work.horizon[FRICTION_POWER] = rubbed
    return lost + rubbed


@inlined_part
def mobility(network, i):
    """Mobility of a node [1/kg]: acceleration per force on this node alone, without its bars, which would reduce it."""
    value = 0.0
    for a in range(network.inverse_value.shape[0]):
        value = max(value, network.inverse_value[a, network.inverse_first[i]])
    return value


@inlined_part
def held_friction(network, i, velocity, step, here):
    """Update here[HELD:MEAN], the friction within steps of an explicit method; returns its power [W].

    For a slipping node it is that of the friction law. A (nearly) sticking node would need much shorter steps than
    other forces: it keeps the friction of the last step, within the friction cone, until `rub` computes the friction at
    the end of the step.
    """
    away = here[AWAY:TOUCH]
    square = away[0] * away[0] + away[1] * away[1] + away[2] * away[2]
    if step * mobility(network, i) * here[RUB] < SLIPS:
        push = here[NORMAL_FORCE] / np.sqrt(square)
        for a in range(3):
            here[HELD + a] = here[CONTACT + a] - push * away[a]
        return here[RUB_POWER]
    along, size, speed, power = 0.0, 0.0, 0.0, 0.0
    for a in range(3):
        along += here[HELD + a] * away[a] / square
    for a in range(3):
        here[HELD + a] -= along * away[a]
        size += here[HELD + a] * here[HELD + a]
        speed += velocity[a] * velocity[a]
    most = network.ground[FRICTION] * here[NORMAL_FORCE] + network.ground[VISCOUS] * np.sqrt(speed)
    part = min(1.0, most / np.sqrt(size)) if size > 0.0 else 0.0
    for a in range(3):
        here[HELD + a] *= part
        power -= here[HELD + a] * velocity[a]
    return power


@inlined_part
def add_friction(work, stages, step, weight):
    """Add a weighted contribution to the mean friction of the step, and to its dissipation."""
    stages.work[2] += weight * step * work.horizon[FRICTION_POWER]
    for i in range(work.ground.shape[0]):
        for a in range(3):
            work.ground[i, MEAN + a] += weight * work.ground[i, HELD + a]


@inlined_part
def rub(network, velocities, step, work):
    """Implicit friction on each sticking node at the end of a step, in place of the mean friction during the step.

    It is the friction law at the resulting speed, applied for the whole step: stable for any step, and exact at rest,
    so that sticking nodes creep at the speed of the law and no faster. `work.ground` contains the forces at the end of
    the step.
    """
    mu, slow, viscous = network.ground[FRICTION], network.ground[SPEED], network.ground[VISCOUS]
    for i in range(velocities.shape[0]):
        here, velocity = work.ground[i], velocities[i]
        normal = here[NORMAL_FORCE]
        if network.position[i] < 0 or not normal > 0.0:
            continue
        ahead = step * mobility(network, i)
        if not ahead * here[RUB] >= SLIPS:
            continue
        away, mean = here[AWAY:TOUCH], here[MEAN:ROW]
        square = away[0] * away[0] + away[1] * away[1] + away[2] * away[2]
        along, pulled = 0.0, 0.0
        for a in range(3):
            along += velocity[a] * away[a] / square
            pulled += mean[a] * away[a] / square
        before = 0.0
        for a in range(3):
            mean[a] = velocity[a] - along * away[a] - ahead * (mean[a] - pulled * away[a])  # without friction
            before += mean[a] * mean[a]
        before = np.sqrt(before)
        if not before > 0.0:
            continue
        # s (1 + ahead (e + mu N / sqrt(s^2 + v0^2))) = before: increasing and concave, so that Newton's method from
        # zero converges from below
        after = 0.0
        for _ in range(60):
            root = np.sqrt(after * after + slow * slow)
            miss = after * (1.0 + ahead * (viscous + mu * normal / root)) - before
            change = -miss / (1.0 + ahead * (viscous + mu * normal * slow * slow / (root * root * root)))
            after += change
            if abs(change) <= 1e-14 * before:
                break
        part = min(max(after, 0.0), before) / before
        for a in range(3):
            here[HELD + a] = (part - 1.0) * mean[a] / ahead
            # resulting velocity minus present velocity
            mean[a] = (part * mean[a] - velocity[a] + along * away[a]) * step / ahead
        push_node(network, i, mean[0], mean[1], mean[2], velocities)


@for_compiled_callers
def is_damped(network):
    """Whether any force depends on velocities."""
    if network.ground.shape[0] > 0 and network.ground[DAMPING] > 0.0:
        return True
    if network.collisions.shape[0] > 0 and network.collisions[0, 1] > 0.0:
        return True
    for k in range(network.damping.shape[0]):
        if network.damping[k] > 0.0:
            return True
    for i in range(network.drag.shape[0]):
        if network.drag[i] > 0.0:
            return True
    return False


@allocation_free
def accelerations(network, nodes, velocities, rest_lengths, work):
    """Fill work.acceleration (n, 3) [m/s^2] and work.tensions [N] of all members, including bars.

    Returns whether the bars are independent, and the dissipated power [W].
    """
    lost = spring_forces(network, nodes, velocities, rest_lengths, work)
    for i in range(nodes.shape[0]):
        for a in range(3):
            work.acceleration[i, a] = 0.0
    add_inverse_mass(network, work.forces, 1.0, work.acceleration)
    if network.bars.shape[0] == 0:
        return True, lost
    if not couple_bars(network, nodes, work):
        return False, lost
    for c in range(network.bars.shape[0]):
        k = network.bars[c]
        i, j = network.members[k, 0], network.members[k, 1]
        along, square, relative = 0.0, 0.0, 0.0
        for a in range(3):
            rate = velocities[i, a] - velocities[j, a]
            along += work.units[c, a] * rate
            square += rate * rate
            relative += work.units[c, a] * (work.acceleration[i, a] - work.acceleration[j, a])
        length = work.lengths[k]
        if network.gains[0] > 0.0:
            goal, moved = network.bar_lengths[c], work.rest_rates[k]
            miss, rate = length * length - goal * goal, 2.0 * (length * along - goal * moved)
            pull = 0.5 * (network.gains[1] * miss + network.gains[2] * rate)
            work.right[c] = (moved * moved - square - pull) / length - relative
        else:
            work.right[c] = -(square - along * along) / length - relative
    apply_coupling(network, work.right, work)
    push(network, work.units, work.multipliers, 1.0, work.acceleration)
    for c in range(network.bars.shape[0]):
        work.tensions[network.bars[c]] = -work.multipliers[c]
    return True, lost
