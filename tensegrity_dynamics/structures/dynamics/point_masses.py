"""Point masses at the nodes, bars as constraints (003, section 3.4, corrected).

    M a = F + J' t,   J a = -|w|^2 / l

F holds strings with damping, weight, applied forces and drag; J the unit vectors of the bars, t their (compressive)
forces and w the part of the ends' relative velocity square to the bar; M is that of `rod_masses`. Multiplied with the
bar length this is 003, 3.26 to 3.37; instead of the printed stabilisation (whose sign is wrong in 3.37) positions and
velocities are projected after every step, so that no drift is left to stabilise. With gains k_s and k_d it is 3.36 as
printed, for bars that move too (L' their rate):

    J a = (L'^2 - |v|^2 - k_s G / 2 - k_d G' / 2) / l,   G = l^2 - L^2,   G' = 2 (l u v - L L')

(J M^-1 J') is block diagonal, a block for each group of bars that share free nodes; its Cholesky factor keeps that
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
"""How a compiled run of steps ended: all steps taken; rigid bars whose lengths follow from each other; numbers that are
not finite, or bars that cannot be closed."""

Network = namedtuple(
    "Network",
    "members stiffness damping laws node_masses spread inverse_first inverse_node inverse_value weight load drag bars "
    "bar_lengths first shared gains free position ground "
    "collisions",
)
"""A structure for the compiled steps: springs are all members whose stiffness is not zero here; `bars` are constraints
of `bar_lengths` (c,) m, which driven ones change, `first` the start of each bar's block; masses as `rod_masses` makes
them; `load` (n, 3) N is weight and applied forces, `drag` (n,) N s/m of the air; `gains` (3,): above zero where the
bars are held by k_s and k_d, these two; `ground` as `flatten` makes it, `collisions` as `flatten_collision`; `position`
(n,) the first of each node's free coordinates, below zero where it is fixed; with rollers its sign alone counts."""

Workspace = namedtuple(
    "Workspace",
    "forces acceleration units matrix factor right multipliers lengths tensions rest_rates catching horizon ground",
)
"""Scratch arrays, what was last evaluated, and: rest_rates (m,) m/s of the spools; catching (m,) where the horizon
limits a damper; horizon (3,): see `spring_forces` [s], power of friction [W], and the step [s] of an explicit
integrator, zero elsewhere; ground (n, 18): of every node the force of the ground on it, `away` and `out` of
`point_force`, and of an explicit integrator the friction [N] that it goes on with (`held_friction`) and its mean over
the step. Few arrays, because compiled functions hand over every one of them."""
HORIZON, FRICTION_POWER, FRICTION_STEP = 0, 1, 2
CONTACT, AWAY, TOUCH, HELD, MEAN, ROW = 0, 3, 6, 12, 15, 18
NORMAL_FORCE, DAMPER_POWER, RUB_POWER, LAW_SLOPE, DAMPER, RUB = 6, 7, 8, 9, 10, 11
SLIPS = 0.5
"""Part of its sliding speed that friction takes from a node in a step, below which it is a force like any other."""


def make_network(
    structure: Structure,
    *,
    rigid_bars: bool = True,
    air_damping: float = 0.0,
    rod_mass: str = "spread",
    stabilisation: tuple[float, float] | None = None,
) -> Network:
    """The network of a structure.

    Args:
        rigid_bars: bars are constraints, else springs. air_damping: N s/m on every free node.
        rod_mass: where the mass of bars is, "spread" along them or at their "ends".
        stabilisation: k_s [1/s^2] and k_d [1/s] of 003, 3.36, instead of projection.

    Raises:
        TensegrityError: a free node has no mass (it is named), or too many rods hang together.
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
    """Bars ordered by groups that share free nodes, and where each bar's group starts."""
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
    """Fill work.forces (n, 3) N: load, drag and strings; lengths and tensions of all members (bars: zero tension).

    Damping acts on the rate of stretch: length rate less work.rest_rates, what the spool gives out.

    Returns the power [W] that damping takes out. A slack string carries nothing, and the sum of elasticity and damping
    of a string is cut at zero: a damper never pushes. The force of a damper jumps where a string goes tight; with a
    horizon (the step of an implicit method) it acts for the part of the step in which the string was tight, so that its
    rate is at most stretch / horizon and the force continuous. A soft-plus string is damped with the part of its
    stiffness that it has there, an extension spring that closes with the part of its initial tension.
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
                elif law > HARD:  # grows with the tension until the coils are open
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
    """Add to work.forces what the ground exerts on the nodes that may move; fill work.ground and the power of friction.

    Returns the power [W] that its dampers and friction take out.
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
    """1/kg, what a node yields to a force on it alone; its bars not counted, which let it yield less."""
    value = 0.0
    for a in range(network.inverse_value.shape[0]):
        value = max(value, network.inverse_value[a, network.inverse_first[i]])
    return value


@inlined_part
def held_friction(network, i, velocity, step, here):
    """Bring here[HELD:MEAN] up to date, the friction that acts within steps of an explicit method; its power [W].

    On a node that slips it is the law's. One that sticks, or nearly, would need steps far shorter than any other force:
    it keeps the friction that held it in the last step, within the cone, until `rub` says what holds it at the end.
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
    """A part of the step's mean friction, and of its heat."""
    stages.work[2] += weight * step * work.horizon[FRICTION_POWER]
    for i in range(work.ground.shape[0]):
        for a in range(3):
            work.ground[i, MEAN + a] += weight * work.ground[i, HELD + a]


@inlined_part
def rub(network, velocities, step, work):
    """Friction at the end of a step on each node that sticks, implicitly, in place of its mean that acted in the step.

    The law at the speed that it leaves, for the whole step: stable for any step, and at rest exact, so that what sticks
    creeps by the law's own speed and no faster. `work.ground` holds the forces at the end of the step.
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
        # s (1 + ahead (e + mu N / sqrt(s^2 + v0^2))) = before: rising and bent downwards, so that Newton's method from
        # zero comes nearer from below
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
            # what is left of its velocity less what it has
            mean[a] = (part * mean[a] - velocity[a] + along * away[a]) * step / ahead
        push_node(network, i, mean[0], mean[1], mean[2], velocities)


@for_compiled_callers
def is_damped(network):
    """Whether forces depend on velocities."""
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
    """Fill work.acceleration (n, 3) m/s^2 and work.tensions with those of all members, bars included.

    Returns (independent, lost power): whether the bars were independent of each other.
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
