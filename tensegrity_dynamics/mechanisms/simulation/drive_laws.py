"""Laws of the actuators at a state: torques of impedances, and torques for the desired accelerations of servos.

Implicit steps contain both laws in their equations: servos keep the desired acceleration at every instant of a step. A
torque that is held constant over a step reacts to a change of the cable pull one step later. If a light pulley is fast
compared with the step, these reactions grow instead of decaying. Servos at their effort limits give the limit effort
during the whole step, and are not part of its equations.
"""

from __future__ import annotations

from ...numerics.compilation import allocation_free, for_compiled_callers
from ...numerics.linear_algebra import cholesky, cholesky_solve
from ..dynamics.forward_dynamics import REGULAR, SINGULAR_MASS, accelerate

LOCKED = 1e-12
"""Mobility of a driven joint, relative to that of its own mass alone, below which the joint cannot move, such as a drum
whose inextensible cable sticks."""
SHARED = 1e-9
"""Part by which the mobility of each drive is increased: dependent drives share a torque."""
OPPOSED = 1e-9
"""Acceleration by which dependent drives oppose each other, below which it counts as rounding error: relative to that
of the torque of one drive alone, and as an error of position [rad or m]."""


@for_compiled_callers
def impedance_efforts(drives, q, v, effort):
    """Fill the torques (nv,) of the impedances among the drives at a state, within their limits."""
    for a in range(drives.q.shape[0]):
        if drives.stiff[a]:
            torque = drives.feed_forward[a] + drives.stiffness[a] * (drives.middle[a] - q[drives.q[a]])
            torque += drives.damping[a] * (drives.moving[a] - v[drives.v[a]])
            effort[drives.v[a]] = min(max(torque, -drives.effort[a]), drives.effort[a])


@allocation_free
def accelerate_servos(drives, servos, limited, ahead, work, reduction):
    """Fill drives.present [N m or N] with the torques that give the first `servos` servos their desired accelerations,
    where `limited` within their effort limits, and add to reduction.acceleration what they change; return a status.

    The torques suit the middle of the next `ahead` s, for which they will be held: the accelerations without them are
    extrapolated from the last step. With 0 they suit this instant.

    reduction holds the accelerations under drives.torque, with the factor of G' M G, as `accelerate` leaves them.
    """
    basis, count = reduction.basis, 0
    for d in range(basis.shape[0]):
        count += 0 if reduction.is_pivot[d] else 1
    # mobility: acceleration of one servo per torque of another
    for i in range(servos):
        row = drives.v[drives.servo[i]]
        for k in range(count):
            drives.response[k] = basis[row, k]
        cholesky_solve(reduction.reduced, count, drives.response)
        for j in range(i + 1):
            other = drives.v[drives.servo[j]]
            total = 0.0
            for k in range(count):
                total += basis[other, k] * drives.response[k]
            drives.mobility[i, j] = total
        a = drives.servo[i]
        missing = drives.desired_acceleration[a] - drives.compliance[a] * drives.torque[a]
        drives.column[i] = missing - reduction.acceleration[row]
    if ahead > 0.0:
        for i in range(servos):
            a, row = drives.servo[i], drives.v[drives.servo[i]]
            if drives.mobility[i, i] * work.mass[row, row] < LOCKED:  # nothing that changes moves it
                drives.known[a] = 0.0
                continue
            free = reduction.acceleration[row]
            for j in range(servos):
                free -= drives.mobility[max(i, j), min(i, j)] * drives.torque[drives.servo[j]]
            if drives.known[a] > 0.0 and drives.compliance[a] == 0.0:
                drives.column[i] -= 0.5 * ahead / drives.known[a] * (free - drives.free[a])
            drives.free[a], drives.known[a] = free, ahead
    for i in range(servos):
        row = drives.v[drives.servo[i]]
        if drives.mobility[i, i] * work.mass[row, row] < LOCKED:  # locked: use the mobility of its own mass
            for j in range(servos):
                drives.mobility[max(i, j), min(i, j)] = 0.0
            drives.mobility[i, i] = 1.0 / max(work.mass[row, row], 1e-300)
        drives.own[i] = drives.mobility[i, i]
        drives.mobility[i, i] *= 1.0 + SHARED
        drives.mobility[i, i] += drives.compliance[drives.servo[i]]
    if cholesky(drives.mobility, servos) >= 0:
        return SINGULAR_MASS
    cholesky_solve(drives.mobility, servos, drives.column)
    # part of the torques by which dependent drives oppose each other, without motion
    opposed = scale = 0.0
    for i in range(servos):
        drives.idle[i] = SHARED * drives.own[i] * drives.column[i]
        a = drives.servo[i]
        scale = max(scale, drives.own[i] * abs(drives.torque[a]) + drives.bandwidth[a] ** 2)
    cholesky_solve(drives.mobility, servos, drives.idle)
    for i in range(servos):
        opposed = max(opposed, SHARED * drives.own[i] * abs(drives.idle[i]))
    if opposed < OPPOSED * scale:  # rounding errors would add up
        for i in range(servos):
            drives.column[i] -= drives.idle[i]
    for k in range(count):
        drives.response[k] = 0.0
    for i in range(servos):
        a = drives.servo[i]
        row, torque = drives.v[a], drives.torque[a] + drives.column[i]
        if limited:
            torque = min(max(torque, -drives.effort[a]), drives.effort[a])
        for k in range(count):
            drives.response[k] += basis[row, k] * (torque - drives.torque[a])
        drives.present[a] = torque
    # change of the accelerations by the torques: the equations are linear in them
    cholesky_solve(reduction.reduced, count, drives.response)
    for d in range(basis.shape[0]):
        for n in range(reduction.basis_filled[d]):
            k = reduction.basis_columns[d, n]
            reduction.acceleration[d] += basis[d, k] * drives.response[k]
    return REGULAR


@for_compiled_callers
def driven_accelerations(flat, drives, q, v, effort, work, reduction, reuse):
    """As `accelerate`, with the torques of impedances and servos as their laws give them at this state."""
    impedance_efforts(drives, q, v, effort)
    status, _ = accelerate(flat, q, v, effort, 0.0, work, reduction, reuse)
    servos = drives.servos[0]
    if status != REGULAR or servos == 0:
        return status
    return accelerate_servos(drives, servos, False, 0.0, work, reduction)


@for_compiled_callers
def driving_power(drives, v, effort):
    """Power [W] of the actuators at rates v, after `driven_accelerations`."""
    power = 0.0
    for d in range(v.shape[0]):
        power += effort[d] * v[d]
    for i in range(drives.servos[0]):
        a = drives.servo[i]
        power += (drives.present[a] - effort[drives.v[a]]) * v[drives.v[a]]
    return power


@for_compiled_callers
def present_torques(flat, drives, q, v, effort, work, reduction):
    """Fill drives.present (a,) with the torques at a state of an implicit step; return a status."""
    for a in range(drives.q.shape[0]):
        drives.present[a] = drives.torque[a]
    impedance_efforts(drives, q, v, effort)
    for a in range(drives.q.shape[0]):
        if drives.stiff[a]:
            drives.present[a] = effort[drives.v[a]]
    if drives.servos[0] == 0:
        return REGULAR
    return driven_accelerations(flat, drives, q, v, effort, work, reduction, False)
