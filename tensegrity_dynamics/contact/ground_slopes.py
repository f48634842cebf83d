"""Exact derivatives of the ground force on a point with respect to its position and velocity, compiled.

They are the derivatives of `point_force` without a horizon. At kinks (begin of contact, damper force limited to zero),
they are those of the side on which the point is. On hills they need the third derivatives of the surface, which exist
within each cell of the bicubic spline.
"""

from __future__ import annotations

import numpy as np

from ..numerics.compilation import for_compiled_callers
from .ground_forces import (
    COLUMNS,
    DAMPING,
    FRICTION,
    HEIGHTS,
    LAW,
    ROWS,
    SMOOTHNESS,
    SOFTPLUS,
    SPACING,
    SPEED,
    STIFFNESS,
    VISCOUS,
    b_spline,
    depth,
    field_cell,
    field_height,
    normal_law,
)

SCRATCH_ROWS = 8
"""Number of scratch rows with three values for `point_slopes`."""
AWAY, TURNED, SLIDE, AWAY_CHANGE, SLIDE_CHANGE, HESSIAN = 0, 1, 2, 3, 4, 5
HESSIAN_END = 8


@for_compiled_callers
def _row_of(ground, row, column, s, order):
    """A derivative along a row of spline coefficients between two columns of the grid, of order 0 to 3."""
    at = HEIGHTS + row * int(ground[COLUMNS]) + column
    a, b, c, d = ground[at], ground[at + 1], ground[at + 2], ground[at + 3]
    value, slope, curvature = b_spline(a, b, c, d, s)
    if order == 0:
        return value
    if order == 1:
        return slope
    if order == 2:
        return curvature
    return d - a + 3.0 * (b - c)


@for_compiled_callers
def field_thirds(ground, x, y):
    """h_xxx, h_xxy, h_xyy and h_yyy of a height field at a point [1/m^2]; level outside its edges."""
    spacing = ground[SPACING]
    row, column, s, t, is_out_x, is_out_y = field_cell(ground, x, y)
    xxx, xxy, xyy, yyy = 0.0, 0.0, 0.0, 0.0
    for order in range(4):
        a, b = _row_of(ground, row, column, s, order), _row_of(ground, row + 1, column, s, order)
        c, d = _row_of(ground, row + 2, column, s, order), _row_of(ground, row + 3, column, s, order)
        value, slope, curvature = b_spline(a, b, c, d, t)
        if order == 0:
            yyy = d - a + 3.0 * (b - c)
        elif order == 1:
            xyy = curvature
        elif order == 2:
            xxy = slope
        else:
            xxx = value
    if is_out_x:
        xxx, xxy, xyy = 0.0, 0.0, 0.0
    if is_out_y:
        xxy, xyy, yyy = 0.0, 0.0, 0.0
    cube = spacing * spacing * spacing
    return xxx / cube, xxy / cube, xyy / cube, yyy / cube


@for_compiled_callers
def depth_hessian(ground, x, y, z, hessian):
    """Fill hessian (3, 3) 1/m with the second derivatives of the depth; zero for a plane."""
    for a in range(3):
        for b in range(3):
            hessian[a, b] = 0.0
    if ground[ROWS] == 0.0:
        return
    h, h_x, h_y, h_xx, h_xy, h_yy = field_height(ground, x, y)
    h_xxx, h_xxy, h_xyy, h_yyy = field_thirds(ground, x, y)
    below = h - z
    # depth = (h - z) q with q = (1 + s)^(-1/2) and s = h_x^2 + h_y^2
    q = 1.0 / np.sqrt(1.0 + h_x * h_x + h_y * h_y)
    s_x, s_y = 2.0 * (h_x * h_xx + h_y * h_xy), 2.0 * (h_x * h_xy + h_y * h_yy)
    s_xx = 2.0 * (h_xx * h_xx + h_x * h_xxx + h_xy * h_xy + h_y * h_xxy)
    s_xy = 2.0 * (h_xx * h_xy + h_x * h_xxy + h_xy * h_yy + h_y * h_xyy)
    s_yy = 2.0 * (h_xy * h_xy + h_x * h_xyy + h_yy * h_yy + h_y * h_yyy)
    once, twice = -0.5 * q * q * q, 0.75 * q * q * q * q * q
    q_x, q_y = once * s_x, once * s_y
    q_xx, q_xy, q_yy = (
        twice * s_x * s_x + once * s_xx, twice * s_x * s_y + once * s_xy, twice * s_y * s_y + once * s_yy
    )  # fmt: skip
    hessian[0, 0] = h_xx * q + 2.0 * h_x * q_x + below * q_xx
    hessian[1, 1] = h_yy * q + 2.0 * h_y * q_y + below * q_yy
    hessian[0, 1] = h_xy * q + h_x * q_y + h_y * q_x + below * q_xy
    hessian[1, 0] = hessian[0, 1]
    hessian[0, 2], hessian[2, 0] = -q_x, -q_x
    hessian[1, 2], hessian[2, 1] = -q_y, -q_y


