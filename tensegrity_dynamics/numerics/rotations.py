"""Rotations as quaternions (w, x, y, z), matrices and rotation vectors; all rotate from the body to the world frame."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from transforms3d.euler import euler2mat, mat2euler

from .compilation import QuickCall, allocation_free


@allocation_free
def fill_quaternions(matrices, out):
    """Fill out (n, 4) wxyz, w >= 0, with the quaternions of rotations (n, 3, 3), the largest component first."""
    for n in range(matrices.shape[0]):
        m, q = matrices[n], out[n]
        x, y, z = m[0, 0], m[1, 1], m[2, 2]
        w_part, x_part, y_part, z_part = 1.0 + x + y + z, 1.0 + x - y - z, 1.0 - x + y - z, 1.0 - x - y + z
        if w_part >= x_part and w_part >= y_part and w_part >= z_part:
            q[0], q[1], q[2], q[3] = w_part, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
        elif x_part >= y_part and x_part >= z_part:
            q[0], q[1], q[2], q[3] = m[2, 1] - m[1, 2], x_part, m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]
        elif y_part >= z_part:
            q[0], q[1], q[2], q[3] = m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], y_part, m[1, 2] + m[2, 1]
        else:
            q[0], q[1], q[2], q[3] = m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], z_part
        size = np.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
        if q[0] < 0.0:
            size = -size
        for k in range(4):
            q[k] /= size


@allocation_free
def fill_matrix(quaternion, out):
    """Fill out (3, 3) with the rotation of a unit quaternion (4,) wxyz."""
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    out[0, 0], out[0, 1], out[0, 2] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    out[1, 0], out[1, 1], out[1, 2] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    out[2, 0], out[2, 1], out[2, 2] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)


@allocation_free
def fill_turned(centre, vectors, out):
    """Fill out (k, 4) with quaternions, w >= 0: those of the rows r of vectors (k, 3), then the centre (4,)."""
    w, x, y, z = centre[0], centre[1], centre[2], centre[3]
    for k in range(vectors.shape[0]):
        r = vectors[k]
        half = 0.5 * np.sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
        scale = 0.5 * (1.0 - half * half / 6.0) if half < 1e-4 else 0.5 * np.sin(half) / half
        c, i, j, m = np.cos(half), scale * r[0], scale * r[1], scale * r[2]
        out[k, 0] = w * c - x * i - y * j - z * m
        out[k, 1] = w * i + x * c + y * m - z * j
        out[k, 2] = w * j - x * m + y * c + z * i
        out[k, 3] = w * m + x * j - y * i + z * c
        if out[k, 0] < 0.0:
            for each in range(4):
                out[k, each] = -out[k, each]


@allocation_free
def fill_vectors(centres, quaternions, out):
    """Fill out (k, 3) with the rotation vectors from quaternions, centres (k, 4), to others (k, 4); at most half a
    turn."""
    for k in range(quaternions.shape[0]):
        w, x, y, z = centres[k, 0], -centres[k, 1], -centres[k, 2], -centres[k, 3]
        c, i, j, m = quaternions[k, 0], quaternions[k, 1], quaternions[k, 2], quaternions[k, 3]
        cosine = w * c - x * i - y * j - z * m
        out[k, 0] = w * i + x * c + y * m - z * j
        out[k, 1] = w * j - x * m + y * c + z * i
        out[k, 2] = w * m + x * j - y * i + z * c
        sine = np.sqrt(out[k, 0] ** 2 + out[k, 1] ** 2 + out[k, 2] ** 2)
        if sine < 1e-12 * abs(cosine):
            scale = 2.0 / cosine
        else:  # of the two quaternions of a rotation the one with w >= 0
            scale = 2.0 * np.arctan2(sine, abs(cosine)) / sine * (1.0 if cosine >= 0.0 else -1.0)
        for each in range(3):
            out[k, each] *= scale


_fill_quaternions, _fill_turned, _fill_vectors = (
    QuickCall(fill_quaternions), QuickCall(fill_turned), QuickCall(fill_vectors),
)  # fmt: skip


def quaternion_from_matrix(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """(4,) unit quaternion with w >= 0 of a rotation matrix (3, 3); the largest component is computed first."""
    return quaternions_from_matrices(matrix[None])[0]


def quaternions_from_matrices(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 4) quaternions of rotation matrices (n, 3, 3); each is that of `quaternion_from_matrix`."""
    out = np.empty((len(matrices), 4))
    _fill_quaternions(np.ascontiguousarray(matrices, dtype=np.float64), out)
    return out


