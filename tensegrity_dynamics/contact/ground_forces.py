"""Ground forces on points, compiled; the laws are in `ground`.

The depth d of a point is its distance below a plane. Below hills z = h(x, y) it is (h - z) / sqrt(1 + |grad h|^2),
which is the distance to first order. The normal force is exactly the force of the law times the gradient of d, so that
the ground has an energy: the integral of the law.
"""

from __future__ import annotations

import numpy as np

from ..numerics.compilation import allocation_free, for_compiled_callers, inlined
from .ground import LAWS, Ground

LINEAR, EXPONENTIAL, SOFTPLUS = range(3)
MAX_EXPONENT = 30.0
"""Ratio of depth to length, above which the exponential law continues along its tangent."""

STIFFNESS, DAMPING, FRICTION, SPEED, VISCOUS, SMOOTHNESS, LENGTH = range(7)
NORMAL, OFFSET, ORIGIN, SPACING, HEIGHT, LAW, ROWS, COLUMNS, HEIGHTS = 7, 10, 11, 13, 14, 15, 16, 17, 18
"""Indices of the parameters of a ground in its array, which is empty without ground. It is a single array, because
compiled functions pass on every array of their arguments separately. NORMAL has three values, ORIGIN two. From HEIGHTS
on there are the ROWS x COLUMNS spline coefficients of the hills, none for a plane."""


def flatten(ground: Ground | None) -> np.ndarray:
    """Array of a ground; empty without ground."""
    if ground is None:
        return np.zeros(0)
    numbers, heights = np.zeros(HEIGHTS), np.zeros((0, 0))
    numbers[:7] = (
        ground.stiffness, ground.damping, ground.friction, ground.friction_speed, ground.viscous, ground.smoothness,
        ground.length,
    )  # fmt: skip
    numbers[NORMAL : NORMAL + 3] = ground.normal
    numbers[OFFSET] = ground.normal[2] * ground.height
    numbers[HEIGHT], numbers[LAW] = ground.height, LAWS.index(ground.law)
    if ground.hills is not None:
        numbers[ORIGIN : ORIGIN + 2], numbers[SPACING] = ground.hills.origin, ground.hills.spacing
        heights = spline_coefficients(ground.hills.heights)
    numbers[ROWS], numbers[COLUMNS] = heights.shape
    return np.concatenate((numbers, heights.ravel()))


@for_compiled_callers
def b_spline(a, b, c, d, t):
    """Value, slope and curvature at t from 0 to 1 of the cubic B-spline with these four coefficients."""
    p, q, r = (d - a) / 6.0 + 0.5 * (b - c), 0.5 * (a + c) - b, 0.5 * (c - a)
    return ((p * t + q) * t + r) * t + (a + 4.0 * b + c) / 6.0, (3.0 * p * t + 2.0 * q) * t + r, 6.0 * p * t + 2.0 * q


@for_compiled_callers
def _along_row(ground, row, column, s):
    """Value, slope and curvature along a row of coefficients between two columns of the grid."""
    at = HEIGHTS + row * int(ground[COLUMNS]) + column
    return b_spline(ground[at], ground[at + 1], ground[at + 2], ground[at + 3], s)


def spline_coefficients(heights: np.ndarray) -> np.ndarray:
    """(r + 2, c + 2) coefficients of the natural bicubic spline through heights (r, c), with continuous curvature."""
    result = heights
    for _ in range(2):
        count = result.shape[0]
        matrix = np.zeros((count + 2, count + 2))
        for i in range(count):
            matrix[i + 1, i : i + 3] = 1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0
        matrix[0, :3] = matrix[-1, -3:] = 1.0, -2.0, 1.0
        padded = np.zeros((count + 2, result.shape[1]))
        padded[1:-1] = result
        result = np.linalg.solve(matrix, padded).T
    return np.ascontiguousarray(result)


@for_compiled_callers
def field_cell(ground, x, y):
    """Row and column of the cell of a point, position in it from 0 to 1 along x and y, and whether it is outside."""
    spacing = ground[SPACING]
    rows, columns = int(ground[ROWS]) - 2, int(ground[COLUMNS]) - 2
    u, v = (x - ground[ORIGIN]) / spacing, (y - ground[ORIGIN + 1]) / spacing
    is_out_x, is_out_y = not 0.0 <= u <= columns - 1.0, not 0.0 <= v <= rows - 1.0
    u, v = min(max(u, 0.0), columns - 1.0), min(max(v, 0.0), rows - 1.0)
    column, row = min(int(u), columns - 2), min(int(v), rows - 2)
    return row, column, u - column, v - row, is_out_x, is_out_y


@allocation_free
def field_height(ground, x, y):
    """h, h_x, h_y, h_xx, h_xy, h_yy of the field at a point [m, -, 1/m]; level outside the edges."""
    spacing = ground[SPACING]
    row, column, s, t, is_out_x, is_out_y = field_cell(ground, x, y)
    a, a_x, a_xx = _along_row(ground, row, column, s)
    b, b_x, b_xx = _along_row(ground, row + 1, column, s)
    c, c_x, c_xx = _along_row(ground, row + 2, column, s)
    d, d_x, d_xx = _along_row(ground, row + 3, column, s)
    h, h_y, h_yy = b_spline(a, b, c, d, t)
    h_x, h_xy, _ = b_spline(a_x, b_x, c_x, d_x, t)
    h_xx, _, _ = b_spline(a_xx, b_xx, c_xx, d_xx, t)
    if is_out_x:
        h_x, h_xx, h_xy = 0.0, 0.0, 0.0
    if is_out_y:
        h_y, h_yy, h_xy = 0.0, 0.0, 0.0
    square = spacing * spacing
    return (
        h + ground[HEIGHT], h_x / spacing, h_y / spacing, h_xx / square, h_xy / square, h_yy / square
    )  # fmt: skip


