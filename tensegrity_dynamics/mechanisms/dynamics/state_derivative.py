"""State equation u' = f(u) in independent displacements y from a configuration, along its basis G, and their rates w.

u = (y, w), and y' = w except for spherical and floating joints, see `turn_rates`.

It is used for implicit integration and for linearisation; both take finite differences of f.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ...numerics.compilation import allocation_free, for_compiled_callers
from ...numerics.linear_algebra import copy
from ..joints import FLOATING, SPHERICAL
from ..kinematics.body_kinematics import body_kinematics
from ..kinematics.configuration_space import configuration_rate, displacement_of, normalise_quaternions
from ..kinematics.loop_closure import close_loops
from ..kinematics.loop_equations import loop_equations
from ..kinematics.loop_reduction import independent_basis, reduce_rows
from ..mechanism import FlatMechanism
from ..routing.columns import BODY, COUNT, FIRST, TURNING_V
from .forward_dynamics import accelerate

MOST_RETURNS, SHARE = 10, 1e-13
"""Largest number of closures by which spherical and floating joints get their displacements, and the tolerance [rad or
m]."""
NOT_CLOSED = 2
"""Status if a loop cannot be closed within a step: the step is too long for the motion."""


DisplacementWorkspace = namedtuple(
    "DisplacementWorkspace",
    "q v basis independent matrix first right other stage_1 stage_2 stage_3 stage_4 held displacement u pivots "
    "before_q before_v component turn moved turned turned_rate",
)


def components(flat: FlatMechanism) -> NDArray[np.int64]:
    """(nv,) number of the component of the mechanism to which each coordinate belongs, from 0.

    A component is a set of bodies that are connected by joints, loops and cables other than through the world: a motion
    in one component does not change the accelerations in another one.
    """
    root = list(range(flat.kind.size))

    def top(body: int) -> int:
        while root[body] != body:
            body = root[body]
        return body

    def tie(bodies: Iterable[int]) -> None:
        tops = [top(int(body)) for body in bodies if body >= 0]
        for each in tops:
            root[top(each)] = top(tops[0])

    for body in range(flat.kind.size):
        tie((body, flat.parent[body]))
    for pair in zip(flat.row_predecessor, flat.row_successor, strict=True):
        tie(pair)
    for cable in flat.routed_cables:
        first = int(cable[FIRST])
        elements = flat.route_elements[first : first + int(cable[COUNT])]
        turning = elements[elements[:, TURNING_V] >= 0.0, TURNING_V].astype(np.int64)
        tie([*elements[:, BODY].astype(np.int64), *flat.dof_body[turning]])
    names = {each: number for number, each in enumerate(dict.fromkeys(map(top, range(flat.kind.size))))}
    return np.array([names[top(int(body))] for body in flat.dof_body], dtype=np.int64)


def make_displacement_workspace(flat: FlatMechanism, positions: int) -> DisplacementWorkspace:
    """Scratch arrays of the integrator for a mechanism with `positions` position coordinates."""
    dofs = flat.dof_parent.size
    return DisplacementWorkspace(
        q=np.zeros(positions), v=np.zeros(dofs), basis=np.zeros((dofs, dofs)),
        independent=np.zeros(dofs, dtype=np.int64), matrix=np.zeros((2 * dofs, 2 * dofs)), first=np.zeros(2 * dofs),
        right=np.zeros(2 * dofs), other=np.zeros(2 * dofs), **{f"stage_{n}": np.zeros(2 * dofs) for n in range(1, 5)},
        held=np.zeros(dofs, dtype=np.bool_), displacement=np.zeros(dofs), u=np.zeros(2 * dofs),
        pivots=np.zeros(2 * dofs, dtype=np.int64), before_q=np.zeros(positions), before_v=np.zeros(dofs),
        component=components(flat), turn=np.zeros(dofs, dtype=np.int64), moved=np.zeros(dofs, dtype=np.int64),
        turned=np.zeros(6), turned_rate=np.zeros(6),
    )  # fmt: skip


@for_compiled_callers
def return_shares(flat, q, count, displacement, stages, scratch):
    """Move scratch.q so that spherical and floating joints have their independent displacements; returns whether it
    moved.

    Where loops hold only some coordinates of such a joint, closing them turns the axes of the others.
    """
    moves, i = False, 0
    stages.step[:] = 0.0
    for j in range(flat.kind.shape[0]):
        b, n = flat.v_start[j], flat.v_count[j]
        first = i
        while i < count and scratch.independent[i] < b + n:
            i += 1
        if 0 < i - first < n and (flat.kind[j] == SPHERICAL or flat.kind[j] == FLOATING):
            displacement_of(flat, j, q, scratch.q, scratch.turned)
            for k in range(first, i):
                left = displacement[k] - scratch.turned[scratch.independent[k] - b]
                moves = moves or abs(left) > SHARE
                for d in range(stages.step.shape[0]):
                    stages.step[d] += scratch.basis[d, k] * left
    if moves:
        configuration_rate(flat, scratch.q, stages.step, stages.q_rate)
        for k in range(q.shape[0]):
            scratch.q[k] += stages.q_rate[k]
        normalise_quaternions(flat, scratch.q)
    return moves


@for_compiled_callers
def displaced_state(flat, q, count, displacement, rate, work, reduction, stages, scratch):
    """Fill scratch.q and scratch.v with the state displaced by (count,) along the basis, with rates (count,)."""
    dofs = flat.dof_parent.shape[0]
    if flat.row_kind.shape[0] == 0:  # no loops: every coordinate is independent
        configuration_rate(flat, q, displacement, stages.q_rate)
        for k in range(q.shape[0]):
            scratch.q[k] = q[k] + stages.q_rate[k]
        normalise_quaternions(flat, scratch.q)
        copy(rate, scratch.v)
        return True
    for d in range(dofs):
        stages.step[d] = 0.0
        for i in range(count):
            stages.step[d] += scratch.basis[d, i] * displacement[i]
    configuration_rate(flat, q, stages.step, stages.q_rate)
    for k in range(q.shape[0]):
        scratch.q[k] = q[k] + stages.q_rate[k]
    normalise_quaternions(flat, scratch.q)
    stages.v_sum[:] = 0.0
    for _ in range(MOST_RETURNS):
        if close_loops(flat, scratch.q, scratch.held, 1e-13, True, work, reduction, stages) > 1e-8:
            return False
        if not return_shares(flat, q, count, displacement, stages, scratch):
            break
    body_kinematics(flat, scratch.q, stages.v_sum, work)
    loop_equations(flat, work)
    work.loop_bias[:] = 0.0
    reduce_rows(work.loop, work.loop_bias, reduction, True)
    independent_basis(dofs, reduction)
    for d in range(dofs):
        scratch.v[d] = 0.0
        for i in range(count):
            scratch.v[d] += reduction.basis[d, i] * rate[i]
    return True


@for_compiled_callers
def turn_rates(flat, q, count, scratch, out):
    """Replace the rates of displacement of spherical and floating joints in out by those at scratch.q and scratch.v.

    A displacement y of a rotation from q is twice the vector r = tan(angle / 2) axis, so that with the angular velocity
    w

        y' = w + r x w + (r . w) r,

    and that of a position is in the axes at the start of the step: y' = v + 2 (r x v + r x (r x v)) / (1 + r . r).
    """
    turned, rate, i = scratch.turned, scratch.turned_rate, 0
    for j in range(flat.kind.shape[0]):
        kind, b, n = flat.kind[j], flat.v_start[j], flat.v_count[j]
        first = i
        while i < count and scratch.independent[i] < b + n:
            i += 1
        if first == i or (kind != SPHERICAL and kind != FLOATING):
            continue
        displacement_of(flat, j, q, scratch.q, turned)
        v = scratch.v[b : b + n]
        x, y, z = 0.5 * turned[0], 0.5 * turned[1], 0.5 * turned[2]
        along = x * v[0] + y * v[1] + z * v[2]
        rate[0] = v[0] + y * v[2] - z * v[1] + along * x
        rate[1] = v[1] + z * v[0] - x * v[2] + along * y
        rate[2] = v[2] + x * v[1] - y * v[0] + along * z
        if kind == FLOATING:
            part = 2.0 / (1.0 + x * x + y * y + z * z)
            a = y * v[5] - z * v[4]
            e = z * v[3] - x * v[5]
            c = x * v[4] - y * v[3]
            rate[3] = v[3] + part * (a + y * c - z * e)
            rate[4] = v[4] + part * (e + z * a - x * c)
            rate[5] = v[5] + part * (c + x * e - y * a)
        for k in range(first, i):
            out[k] = rate[scratch.independent[k] - b]


@allocation_free
def state_derivative(flat, q, u, count, effort, out, work, reduction, stages, scratch):
    """Fill out (2 count,) = f(u) for u = (displacement, rate) from q; returns a status."""
    if not displaced_state(flat, q, count, u[:count], u[count : 2 * count], work, reduction, stages, scratch):
        return NOT_CLOSED
    status, _ = accelerate(flat, scratch.q, scratch.v, effort, 0.0, work, reduction, True)
    for i in range(count):
        out[i] = u[count + i]
        out[count + i] = reduction.acceleration[scratch.independent[i]]
    turn_rates(flat, q, count, scratch, out)
    return status
