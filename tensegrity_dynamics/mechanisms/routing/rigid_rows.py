"""Inextensible routed cables: every strand between two holding elements is a row of the loop constraints.

A strand has the length L(q) and the rest length l(q). The row is the exact derivative of the gap L - l, and its
multiplier is minus the tension: the generalised force -T d(L - l)/dq acts on the coordinates, which is the pull of the
cable at its exit and entry points. A slack strand has an empty row.

If the cable slips over a contact (MODE), rest length passes, and both adjacent strands form one row: the sum of their
gaps. Its multiplier is minus the tension of the first of these strands. The tension of the others minus this tension
(EXCESS) acts like an applied force (`routing.efforts`).

The length of a straight segment changes at the rate t . (v' - v), with the velocities of the carriers at both tangent
points. Its bias is

    t . (a' - a) + t' . (v' - v),

with the accelerations a and a' of these points of the carriers: the tangent points slide over the carriers along t, and
t . (w x t) = 0.
"""

from __future__ import annotations

from ...numerics.compilation import for_compiled_callers
from ..point_forces import point_speed
from .columns import (
    BODY,
    COUNT,
    FINE,
    FIRST,
    HOLDS,
    LENGTH,
    LIFTED,
    LOOP_ROW,
    MODE,
    REST_NOW,
    SLACK,
    SLIP,
    STATUS,
    TOUCHES,
    TRIAL,
    UNIT,
    W_AXIS,
    W_CENTRE,
    W_ENTRY,
    W_EXIT,
    W_OUT,
    W_RADIUS,
    WHERE,
)  # fmt: skip
from .efforts import pull_bodies
from .path import next_touching, trace
from .slip import find_strains


@for_compiled_callers
def point_acceleration(velocity, acceleration, body, point, gravity, out):
    """Fill out (3,) with the acceleration minus gravity of a body-fixed point at constant rates of the coordinates."""
    if body < 0:
        for k in range(3):
            out[k] = -gravity[k]
        return
    turning, rate, a, b = acceleration[body, :3], velocity[body, :3], acceleration[body, 3:], velocity[body, 3:]
    x, y, z = point[0], point[1], point[2]
    ux, uy, uz = (
        b[0] + rate[1] * z - rate[2] * y, b[1] + rate[2] * x - rate[0] * z, b[2] + rate[0] * y - rate[1] * x,
    )  # fmt: skip
    out[0] = a[0] + turning[1] * z - turning[2] * y + rate[1] * uz - rate[2] * uy
    out[1] = a[1] + turning[2] * x - turning[0] * z + rate[2] * ux - rate[0] * uz
    out[2] = a[2] + turning[0] * y - turning[1] * x + rate[0] * uy - rate[1] * ux


@for_compiled_callers
def direction_rate(elements, i, j, velocity, state, scratch, out):
    """Fill out (3,) with the rate of the direction of the straight segment from element i to j [1/s]."""
    a, b = state[i], state[j]
    first, second = scratch[0], scratch[1]
    point_speed(velocity, int(elements[i, BODY]), a[W_CENTRE:], first)
    point_speed(velocity, int(elements[j, BODY]), b[W_CENTRE:], second)
    x, y, z = second[0] - first[0], second[1] - first[1], second[2] - first[2]
    t = a[W_OUT:]
    length = 0.0
    for k in range(3):
        length += (b[W_ENTRY + k] - a[W_EXIT + k]) * t[k]
    own = i if a[W_RADIUS] != 0.0 else j
    if state[own, W_RADIUS] == 0.0:
        along = x * t[0] + y * t[1] + z * t[2]
        out[0], out[1], out[2] = (x - along * t[0]) / length, (y - along * t[1]) / length, (z - along * t[2]) / length
        return
    n, body = state[own, W_AXIS:], int(elements[own, BODY])
    # in-plane rate from the motion of the centres across the segment; out-of-plane rate from the rotation of the plane
    mx, my, mz = n[1] * t[2] - n[2] * t[1], n[2] * t[0] - n[0] * t[2], n[0] * t[1] - n[1] * t[0]
    spin, tilt = (x * mx + y * my + z * mz) / length, 0.0
    if body >= 0:
        w = velocity[body, :3]
        tilt -= t[0] * (w[1] * n[2] - w[2] * n[1])
        tilt -= t[1] * (w[2] * n[0] - w[0] * n[2]) + t[2] * (w[0] * n[1] - w[1] * n[0])
    out[0], out[1], out[2] = spin * mx + tilt * n[0], spin * my + tilt * n[1], spin * mz + tilt * n[2]