@inlined
def depth(ground, x, y, z, away):
    """Depth [m] of a point (negative above the ground); fills away (3,) with its negative gradient."""
    if ground[ROWS] == 0.0:
        for a in range(3):
            away[a] = ground[NORMAL + a]
        return ground[OFFSET] - (away[0] * x + away[1] * y + away[2] * z)
    h, h_x, h_y, h_xx, h_xy, h_yy = field_height(ground, x, y)
    upright = 1.0 / np.sqrt(1.0 + h_x * h_x + h_y * h_y)
    cube, below = upright * upright * upright, h - z
    away[0] = -(upright * h_x - below * cube * (h_x * h_xx + h_y * h_xy))
    away[1] = -(upright * h_y - below * cube * (h_x * h_xy + h_y * h_yy))
    away[2] = upright
    return below * upright


@inlined
def normal_law(ground, deep):
    """Force [N], slope [N/m] and energy [J] of the law at a depth [m]."""
    stiffness = ground[STIFFNESS]
    if ground[LAW] == SOFTPLUS:
        smooth = ground[SMOOTHNESS]
        root = np.sqrt(deep * deep + smooth * smooth)
        # above the ground the sum of root and depth would cancel
        plus = 0.5 * (root + deep) if deep > 0.0 else 0.5 * smooth * smooth / (root - deep)
        # the integral of the law, zero at the surface; far above it falls like a logarithm
        energy = 0.5 * deep * plus + 0.25 * smooth * smooth * np.arcsinh(deep / smooth)
        return stiffness * plus, stiffness * plus / root, stiffness * energy
    if deep <= 0.0:
        return 0.0, 0.0, 0.0
    if ground[LAW] == EXPONENTIAL:
        length = ground[LENGTH]
        part = min(deep / length, MAX_EXPONENT)
        beyond, grown = deep - part * length, np.expm1(part)
        force = stiffness * (length * grown + (grown + 1.0) * beyond)
        energy = length * length * (grown - part) + length * grown * beyond + 0.5 * (grown + 1.0) * beyond * beyond
        return force, stiffness * (grown + 1.0), stiffness * energy
    return stiffness * deep, stiffness, 0.5 * stiffness * deep * deep


@inlined
def point_force(ground, x, y, z, velocity, horizon, away, force, out):
    """Fill force (3,) [N] on a point with velocity (3,) [m/s]; returns whether it touches the ground.

    Args:
        horizon: step of an implicit method [s] (else 0); the damper acts for the fraction of it with contact.
        away: (3,) scratch, negative gradient of the depth.
        out: (6,) normal force [N], dissipation of damping and of friction [W], slope of the law [N/m], damping and
            friction coefficients [N s/m].
    """
    deep = depth(ground, x, y, z, away)
    elastic, slope, _ = normal_law(ground, deep)
    for a in range(3):
        force[a] = 0.0
    for a in range(6):
        out[a] = 0.0
    if not elastic > 0.0:
        return False
    size = np.sqrt(away[0] * away[0] + away[1] * away[1] + away[2] * away[2])
    rate = -(away[0] * velocity[0] + away[1] * velocity[1] + away[2] * velocity[2])
    coefficient = ground[DAMPING] * slope / ground[STIFFNESS] if ground[LAW] == SOFTPLUS else (ground[DAMPING])
    push, damper = elastic + coefficient * rate, coefficient
    if rate * horizon > deep and ground[LAW] != SOFTPLUS:
        push, damper = elastic + coefficient * deep / horizon, 0.0
        slope += coefficient / horizon
    if push < 0.0:
        push, damper = 0.0, 0.0
    along = -rate / (size * size)
    speed = 0.0
    for a in range(3):
        part = velocity[a] - along * away[a]
        speed += part * part
    slow = ground[SPEED]
    drag = ground[FRICTION] * push * size / np.sqrt(speed + slow * slow)
    if push > 0.0:
        drag += ground[VISCOUS]
    for a in range(3):
        force[a] = push * away[a] - drag * (velocity[a] - along * away[a])
    out[0], out[1], out[2] = push * size, (push - elastic) * rate, drag * speed
    out[3], out[4], out[5] = slope, damper, drag
    return True


@allocation_free
def ground_energy(ground, nodes, position, away):
    """Elastic energy [J] of the ground at the free points of (n, 3) (position not negative); away: scratch."""
    energy = 0.0
    for i in range(nodes.shape[0]):
        if position[i] >= 0:
            energy += normal_law(ground, depth(ground, nodes[i, 0], nodes[i, 1], nodes[i, 2], away))[2]
    return energy


def surface_height(ground: Ground, x: float, y: float) -> float:
    """z [m] of the surface at a point of the xy plane."""
    if ground.hills is None:
        return ground.height - float(ground.normal[0] * x + ground.normal[1] * y) / float(ground.normal[2])
    return float(field_height(flatten(ground), x, y)[0])
