"""Ground forces on the bodies of a mechanism, by the laws of `contact.ground_forces`.

The penetration of a point is the depth of the ground there. The penetration of a sphere is that of its deepest point
p = c - r n(p), with the ground normal n at p. There the force passes through the centre c, and it is the gradient of
the energy of this depth, because p is the deepest point (envelope theorem). On a plane, p follows directly; on hills it
is found by fixed-point iteration, which requires a radius smaller than the radius of curvature of the hollows. Friction
acts at p, so that spheres roll.

At rest, the ground force at a foot is along the ground normal. A robot that only the ground supports would slide on a
slope. There friction carries a part of the load, which is given by a direction `toward` opposite to the load: the force
at each foot is N along this direction, whose component along the normal is 1, as in
`structures.form_finding.standing`.
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
"""Largest number of iterations for the deepest point of a sphere, and its tolerance relative to the radius."""
STEEPEST = 0.05
"""Least cosine of the angle between load and normal; below it the force is along the normal, whatever the load."""


@for_compiled_callers
def deepest_point(ground, radius, own):
    """Fill the point with the largest depth of a sphere around the centre in own."""
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
    """Fill force and normal force at rest, along `toward` (3,) if the ground is not too steep."""
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
    """Fill the state of all contact points, and add the ground forces to the efforts passive (nv,)."""
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
