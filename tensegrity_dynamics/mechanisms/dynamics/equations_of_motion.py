"""Equations of motion M a + c = W f + tau + K' lambda, K a = k (000, 1.2.28 and 1.2.29), by sweeps in the world frame.

M: composite bodies. c: recursive Newton-Euler sweep of the velocity-product accelerations (1.2.16, 1.2.23). K and k:
`loop_equations`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...numerics.compilation import inlined, inlined_part
from .. import joints
from ..kinematics.body_kinematics import body_kinematics
from ..kinematics.loop_equations import loop_equations
from ..late_kernels import CONTACTS, ROUTES
from ..loads import LOAD_BODY, LOAD_MOMENT, LOAD_POINT
from ..mechanism import Mechanism, check_state
from ..routing.late_call import call_routed_cables
from ..spatial import (
    cross_force,
    inertia_times,
    rotate,
    world_inertia,
)
from ..touch.late_call import call_contacts
from ..workspace import make_workspace
from .joint_efforts import joint_efforts


@inlined_part
def subtract_load(work, i):
    """Subtract the load of body i, moved to the origin of the world, from the force on the body."""
    x, y, z = work.position[i, 0], work.position[i, 1], work.position[i, 2]
    fx, fy, fz = work.load[i, 3], work.load[i, 4], work.load[i, 5]
    work.force[i, 0] -= work.load[i, 0] + y * fz - z * fy
    work.force[i, 1] -= work.load[i, 1] + z * fx - x * fz
    work.force[i, 2] -= work.load[i, 2] + x * fy - y * fx
    work.force[i, 3] -= fx
    work.force[i, 4] -= fy
    work.force[i, 5] -= fz


@inlined_part
def subtract_steady_loads(flat, work):
    """Subtract the steady loads of the mechanism at points of bodies from the forces on these bodies."""
    for n in range(flat.loads.shape[0]):
        i, wrench = int(flat.loads[n, LOAD_BODY]), flat.loads[n, LOAD_MOMENT:]
        rotate(work.rotation[i], flat.loads[n, LOAD_POINT:], work.three)
        x, y, z = (
            work.position[i, 0] + work.three[0],
            work.position[i, 1] + work.three[1],
            work.position[i, 2] + work.three[2],
        )
        work.force[i, 0] -= wrench[0] + y * wrench[5] - z * wrench[4]
        work.force[i, 1] -= wrench[1] + z * wrench[3] - x * wrench[5]
        work.force[i, 2] -= wrench[2] + x * wrench[4] - y * wrench[3]
        for k in range(3, 6):
            work.force[i, k] -= wrench[k]


@inlined_part
def mass_and_bias(flat, work):
    """Fill M and c (with loads) from the last `body_kinematics`; structurally zero entries of M are not written."""
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
    subtract_steady_loads(flat, work)
    for i in range(flat.kind.shape[0] - 1, -1, -1):
        b = flat.v_start[i]
        for d in range(b, b + flat.v_count[i]):
            inertia_times(work.composite[i], work.jacobian[d], work.six)
            total = 0.0
            for k in range(6):
                total += work.jacobian[d, k] * work.force[i, k]
            work.bias[d] = total
            # The coordinates of one joint form a chain too: going towards the root covers every pair once.
            e = d
            while e >= 0:
                total = 0.0
                for k in range(6):
                    total += work.jacobian[e, k] * work.six[k]
                work.mass[d, e] = total
                work.mass[e, d] = total
                e = flat.dof_parent[e]
            work.mass[d, d] += flat.armature[d]
        p = flat.parent[i]
        if p >= 0:
            for k in range(6):
                work.force[p, k] += work.force[i, k]
            for k in range(10):
                work.composite[p, k] += work.composite[i, k]


@inlined
def cable_efforts(flat, q, v, work):
    """Fill strain, tension [N] and passive efforts -(e + d) of the cables (000, 3.1.16, 3.1.17 and the variants).

    A slack cable has no tension. The sum of elastic and damping force is limited to zero from below: damping never
    pushes. Convention of 000, 3.1.9: the elongation u varies at fixed rest length, so that e . v = F u' holds exactly.
    Winding changes the stored energy 1/2 E A strain^2 l0 by the rest length that it adds or removes.
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


@inlined_part
def passive_efforts(flat, q, v, work):
    """Fill the efforts of cables, joints, routes and contacts at a state, after `body_kinematics`."""
    cable_efforts(flat, q, v, work)
    joint_efforts(flat, q, v, work)
    if flat.late_kernels[ROUTES] != 0:
        call_routed_cables(flat, q, v, work)
    if flat.late_kernels[CONTACTS] != 0:
        call_contacts(flat, work)


@inlined
def evaluate(flat, q, v, work):
    """Evaluate all equations at a state: body motion, M, c, K, k, loop errors, passive efforts."""
    body_kinematics(flat, q, v, work)
    mass_and_bias(flat, work)
    loop_equations(flat, work)
    passive_efforts(flat, q, v, work)


@dataclass(frozen=True, eq=False)
class Equations:
    """M a + c = p + tau + K' lambda and K a = k at one state.

    Attributes:
        mass: M (nv, nv). bias: c (nv,), with gravity and steady loads. loop: K (nc, nv). loop_bias: k (nc,).
        loop_error: (nc,), zero when the loops are closed. passive: p (nv,), efforts of cables, joint resistances and
            the ground.
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
        TensegrityError: q or v has a wrong shape or is not finite.
    """
    q, v = check_state(mechanism, q, v)
    work = make_workspace(mechanism.flat)
    evaluate(mechanism.flat, q, v, work)
    return Equations(
        work.mass, work.bias, work.loop, work.loop_bias, work.loop_error, work.passive, work.strain, work.tension
    )
