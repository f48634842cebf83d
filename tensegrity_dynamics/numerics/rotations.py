"""Rotations as quaternions (w, x, y, z), matrices and rotation vectors; all rotate from the body to the world frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from transforms3d.euler import euler2mat, mat2euler


def quaternion_from_matrix(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """(4,) unit quaternion with w >= 0 of a rotation matrix (3, 3); the largest component is computed first."""
    m = matrix
    squares = np.array(
        [
            1.0 + m[0, 0] + m[1, 1] + m[2, 2],
            1.0 + m[0, 0] - m[1, 1] - m[2, 2],
            1.0 - m[0, 0] + m[1, 1] - m[2, 2],
            1.0 - m[0, 0] - m[1, 1] + m[2, 2],
        ]
    )
    k = int(np.argmax(squares))
    if k == 0:
        q = np.array([squares[0], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    elif k == 1:
        q = np.array([m[2, 1] - m[1, 2], squares[1], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]])
    elif k == 2:
        q = np.array([m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], squares[2], m[1, 2] + m[2, 1]])
    else:
        q = np.array([m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], squares[3]])
    q = q / np.linalg.norm(q)
    return q if q[0] >= 0.0 else -q


def quaternions_from_matrices(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 4) of rotation matrices (n, 3, 3), all at once; each as `quaternion_from_matrix` has it."""
    m = matrices
    x, y, z = m[:, 0, 0], m[:, 1, 1], m[:, 2, 2]
    rows = np.empty((len(m), 4, 4))  # every row is the quaternion, times another of its components
    rows[:, 0, 0], rows[:, 1, 1], rows[:, 2, 2], rows[:, 3, 3] = (
        1 + x + y + z,
        1 + x - y - z,
        1 - x + y - z,
        1 - x - y + z,
    )
    rows[:, 0, 1] = rows[:, 1, 0] = m[:, 2, 1] - m[:, 1, 2]
    rows[:, 0, 2] = rows[:, 2, 0] = m[:, 0, 2] - m[:, 2, 0]
    rows[:, 0, 3] = rows[:, 3, 0] = m[:, 1, 0] - m[:, 0, 1]
    rows[:, 1, 2] = rows[:, 2, 1] = m[:, 0, 1] + m[:, 1, 0]
    rows[:, 1, 3] = rows[:, 3, 1] = m[:, 0, 2] + m[:, 2, 0]
    rows[:, 2, 3] = rows[:, 3, 2] = m[:, 1, 2] + m[:, 2, 1]
    each = np.arange(len(m))
    q = rows[each, np.argmax(rows[:, range(4), range(4)], axis=1)]
    q /= np.where(q[:, 0] < 0.0, -1.0, 1.0)[:, None] * np.linalg.norm(q, axis=1)[:, None]
    return q


def matrix_from_quaternion(quaternion: ArrayLike) -> NDArray[np.float64]:
    """(3, 3) rotation of a quaternion (4,), normalised first. Raises ValueError for a zero or non-finite one."""
    q = np.asarray(quaternion, dtype=np.float64)
    norm = float(np.linalg.norm(q)) if q.shape == (4,) else 0.0
    if not np.isfinite(norm) or norm < 1e-9:
        raise ValueError(f"{quaternion!r} is not a quaternion; give four finite numbers w, x, y, z, not all zero.")
    w, x, y, z = q / norm
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def rotation_vector(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) rad: axis times angle of a rotation matrix, angle in [0, pi]."""
    w, *axis = quaternion_from_matrix(matrix)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        return 2.0 * np.asarray(axis)
    return 2.0 * np.arctan2(sine, w) / sine * np.asarray(axis)


def matrix_from_vector(vector: ArrayLike) -> NDArray[np.float64]:
    """(3, 3) rotation by |vector| rad about vector (3,)."""
    v = np.asarray(vector, dtype=np.float64)
    angle = float(np.linalg.norm(v))
    half = 0.5 * angle
    scale = 0.5 if angle < 1e-12 else np.sin(half) / angle
    return matrix_from_quaternion(np.concatenate(([np.cos(half)], scale * v)))


def roll_pitch_yaw(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) rad about the fixed x, y and z axes, in this order (REP 103, URDF), of a rotation matrix (3, 3).

    With the pitch at +-pi/2 roll and yaw are one rotation; then yaw is zero.
    """
    m = np.array(matrix, dtype=np.float64)
    if np.hypot(m[0, 0], m[1, 0]) < 1e-8:  # else mat2euler would read roll and yaw from rounding errors
        m[[0, 1, 2, 2], [0, 0, 1, 2]] = 0.0
    return np.array(mat2euler(m, "sxyz"))


def matrix_from_roll_pitch_yaw(angles: ArrayLike) -> NDArray[np.float64]:
    """(3, 3) rotation by roll, pitch and yaw (3,) [rad] about the fixed x, y and z axes, in this order."""
    return np.asarray(euler2mat(*np.asarray(angles, dtype=np.float64), "sxyz"))


def cross_matrix(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3, 3) matrix with cross_matrix(a) @ b = a x b."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
