"""Kinematics of the bodies with one outward sweep in the world frame (000, 1.2.16).

The sweep gives poses, velocities, velocity-product accelerations and the joint Jacobians.
"""

from __future__ import annotations

import numpy as np

from ...numerics.compilation import allocation_free, for_compiled_callers, inlined_part
from ..joints import FLOATING, REVOLUTE, SPHERICAL, joint_motion, rotation_about
from ..late_kernels import RIGID_ROUTES
from ..routing.late_call import call_rigid_rows
from ..spatial import cross_motion, multiply, rotate, to_world


@inlined_part
def turn_about(axes, angle, first, second, third, out):
    """Fill out (3, 3) with axes rotated about the third of them; the columns are in cyclic order."""
    c, s = np.cos(angle), np.sin(angle)
    for k in range(3):
        a, b = axes[k, first], axes[k, second]
        out[k, first], out[k, second], out[k, third] = c * a + s * b, c * b - s * a, axes[k, third]


@inlined_part
def revolute_motion(flat, i, q, v, work):
    """Specialised part of `body_kinematics` for a body on a revolute joint, with fewer operations.

    work.axes and work.position[i] are those of the predecessor frame of the joint.
    """
    b = flat.v_start[i]
    rate, axis, along = v[b], flat.axis[i], work.jacobian[b]
    if axis[2] == 1.0:
        turn_about(work.axes, q[flat.q_start[i]], 0, 1, 2, work.rotation[i])
    elif axis[1] == 1.0:
        turn_about(work.axes, q[flat.q_start[i]], 2, 0, 1, work.rotation[i])
    elif axis[0] == 1.0:
        turn_about(work.axes, q[flat.q_start[i]], 1, 2, 0, work.rotation[i])
    else:
        rotation_about(axis, q[flat.q_start[i]], work.joint_rotation)
        multiply(work.axes, work.joint_rotation, work.rotation[i])
    rotate(work.axes, axis, along)
    ax, ay, az = along[0], along[1], along[2]
    x, y, z = work.position[i, 0], work.position[i, 1], work.position[i, 2]
    mx, my, mz = y * az - z * ay, z * ax - x * az, x * ay - y * ax
    along[3], along[4], along[5] = mx, my, mz
    velocity, acceleration = work.velocity[i], work.acceleration[i]
    # v_p x v_J: the contribution of the joint to v_i is along its axis
    wx, wy, wz = velocity[0], velocity[1], velocity[2]
    ux, uy, uz = velocity[3], velocity[4], velocity[5]
    acceleration[0] += rate * (wy * az - wz * ay)
    acceleration[1] += rate * (wz * ax - wx * az)
    acceleration[2] += rate * (wx * ay - wy * ax)
    acceleration[3] += rate * (wy * mz - wz * my + uy * az - uz * ay)
    acceleration[4] += rate * (wz * mx - wx * mz + uz * ax - ux * az)
    acceleration[5] += rate * (wx * my - wy * mx + ux * ay - uy * ax)
    velocity[0], velocity[1], velocity[2] = wx + rate * ax, wy + rate * ay, wz + rate * az
    velocity[3], velocity[4], velocity[5] = ux + rate * mx, uy + rate * my, uz + rate * mz


@allocation_free
def body_kinematics(flat, q, v, work):
    """Fill rotation, position, velocity, velocity-product acceleration (with -gravity) and the joint Jacobians.

    With inextensible routed cables it also fills their loop rows, which need the positions of the joints.
    """
    for i in range(flat.kind.shape[0]):
        a, b = flat.q_start[i], flat.v_start[i]
        n, kind = flat.v_count[i], flat.kind[i]
        p = flat.parent[i]
        if p >= 0:
            multiply(work.rotation[p], flat.axes[i], work.axes)
            rotate(work.rotation[p], flat.origin[i], work.three)
            for k in range(3):
                work.position[i, k] = work.position[p, k] + work.three[k]
            for k in range(6):
                work.velocity[i, k] = work.velocity[p, k]
                work.acceleration[i, k] = work.acceleration[p, k]
        else:
            for k in range(3):
                for m in range(3):
                    work.axes[k, m] = flat.axes[i, k, m]
                work.position[i, k] = flat.origin[i, k]
                work.velocity[i, k] = work.velocity[i, 3 + k] = 0.0
                work.acceleration[i, k] = 0.0
                work.acceleration[i, 3 + k] = -flat.gravity[k]
        if kind == REVOLUTE:
            revolute_motion(flat, i, q, v, work)
            continue
        joint_motion(
            kind, flat.axis[i], flat.radius[i], q[a:], v[b : b + n],
            work.joint_rotation, work.joint_translation, work.subspace, work.joint_bias,
        )  # fmt: skip
        rotate(work.axes, work.joint_translation, work.three)
        for k in range(3):
            work.position[i, k] += work.three[k]
        multiply(work.axes, work.joint_rotation, work.rotation[i])
        # velocity of the joint in the world, then v_i and a_i^vp = a_p^vp + c_J + v_i x v_J (1.2.16)
        for k in range(6):
            work.other[k] = 0.0
        for d in range(n):
            for k in range(6):
                work.six[k] = work.subspace[k, d]
            to_world(work.rotation[i], work.position[i], work.six, work.jacobian[b + d])
            for k in range(6):
                work.other[k] += work.jacobian[b + d, k] * v[b + d]
        for k in range(6):
            work.velocity[i, k] += work.other[k]
        cross_motion(work.velocity[i], work.other, work.six)
        for k in range(6):
            work.acceleration[i, k] += work.six[k]
        if kind == SPHERICAL or kind == FLOATING:
            continue  # bias is zero
        to_world(work.rotation[i], work.position[i], work.joint_bias, work.six)
        for k in range(6):
            work.acceleration[i, k] += work.six[k]
    if flat.late_kernels[RIGID_ROUTES] != 0:
        call_rigid_rows(flat, q, v, work)


@for_compiled_callers
def world_point(rotation, position, body, local, out):
    """out (3,): position of a body-fixed point in the world [m]; body -1 is the world."""
    if body < 0:
        for k in range(3):
            out[k] = local[k]
    else:
        rotate(rotation[body], local, out)
        for k in range(3):
            out[k] += position[body, k]


@for_compiled_callers
def world_direction(rotation, body, local, out):
    """out (3,): body-fixed direction in world axes."""
    if body < 0:
        for k in range(3):
            out[k] = local[k]
    else:
        rotate(rotation[body], local, out)


@inlined_part
def last_dof(flat, body):
    """Last velocity coordinate that moves a body; -1 if there is none."""
    while body >= 0:
        if flat.v_count[body] > 0:
            return flat.v_start[body] + flat.v_count[body] - 1
        body = flat.parent[body]
    return -1
