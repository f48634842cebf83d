"""Path of a routed cable: straight segments between elements, and arcs round the pulleys that it touches.

Two circles lie in one plane with the normal n. They have the signed radii p and p' (positive: the cable turns about n
by the right-hand rule), and D is the vector between their centres. The cable leaves the first circle and arrives at the
second one along the unit vector

    t = (l D + d n x D) / D^2,   d = p - p',   l^2 = D^2 - d^2,   at the points C + p t x n.

The length includes the arcs, measured from marks fixed to the carriers of the pulleys. Its rate is t . (v' - v) with
the velocities of the carriers at both points. The tangent points move along t, which changes the lengths of the
straight segment and of the arc by opposite amounts.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import for_compiled_callers
from ..point_forces import point_speed
from ..spatial import rotate
from .columns import (
    ANGLE,
    AXIS,
    BODY,
    CENTRE,
    CLIMB,
    DRUM_EMPTY,
    DRUM_FULL,
    FINE,
    FLEET,
    FLOW,
    FLOW_RATE,
    GRADIENT,
    HOLDS,
    KIND,
    LAYER_TURN,
    LAYERS,
    LENGTH,
    LENGTH_RATE,
    MARK,
    OVERLAP,
    PATH_LENGTH,
    PITCH,
    POINT,
    RADIUS,
    RAMP,
    SIDE,
    SPIN_IN,
    SPIN_OUT,
    STATUS,
    TOUCHES,
    TURN_IN,
    TURN_OUT,
    TURNED_TOO_FAR,
    TURNING_Q,
    TURNING_V,
    W_AXIS,
    W_CENTRE,
    W_ENTRY,
    W_EXIT,
    W_IN,
    W_OUT,
    W_RADIUS,
    W_TURN_IN,
    W_TURN_OUT,
    WHERE,
    WOUND,
    WRAP,
)  # fmt: skip

FLEET_LIMIT = 1e-4
"""Largest slope of a cable out of the plane of a pulley (fleet angle) [rad]; the relative error of the virtual work is
the square of it."""
FARTHEST_TURN = 0.95 * np.pi
"""Largest change of the turn [rad] at either side of a pulley since the start. Larger changes are ambiguous, because
angles repeat after a full turn."""


@for_compiled_callers
def layered(radius, pitch, layer, ramp, turn, out):
    """Fill out (3,): radius [m] at a turn [rad] of cable on a drum, its gradient [m/rad], and the rest length [m] wound
    up to that turn.

    Each layer has `layer` rad; over the last `ramp` rad of a layer the cable climbs by `pitch` [m] to the next one.
    """
    out[0], out[1], out[2] = radius, 0.0, radius * turn
    if pitch == 0.0 or turn <= 0.0:
        return
    number = np.floor(turn / layer)
    rest = turn - number * layer
    full = layer * radius + 0.5 * pitch * ramp
    out[0] = radius + number * pitch
    out[2] = number * full + 0.5 * number * (number - 1.0) * layer * pitch + out[0] * rest
    climbed = rest - (layer - ramp)
    if climbed > 0.0:
        out[1] = pitch / ramp
        out[0] += out[1] * climbed
        out[2] += 0.5 * out[1] * climbed * climbed


@for_compiled_callers
def carried(rotation, body, local, out):
    """Fill out (3,) with a body-fixed direction in world axes."""
    if body >= 0:
        rotate(rotation[body], local, out)
    else:
        for k in range(3):
            out[k] = local[k]


@for_compiled_callers
def transform_elements(elements, first, count, q, v, rotation, position, state, result, drum):
    """Fill centres, axes and radii of the elements in the world, and the rest length moved by rotation of the
    pulleys."""
    for e in range(first, first + count):
        row, own = elements[e], state[e]
        body = int(row[BODY])
        carried(rotation, body, row[CENTRE:], own[W_CENTRE:])
        if body >= 0:
            for k in range(3):
                own[W_CENTRE + k] += position[body, k]
        own[TOUCHES] = 1.0
        own[FLOW] = own[FLOW_RATE] = own[GRADIENT] = own[CLIMB] = 0.0
        own[W_RADIUS] = row[SIDE] * row[RADIUS]
        for k in range(3):
            own[W_AXIS + k] = 0.0
        if row[KIND] == POINT:
            continue
        carried(rotation, body, row[AXIS:], own[W_AXIS:])
        turning = int(row[TURNING_Q])
        if turning < 0:
            continue
        turned, speed = q[turning] - row[ANGLE], v[int(row[TURNING_V])]
        own[GRADIENT] = own[W_RADIUS]
        own[FLOW] = own[W_RADIUS] * turned
        if row[WOUND] < np.inf and (e == first or e == first + count - 1):
            sense = -row[SIDE] if e == first else row[SIDE]  # wound turn per turn of the drum
            wound = row[WOUND] + sense * turned
            layered(row[RADIUS], row[PITCH], row[LAYER_TURN], row[RAMP], row[WOUND], drum)
            before = drum[2]
            layered(row[RADIUS], row[PITCH], row[LAYER_TURN], row[RAMP], wound, drum)
            own[W_RADIUS] = row[SIDE] * drum[0]
            own[FLOW] = (before - drum[2]) if e == first else (drum[2] - before)
            own[GRADIENT] = row[SIDE] * drum[0]
            own[CLIMB] = drum[1] * sense
            if wound < 0.0:
                result[STATUS], result[WHERE] = DRUM_EMPTY, e - first
            elif wound > row[LAYERS] * row[LAYER_TURN]:
                result[STATUS], result[WHERE] = DRUM_FULL, e - first
        own[FLOW_RATE] = own[GRADIENT] * speed


@for_compiled_callers
def tangent(state, i, j, result, number):
    """Fill exit point at element i, entry point at element j, and direction of the cable; returns the length [m]."""
    a, b = state[i], state[j]
    x, y, z = b[W_CENTRE] - a[W_CENTRE], b[W_CENTRE + 1] - a[W_CENTRE + 1], b[W_CENTRE + 2] - a[W_CENTRE + 2]
    own = a if a[W_RADIUS] != 0.0 else b
    nx, ny, nz = own[W_AXIS], own[W_AXIS + 1], own[W_AXIS + 2]
    p, other = a[W_RADIUS], b[W_RADIUS]
    slope = 0.0
    if p != 0.0 and other != 0.0:
        cosine = nx * b[W_AXIS] + ny * b[W_AXIS + 1] + nz * b[W_AXIS + 2]
        slope = np.sqrt(max(0.0, 1.0 - cosine * cosine))
        if slope < 1e-7:  # rounding error of the cosine
            slope = 0.0
        if cosine < 0.0:
            other = -other
    square = x * x + y * y + z * z
    if own[W_RADIUS] != 0.0:
        out = x * nx + y * ny + z * nz
        slope = max(slope, abs(out) / np.sqrt(square) if square > 0.0 else 0.0)
        if slope > FLEET_LIMIT and result[STATUS] == FINE:
            result[STATUS], result[WHERE] = FLEET, number
    apart = p - other
    free = square - apart * apart
    if not free > 1e-18 * (square + apart * apart):
        if result[STATUS] == FINE:
            result[STATUS], result[WHERE] = OVERLAP, number
        free = 1e-12 * (square + apart * apart) + 1e-30
        square = free + apart * apart
    length = np.sqrt(free)
    u, w = length / square, apart / square
    tx = u * x + w * (ny * z - nz * y)
    ty = u * y + w * (nz * x - nx * z)
    tz = u * z + w * (nx * y - ny * x)
    ex, ey, ez = ty * nz - tz * ny, tz * nx - tx * nz, tx * ny - ty * nx
    a[W_OUT], a[W_OUT + 1], a[W_OUT + 2] = tx, ty, tz
    b[W_IN], b[W_IN + 1], b[W_IN + 2] = tx, ty, tz
    a[W_EXIT], a[W_EXIT + 1], a[W_EXIT + 2] = (
        a[W_CENTRE] + p * ex, a[W_CENTRE + 1] + p * ey, a[W_CENTRE + 2] + p * ez,
    )  # fmt: skip
    b[W_ENTRY], b[W_ENTRY + 1], b[W_ENTRY + 2] = (
        b[W_CENTRE] + other * ex, b[W_CENTRE + 1] + other * ey, b[W_CENTRE + 2] + other * ez,
    )  # fmt: skip
    return length


@for_compiled_callers
def turn_between(axis, first, second, side, reference):
    """Turn [rad] from one direction (3,) to another about an axis (3,), with the sign of `side`.

    Of the values that differ by full turns, the one nearest to the reference is returned.
    """
    cx = first[1] * second[2] - first[2] * second[1]
    cy = first[2] * second[0] - first[0] * second[2]
    cz = first[0] * second[1] - first[1] * second[0]
    sine = axis[0] * cx + axis[1] * cy + axis[2] * cz
    turn = side * np.arctan2(sine, first[0] * second[0] + first[1] * second[1] + first[2] * second[2])
    return turn - 2.0 * np.pi * np.floor((turn - reference) / (2.0 * np.pi) + 0.5)


@for_compiled_callers
def turns_of(elements, e, is_first, is_last, rotation, state, result, number, three):
    """Fill the turns of the cable to and from the mark of a pulley, and the wrap angle [rad]."""
    row, own = elements[e], state[e]
    own[W_TURN_IN] = own[W_TURN_OUT] = own[WRAP] = 0.0
    if row[KIND] == POINT:
        return
    carried(rotation, int(row[BODY]), row[MARK:], three)
    # the mark is given as the direction of a cable that touches the pulley at the mark
    side = row[SIDE]
    if not is_first:
        own[W_TURN_IN] = turn_between(own[W_AXIS:], own[W_IN:], three, side, row[TURN_IN])
    if not is_last:
        own[W_TURN_OUT] = turn_between(own[W_AXIS:], three, own[W_OUT:], side, row[TURN_OUT])
    own[WRAP] = own[W_TURN_IN] + own[W_TURN_OUT]
    far = max(abs(own[W_TURN_IN] - row[TURN_IN]), abs(own[W_TURN_OUT] - row[TURN_OUT]))
    if far > FARTHEST_TURN and result[STATUS] == FINE:
        result[STATUS], result[WHERE] = TURNED_TOO_FAR, number


@for_compiled_callers
def line_rates(elements, i, j, velocity, state, length, scratch):
    """Length rate [m/s] of the straight segment from element i to j; fills its rates of rotation about both axes."""
    a, b = state[i], state[j]
    body, other = int(elements[i, BODY]), int(elements[j, BODY])
    first, second = scratch[0], scratch[1]
    point_speed(velocity, body, a[W_EXIT:], first)
    point_speed(velocity, other, b[W_ENTRY:], second)
    rate = 0.0
    for k in range(3):
        rate += a[W_OUT + k] * (second[k] - first[k])
    point_speed(velocity, body, a[W_CENTRE:], first)
    point_speed(velocity, other, b[W_CENTRE:], second)
    x, y, z = second[0] - first[0], second[1] - first[1], second[2] - first[2]
    t = a[W_OUT:]
    # (t x v) . n / l
    cx, cy, cz = t[1] * z - t[2] * y, t[2] * x - t[0] * z, t[0] * y - t[1] * x
    a[SPIN_OUT] = (cx * a[W_AXIS] + cy * a[W_AXIS + 1] + cz * a[W_AXIS + 2]) / length
    b[SPIN_IN] = (cx * b[W_AXIS] + cy * b[W_AXIS + 1] + cz * b[W_AXIS + 2]) / length
    return rate


@for_compiled_callers
def next_touching(state, e, last):
    """Row of the next element that the cable touches."""
    e += 1
    while e < last and state[e, TOUCHES] == 0.0:
        e += 1
    return e


@for_compiled_callers
def draw_path(elements, first, count, rotation, state, result, scratch):
    """Fill tangents, turns and wrap angles; pulleys with a negative wrap angle are marked as not touched."""
    last = first + count - 1
    for _ in range(count):
        if result[STATUS] < DRUM_EMPTY:
            result[STATUS] = FINE
        i = first
        while i < last:
            j = next_touching(state, i, last)
            tangent(state, i, j, result, i - first)
            i = j
        worst, clear = -1e-12, -1
        for e in range(first, last + 1):
            if state[e, TOUCHES] == 0.0:
                continue
            turns_of(elements, e, e == first, e == last, rotation, state, result, e - first, scratch[0])
            if first < e < last and elements[e, KIND] != POINT and state[e, WRAP] < worst:
                worst, clear = state[e, WRAP], e
        if clear < 0:
            return
        state[clear, TOUCHES] = 0.0


@for_compiled_callers
def pass_clear(elements, i, j, rotation, state, scratch):
    """Fill the state of the elements between i and j, which the straight cable from i to j does not touch."""
    a = state[i]
    for e in range(i + 1, j):
        own = state[e]
        along = 0.0
        for k in range(3):
            along += (own[W_CENTRE + k] - a[W_EXIT + k]) * a[W_OUT + k]
        for k in range(3):
            own[W_ENTRY + k] = own[W_EXIT + k] = a[W_EXIT + k] + along * a[W_OUT + k]
            own[W_IN + k] = own[W_OUT + k] = a[W_OUT + k]
        own[WRAP] = 0.0
        carried(rotation, int(elements[e, BODY]), elements[e, MARK:], scratch[0])
        side, before = elements[e, SIDE], elements[e, TURN_IN]
        own[W_TURN_IN] = turn_between(own[W_AXIS:], own[W_IN:], scratch[0], side, before)
        own[W_TURN_OUT] = -own[W_TURN_IN]
        own[SPIN_IN] = own[SPIN_OUT] = 0.0


@for_compiled_callers
def trace(elements, first, count, q, v, rotation, position, velocity, state, result, scratch):
    """Fill the path of one cable, and length and length rate of each strand in the row of the element where it
    begins."""
    result[STATUS] = FINE
    transform_elements(elements, first, count, q, v, rotation, position, state, result, scratch[2])
    draw_path(elements, first, count, rotation, state, result, scratch)
    last = first + count - 1
    result[PATH_LENGTH] = 0.0
    strand = first
    state[first, LENGTH] = abs(state[first, W_RADIUS]) * state[first, W_TURN_OUT]
    state[first, LENGTH_RATE] = 0.0
    drum = state[first]
    if drum[CLIMB] != 0.0:
        state[first, LENGTH_RATE] = drum[W_TURN_OUT] * drum[CLIMB] * v[int(elements[first, TURNING_V])]
    i = first
    while i < last:
        j = next_touching(state, i, last)
        length = 0.0
        for k in range(3):
            length += (state[j, W_ENTRY + k] - state[i, W_EXIT + k]) * state[i, W_OUT + k]
        pass_clear(elements, i, j, rotation, state, scratch)
        line_rates(elements, i, j, velocity, state, length, scratch)
        for e in range(i, j):
            # a straight segment past pulleys that it does not touch consists of several strands with equal tension
            part, rate = 0.0, 0.0
            point_speed(velocity, int(elements[e, BODY]), state[e, W_EXIT:], scratch[0])
            point_speed(velocity, int(elements[e + 1, BODY]), state[e + 1, W_ENTRY:], scratch[1])
            for k in range(3):
                part += (state[e + 1, W_ENTRY + k] - state[e, W_EXIT + k]) * state[i, W_OUT + k]
                rate += (scratch[1, k] - scratch[0, k]) * state[i, W_OUT + k]
            own = state[e + 1]
            state[strand, LENGTH] += part + abs(own[W_RADIUS]) * own[W_TURN_IN]
            state[strand, LENGTH_RATE] += rate
            if e + 1 == last:
                if own[CLIMB] != 0.0:
                    state[strand, LENGTH_RATE] += own[W_TURN_IN] * own[CLIMB] * v[int(elements[last, TURNING_V])]
                result[PATH_LENGTH] += state[strand, LENGTH]
                break
            if elements[e + 1, HOLDS] != 0.0:
                result[PATH_LENGTH] += state[strand, LENGTH]
                strand = e + 1
                state[strand, LENGTH] = state[strand, LENGTH_RATE] = 0.0
            state[strand, LENGTH] += abs(own[W_RADIUS]) * own[W_TURN_OUT]
        i = j
