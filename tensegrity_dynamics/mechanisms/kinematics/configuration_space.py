"""Configuration space of a mechanism: rates, small displacements and differences of configurations.

For joints with quaternions, q is not the integral of v. All steps along v use this module.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...numerics.compilation import allocation_free
from ...numerics.rotations import matrix_from_quaternion, matrix_from_vector, rotation_vector
from .. import joints
from ..joint_coordinates import QUATERNION_KINDS
from ..joints import FLOATING, POSITION_COUNTS, SPHERICAL, position_rate
from ..mechanism import Mechanism


@allocation_free
def configuration_rate(flat, q, v, rate):
    """Fill rate (nq,) with dq/dt for all joints."""
    for i in range(flat.kind.shape[0]):
        a, b = flat.q_start[i], flat.v_start[i]
        kind = flat.kind[i]
        position_rate(
            kind, q[a : a + POSITION_COUNTS[kind]], v[b : b + flat.v_count[i]], rate[a : a + POSITION_COUNTS[kind]]
        )


@allocation_free
def normalise_quaternions(flat, q):
    """Normalise the quaternions of a configuration."""
    for i in range(flat.kind.shape[0]):
        kind = flat.kind[i]
        if kind == SPHERICAL or kind == FLOATING:
            a = flat.q_start[i] + (3 if kind == FLOATING else 0)
            norm = np.sqrt(q[a] ** 2 + q[a + 1] ** 2 + q[a + 2] ** 2 + q[a + 3] ** 2)
            for k in range(4):
                q[a + k] /= norm


@allocation_free
def displacement_of(flat, j, q, moved, out):
    """Fill out (v_count of joint j,) with the displacement of a spherical or floating joint from q to moved (nq,).

    It is the step along `configuration_rate` that leads there: of a rotation twice the vector tan(angle / 2) axis, of a
    position in the successor axes of q.
    """
    a = flat.q_start[j] + (3 if flat.kind[j] == FLOATING else 0)
    w, x, y, z = q[a], -q[a + 1], -q[a + 2], -q[a + 3]
    ow, ox, oy, oz = moved[a], moved[a + 1], moved[a + 2], moved[a + 3]
    scale = 2.0 / (w * ow - x * ox - y * oy - z * oz)
    out[0] = scale * (w * ox + x * ow + y * oz - z * oy)
    out[1] = scale * (w * oy + y * ow + z * ox - x * oz)
    out[2] = scale * (w * oz + z * ow + x * oy - y * ox)
    if flat.kind[j] == FLOATING:
        dx, dy, dz = moved[a - 3] - q[a - 3], moved[a - 2] - q[a - 2], moved[a - 1] - q[a - 1]
        cx, cy, cz = 2.0 * (y * dz - z * dy), 2.0 * (z * dx - x * dz), 2.0 * (x * dy - y * dx)
        out[3] = dx + w * cx + y * cz - z * cy
        out[4] = dy + w * cy + z * cx - x * cz
        out[5] = dz + w * cz + x * cy - y * cx


@allocation_free
def displace(flat, q, step, rate, result):
    """`displaced`, compiled: fill result (nq,); rate (nq,) is overwritten."""
    configuration_rate(flat, q, step, rate)
    for k in range(q.shape[0]):
        result[k] = q[k] + rate[k]
    normalise_quaternions(flat, result)


def displaced(mechanism: Mechanism, q: NDArray, step: NDArray) -> NDArray[np.float64]:
    """Configuration after a small step (nv,) along the velocity coordinates; quaternions stay normalised."""
    result = np.array(q)
    for joint in mechanism.joints:
        kind = joints.JOINT_KINDS[joint.kind]
        at = mechanism.positions_of(joint.name)
        rate = np.zeros(joints.POSITION_COUNTS[kind])
        position_rate(kind, q[at], step[mechanism.velocities_of(joint.name)], rate)
        result[at] += rate
        if joint.kind in QUATERNION_KINDS:
            result[at.stop - 4 : at.stop] /= np.linalg.norm(result[at.stop - 4 : at.stop])
    return result


def difference(mechanism: Mechanism, before: NDArray, after: NDArray) -> NDArray[np.float64]:
    """Displacement (nv,) along the velocity coordinates from one configuration to another one nearby.

    Divided by the time between them it is the mean velocity, to second order in this time. Rotations are rotation
    vectors; translations of floating joints are in the body axes midway between both configurations.
    """
    step = np.zeros(mechanism.velocity_count)
    for joint in mechanism.joints:
        kind = joints.JOINT_KINDS[joint.kind]
        q, v = mechanism.positions_of(joint.name), mechanism.velocities_of(joint.name)
        if joint.kind in QUATERNION_KINDS:
            old = matrix_from_quaternion(before[q.stop - 4 : q.stop])
            turn = rotation_vector(old.T @ matrix_from_quaternion(after[q.stop - 4 : q.stop]))
            step[v.start : v.start + 3] = turn
            if kind == joints.FLOATING:
                half = matrix_from_vector(0.5 * turn)  # body axes midway
                step[v.start + 3 : v.stop] = (old @ half).T @ (
                    after[q.start : q.start + 3] - before[q.start : q.start + 3]
                )
        else:
            step[v] = after[q] - before[q]
    return step