@for_compiled_callers
def point_slopes(ground, x, y, z, velocity, by_position, by_velocity, scratch):
    """Fill the derivatives (3, 3) [N/m and N s/m] of the ground force on a point; returns whether there is a force.

    velocity: (3,) m/s. scratch: (SCRATCH_ROWS, 3).
    """
    away, turned, slide = scratch[AWAY], scratch[TURNED], scratch[SLIDE]
    away_change, slide_change = scratch[AWAY_CHANGE], scratch[SLIDE_CHANGE]
    hessian = scratch[HESSIAN:HESSIAN_END]
    for a in range(3):
        for b in range(3):
            by_position[a, b], by_velocity[a, b] = 0.0, 0.0
    deep = depth(ground, x, y, z, away)
    elastic, slope, _ = normal_law(ground, deep)
    if not elastic > 0.0:
        return False
    depth_hessian(ground, x, y, z, hessian)
    square = away[0] * away[0] + away[1] * away[1] + away[2] * away[2]
    size = np.sqrt(square)
    rate = -(away[0] * velocity[0] + away[1] * velocity[1] + away[2] * velocity[2])
    coefficient, bend = ground[DAMPING], 0.0
    if ground[LAW] == SOFTPLUS:
        smooth = ground[SMOOTHNESS]
        root = np.sqrt(deep * deep + smooth * smooth)
        coefficient = ground[DAMPING] * slope / ground[STIFFNESS]
        bend = 0.5 * ground[DAMPING] * smooth * smooth / (root * root * root)
    push = elastic + coefficient * rate
    if not push > 0.0:
        return False
    along, speed = -rate / square, 0.0
    for a in range(3):
        slide[a] = velocity[a] - along * away[a]
        speed += slide[a] * slide[a]
        turned[a] = hessian[a, 0] * velocity[0] + hessian[a, 1] * velocity[1] + hessian[a, 2] * velocity[2]
    slow = np.sqrt(speed + ground[SPEED] * ground[SPEED])
    rub = ground[FRICTION] * size / slow
    drag = rub * push + ground[VISCOUS]
    for b in range(6):
        axis, is_position = b % 3, b < 3
        if is_position:
            push_change = -(slope + bend * rate) * away[axis] + coefficient * turned[axis]
            dot, along_change = 0.0, 0.0
            for a in range(3):
                away_change[a] = -hessian[a, axis]
                dot += away[a] * away_change[a]
                along_change += away_change[a] * velocity[a]
            along_change = along_change / square - 2.0 * along * dot / square
        else:
            push_change = -coefficient * away[axis]
            dot, along_change = 0.0, away[axis] / square
            for a in range(3):
                away_change[a] = 0.0
        faster = 0.0
        for a in range(3):
            slide_change[a] = -along_change * away[a] - along * away_change[a]
            if not is_position and a == axis:
                slide_change[a] += 1.0
            faster += slide[a] * slide_change[a]
        drag_change = rub * push_change + rub * push * (dot / square - faster / (slow * slow))
        for a in range(3):
            change = push_change * away[a] + push * away_change[a] - drag_change * slide[a] - drag * slide_change[a]
            if is_position:
                by_position[a, axis] = change
            else:
                by_velocity[a, axis] = change
    return True
