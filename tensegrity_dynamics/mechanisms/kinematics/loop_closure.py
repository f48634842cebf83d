"""Loop closure: Newton's method for the loop errors, and projection of the drift of an integrator.

`assemble` starts from rough positions and uses the smallest change of all coordinates. The compiled functions change
only the passive coordinates of a nearby configuration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...numerics.compilation import allocation_free
from ..loop_joints import LOOP_KINDS
from ..mechanism import Mechanism, check_state
from ..workspace import Workspace, make_workspace
from .body_kinematics import body_kinematics
from .configuration_space import configuration_rate, displaced, normalise_quaternions
from .loop_equations import loop_equations
from .loop_reduction import independent_basis, reduce_rows

TOLERANCE_LOOPS = 1e-13
"""Tolerance of the loop errors [m, or sine of an angle]."""
MAX_ITERATIONS = 50
"""Largest number of Newton steps."""


def assemble(
    mechanism: Mechanism,
    start: NDArray,
    *,
    hold: tuple[str, ...] = (),
    work: Workspace | None = None,
) -> NDArray[np.float64]:
    """Configuration (nq,) near start with all loops closed to `TOLERANCE_LOOPS`.

    Args:
        start: (nq,) start configuration.
        hold: names of joints with fixed coordinates.
        work: work arrays, including the slack state of strands of routed cables; new ones by default.

    Raises:
        TensegrityError: a loop cannot close; the message contains its name and the remaining gap.
    """
    flat, work = mechanism.flat, make_workspace(mechanism.flat) if work is None else work
    q, v = check_state(mechanism, start, np.zeros(mechanism.velocity_count))
    free = np.ones(v.size, dtype=bool)
    for name in hold:
        free[mechanism.velocities_of(name)] = False

    def error_at(position: NDArray) -> float:
        body_kinematics(flat, position, v, work)
        loop_equations(flat, work)
        return float(np.max(np.abs(work.loop_error), initial=0.0))

    error = error_at(q)
    for _ in range(MAX_ITERATIONS):
        if error <= TOLERANCE_LOOPS:
            return q
        step = np.zeros(v.size)
        step[free] = np.linalg.lstsq(work.loop[:, free], -work.loop_error, rcond=1e-10)[0]
        scale = min(1.0, 1.0 / max(1e-9, np.max(np.abs(step))))
        for _ in range(30):
            trial = displaced(mechanism, q, scale * step)
            new = error_at(trial)
            if new < error:
                break
            scale *= 0.5
        if not new < error:
            break
        q, error = trial, new
    error_at(q)
    if error <= 10.0 * TOLERANCE_LOOPS:
        return q
    row = int(np.argmax(np.abs(work.loop_error)))
    name = loop_of_row(mechanism, row)
    raise TensegrityError(
        f"loop {name} cannot close: a gap of {abs(work.loop_error[row]):.3g} is left after Newton's method. "
        "Check the lengths and the frames of its two bodies, or start nearer."
    )


def loop_of_row(mechanism: Mechanism, row: int) -> str:
    """Name of the loop of a constraint row."""
    for loop in mechanism.loops:
        count = len(LOOP_KINDS[loop.kind][0]) + len(LOOP_KINDS[loop.kind][1])
        if row < count:
            return loop.name
        row -= count
    for route in mechanism.routes:
        count = route.holding.size if route.rigid else 0
        if row < count:
            return route.name
        row -= count
    raise IndexError(row)


@allocation_free
def project_onto_loops(flat, q, v, work, reduction, stages):
    """Correct the passive coordinates to closed loops (K dq = -error) and their velocities to K v = 0."""
    dofs = flat.dof_parent.shape[0]
    if flat.row_kind.shape[0] == 0:
        return
    body_kinematics(flat, q, v, work)
    loop_equations(flat, work)
    for r in range(work.loop_error.shape[0]):
        work.loop_error[r] = -work.loop_error[r]
    reduce_rows(work.loop, work.loop_error, reduction, False)
    count = independent_basis(dofs, reduction)
    configuration_rate(flat, q, reduction.offset, stages.q_rate)
    for k in range(q.shape[0]):
        q[k] += stages.q_rate[k]
    normalise_quaternions(flat, q)
    for d in range(dofs):
        stages.step[d] = 0.0
        for i in range(count):
            stages.step[d] += reduction.basis[d, i] * v[reduction.independent[i]]
    for d in range(dofs):
        v[d] = stages.step[d]


@allocation_free
def close_loops(flat, q, held, tolerance, reuse, work, reduction, stages):
    """Close the loops by changing the passive coordinates of q, with held ones fixed; returns the largest error."""
    for _ in range(20):
        body_kinematics(flat, q, stages.v_sum, work)
        loop_equations(flat, work)
        worst = 0.0
        for r in range(work.loop_error.shape[0]):
            worst = max(worst, abs(work.loop_error[r]))
            work.loop_error[r] = -work.loop_error[r]
        if worst <= tolerance or not np.isfinite(worst):
            return worst
        for d in range(held.shape[0]):
            if held[d]:
                for r in range(work.loop_error.shape[0]):
                    work.loop[r, d] = 0.0
        reduce_rows(work.loop, work.loop_error, reduction, reuse)
        independent_basis(held.shape[0], reduction)
        configuration_rate(flat, q, reduction.offset, stages.q_rate)
        for k in range(q.shape[0]):
            q[k] += stages.q_rate[k]
        normalise_quaternions(flat, q)
    return worst
