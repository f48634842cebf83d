"""Rods with five coordinates each: centre of mass and two angles (003, section 3.3, corrected).

    u = (cos theta sin phi, sin theta sin phi, cos phi),   n+ = c + p u,   n- = c - r u
    m c'' = F+ + F-,   J sin^2(phi) theta'' = Q_theta - 2 J phi' theta' sin(phi) cos(phi)
    J phi'' = Q_phi + J theta'^2 sin(phi) cos(phi),   Q = (du/d.)' (p F+ - r F-)

(3.1 to 3.11; the forces F at the ends are those of the point-mass model, strings divided by their length.) p and r are
the distances of the ends from the centre of mass, and J is the inertia about it: m L^2/12 for a uniform rod, m L^2/4
for two end masses, and any combination of both. A rod with one fixed end rotates about this end. The model is valid for
structures in which every free node is on exactly one bar (class 1).

A rod whose length L(t) is driven stretches evenly: p = a L, r = (1 - a) L and J = j L^2 with constant a and j, so that

    J theta'' = ... - 2 J theta' L'/L,   J phi'' = ... - 2 J phi' L'/L
    t = u'(a F+ - (1 - a) F-) + j L (phi'^2 + theta'^2 sin^2(phi)) - j L''

with the tension t of the rod, which its drive has to hold (compression is negative). If its rate L' jumps, the rates of
the angles are continuous, and the work of the drive is j/2 times the change of L'^2.

At sin(phi) = 0 the equations are singular. `vertical` selects the method there:

| name | method near the polar axis of a rod |
| --- | --- |
| chart | another axis of the world becomes the polar axis: the same motion with other angles, exact |
| guard | 003, 3.3.4: the equations use a phi at least 0.08 rad away, and a theta' of at most 1 rad/s; not exact |
| none | no special method |
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

import numpy as np

from ...errors import PartError, TensegrityError, unknown_name
from ...numerics.compilation import allocation_free, compiled, for_compiled_callers
from ..structure import Structure
from .bar_constraints import couple_bars
from .explicit_integrators import extend_bars, rub_step
from .momentum import add_angular_momentum, add_torque, is_free, restore_angular_momentum
from .plant import BAD_SET_POINT, checked_end, take_set_points
from .point_masses import DEPENDENT_BARS, FRICTION_STEP, MEAN, add_friction, spring_forces
from .spools import set_speeds, wind, winding_power

VERTICAL = ("none", "chart", "guard")
NONE, CHART, GUARD = range(3)
GUARD_ANGLE, GUARD_RATE = 0.08, 1.0
"""Limits of the angle [rad] and of the rate [rad/s] of 003, section 3.3.4."""
LARGEST_COSINE = 0.9
"""Cosine of the angle to the polar axis, above which this axis is changed; the new one is at least 54.7 degrees
away."""

Rods = namedtuple(
    "Rods",
    "ends member share unit_inertia length rate mass inertia ahead behind turns vertical q rates chart uses "
    "acceleration q_stage rates_stage q_sum rates_sum"
)  # fmt: skip
"""Rods for the compiled steps: ends (r, 2) nodes, + first; member (r,) which ones; share (r,) a; unit_inertia (r,) j
[kg]; as they are now: length, ahead p and behind r (r,) m and the rate L' m/s; mass kg; inertia kg m^2; turns (r,)
about a fixed end; vertical (1,). State: q and rates (r, 5), chart (r,) which axis of the world is the polar one: 0 z,
1 x, 2 y; uses (r, 2): chart changes, and evaluations with the guard. The rest is scratch."""


def make_rods(structure: Structure, vertical: str = "chart", spread: bool = True) -> Rods:
    """Rods of a class-1 structure, at rest at its nodes.

    Args:
        vertical: see the module. spread: whether the mass of bars is distributed along them; else it is at their ends.

    Raises:
        TensegrityError: the name is unknown, or a free node is on no bar or on several (the message contains it).
    """
    if vertical not in VERTICAL:
        raise TensegrityError(unknown_name("vertical", vertical, VERTICAL))
    fixed = structure.fixed
    bars = np.flatnonzero(~structure.unilateral & ~fixed[structure.members].all(axis=1))
    for i in np.flatnonzero(~fixed):
        own = [structure.member_names[k] for k in bars if i in structure.members[k]]
        if len(own) != 1:
            found = f"{len(own)} bars ({', '.join(own)})" if own else "no bar"
            raise PartError(
                f"node {structure.node_names[i]} is on {found}: the model of minimal coordinates needs every free node "
                "on exactly one bar (class 1). Use model 'point_masses'.",
                "nodes",
                structure.node_names[i],
            )
    lumped, count = structure.lumped_masses(), bars.size
    ends = np.array(structure.members[bars], dtype=np.int64).reshape(count, 2)
    length = np.array(structure.rest_lengths[bars])
    own_mass = structure.masses[bars] if spread else np.zeros(count)
    first, second = (lumped[ends[:, e]] - 0.5 * own_mass for e in (0, 1))  # masses at the ends only
    mass = first + second + own_mass
    ahead = length * (second + 0.5 * own_mass) / mass
    behind = length - ahead
    turns = fixed[ends].any(axis=1)
    for end, arm, other in ((0, ahead, behind), (1, behind, ahead)):
        held = fixed[ends[:, end]]
        arm[held], other[held] = 0.0, length[held]
    # the mass at a fixed end is carried there: its lever arm is zero
    inertia = first * ahead**2 + second * behind**2 + own_mass * (ahead**2 - ahead * behind + behind**2) / 3.0
    zeros = [np.zeros((count, 5)) for _ in range(7)]
    rods = Rods(
        ends=ends, member=np.array(bars, dtype=np.int64), share=ahead / length, unit_inertia=inertia / length**2,
        length=length, rate=np.zeros(count), mass=mass, inertia=inertia, ahead=ahead, behind=behind, turns=turns,
        vertical=np.array([VERTICAL.index(vertical)], dtype=np.int64), q=zeros[0], rates=zeros[1],
        chart=np.zeros(count, dtype=np.int64), uses=np.zeros((count, 2), dtype=np.int64), acceleration=zeros[2],
        q_stage=zeros[3], rates_stage=zeros[4], q_sum=zeros[5], rates_sum=zeros[6],
    )  # fmt: skip
    read_rods(rods, np.array(structure.nodes), np.zeros(structure.nodes.shape))
    return rods


@allocation_free
def stretch_rods(rods, rest_lengths, rest_rates):
    """Set lengths [m] and rates [m/s] of the rods from those of the members (m,); returns the supplied energy [J]."""
    gained = 0.0
    for r in range(rods.length.shape[0]):
        length, rate = rest_lengths[rods.member[r]], rest_rates[rods.member[r]]
        gained += 0.5 * rods.unit_inertia[r] * (rate * rate - rods.rate[r] * rods.rate[r])
        rods.length[r], rods.rate[r] = length, rate
        rods.ahead[r] = rods.share[r] * length
        rods.behind[r] = length - rods.ahead[r]
        rods.inertia[r] = rods.unit_inertia[r] * length * length
    return gained


@for_compiled_callers
def rod_tensions(rods, q, rates, forces, tensions):
    """Fill the tensions (m,) [N] of the rods at constant length rates, from the forces (n, 3) [N] at their ends."""
    for r in range(q.shape[0]):
        i, j, chart, share = rods.ends[r, 0], rods.ends[r, 1], rods.chart[r], rods.share[r]
        s_t, c_t, s_p, c_p = np.sin(q[r, 3]), np.cos(q[r, 3]), np.sin(q[r, 4]), np.cos(q[r, 4])
        a, b, c = chart % 3, (1 + chart) % 3, (2 + chart) % 3
        tension = c_t * s_p * (share * forces[i, a] - (1.0 - share) * forces[j, a])
        tension += s_t * s_p * (share * forces[i, b] - (1.0 - share) * forces[j, b])
        tension += c_p * (share * forces[i, c] - (1.0 - share) * forces[j, c])
        turning = rates[r, 4] * rates[r, 4] + rates[r, 3] * rates[r, 3] * s_p * s_p
        tensions[rods.member[r]] = tension + rods.unit_inertia[r] * rods.length[r] * turning


@allocation_free
def fill_rod_ends(rods, q, rates, nodes, velocities):
    """Fill nodes and velocities (n, 3) of the rod ends from q and rates (r, 5) (3.10)."""
    for r in range(q.shape[0]):
        i, j, chart = rods.ends[r, 0], rods.ends[r, 1], rods.chart[r]
        s_t, c_t, s_p, c_p = np.sin(q[r, 3]), np.cos(q[r, 3]), np.sin(q[r, 4]), np.cos(q[r, 4])
        for a in range(3):
            if a == 0:
                u, along_t, along_p = c_t * s_p, -s_t * s_p, c_t * c_p
            elif a == 1:
                u, along_t, along_p = s_t * s_p, c_t * s_p, s_t * c_p
            else:
                u, along_t, along_p = c_p, 0.0, -s_p
            rate = along_t * rates[r, 3] + along_p * rates[r, 4] + rods.rate[r] / rods.length[r] * u
            w = (a + chart) % 3
            nodes[i, w] = q[r, w] + rods.ahead[r] * u
            nodes[j, w] = q[r, w] - rods.behind[r] * u
            velocities[i, w] = rates[r, w] + rods.ahead[r] * rate
            velocities[j, w] = rates[r, w] - rods.behind[r] * rate


@for_compiled_callers
def read_angles(rods, r, x, y, z, dx, dy, dz):
    """Angles and angle rates of rod r from its direction and the rate of its direction, in the axes of its chart."""
    s = np.sqrt(x * x + y * y)
    rods.q[r, 3], rods.q[r, 4] = np.arctan2(y, x), np.arctan2(s, z)
    if s > 0.0:
        rods.rates[r, 3] = (x * dy - y * dx) / (s * s)
        rods.rates[r, 4] = z * (x * dx + y * dy) / s - s * dz
    else:  # at the pole: along the meridian of its motion
        rods.q[r, 3] = np.arctan2(dy, dx)
        rods.rates[r, 3], rods.rates[r, 4] = 0.0, z * np.sqrt(dx * dx + dy * dy)


@allocation_free
def read_rods(rods, nodes, velocities):
    """Fill the state of the rods from nodes and velocities (n, 3) that are consistent with the rod lengths."""
    for r in range(rods.q.shape[0]):
        i, j, chart, length = rods.ends[r, 0], rods.ends[r, 1], rods.chart[r], rods.ahead[r] + rods.behind[r]
        for a in range(3):
            rods.q[r, a] = (rods.behind[r] * nodes[i, a] + rods.ahead[r] * nodes[j, a]) / length
            rods.rates[r, a] = (rods.behind[r] * velocities[i, a] + rods.ahead[r] * velocities[j, a]) / length
        a, b, c = chart % 3, (1 + chart) % 3, (2 + chart) % 3
        read_angles(
            rods, r, (nodes[i, a] - nodes[j, a]) / length, (nodes[i, b] - nodes[j, b]) / length,
            (nodes[i, c] - nodes[j, c]) / length, (velocities[i, a] - velocities[j, a]) / length,
            (velocities[i, b] - velocities[j, b]) / length, (velocities[i, c] - velocities[j, c]) / length,
        )  # fmt: skip


@allocation_free
def change_charts(rods):
    """Change the polar axis of every rod near this axis to the axis that is farthest from the rod."""
    for r in range(rods.q.shape[0]):
        s_t, c_t, s_p, c_p = np.sin(rods.q[r, 3]), np.cos(rods.q[r, 3]), np.sin(rods.q[r, 4]), np.cos(rods.q[r, 4])
        if not abs(c_p) > LARGEST_COSINE:
            continue
        d_t, d_p = rods.rates[r, 3], rods.rates[r, 4]
        x, y, z = c_t * s_p, s_t * s_p, c_p
        dx, dy, dz = -y * d_t + c_t * c_p * d_p, x * d_t + s_t * c_p * d_p, -s_p * d_p
        # the one of the two other axes with the smaller component, in cyclic order
        if abs(x) <= abs(y):
            rods.chart[r] = (rods.chart[r] + 1) % 3
            read_angles(rods, r, y, z, x, dy, dz, dx)
        else:
            rods.chart[r] = (rods.chart[r] + 2) % 3
            read_angles(rods, r, z, x, y, dz, dx, dy)
        rods.uses[r, 0] += 1


@allocation_free
def rod_accelerations(rods, q, rates, forces, acceleration):
    """Fill the accelerations (r, 5) from the forces (n, 3) N at the ends (3.11)."""
    for r in range(q.shape[0]):
        i, j, chart = rods.ends[r, 0], rods.ends[r, 1], rods.chart[r]
        s_t, c_t, s_p, c_p = np.sin(q[r, 3]), np.cos(q[r, 3]), np.sin(q[r, 4]), np.cos(q[r, 4])
        d_t, d_p = rates[r, 3], rates[r, 4]
        if rods.vertical[0] == GUARD and abs(s_p) < np.sin(GUARD_ANGLE):
            s_p = np.sin(GUARD_ANGLE) if s_p >= 0.0 else -np.sin(GUARD_ANGLE)
            c_p = np.cos(GUARD_ANGLE) if c_p >= 0.0 else -np.cos(GUARD_ANGLE)
            d_t = min(max(d_t, -GUARD_RATE), GUARD_RATE)
            rods.uses[r, 1] += 1
        a, b, c = chart % 3, (1 + chart) % 3, (2 + chart) % 3
        x = rods.ahead[r] * forces[i, a] - rods.behind[r] * forces[j, a]
        y = rods.ahead[r] * forces[i, b] - rods.behind[r] * forces[j, b]
        z = rods.ahead[r] * forces[i, c] - rods.behind[r] * forces[j, c]
        inertia = rods.inertia[r]
        slowed = 2.0 * rods.rate[r] / rods.length[r]
        # the moment about the polar axis has the factor sin(phi), which cancels one of the two in the denominator
        acceleration[r, 3] = ((c_t * y - s_t * x) / inertia - 2.0 * d_p * d_t * c_p) / s_p - slowed * d_t
        acceleration[r, 4] = ((c_t * x + s_t * y) * c_p - z * s_p) / inertia + d_t * d_t * s_p * c_p - slowed * d_p
        for w in range(3):
            acceleration[r, w] = 0.0 if rods.turns[r] else (forces[i, w] + forces[j, w]) / rods.mass[r]


@compiled
def minimal_runge_kutta(plant, mode, set_points, step, count):
    """Advance the rods by `count` steps of the classical Runge-Kutta method; nodes and velocities follow.

    Friction of the ground as in the point-mass model.
    """
    if not take_set_points(plant, mode, set_points):
        return BAD_SET_POINT
    network, spools, nodes, velocities = plant.network, plant.spools, plant.nodes, plant.velocities
    rest_lengths, rods, work, stages = plant.rest_lengths, plant.rods, plant.work, plant.stages
    rubs, drives = network.ground.shape[0] > 0, spools.rods[0] > 0
    # the printed equations are not changed
    due, turns = stages.turning[0], rods.vertical[0] == CHART and is_free(network)
    work.horizon[FRICTION_STEP] = step if rubs else 0.0
    stages.nodes[:, :] = nodes
    stages.velocities[:, :] = velocities
    spring_forces(network, nodes, velocities, rest_lengths, work)
    for _ in range(count):
        if drives:
            rod_tensions(rods, rods.q, rods.rates, work.forces, work.tensions)
        set_speeds(spools, rest_lengths, work.tensions, step, work.rest_rates)
        if drives:
            stages.work[0] += stretch_rods(rods, rest_lengths, work.rest_rates)
        if rods.vertical[0] == CHART:
            change_charts(rods)
        stages.rest[:] = rest_lengths
        work.ground[:, MEAN:] = 0.0
        if turns:
            due[0] = due[1] = due[2] = 0.0
            if drives:  # the velocities include the new rate from here on
                fill_rod_ends(rods, rods.q, rods.rates, nodes, velocities)
            add_angular_momentum(network, nodes, velocities, 1.0, due)
        for r in range(rods.q.shape[0]):
            for a in range(5):
                rods.q_stage[r, a] = rods.q_sum[r, a] = rods.q[r, a]
                rods.rates_stage[r, a] = rods.rates_sum[r, a] = rods.rates[r, a]
        for stage in range(4):
            fill_rod_ends(rods, rods.q_stage, rods.rates_stage, stages.nodes, stages.velocities)
            lost = spring_forces(network, stages.nodes, stages.velocities, stages.rest, work)
            rod_accelerations(rods, rods.q_stage, rods.rates_stage, work.forces, rods.acceleration)
            if drives:
                rod_tensions(rods, rods.q_stage, rods.rates_stage, work.forces, work.tensions)
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
                if drives:
                    stretch_rods(rods, stages.rest, work.rest_rates)
            for r in range(rods.q.shape[0]):
                for a in range(5):
                    rods.q_sum[r, a] += weight * rods.rates_stage[r, a]
                    rods.rates_sum[r, a] += weight * rods.acceleration[r, a]
                    rods.q_stage[r, a] = rods.q[r, a] + ahead * rods.rates_stage[r, a]
                    rods.rates_stage[r, a] = rods.rates[r, a] + ahead * rods.acceleration[r, a]
        for r in range(rods.q.shape[0]):
            for a in range(5):
                rods.q[r, a] = rods.q_sum[r, a]
                rods.rates[r, a] = rods.rates_sum[r, a]
        wind(spools, rest_lengths, step)
        if drives:
            stretch_rods(rods, rest_lengths, work.rest_rates)
            extend_bars(network, rest_lengths)
        fill_rod_ends(rods, rods.q, rods.rates, nodes, velocities)
        if turns:
            restore_angular_momentum(network, nodes, velocities, due, stages.turning[1:])
            read_rods(rods, nodes, velocities)
        spring_forces(network, nodes, velocities, rest_lengths, work)
        if rubs:
            if not couple_bars(network, nodes, work):
                return DEPENDENT_BARS
            rub_step(network, velocities, step, work, stages)
            read_rods(rods, nodes, velocities)
            fill_rod_ends(rods, rods.q, rods.rates, nodes, velocities)
            spring_forces(network, nodes, velocities, rest_lengths, work)
    return checked_end(nodes)


def report_uses(rods: Rods, names: Sequence[str]) -> str:
    """Sentence on the rods that came near their polar axis; empty if there are none.

    Args:
        names: names of the rods (r,).
    """
    parts = []
    for r in map(int, np.flatnonzero(rods.uses.any(axis=1))):
        changes, guarded = map(int, rods.uses[r])
        if changes:
            parts.append(f"{names[r]} has changed its polar axis {'once' if changes == 1 else f'{changes} times'}")
        if guarded:
            parts.append(f"{names[r]} was guarded at the vertical in {guarded} evaluations, so its motion is not exact")
    return "; ".join(parts)
