"""Spatial (6D) vectors as in 000, section 1.2: motion [angular, linear] and force [moment, force], compiled.

All vectors of an operation are in one common frame. The sweeps of this package use the world frame and its origin, so
that no transforms between bodies are needed. Joints give their quantities in successor coordinates.
"""

from __future__ import annotations

from ..numerics.compilation import allocation_free, for_compiled_callers


@allocation_free
def cross(a, b, out):
    """out (3,) = a x b."""
    x = a[1] * b[2] - a[2] * b[1]
    y = a[2] * b[0] - a[0] * b[2]
    z = a[0] * b[1] - a[1] * b[0]
    out[0], out[1], out[2] = x, y, z


@for_compiled_callers
def rotate(matrix, vector, out):
    """out (3,) = matrix (3, 3) @ vector (3,); out must not be vector."""
    for a in range(3):
        out[a] = matrix[a, 0] * vector[0] + matrix[a, 1] * vector[1] + matrix[a, 2] * vector[2]


@allocation_free
def multiply(a, b, out):
    """out (3, 3) = a @ b; out must be neither."""
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]


@for_compiled_callers
def cross_motion(v, m, out):
    """out (6,) = v x m, the rate of change of a motion vector m that moves with v."""
    out[0] = v[1] * m[2] - v[2] * m[1]
    out[1] = v[2] * m[0] - v[0] * m[2]
    out[2] = v[0] * m[1] - v[1] * m[0]
    out[3] = v[1] * m[5] - v[2] * m[4] + v[4] * m[2] - v[5] * m[1]
    out[4] = v[2] * m[3] - v[0] * m[5] + v[5] * m[0] - v[3] * m[2]
    out[5] = v[0] * m[4] - v[1] * m[3] + v[3] * m[1] - v[4] * m[0]


@for_compiled_callers
def cross_force(v, f, out):
    """out (6,) = v x* f, the rate of change of a force vector f that moves with v."""
    out[0] = v[1] * f[2] - v[2] * f[1] + v[4] * f[5] - v[5] * f[4]
    out[1] = v[2] * f[0] - v[0] * f[2] + v[5] * f[3] - v[3] * f[5]
    out[2] = v[0] * f[1] - v[1] * f[0] + v[3] * f[4] - v[4] * f[3]
    out[3] = v[1] * f[5] - v[2] * f[4]
    out[4] = v[2] * f[3] - v[0] * f[5]
    out[5] = v[0] * f[4] - v[1] * f[3]


@allocation_free
def to_world(rotation, origin, local, out):
    """out (6,): motion vector at the origin of a frame in its axes, converted to world axes at the world origin."""
    for a in range(3):
        out[a] = rotation[a, 0] * local[0] + rotation[a, 1] * local[1] + rotation[a, 2] * local[2]
        out[3 + a] = rotation[a, 0] * local[3] + rotation[a, 1] * local[4] + rotation[a, 2] * local[5]
    out[3] += origin[1] * out[2] - origin[2] * out[1]
    out[4] += origin[2] * out[0] - origin[0] * out[2]
    out[5] += origin[0] * out[1] - origin[1] * out[0]


@for_compiled_callers
def inertia_times(inertia, v, out):
    """out (6,) = I v for inertia (10,): mass, mass times centre (3), and xx, yy, zz, xy, xz, yz about the origin."""
    m, hx, hy, hz = inertia[0], inertia[1], inertia[2], inertia[3]
    xx, yy, zz, xy, xz, yz = inertia[4], inertia[5], inertia[6], inertia[7], inertia[8], inertia[9]
    out[0] = xx * v[0] + xy * v[1] + xz * v[2] + hy * v[5] - hz * v[4]
    out[1] = xy * v[0] + yy * v[1] + yz * v[2] + hz * v[3] - hx * v[5]
    out[2] = xz * v[0] + yz * v[1] + zz * v[2] + hx * v[4] - hy * v[3]
    out[3] = m * v[3] - hy * v[2] + hz * v[1]
    out[4] = m * v[4] - hz * v[0] + hx * v[2]
    out[5] = m * v[5] - hx * v[1] + hy * v[0]


@for_compiled_callers
def world_inertia(mass, centre, tensor, rotation, origin, out):
    """Fill out (10,) with the inertia of a body: mass [kg], centre (3,) [m], central tensor (3, 3) [kg m^2], body
    axes."""
    cx = origin[0] + rotation[0, 0] * centre[0] + rotation[0, 1] * centre[1] + rotation[0, 2] * centre[2]
    cy = origin[1] + rotation[1, 0] * centre[0] + rotation[1, 1] * centre[1] + rotation[1, 2] * centre[2]
    cz = origin[2] + rotation[2, 0] * centre[0] + rotation[2, 1] * centre[1] + rotation[2, 2] * centre[2]
    out[0] = mass
    out[1], out[2], out[3] = mass * cx, mass * cy, mass * cz
    out[4] = mass * (cy * cy + cz * cz)
    out[5] = mass * (cx * cx + cz * cz)
    out[6] = mass * (cx * cx + cy * cy)
    out[7], out[8], out[9] = -mass * cx * cy, -mass * cx * cz, -mass * cy * cz
    for i in range(3):
        a0 = rotation[0, i]
        a1 = rotation[1, i]
        a2 = rotation[2, i]
        b0 = 0.0
        b1 = 0.0
        b2 = 0.0
        for j in range(3):
            t = tensor[i, j]
            b0 += t * rotation[0, j]
            b1 += t * rotation[1, j]
            b2 += t * rotation[2, j]
        out[4] += a0 * b0
        out[5] += a1 * b1
        out[6] += a2 * b2
        out[7] += a0 * b1
        out[8] += a0 * b2
        out[9] += a1 * b2
