"""Fixed steps of a mechanism: fourth-order Runge-Kutta with a projection of the loop drift after every step."""

from __future__ import annotations

from ...numerics.compilation import allocation_free
from ..dynamics.forward_dynamics import REGULAR, accelerate
from ..kinematics.configuration_space import configuration_rate, normalise_quaternions
from ..kinematics.loop_closure import project_onto_loops
from .powers import ACTUATORS, powers_in
from .transitions import read_pattern


@allocation_free
def runge_kutta(flat, q, v, effort, step, count, gain, work, reduction, stages, evaluated):
    """Advance q and v in place by `count` steps of `step` [s] with constant efforts; returns 0 or an error status.

    If `evaluated`, reduction.acceleration and the forces in work are those of the start. stages.taken (5,) is filled
    with the energies [J] of `powers_in` and that of the efforts. They are summed with the same weights as the forces,
    so that a force that starts within a step causes no first-order error. stages.pattern and stages.new_pattern are
    filled with the patterns of contacts, cable forces and slips at the start and near the end of the last step.
    """
    powers, taken = stages.powers, stages.taken
    taken[:] = 0.0
    for n in range(count):
        for k in range(q.shape[0]):
            stages.q[k] = stages.q_sum[k] = q[k]
        for k in range(v.shape[0]):
            stages.v[k] = stages.v_sum[k] = v[k]
        for stage in range(4):
            if n > 0 or stage > 0 or not evaluated:
                status, _ = accelerate(flat, stages.q, stages.v, effort, gain, work, reduction, False)
                if status != REGULAR:
                    return status
            configuration_rate(flat, stages.q, stages.v, stages.q_rate)
            weight = step / 6.0 if stage == 0 or stage == 3 else step / 3.0
            ahead = step if stage == 2 else 0.5 * step
            powers_in(flat, stages.q, stages.v, work, powers)
            if stage == 0:
                read_pattern(flat, work, stages.pattern)
            elif stage == 3:
                read_pattern(flat, work, stages.new_pattern)
            powers[ACTUATORS] = 0.0
            for k in range(v.shape[0]):
                powers[ACTUATORS] += effort[k] * stages.v[k]
            for k in range(taken.shape[0]):
                taken[k] += weight * powers[k]
            for k in range(q.shape[0]):
                stages.q_sum[k] += weight * stages.q_rate[k]
                stages.q[k] = q[k] + ahead * stages.q_rate[k]
            for k in range(v.shape[0]):
                stages.v_sum[k] += weight * reduction.acceleration[k]
                stages.v[k] = v[k] + ahead * reduction.acceleration[k]
        for k in range(q.shape[0]):
            q[k] = stages.q_sum[k]
        for k in range(v.shape[0]):
            v[k] = stages.v_sum[k]
        normalise_quaternions(flat, q)
        project_onto_loops(flat, q, v, work, reduction, stages)
    return REGULAR
