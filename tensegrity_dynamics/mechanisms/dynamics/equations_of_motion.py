"""Equations of motion M a + c = W f + tau + K' lambda, K a = k (000, 1.2.28 and 1.2.29), by sweeps in the world frame.

M by composite bodies, c by the recursive Newton-Euler sweep of the velocity-product accelerations (1.2.16, 1.2.23),
K and k from the loops with k = -T' (a_s^vp - a_p^vp) - T.' (v_s - v_p) (1.2.27 corrected: the printed one drops the
velocity-product accelerations).
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...numerics.compilation import allocation_free
from .. import joints
from ..joints import joint_motion
from ..loop_joints import ALONG
from ..mechanism import Flat, Mechanism
from ..spatial import (
    cross,
    cross_force,
    cross_motion,
    inertia_times,
    multiply,
    rotate,
    to_world,
    world_inertia,
)

Work = namedtuple(
    "Work",
    "rotation position velocity acceleration jacobian composite force "
    "load mass bias loop loop_bias loop_error passive strain tension "
    "joint_rotation joint_translation subspace joint_bias axes six other three first second point gap speed "
    "direction change",
)


def make_work(flat: Flat) -> Work:
    """Scratch and result arrays for one mechanism; not to be shared between threads.

    load (b, 6) is input: the moment [N m] and the force [N] that act on each body at its origin, in world axes.
    """
    bodies, dofs, rows, cables = flat.kind.size, flat.dof_parent.size, flat.row_kind.size, flat.cable_joint.size
    return Work(
        rotation=np.zeros((bodies, 3, 3)), position=np.zeros((bodies, 3)), velocity=np.zeros((bodies, 6)),
        acceleration=np.zeros((bodies, 6)), jacobian=np.zeros((dofs, 6)), composite=np.zeros((bodies, 10)),
        force=np.zeros((bodies, 6)), load=np.zeros((bodies, 6)), mass=np.zeros((dofs, dofs)), bias=np.zeros(dofs),
        loop=np.zeros((rows, dofs)), loop_bias=np.zeros(rows), loop_error=np.zeros(rows), passive=np.zeros(dofs),
        strain=np.zeros(cables), tension=np.zeros(cables), joint_rotation=np.zeros((3, 3)),
        joint_translation=np.zeros(3), subspace=np.zeros((6, 6)), joint_bias=np.zeros(6), axes=np.zeros((3, 3)),
        six=np.zeros(6), other=np.zeros(6), three=np.zeros(3), first=np.zeros(3), second=np.zeros(3),
        point=np.zeros(3), gap=np.zeros(3), speed=np.zeros(3), direction=np.zeros(6), change=np.zeros(6),
    )  # fmt: skip


@allocation_free
def place_bodies(flat, q, v, work):
    """Fill rotation, position, velocity, velocity-product acceleration (with -gravity) and the joint Jacobians."""
    for i in range(flat.kind.shape[0]):
        a, b = flat.q_start[i], flat.v_start[i]
        n = flat.v_count[i]
        joint_motion(
            flat.kind[i], flat.axis[i], flat.radius[i], q[a:], v[b : b + n],
            work.joint_rotation, work.joint_translation, work.subspace, work.joint_bias,
        )  # fmt: skip
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
        to_world(work.rotation[i], work.position[i], work.joint_bias, work.six)
        for k in range(6):
            work.acceleration[i, k] += work.six[k]


@allocation_free
def subtract_load(work, i):
    """Take the load of body i, moved to the origin of the world, from the force that the body needs."""
    x, y, z = work.position[i, 0], work.position[i, 1], work.position[i, 2]
    fx, fy, fz = work.load[i, 3], work.load[i, 4], work.load[i, 5]
    work.force[i, 0] -= work.load[i, 0] + y * fz - z * fy
    work.force[i, 1] -= work.load[i, 1] + z * fx - x * fz
    work.force[i, 2] -= work.load[i, 2] + x * fy - y * fx
    work.force[i, 3] -= fx
    work.force[i, 4] -= fy
    work.force[i, 5] -= fz


@allocation_free
def mass_and_bias(flat, work):
    """Fill M and c for bodies that are already placed, loads in c; entries of M that are always zero stay untouched."""
    for i in range(flat.kind.shape[0]):
        tensor = flat.inertia[i]
        if flat.mass[i] == 0.0 and tensor[0, 0] + tensor[1, 1] + tensor[2, 2] == 0.0:
            for k in range(10):
                work.composite[i, k] = 0.0
            for k in range(6):
                work.force[i, k] = 0.0
            subtract_load(work, i)
            continue
        world_inertia(flat.mass[i], flat.centre[i], tensor, work.rotation[i], work.position[i], work.composite[i])
        inertia_times(work.composite[i], work.velocity[i], work.six)
        cross_force(work.velocity[i], work.six, work.force[i])
        inertia_times(work.composite[i], work.acceleration[i], work.six)
        for k in range(6):
            work.force[i, k] += work.six[k]
        subtract_load(work, i)
    for i in range(flat.kind.shape[0] - 1, -1, -1):
        b = flat.v_start[i]
        for d in range(b, b + flat.v_count[i]):
            inertia_times(work.composite[i], work.jacobian[d], work.six)
            total = 0.0
            for k in range(6):
                total += work.jacobian[d, k] * work.force[i, k]
            work.bias[d] = total
            # within a joint the dofs form a chain too, so that walking up covers every pair once
            e = d
            while e >= 0:
                total = 0.0
                for k in range(6):
                    total += work.jacobian[e, k] * work.six[k]
                work.mass[d, e] = total
                work.mass[e, d] = total
                e = flat.dof_parent[e]
        p = flat.parent[i]
        if p >= 0:
            for k in range(6):
                work.force[p, k] += work.force[i, k]
            for k in range(10):
                work.composite[p, k] += work.composite[i, k]


@allocation_free
def world_point(rotation, position, body, local, out):
    """out (3,) m: a point of a body in the world; body -1 is the world itself."""
    if body < 0:
        for k in range(3):
            out[k] = local[k]
    else:
        rotate(rotation[body], local, out)
        for k in range(3):
            out[k] += position[body, k]


@allocation_free
def world_direction(rotation, body, local, out):
    """out (3,): a direction of a body in world axes."""
    if body < 0:
        for k in range(3):
            out[k] = local[k]
    else:
        rotate(rotation[body], local, out)


@allocation_free
def meet(flat, r, work):
    """Fill point (3,) m, where the successor's end of a loop is, gap, how far from the predecessor's, and its speed."""
    p, s = flat.row_before[r], flat.row_after[r]
    point, gap, speed = work.point, work.gap, work.speed
    world_point(work.rotation, work.position, s, flat.row_origin_after[r], point)
    world_point(work.rotation, work.position, p, flat.row_origin_before[r], gap)
    for k in range(3):
        gap[k] = point[k] - gap[k]
        speed[k] = 0.0
    if s >= 0:
        cross(work.velocity[s], point, speed)
        for k in range(3):
            speed[k] += work.velocity[s, 3 + k]


@allocation_free
def same_ends(flat, r):
    """Whether row r and the one before hold the same points of the same bodies, as rows of one loop do."""
    if r == 0 or flat.row_kind[r - 1] != ALONG:
        return False
    if flat.row_before[r] != flat.row_before[r - 1] or flat.row_after[r] != flat.row_after[r - 1]:
        return False
    for k in range(3):
        if flat.row_origin_before[r, k] != flat.row_origin_before[r - 1, k]:
            return False
        if flat.row_origin_after[r, k] != flat.row_origin_after[r - 1, k]:
            return False
    return True


@allocation_free
def loop_equations(flat, work):
    """Fill K, k and the loop errors for bodies that are already placed; entries of K off the chains stay zero."""
    first, second, three, direction, change = work.first, work.second, work.three, work.direction, work.change
    for r in range(flat.row_kind.shape[0]):
        p, s = flat.row_before[r], flat.row_after[r]
        world_direction(work.rotation, p, flat.row_first[r], first)
        for k in range(6):
            change[k] = 0.0
        if p >= 0:
            cross(work.velocity[p], first, three)
        else:
            three[0] = three[1] = three[2] = 0.0
        if flat.row_kind[r] == ALONG:
            if not same_ends(flat, r):
                meet(flat, r, work)
            work.loop_error[r] = 0.0
            for k in range(3):
                work.loop_error[r] += first[k] * work.gap[k]
                direction[3 + k] = first[k]
                # n turns with the predecessor, the point moves with the successor
                change[3 + k] = three[k]
            cross(work.point, first, direction)
            cross(work.point, three, change)
            cross(work.speed, first, three)
            for k in range(3):
                change[k] += three[k]
        else:
            world_direction(work.rotation, s, flat.row_second[r], second)
            work.loop_error[r] = -(first[0] * second[0] + first[1] * second[1] + first[2] * second[2])
            direction[3] = direction[4] = direction[5] = 0.0
            cross(first, second, direction)
            cross(three, second, change)
            if s >= 0:
                cross(work.velocity[s], second, three)
                cross(first, three, three)
                for k in range(3):
                    change[k] += three[k]
        for end in range(2):
            d = last_dof(flat, s if end == 0 else p)
            while d >= 0:
                work.loop[r, d] = 0.0
                d = flat.dof_parent[d]
        bias = 0.0
        for end in range(2):
            body = s if end == 0 else p
            sign = 1.0 if end == 0 else -1.0
            if body < 0:
                for k in range(3):
                    bias += sign * direction[3 + k] * flat.gravity[k]
                continue
            for k in range(6):
                bias -= sign * (direction[k] * work.acceleration[body, k] + change[k] * work.velocity[body, k])
            d = last_dof(flat, body)
            while d >= 0:
                total = 0.0
                for k in range(6):
                    total += direction[k] * work.jacobian[d, k]
                work.loop[r, d] += sign * total
                d = flat.dof_parent[d]
        work.loop_bias[r] = bias


@allocation_free
def last_dof(flat, body):
    """Last velocity coordinate that moves a body, -1 where none does."""
    while body >= 0:
        if flat.v_count[body] > 0:
            return flat.v_start[body] + flat.v_count[body] - 1
        body = flat.parent[body]
    return -1


@allocation_free
def cable_efforts(flat, q, v, work):
    """Fill strain, tension [N] and the passive efforts -(e + d) of the cables (000, 3.1.16, 3.1.17 and the variants).

    A slack cable carries nothing, and the sum of elasticity and damping is cut at zero: a damper never pushes.
    Convention of 000, 3.1.9: the elongation u varies at fixed rest length, so e . v = F u' holds exactly, while winding
    changes the stored energy 1/2 E A strain^2 l0 by the rest length that it adds or takes.
    """
    work.passive[:] = 0.0
    for c in range(flat.cable_joint.shape[0]):
        i = flat.cable_joint[c]
        kind = flat.kind[i]
        a, b = flat.q_start[i], flat.v_start[i]
        radius = flat.radius[i]
        angle, angle_rate = q[a], v[b]
        if kind == joints.INVOLUTE_RIGID:
            work.strain[c] = 0.0
            work.tension[c] = 0.0
            continue
        second, second_rate = q[a + 1], v[b + 1]
        if kind == joints.INVOLUTE_EPSILON:
            strain, rate = second, second_rate
        else:
            stretch, stretch_rate = second, second_rate
            if kind == joints.INVOLUTE_LENGTH:
                stretch -= radius * angle
                stretch_rate -= radius * angle_rate
            strain = stretch / (radius * angle)
            rate = (angle * stretch_rate - angle_rate * stretch) / (radius * angle * angle)
        tension = 0.0
        if strain > 0.0:
            tension = flat.cable_area[c] * (flat.cable_young[c] * strain + flat.cable_damping[c] * rate)
            if tension < 0.0:
                tension = 0.0
        work.strain[c] = strain
        work.tension[c] = tension
        if kind == joints.INVOLUTE_EPSILON:
            work.passive[b] -= tension * radius * strain
            work.passive[b + 1] -= tension * radius * angle
        else:
            work.passive[b + 1] -= tension
            if kind == joints.INVOLUTE_LENGTH:
                work.passive[b] += tension * radius


@allocation_free
def evaluate(flat, q, v, work):
    """Everything about a state: bodies, M, c, K, k, loop errors, passive efforts."""
    place_bodies(flat, q, v, work)
    mass_and_bias(flat, work)
    loop_equations(flat, work)
    cable_efforts(flat, q, v, work)


@dataclass(frozen=True, eq=False)
class Equations:
    """M a + c = p + tau + K' lambda and K a = k at one state.

    Attributes:
        mass: M (nv, nv). bias: c (nv,), with gravity. loop: K (nc, nv). loop_bias: k (nc,).
        loop_error: (nc,), zero when the loops are closed. passive: p (nv,), effort of the cables.
        strain, tension: of each cable, - and N.
    """

    mass: NDArray[np.float64]
    bias: NDArray[np.float64]
    loop: NDArray[np.float64]
    loop_bias: NDArray[np.float64]
    loop_error: NDArray[np.float64]
    passive: NDArray[np.float64]
    strain: NDArray[np.float64]
    tension: NDArray[np.float64]


def equations(mechanism: Mechanism, q: NDArray, v: NDArray) -> Equations:
    """Mass matrix, bias, constraint Jacobian and bias, and passive efforts at position q (nq,) and velocity v (nv,).

    Raises:
        TensegrityError: wrong shape or not finite.
    """
    q, v = check_state(mechanism, q, v)
    work = make_work(mechanism.flat)
    evaluate(mechanism.flat, q, v, work)
    return Equations(
        work.mass, work.bias, work.loop, work.loop_bias, work.loop_error, work.passive, work.strain, work.tension
    )


def check_state(mechanism: Mechanism, q: NDArray, v: NDArray) -> tuple[NDArray, NDArray]:
    """q (nq,) and v (nv,) as arrays, checked."""
    from ...errors import TensegrityError

    q, v = np.ascontiguousarray(q, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
    for name, array, count in (("q", q, mechanism.position_count), ("v", v, mechanism.velocity_count)):
        if array.shape != (count,):
            raise TensegrityError(f"{name} has shape {array.shape}, this mechanism needs ({count},).")
        if not np.all(np.isfinite(array)):
            raise TensegrityError(f"{name}[{int(np.flatnonzero(~np.isfinite(array))[0])}] is not finite.")
    return q, v
