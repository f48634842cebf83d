"""All assembly modes of a platform on six legs with given lengths (Gough-Stewart), by polynomial continuation.

The pose is a dual quaternion (e, g): R of e, position p = 2 g e* / |e|^2. Each leg from a (ground) to b (platform) of
length l gives, after multiplication by |e|^2, a quadric (Wampler 1996; Husty 1996)

    4 g.g + (a.a + b.b - l^2) e.e - 4 g.(a e) + 4 g.(e b) - 2 (a e).(e b) = 0,   e.g = 0

with points as quaternions with zero real part. Seven quadrics in eight homogeneous unknowns have 2^7 = 128 solutions,
of which at most 40 have e != 0 and are poses. All 128 paths are followed from a start system with closed-form
solutions. This finds every isolated pose, real or complex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError
from ...numerics.rotations import matrix_from_quaternion
from .parallel_kinematics import LoopKinematics

PATHS = 128
SHORTEST = 1e-10
"""Least step of the homotopy parameter; below it a path is aborted, because it diverges or ends at a singular
solution."""
CORRECTED, JUMP = 1e-9, 0.1
"""Limits relative to the size of a solution: last Newton correction, and change in one step. Above them the step is
halved."""
AT_INFINITY = 1e-4
"""Least size of e relative to the solution; below it the solution is not a pose."""
REAL = 1e-7
"""Largest imaginary part of a solution that counts as real."""


@dataclass(frozen=True, eq=False)
class SixLegModes:
    """Assembly modes of a platform on six legs.

    Attributes:
        rotations: (m, 3, 3), positions: (m, 3) [m]: real poses. complex_count: number of all poses, including complex
            ones.
    """

    rotations: NDArray[np.float64]
    positions: NDArray[np.float64]
    complex_count: int


def six_leg_modes(ground: ArrayLike, platform: ArrayLike, lengths: ArrayLike, *, seed: int = 0) -> SixLegModes:
    """All poses of a platform on six legs.

    Args:
        ground: (6, 3) points in the world [m]. platform: (6, 3) points in axes of the platform [m]. lengths: (6,) [m].
        seed: seed of the random start system.

    Raises:
        TensegrityError: a shape is wrong, a number is not finite, or a length is not positive.
    """
    a, b, length = (np.asarray(each, dtype=np.float64) for each in (ground, platform, lengths))
    if a.shape != (6, 3) or b.shape != (6, 3) or length.shape != (6,):
        raise TensegrityError("give six points of the ground (6, 3), six of the platform (6, 3) and six lengths (6,).")
    if not all(np.all(np.isfinite(each)) for each in (a, b, length)) or not np.all(length > 0.0):
        raise TensegrityError("points and lengths must be finite, lengths above zero.")
    size = float(np.mean(length))
    found = _poses(_quadrics(a / size, b / size, length / size), seed)
    real = found[np.abs(found.imag).max(axis=1, initial=0.0) < REAL].real
    rotations, positions = np.zeros((len(real), 3, 3)), np.zeros((len(real), 3))
    for i, each in enumerate(real):
        each = each / np.linalg.norm(each[:4])
        rotations[i] = matrix_from_quaternion(each[:4])
        positions[i] = 2.0 * size * (_right(each[:4] * [1.0, -1.0, -1.0, -1.0]) @ each[4:])[1:]
    return SixLegModes(rotations, positions, len(found))


def six_legs(kinematics: LoopKinematics) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """End points (6, 3) of the legs on the ground and on the body of the output; None for other mechanisms.

    The mechanism must have six driven slides, each on a universal or ball joint of the world, and the origin of each
    slide must be connected to the body of the output by a point loop.
    """
    mechanism = kinematics.mechanism
    body = kinematics.output.body
    if len(kinematics.active) != 6 or len(mechanism.loops) != 6:
        return None
    carried = {joint.body: joint for joint in mechanism.joints}
    ground, platform = [], []
    for name in kinematics.active:
        slide = mechanism.joint(name)
        foot = carried.get(slide.parent)
        ends = [loop for loop in mechanism.loops if {loop.predecessor, loop.successor} == {body, slide.body}]
        if slide.kind != "prismatic" or foot is None or foot.kind not in ("universal", "spherical"):
            return None
        if foot.parent != "world" or len(ends) != 1 or ends[0].kind != "point" or np.any(slide.placement.origin):
            return None
        loop = ends[0]
        on_body, on_rod = loop.predecessor_frame, loop.successor_frame
        if loop.successor == body:
            on_body, on_rod = on_rod, on_body
        if np.any(on_rod.origin):
            return None
        ground.append(foot.placement.origin)
        platform.append(on_body.origin)
    return np.array(ground), np.array(platform)


# -- polynomials ------------------------------------------------------------------------------------------------------


def _left(a: NDArray) -> NDArray:
    """(4, 4) matrix of b -> a b for quaternions w, x, y, z."""
    w, x, y, z = a
    return np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])


def _right(b: NDArray) -> NDArray:
    """(4, 4) matrix of a -> a b."""
    w, x, y, z = b
    return np.array([[w, -x, -y, -z], [x, w, z, -y], [y, -z, w, x], [z, y, -x, w]])


def _quadrics(ground: NDArray, platform: NDArray, lengths: NDArray) -> NDArray[np.float64]:
    """(7, 8, 8) symmetric matrices of the equations in (e, g), each scaled to a largest entry of one."""
    matrices = np.zeros((7, 8, 8))
    for matrix, a, b, length in zip(matrices, ground, platform, lengths, strict=False):
        left, right = _left(np.append(0.0, a)), _right(np.append(0.0, b))
        matrix[4:, 4:] = 4.0 * np.eye(4)
        matrix[:4, :4] = (a @ a + b @ b - length**2) * np.eye(4) - 2.0 * left.T @ right
        matrix[4:, :4] = 4.0 * (right - left)
    matrices[6, :4, 4:] = np.eye(4)
    matrices = 0.5 * (matrices + matrices.transpose(0, 2, 1))
    return matrices / np.abs(matrices).max(axis=(1, 2), keepdims=True)


def _poses(target: NDArray, seed: int) -> NDArray[np.complex128]:
    """(n, 8) solutions with e != 0, scaled to a largest component of one."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> NDArray[np.complex128]:
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    forms = np.linalg.qr(draw(8, 8))[0]  # start system: form_k^2 = form_8^2, on a random plane
    start = np.exp(2j * np.pi * rng.uniform()) * np.array(
        [np.outer(forms[k], forms[k]) - np.outer(forms[7], forms[7]) for k in range(7)]
    )
    plane = draw(8)
    signs = np.array(np.meshgrid(*[[1.0, -1.0]] * 7)).reshape(7, PATHS).T
    x = np.linalg.solve(forms, np.hstack((signs, np.ones((PATHS, 1)))).T).T
    x = x / (x @ plane)[:, None]

    def parts(x: NDArray, t: NDArray) -> tuple[NDArray, NDArray]:
        """Residuals (n, 8) and Jacobians (n, 8, 8) of the homotopy."""
        rows = np.einsum("kij,nj->nki", start, x) * (1.0 - t)[:, None, None]
        rows += np.einsum("kij,nj->nki", target, x) * t[:, None, None]
        values = np.einsum("nki,ni->nk", rows, x)
        jacobian = np.concatenate((2.0 * rows, np.broadcast_to(plane, (len(x), 1, 8))), axis=1)
        return np.hstack((values, (x @ plane - 1.0)[:, None])), jacobian

    def tangent(x: NDArray, t: NDArray) -> NDArray:
        change = np.einsum("kij,nj,ni->nk", target - start, x, x)
        right = np.hstack((change, np.zeros((len(x), 1))))
        return -np.linalg.solve(parts(x, t)[1], right[..., None])[..., 0]

    t, stride, going = np.zeros(PATHS), np.full(PATHS, 0.02), np.ones(PATHS, dtype=bool)
    while going.any():
        paths = np.flatnonzero(going)
        h, now, at = np.minimum(stride[paths], 1.0 - t[paths])[:, None], x[paths], t[paths]
        half, full = at + 0.5 * h[:, 0], at + h[:, 0]
        k1 = tangent(now, at)  # Runge-Kutta, then three Newton steps
        k2 = tangent(now + 0.5 * h * k1, half)
        k3 = tangent(now + 0.5 * h * k2, half)
        ahead = now + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + tangent(now + h * k3, full))
        for _ in range(3):
            values, jacobian = parts(ahead, full)
            correction = np.linalg.solve(jacobian, values[..., None])[..., 0]
            ahead = ahead - correction
        sure = np.linalg.norm(correction, axis=1) < CORRECTED * np.linalg.norm(ahead, axis=1)
        sure &= np.linalg.norm(ahead - now - h * k1, axis=1) < JUMP * np.linalg.norm(now, axis=1)
        x[paths[sure]], t[paths[sure]] = ahead[sure], full[sure]
        stride[paths] *= np.where(sure, 1.6, 0.5)
        going[paths] = (t[paths] < 1.0 - 1e-14) & (stride[paths] > SHORTEST)
    arrived = (t >= 1.0 - 1e-14) & (np.linalg.norm(x[:, :4], axis=1) > AT_INFINITY * np.linalg.norm(x, axis=1))
    ends = x[arrived]
    return np.asarray(ends / ends[np.arange(len(ends)), np.argmax(np.abs(ends), axis=1)][:, None])