def turned_by(centre: ArrayLike, vectors: ArrayLike) -> NDArray[np.float64]:
    """(n, 4) quaternions, w >= 0, of rotations by vectors (n, 3) rad in the axes of a unit quaternion (4,)."""
    given = np.ascontiguousarray(vectors, dtype=np.float64)
    out = np.empty((len(given), 4))
    _fill_turned(np.array(centre, dtype=np.float64), given, out)
    return out


def vectors_between(centres: ArrayLike, quaternions: ArrayLike) -> NDArray[np.float64]:
    """(n, 3) rad, inverse of `turned_by`: from one quaternion (4,) or each of n (n, 4) to quaternions (n, 4) of any
    norm."""
    given = np.ascontiguousarray(quaternions, dtype=np.float64)
    before, out = np.empty((len(given), 4)), np.empty((len(given), 3))
    before[:] = centres
    _fill_vectors(before, given, out)
    return out


def matrix_from_quaternion(quaternion: ArrayLike) -> NDArray[np.float64]:
    """(3, 3) rotation of a quaternion (4,), normalised first. Raises ValueError for a zero or non-finite one."""
    q = np.asarray(quaternion, dtype=np.float64)
    norm = math.sqrt(q @ q) if q.shape == (4,) else 0.0
    if not math.isfinite(norm) or norm < 1e-9:
        raise ValueError(f"{quaternion!r} is not a quaternion; give four finite numbers w, x, y, z, not all zero.")
    w, x, y, z = (q / norm).tolist()  # a dozen products of Python floats take a third of the time
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def rotation_vector(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) rad: axis times angle of a rotation matrix, angle in [0, pi]."""
    w, x, y, z = quaternion_from_matrix(matrix).tolist()
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 if sine < 1e-12 else 2.0 * math.atan2(sine, w) / sine
    return np.array((scale * x, scale * y, scale * z))


def matrix_from_vector(vector: ArrayLike) -> NDArray[np.float64]:
    """(3, 3) rotation by |vector| rad about vector (3,)."""
    x, y, z = np.asarray(vector, dtype=np.float64).tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    half = 0.5 * angle
    scale = 0.5 if angle < 1e-12 else math.sin(half) / angle
    return matrix_from_quaternion((math.cos(half), scale * x, scale * y, scale * z))


def roll_pitch_yaw(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) rad about the fixed x, y and z axes, in this order (REP 103, URDF), of a rotation matrix (3, 3).

    At a pitch of +-pi/2, roll and yaw are not unique; then yaw is zero.
    """
    m = np.array(matrix, dtype=np.float64)
    if np.hypot(m[0, 0], m[1, 0]) < 1e-8:  # otherwise roll and yaw would be determined by rounding errors
        m[[0, 1, 2, 2], [0, 0, 1, 2]] = 0.0
    return np.array(mat2euler(m, "sxyz"))


def matrix_from_roll_pitch_yaw(angles: ArrayLike) -> NDArray[np.float64]:
    """(3, 3) rotation by roll, pitch and yaw (3,) [rad] about the fixed x, y and z axes, in this order."""
    return np.asarray(euler2mat(*np.asarray(angles, dtype=np.float64), "sxyz"))


def cross_matrix(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3, 3) matrix with cross_matrix(a) @ b = a x b."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
