"""Joints: transform, motion subspace S and apparent bias c_J in successor coordinates (000, section 1.2.1 and 3.1).

v_J = S v and a_J = S a + c_J with c_J the *apparent* derivative (S' v): the sweep adds v x v_J itself (000, 1.2.16).
Rows are [angular, linear]. Angles in rad, lengths in m, strain without unit.

| kind | q | v | parameters |
| --- | --- | --- | --- |
| fixed | - | - | - |
| revolute, prismatic | 1 | 1 | axis (3) in both frames |
| universal | 2: about x of the predecessor, then about y of the successor | 2 | - |
| spherical | 4: quaternion wxyz, successor to predecessor | 3: angular velocity in the successor | - |
| floating | 7: position in the predecessor, quaternion | 6: successor coordinates | - |
| involute_rigid | phi | 1 | pulley radius |
| involute_u | phi, elongation u | 2 | pulley radius |
| involute_epsilon | phi, strain | 2 | pulley radius |
| involute_length | phi, taut length l | 2 | pulley radius |

**Involute joint.** The predecessor is the pulley (z along its axis), the successor the end of the cable, x along the
cable. The unwound rest length is l0 = r phi and the taut length l = l0 (1 + strain) = l0 + u; the successor's origin
lies at r y + l x in successor axes, turned by phi about z (000, 3.1.1 and 3.1.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.compilation import allocation_free
from ..numerics.rotations import cross_matrix
from .joint_coordinates import JOINT_COORDINATES

JOINT_KINDS = {kind: number for number, kind in enumerate(JOINT_COORDINATES)}
# The kernels need plain numbers. The involute joints are the last ones: `kind >= INVOLUTE_RIGID`.
(
    FIXED, REVOLUTE, PRISMATIC, UNIVERSAL, SPHERICAL, FLOATING,
    INVOLUTE_RIGID, INVOLUTE_U, INVOLUTE_EPSILON, INVOLUTE_LENGTH,
) = JOINT_KINDS.values()  # fmt: skip
VELOCITY_COUNTS = np.array([len(kind.quantities) for kind in JOINT_COORDINATES.values()])
"""Number of velocity coordinates by kind."""
POSITION_COUNTS = np.array([len(kind.quantities) + kind.quaternion for kind in JOINT_COORDINATES.values()])
"""Number of position coordinates by kind."""
for _counts in (POSITION_COUNTS, VELOCITY_COUNTS):
    _counts.setflags(write=False)


@allocation_free
def rotation_about(axis, angle, out):
    """Fill out (3, 3) with the rotation by angle about a unit axis (Rodrigues)."""
    c = np.cos(angle)
    s = np.sin(angle)
    t = 1.0 - c
    x, y, z = axis[0], axis[1], axis[2]
    out[0, 0], out[0, 1], out[0, 2] = c + t * x * x, t * x * y - s * z, t * x * z + s * y
    out[1, 0], out[1, 1], out[1, 2] = t * x * y + s * z, c + t * y * y, t * y * z - s * x
    out[2, 0], out[2, 1], out[2, 2] = t * x * z - s * y, t * y * z + s * x, c + t * z * z


@allocation_free
def rotation_of(w, x, y, z, out):
    """Fill out (3, 3) with the rotation of a unit quaternion."""
    out[0, 0], out[0, 1], out[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    out[1, 0], out[1, 1], out[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    out[2, 0], out[2, 1], out[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)


@allocation_free
def cable_length(kind, radius, q):
    """Taut length l [m] of an involute joint at position q."""
    if kind == INVOLUTE_RIGID:
        return radius * q[0]
    if kind == INVOLUTE_U:
        return radius * q[0] + q[1]
    if kind == INVOLUTE_EPSILON:
        return radius * q[0] * (1.0 + q[1])
    return q[1]


@allocation_free
def cable_length_rate(kind, radius, q, v):
    """Rate of the taut length [m/s] of an involute joint."""
    if kind == INVOLUTE_RIGID:
        return radius * v[0]
    if kind == INVOLUTE_U:
        return radius * v[0] + v[1]
    if kind == INVOLUTE_EPSILON:
        return radius * (v[0] * (1.0 + q[1]) + q[0] * v[1])
    return v[1]


@allocation_free
def joint_motion(kind, axis, radius, q, v, rotation, translation, subspace, bias):
    """Fill transform, motion subspace and apparent bias of a joint at position q and velocity v.

    rotation (3, 3): successor to predecessor axes; translation (3,) m: successor origin in predecessor axes;
    subspace (6, >= n): S; bias (6,): c_J; both in successor coordinates.
    """
    rotation[:, :] = 0.0
    rotation[0, 0] = rotation[1, 1] = rotation[2, 2] = 1.0
    translation[:] = 0.0
    subspace[:, :] = 0.0
    bias[:] = 0.0
    if kind == REVOLUTE:
        rotation_about(axis, q[0], rotation)
        for a in range(3):
            subspace[a, 0] = axis[a]
    elif kind == PRISMATIC:
        for a in range(3):
            translation[a] = axis[a] * q[0]
            subspace[3 + a, 0] = axis[a]
    elif kind == UNIVERSAL:
        c1, s1, c2, s2 = np.cos(q[0]), np.sin(q[0]), np.cos(q[1]), np.sin(q[1])
        rotation[0, 0], rotation[0, 1], rotation[0, 2] = c2, 0.0, s2
        rotation[1, 0], rotation[1, 1], rotation[1, 2] = s1 * s2, c1, -s1 * c2
        rotation[2, 0], rotation[2, 1], rotation[2, 2] = -c1 * s2, s1, c1 * c2
        subspace[0, 0], subspace[2, 0], subspace[1, 1] = c2, s2, 1.0
        bias[0], bias[2] = -s2 * v[0] * v[1], c2 * v[0] * v[1]
    elif kind == SPHERICAL:
        rotation_of(q[0], q[1], q[2], q[3], rotation)
        subspace[0, 0] = subspace[1, 1] = subspace[2, 2] = 1.0
    elif kind == FLOATING:
        rotation_of(q[3], q[4], q[5], q[6], rotation)
        for a in range(3):
            translation[a] = q[a]
        for a in range(6):
            subspace[a, a] = 1.0
    elif kind >= INVOLUTE_RIGID:
        c, s = np.cos(q[0]), np.sin(q[0])
        rotation[0, 0], rotation[0, 1], rotation[1, 0], rotation[1, 1] = c, -s, s, c
        length = cable_length(kind, radius, q)
        rate = cable_length_rate(kind, radius, q, v)
        translation[0] = c * length - s * radius
        translation[1] = s * length + c * radius
        # v_J = [k phi', j l phi' + i (l' - r phi')]: 000, 3.1.5 with p = r j + l i, for every variant at once.
        subspace[2, 0] = 1.0
        subspace[4, 0] = length
        bias[4] = rate * v[0]
        if kind == INVOLUTE_U:
            subspace[3, 1] = 1.0
        elif kind == INVOLUTE_EPSILON:
            subspace[3, 0] = radius * q[1]
            subspace[3, 1] = radius * q[0]
            bias[3] = 2.0 * radius * v[0] * v[1]
        elif kind == INVOLUTE_LENGTH:
            subspace[3, 0] = -radius
            subspace[3, 1] = 1.0


@allocation_free
def position_rate(kind, q, v, rate):
    """Fill rate with dq/dt; differs from v for quaternions only."""
    if kind == SPHERICAL:
        quaternion_rate(q, v, rate)
    elif kind == FLOATING:
        # velocity rotated by the quaternion (w, x, y, z): v + 2 w (r x v) + 2 r x (r x v) with r = (x, y, z)
        w, x, y, z = q[3], q[4], q[5], q[6]
        a = 2.0 * (y * v[5] - z * v[4])
        b = 2.0 * (z * v[3] - x * v[5])
        c = 2.0 * (x * v[4] - y * v[3])
        rate[0] = v[3] + w * a + y * c - z * b
        rate[1] = v[4] + w * b + z * a - x * c
        rate[2] = v[5] + w * c + x * b - y * a
        quaternion_rate(q[3:7], v[0:3], rate[3:7])
    else:
        for a in range(rate.shape[0]):
            rate[a] = v[a]


@allocation_free
def quaternion_rate(q, w, rate):
    """Fill rate (4,) = 1/2 q * (0, w) with w the angular velocity in successor axes."""
    rate[0] = 0.5 * (-q[1] * w[0] - q[2] * w[1] - q[3] * w[2])
    rate[1] = 0.5 * (q[0] * w[0] + q[2] * w[2] - q[3] * w[1])
    rate[2] = 0.5 * (q[0] * w[1] + q[3] * w[0] - q[1] * w[2])
    rate[3] = 0.5 * (q[0] * w[2] + q[1] * w[1] - q[2] * w[0])


@dataclass(frozen=True)
class ForceSubspaces:
    """T_a (6, n), T_c (6, 6 - n) and the full derivative of T_c, in successor coordinates (000, 1.2.4 to 1.2.12).

    They satisfy S' T_a = 1 and S' T_c = 0. `apparent` is the derivative of the components of T_c in successor axes;
    `full` adds the contribution v_s x* T_c of the motion v_s of the successor.
    """

    active: NDArray[np.float64]
    constraint: NDArray[np.float64]
    apparent: NDArray[np.float64]
    full: NDArray[np.float64]


def force_subspaces(
    kind: int, axis: NDArray, radius: float, q: NDArray, v: NDArray, successor_velocity: NDArray
) -> ForceSubspaces:
    """Force subspaces of a joint at position q and velocity v, with the velocity (6,) of the successor in its axes."""
    rotation, translation = np.empty((3, 3)), np.empty(3)
    subspace, bias = np.zeros((6, 6)), np.empty(6)
    q, v = np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64)
    joint_motion(kind, np.asarray(axis, dtype=np.float64), radius, q, v, rotation, translation, subspace, bias)
    motion = subspace[:, : VELOCITY_COUNTS[kind]]
    unit = np.eye(6)
    moving = np.zeros(6)
    if kind == UNIVERSAL:
        c2, s2 = np.cos(q[1]), np.sin(q[1])
        constraint = np.column_stack((unit[:, 3:], [-s2, 0, c2, 0, 0, 0]))
        moving = np.array([-c2, 0, -s2, 0, 0, 0]) * v[1]
    elif kind >= INVOLUTE_RIGID:
        length = cable_length(kind, radius, q)
        free = [0, 1, 3, 5] if kind == INVOLUTE_RIGID else [0, 1, 5]
        constraint = np.column_stack((unit[:, free], [0, 0, -length, 0, 1, 0]))
        moving = np.array([0, 0, -cable_length_rate(kind, radius, q, v), 0, 0, 0])
    else:
        constraint = np.linalg.svd(motion.T)[2][motion.shape[1] :].T if motion.shape[1] else unit
    apparent = np.zeros_like(constraint)
    if constraint.shape[1]:
        apparent[:, -1] = moving
    active = motion @ np.linalg.inv(motion.T @ motion) if motion.shape[1] else np.zeros((6, 0))
    carried = cross_force_matrix(np.asarray(successor_velocity, dtype=np.float64)) @ constraint
    return ForceSubspaces(active, constraint, apparent, carried + apparent)


def cross_force_matrix(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """(6, 6) matrix of v x* for a motion vector v (6,)."""
    angular, linear = cross_matrix(v[:3]), cross_matrix(v[3:])
    return np.block([[angular, linear], [np.zeros((3, 3)), angular]])
