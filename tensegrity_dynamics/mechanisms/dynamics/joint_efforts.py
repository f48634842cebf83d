"""Efforts of joint resistances (`resistance`) on coordinates of tree joints, and L tau of loop joints (1.2.30)."""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import allocation_free, for_compiled_callers, inlined_part
from ..kinematics.body_kinematics import last_dof, world_direction, world_point
from ..resistance import (
    AXIS,
    CARRIED,
    DAMPING,
    EFFICIENCY,
    FIRST,
    FRICTION,
    KIND,
    LAW,
    LOOP_BALL,
    LOOP_TURN,
    LOW,
    ORIGIN,
    OTHER_ORIGIN,
    REST,
    SECOND,
    SPEED,
    STIFFNESS,
    STOP_DAMPING,
    STOP_STIFFNESS,
    TREE,
    TREE_BALL,
    TURNED,
    ZERO,
)
from ..spatial import cross

POSITION, RATE = 0, 1
"""Columns of work.motion: position and rate of the joint of each resistance; zero for rotations about any axis."""
ELASTIC, DAMPED, RUBBED = 0, 1, 2
"""Entries of work.resistance: elastic energy [J], power dissipated by dampers and by friction [W]."""


@for_compiled_callers
def gear_friction(law, rate):
    """Friction effort of a gear, proportional to the transmitted effort [N or N m]."""
    efficiency, carried = law[EFFICIENCY], law[CARRIED]
    part = 1.0 - efficiency if carried * rate > 0.0 else 1.0 / efficiency - 1.0
    return abs(carried) * part * np.tanh(rate / law[SPEED])


@for_compiled_callers
def resist(law, x, rate, balance):
    """Effort of the resistance [N or N m] at position x and rate x'; adds energy and losses to balance (3,)."""
    stretch = x - law[REST]
    effort = -law[STIFFNESS] * stretch
    stored = 0.5 * law[STIFFNESS] * stretch * stretch
    damping = law[DAMPING] * rate
    for side in range(2):
        sign = -1.0 if side == 0 else 1.0
        depth = sign * (x - law[LOW + side])
        if depth > 0.0:
            push = law[STOP_STIFFNESS] * depth
            total = push + law[STOP_DAMPING] * sign * rate
            if total < 0.0:
                total = 0.0
            stored += 0.5 * push * depth
            effort -= sign * push
            damping += sign * (total - push)
    friction = 0.0
    if law[FRICTION] > 0.0:
        friction = law[FRICTION] * np.tanh(rate / law[SPEED])
    if law[EFFICIENCY] < 1.0:
        friction += gear_friction(law, rate)
    balance[ELASTIC] += stored
    balance[DAMPED] += damping * rate
    balance[RUBBED] += friction * rate
    return effort - damping - friction


@for_compiled_callers
def resist_turn(law, turn, rate, balance, out):
    """Fill out (3,) with the moment against a rotation; turn and rate (3,) are rotation vector and angular velocity."""
    speed = np.sqrt(rate[0] * rate[0] + rate[1] * rate[1] + rate[2] * rate[2])
    drag = law[DAMPING]
    if law[FRICTION] > 0.0:
        ratio = speed / law[SPEED]
        rub = law[FRICTION] / law[SPEED] * (np.tanh(ratio) / ratio if ratio > 1e-8 else 1.0)
        balance[RUBBED] += rub * speed * speed
        drag += rub
    balance[DAMPED] += law[DAMPING] * speed * speed
    for k in range(3):
        out[k] = -law[STIFFNESS] * turn[k] - drag * rate[k]
        balance[ELASTIC] += 0.5 * law[STIFFNESS] * turn[k] * turn[k]


