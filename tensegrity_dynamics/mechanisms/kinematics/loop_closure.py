"""Closing the loops: Newton's method on the loop errors from a rough start, with the smallest change of coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...numerics.rotations import matrix_from_quaternion, matrix_from_vector, rotation_vector
from .. import joints
from ..dynamics.equations_of_motion import check_state, loop_equations, make_work, place_bodies
from ..joints import position_rate
from ..mechanism import Mechanism


def move(mechanism: Mechanism, q: NDArray, step: NDArray) -> NDArray[np.float64]:
    """Position after a small step (nv,) along the velocity coordinates; quaternions stay of length one."""
    result = np.array(q)
    for joint in mechanism.joints:
        kind = joints.KINDS[joint.kind]
        at = mechanism.positions_of(joint.name)
        rate = np.zeros(joints.POSITIONS[kind])
        position_rate(kind, q[at], step[mechanism.velocities_of(joint.name)], rate)
        result[at] += rate
        if kind in (joints.SPHERICAL, joints.FLOATING):
            result[at.stop - 4 : at.stop] /= np.linalg.norm(result[at.stop - 4 : at.stop])
    return result


def difference(mechanism: Mechanism, before: NDArray, after: NDArray) -> NDArray[np.float64]:
    """The displacement (nv,) along the velocity coordinates from one position to another near it.

    Divided by the time between them it is the mean velocity, to second order in that time: turns are rotation vectors,
    translations of floating joints are in axes of the body half-way.
    """
    step = np.zeros(mechanism.velocity_count)
    for joint in mechanism.joints:
        kind = joints.KINDS[joint.kind]
        q, v = mechanism.positions_of(joint.name), mechanism.velocities_of(joint.name)
        if kind in (joints.SPHERICAL, joints.FLOATING):
            old = matrix_from_quaternion(before[q.stop - 4 : q.stop])
            turn = rotation_vector(old.T @ matrix_from_quaternion(after[q.stop - 4 : q.stop]))
            step[v.start : v.start + 3] = turn
            if kind == joints.FLOATING:
                half = matrix_from_vector(0.5 * turn)  # axes of the body half-way
                step[v.start + 3 : v.stop] = (old @ half).T @ (
                    after[q.start : q.start + 3] - before[q.start : q.start + 3]
                )
        else:
            step[v] = after[q] - before[q]
    return step


def assemble(
    mechanism: Mechanism,
    start: NDArray,
    *,
    hold: tuple[str, ...] = (),
    tolerance: float = 1e-13,
    maximum_iterations: int = 50,
) -> NDArray[np.float64]:
    """Position (nq,) near start with all loops closed to `tolerance` (m, or sine of an angle).

    Args:
        start: (nq,) rough position.
        hold: joints whose coordinates stay as they are.

    Raises:
        TensegrityError: a loop cannot close; it is named, with the gap that is left.
    """
    flat, work = mechanism.flat, make_work(mechanism.flat)
    q, v = check_state(mechanism, start, np.zeros(mechanism.velocity_count))
    free = np.ones(v.size, dtype=bool)
    for name in hold:
        free[mechanism.velocities_of(name)] = False

    def error_at(position: NDArray) -> float:
        place_bodies(flat, position, v, work)
        loop_equations(flat, work)
        return float(np.max(np.abs(work.loop_error), initial=0.0))

    error = error_at(q)
    for _ in range(maximum_iterations):
        if error <= tolerance:
            return q
        step = np.zeros(v.size)
        step[free] = np.linalg.lstsq(work.loop[:, free], -work.loop_error, rcond=1e-10)[0]
        scale = min(1.0, 1.0 / max(1e-9, np.max(np.abs(step))))
        for _ in range(30):
            trial = move(mechanism, q, scale * step)
            new = error_at(trial)
            if new < error:
                break
            scale *= 0.5
        if not new < error:
            break
        q, error = trial, new
    error_at(q)
    if error <= 10.0 * tolerance:
        return q
    row = int(np.argmax(np.abs(work.loop_error)))
    name = loop_of_row(mechanism, row)
    raise TensegrityError(
        f"loop {name} cannot close: a gap of {abs(work.loop_error[row]):.3g} is left after Newton's method. "
        "Check the lengths and where the frames of its two bodies are, or start nearer."
    )


def loop_of_row(mechanism: Mechanism, row: int) -> str:
    """Name of the loop that a constraint row belongs to."""
    from ..loop_joints import KINDS

    for loop in mechanism.loops:
        count = len(KINDS[loop.kind][0]) + len(KINDS[loop.kind][1])
        if row < count:
            return loop.name
        row -= count
    raise IndexError(row)
