"""Points of bodies: their velocity, and the generalised forces of a force at a point."""

from __future__ import annotations

from ..numerics.compilation import for_compiled_callers


@for_compiled_callers
def point_speed(velocity, body, point, out):
    """Fill out (3,) with the velocity of a body-fixed point (3,); body -1 is the world."""
    if body < 0:
        out[0] = out[1] = out[2] = 0.0
        return
    w, u = velocity[body, :3], velocity[body, 3:]
    out[0] = u[0] + w[1] * point[2] - w[2] * point[1]
    out[1] = u[1] + w[2] * point[0] - w[0] * point[2]
    out[2] = u[2] + w[0] * point[1] - w[1] * point[0]


@for_compiled_callers
def add_force(body, point, direction, size, v_start, v_count, parent, dof_parent, jacobian, passive):
    """Add a force of magnitude `size` along a direction (3,) at a point (3,) of a body to the efforts (nv,)."""
    while body >= 0 and v_count[body] == 0:
        body = parent[body]
    if body < 0:
        return
    d = v_start[body] + v_count[body] - 1
    fx, fy, fz = size * direction[0], size * direction[1], size * direction[2]
    mx = point[1] * fz - point[2] * fy
    my = point[2] * fx - point[0] * fz
    mz = point[0] * fy - point[1] * fx
    while d >= 0:
        row = jacobian[d]
        passive[d] += row[0] * mx + row[1] * my + row[2] * mz + row[3] * fx + row[4] * fy + row[5] * fz
        d = dof_parent[d]