@allocation_free
def rotation_vector(q, out):
    """Fill out (3,) with the rotation vector (at most half a turn) of a unit quaternion wxyz."""
    size = np.sqrt(q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    if size < 1e-12:
        factor = 2.0
    else:
        factor = 2.0 * np.arctan2(size, abs(q[0])) / size
    if q[0] < 0.0:
        factor = -factor
    for k in range(3):
        out[k] = factor * q[1 + k]


@for_compiled_callers
def push_between(flat, work, first, second, force):
    """Add a force (6,) on body `second`, and its reaction on body `first`, to the efforts of the coordinates."""
    for end in range(2):
        sign = 1.0 if end == 0 else -1.0
        d = last_dof(flat, second if end == 0 else first)
        while d >= 0:
            total = 0.0
            for k in range(6):
                total += force[k] * work.jacobian[d, k]
            work.passive[d] += sign * total
            d = flat.dof_parent[d]


@for_compiled_callers
def loop_motion(row, work):
    """Fill work.direction (6,) with the unit wrench against the free motion of a loop joint that is not a ball.

    Returns the position of the joint [rad or m]. Its rate is the product of this wrench and the bodies' relative
    velocity.
    """
    p, s, kind = int(row[FIRST]), int(row[SECOND]), int(row[KIND])
    axis, force = work.first, work.direction
    for k in range(6):
        force[k] = 0.0
    world_direction(work.rotation, p, row[AXIS:], axis)
    if kind == LOOP_TURN:
        zero, turned, three = work.second, work.gap, work.three
        world_direction(work.rotation, p, row[ZERO:], zero)
        world_direction(work.rotation, s, row[TURNED:], turned)
        cross(zero, turned, three)
        sine, cosine = 0.0, 0.0
        for k in range(3):
            sine += axis[k] * three[k]
            cosine += zero[k] * turned[k]
            force[k] = axis[k]
        return np.arctan2(sine, cosine)
    # LOOP_SLIDE: the displacement along an axis fixed to the predecessor, as in a loop row
    point, gap = work.point, work.gap
    world_point(work.rotation, work.position, s, row[OTHER_ORIGIN:], point)
    world_point(work.rotation, work.position, p, row[ORIGIN:], gap)
    deflection = 0.0
    for k in range(3):
        deflection += axis[k] * (point[k] - gap[k])
        force[3 + k] = axis[k]
    cross(point, axis, force)
    return deflection


@for_compiled_callers
def loop_resistance(flat, r, work):
    """Add the efforts of the resistance of one loop joint."""
    row = flat.resistances[r]
    p, s, law = int(row[FIRST]), int(row[SECOND]), row[LAW:]
    force, rate = work.direction, work.speed
    if int(row[KIND]) == LOOP_BALL:
        for k in range(6):
            force[k] = 0.0
        for k in range(3):
            rate[k] = (work.velocity[s, k] if s >= 0 else 0.0) - (work.velocity[p, k] if p >= 0 else 0.0)
        work.three[0] = work.three[1] = work.three[2] = 0.0
        resist_turn(law, work.three, rate, work.resistance, force)
    else:
        position, speed = loop_motion(row, work), 0.0
        for k in range(6):
            speed += force[k] * (work.velocity[s, k] if s >= 0 else 0.0)
            speed -= force[k] * (work.velocity[p, k] if p >= 0 else 0.0)
        work.motion[r, POSITION], work.motion[r, RATE] = position, speed
        effort = resist(law, position, speed, work.resistance)
        for k in range(6):
            force[k] *= effort
    push_between(flat, work, p, s, force)


@inlined_part
def joint_efforts(flat, q, v, work):
    """Add the efforts of joint resistances to the passive efforts, after `body_kinematics`; fills work.resistance and
    work.motion."""
    if flat.resistances.shape[0] == 0:
        return
    for k in range(3):
        work.resistance[k] = 0.0
    for r in range(flat.resistances.shape[0]):
        row = flat.resistances[r]
        kind, a, b = int(row[KIND]), int(row[FIRST]), int(row[SECOND])
        if kind == TREE:
            work.motion[r, POSITION], work.motion[r, RATE] = q[b], v[a]
            work.passive[a] += resist(row[LAW:], q[b], v[a], work.resistance)
        elif kind == TREE_BALL:
            rotation_vector(q[b : b + 4], work.three)
            resist_turn(row[LAW:], work.three, v[a : a + 3], work.resistance, work.first)
            for k in range(3):
                work.passive[a + k] += work.first[k]
        else:
            loop_resistance(flat, r, work)
