"""Fixed steps of a mechanism: fourth-order Runge-Kutta with the loop drift projected out after every step."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ...numerics.compilation import allocation_free
from ..dynamics.equations_of_motion import loop_equations, place_bodies
from ..dynamics.forward_dynamics import REGULAR, accelerate, independent_basis, reduce_rows
from ..joints import FLOATING, POSITIONS, SPHERICAL, position_rate
from ..mechanism import Flat

Stages = namedtuple("Stages", "q v q_rate q_sum v_sum step")


def make_stages(flat: Flat) -> Stages:
    """Scratch arrays of the integrator."""
    positions, velocities = int(POSITIONS[flat.kind].sum()), flat.dof_parent.size
    return Stages(
        q=np.zeros(positions), v=np.zeros(velocities), q_rate=np.zeros(positions), q_sum=np.zeros(positions),
        v_sum=np.zeros(velocities), step=np.zeros(velocities),
    )  # fmt: skip


@allocation_free
def rate_of_position(flat, q, v, rate):
    """Fill rate (nq,) with dq/dt for all joints."""
    for i in range(flat.kind.shape[0]):
        a, b = flat.q_start[i], flat.v_start[i]
        kind = flat.kind[i]
        position_rate(kind, q[a : a + POSITIONS[kind]], v[b : b + flat.v_count[i]], rate[a : a + POSITIONS[kind]])


@allocation_free
def normalise(flat, q):
    """Bring quaternions back to length one."""
    for i in range(flat.kind.shape[0]):
        kind = flat.kind[i]
        if kind == SPHERICAL or kind == FLOATING:
            a = flat.q_start[i] + (3 if kind == FLOATING else 0)
            norm = np.sqrt(q[a] ** 2 + q[a + 1] ** 2 + q[a + 2] ** 2 + q[a + 3] ** 2)
            for k in range(4):
                q[a + k] /= norm


@allocation_free
def project(flat, q, v, work, solver, stages):
    """Move the passive coordinates onto closed loops (K dq = -error) and their velocities onto K v = 0."""
    dofs = flat.dof_parent.shape[0]
    if flat.row_kind.shape[0] == 0:
        return
    place_bodies(flat, q, v, work)
    loop_equations(flat, work)
    for r in range(work.loop_error.shape[0]):
        work.loop_error[r] = -work.loop_error[r]
    reduce_rows(work.loop, work.loop_error, solver, False)
    count = independent_basis(dofs, solver)
    rate_of_position(flat, q, solver.offset, stages.q_rate)
    for k in range(q.shape[0]):
        q[k] += stages.q_rate[k]
    normalise(flat, q)
    for d in range(dofs):
        stages.step[d] = 0.0
        for i in range(count):
            stages.step[d] += solver.basis[d, i] * v[solver.independent[i]]
    for d in range(dofs):
        v[d] = stages.step[d]


@allocation_free
def runge_kutta(flat, q, v, effort, step, count, gain, work, solver, stages):
    """Advance q and v in place by `count` steps of `step` s with constant efforts; returns 0, or the failing status."""
    for _ in range(count):
        for k in range(q.shape[0]):
            stages.q[k] = stages.q_sum[k] = q[k]
        for k in range(v.shape[0]):
            stages.v[k] = stages.v_sum[k] = v[k]
        for stage in range(4):
            status, _ = accelerate(flat, stages.q, stages.v, effort, gain, work, solver, False)
            if status != REGULAR:
                return status
            rate_of_position(flat, stages.q, stages.v, stages.q_rate)
            weight = step / 6.0 if stage == 0 or stage == 3 else step / 3.0
            ahead = step if stage == 2 else 0.5 * step
            for k in range(q.shape[0]):
                stages.q_sum[k] += weight * stages.q_rate[k]
                stages.q[k] = q[k] + ahead * stages.q_rate[k]
            for k in range(v.shape[0]):
                stages.v_sum[k] += weight * solver.acceleration[k]
                stages.v[k] = v[k] + ahead * solver.acceleration[k]
        for k in range(q.shape[0]):
            q[k] = stages.q_sum[k]
        for k in range(v.shape[0]):
            v[k] = stages.v_sum[k]
        normalise(flat, q)
        project(flat, q, v, work, solver, stages)
    return REGULAR
