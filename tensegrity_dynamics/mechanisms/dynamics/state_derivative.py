"""State equation u' = f(u) in independent displacements: u = (y, y') from a configuration, along its basis G.

It is used for implicit integration and for linearisation; both take finite differences of f.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ...numerics.compilation import allocation_free, for_compiled_callers
from ...numerics.linear_algebra import copy
from ..kinematics.body_kinematics import body_kinematics
from ..kinematics.configuration_space import configuration_rate, normalise_quaternions
from ..kinematics.loop_closure import close_loops
from ..kinematics.loop_equations import loop_equations
from ..kinematics.loop_reduction import independent_basis, reduce_rows
from ..mechanism import FlatMechanism
from ..routing.columns import BODY, COUNT, FIRST, TURNING_V
from .forward_dynamics import accelerate

NOT_CLOSED = 2
"""Status if a loop cannot be closed within a step: the step is too long for the motion."""


DisplacementWorkspace = namedtuple(
    "DisplacementWorkspace",
    "q v basis independent matrix first right other stage_1 stage_2 stage_3 stage_4 held displacement u pivots "
    "before_q before_v component turn moved",
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
    )  # fmt: skip


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
    if close_loops(flat, scratch.q, scratch.held, 1e-13, True, work, reduction, stages) > 1e-8:
        return False
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


@allocation_free
def state_derivative(flat, q, u, count, effort, out, work, reduction, stages, scratch):
    """Fill out (2 count,) = f(u) for u = (displacement, rate) from q; returns a status."""
    if not displaced_state(flat, q, count, u[:count], u[count : 2 * count], work, reduction, stages, scratch):
        return NOT_CLOSED
    status, _ = accelerate(flat, scratch.q, scratch.v, effort, 0.0, work, reduction, True)
    for i in range(count):
        out[i] = u[count + i]
        out[count + i] = reduction.acceleration[scratch.independent[i]]
    return status