@for_compiled_callers
def line_bias(elements, i, j, velocity, acceleration, gravity, state, scratch, rate):
    """Second time derivative of the segment length from element i to j at constant rates; rate (3,) is scratch."""
    a, b = state[i], state[j]
    body, other = int(elements[i, BODY]), int(elements[j, BODY])
    direction_rate(elements, i, j, velocity, state, scratch, rate)
    first, second, bias = scratch[0], scratch[1], 0.0
    point_speed(velocity, body, a[W_EXIT:], first)
    point_speed(velocity, other, b[W_ENTRY:], second)
    for k in range(3):
        bias += rate[k] * (second[k] - first[k])
    point_acceleration(velocity, acceleration, body, a[W_EXIT:], gravity, first)
    point_acceleration(velocity, acceleration, other, b[W_ENTRY:], gravity, second)
    for k in range(3):
        bias += a[W_OUT + k] * (second[k] - first[k])
    return bias


@for_compiled_callers
def rigid_rows(
    elements, cables, q, v, rotation, position, velocity, acceleration, jacobian, v_start, v_count, parent, dof_parent,
    gravity, state, results, scratch, rate, loop, loop_bias, loop_error,
):  # fmt: skip
    """Fill paths of the inextensible routed cables, and their rows of K, k and the loop errors."""
    for c in range(cables.shape[0]):
        cable, result = cables[c], results[c]
        r = int(cable[LOOP_ROW])
        if r < 0:
            continue
        first, count = int(cable[FIRST]), int(cable[COUNT])
        last = first + count - 1
        trace(elements, first, count, q, v, rotation, position, velocity, state, result, scratch)
        for e in range(first, last + 1):
            state[e, UNIT], state[e, TRIAL] = 0.0, state[e, SLIP]
            lifted = state[e, TOUCHES] == 0.0 and elements[e, HOLDS] != 0.0
            if lifted and result[STATUS] == FINE:
                result[STATUS], result[WHERE] = LIFTED, e - first
        find_strains(elements, first, last, state)
        for strand in range(first, last):
            if strand > first and elements[strand, HOLDS] == 0.0:
                continue
            for d in range(loop.shape[1]):
                loop[r, d] = 0.0
            loop_bias[r] = loop_error[r] = 0.0
            if state[strand, SLACK] == 0.0 and (strand == first or state[strand, MODE] == 0.0):
                end = strand + 1
                while end < last and (elements[end, HOLDS] == 0.0 or state[end, MODE] != 0.0):
                    end += 1
                for e in range(strand, end):
                    if e == strand or elements[e, HOLDS] != 0.0:
                        state[e, UNIT] = 1.0
                        loop_error[r] += state[e, LENGTH] - state[e, REST_NOW]
                pull_bodies(
                    elements, first, last, state, UNIT, UNIT, v_start, v_count, parent, dof_parent, jacobian, loop[r]
                )  # fmt: skip
                for e in range(strand, end):
                    state[e, UNIT] = 0.0
                for d in range(loop.shape[1]):
                    loop[r, d] = -loop[r, d]
                i = strand
                while i < end:
                    j = next_touching(state, i, last)
                    loop_bias[r] -= line_bias(
                        elements, i, j, velocity, acceleration, gravity, state, scratch, rate
                    )  # fmt: skip
                    i = j
            r += 1
