"""What the ground exerts on the bodies of a mechanism, by the laws of `contact.ground_forces`.

A point goes in by the depth of the ground there. A ball goes in by its deepest point p = c - r n(p), with n the normal
of the ground at p: there the force passes through the centre c, and it is the gradient of the energy of that depth,
since p is the deepest one (envelope theorem). On a plane that is exact at once; on hills p is found by repetition,
which needs a radius below that of the hollows. Friction acts at p, so that balls roll.

At rest feet push along their normals. A robot that nothing but the ground holds would slide on a slope: there friction
carries, which is said by a direction `toward` against the load; each foot then pushes N along it, of size 1 along the
normal, as `structures.form_finding.standing` has it.
"""

from __future__ import annotations

import numpy as np

from ...contact.ground_forces import ROWS, depth, normal_law, point_force
from ...numerics.compilation import for_compiled_callers
from ..point_forces import add_force, point_speed
from ..spatial import rotate
from .columns import (
    AWAY,
    BODY,
    CENTRE,
    CENTRE_NOW,
    DAMPED,
    DEPTH,
    FORCE,
    NORMAL,
    OUT,
    POINT,
    RADIUS,
    RUBBED,
    SPEED,
    STORED,
)

MOST_TURNS, CLOSE = 60, 1e-14
"""Repetitions of the search for the deepest point of a ball, and by which part of its radius it may be off."""
STEEPEST = 0.05
"""Cosine between the load and the normal below which a foot pushes along its normal, whatever the load."""


@for_compiled_callers
def deepest_point(ground, radius, own):
    """Fill the point of a ball around own's centre that is deepest in the ground."""
    for k in range(3):
        own[POINT + k] = own[CENTRE_NOW + k]
    if radius == 0.0:
        return
    away = own[AWAY:]
    for _ in range(MOST_TURNS):
        depth(ground, own[POINT], own[POINT + 1], own[POINT + 2], away)
        size = np.sqrt(away[0] * away[0] + away[1] * away[1] + away[2] * away[2])
        moved = 0.0
        for k in range(3):
            coordinate = own[CENTRE_NOW + k] - radius * away[k] / size
            moved = max(moved, abs(coordinate - own[POINT + k]))
            own[POINT + k] = coordinate
        if ground[ROWS] == 0.0 or moved <= CLOSE * radius:
            return


@for_compiled_callers
def standing_force(ground, toward, own):
    """Fill force and normal force at rest, along `toward` (3,) where the ground is not too steep for it."""
    push = normal_law(ground, own[DEPTH])[0]
    square, along = 0.0, 0.0
    for k in range(3):
        square += own[AWAY + k] * own[AWAY + k]
        along += own[AWAY + k] * toward[k]
    own[NORMAL] = push * np.sqrt(square)
    for k in range(3):
        if along > STEEPEST * np.sqrt(square):
            own[FORCE + k] = push * square / along * toward[k]
        else:
            own[FORCE + k] = push * own[AWAY + k]


@for_compiled_callers
def contact_efforts(
    points, ground, rotation, position, velocity, jacobian, v_start, v_count, parent, dof_parent, state, passive
):
    """Fill the state of all positions, and add what the ground exerts to the efforts passive (nv,)."""
    count = points.shape[0]
    total = state[count]
    toward = total[FORCE:]
    is_standing = toward[0] != 0.0 or toward[1] != 0.0 or toward[2] != 0.0
    total[STORED] = total[DAMPED] = total[RUBBED] = 0.0
    for i in range(count):
        own, entry, body = state[i], points[i], int(points[i, BODY])
        rotate(rotation[body], entry[CENTRE:], own[CENTRE_NOW:])
        for k in range(3):
            own[CENTRE_NOW + k] += position[body, k]
        deepest_point(ground, entry[RADIUS], own)
        point_speed(velocity, body, own[POINT:], own[SPEED:])
        x, y, z = own[POINT], own[POINT + 1], own[POINT + 2]
        touches = point_force(ground, x, y, z, own[SPEED:], 0.0, own[AWAY:], own[FORCE:], own[OUT:])
        own[DEPTH] = depth(ground, x, y, z, own[AWAY:])
        own[NORMAL], own[DAMPED], own[RUBBED], own[STORED] = own[OUT], own[OUT + 1], own[OUT + 2], 0.0
        if not touches:
            continue
        own[STORED] = normal_law(ground, own[DEPTH])[2]
        if is_standing:
            standing_force(ground, toward, own)
        total[STORED] += own[STORED]
        total[DAMPED] += own[DAMPED]
        total[RUBBED] += own[RUBBED]
        add_force(body, own[POINT:], own[FORCE:], 1.0, v_start, v_count, parent, dof_parent, jacobian, passive)
