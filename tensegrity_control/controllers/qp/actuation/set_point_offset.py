"""Accelerations for the offset between the output and the position at which the set points of the actuators hold it.

Prestress, and weight above its support, push an output away from rest: y'' = S y + u. Efforts u = -S y that follow from
a measured state act later by the delay L of the loop, even where the state is predicted at its present rate. Against
actuators that close impedances, and cables, with the stiffness K and the damping D, the output then oscillates with

    s^2 + D s + K = S (1 - e^(-L s) (1 + L s))

around the set points, unstable for light robots on soft cables: p^2 L exceeds D, with p^2 the largest eigenvalue of S.
Therefore the efforts are those at the position y + d where the set points hold the output, which no delay affects,

    u = a - S (y + d),   y'' = a + K d + D d' - S d

with the desired acceleration a. The offset d obeys d'' + D d' + (K - S) d = 0 without any delay. Cables that are not
tight, sampling and limits are not in this model: only where K is much larger than S does an arm bear late commands
(`held_growth.RESISTED`).
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables, fill_moved, move
from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free, taken
from tensegrity_dynamics.numerics.linear_algebra import lu_factor, lu_solve
from tensegrity_dynamics.numerics.types import Array

from ....optimization.motion_program import MotionSolution
from ..held_growth import HeldGrowth
from .cable_stretch import CableStretch, fill_seen, per_newton


@allocation_free
def fill_push(
    equations, own, directions, slopes, q, v, drive_q, stiffness, seen, seen_rate, late, rows, order, offset,
    moved_output, push,
):  # fmt: skip
    """Fill push (k,) with S d; see `SetPointOffset.push`.

    Args:
        equations: those that `TightCables` has kept. own: arrays of `CableStretch`. directions (k, nv), slopes (k, k):
            of `HeldGrowth`.
        rows: (k, k), order: (k,), offset: (k,), moved_output: (k, 4), scratch.
    """
    _, parts, _, _, tight = taken(equations)
    springs, softness, elastic, rate, _, _, _, columns, moved, _, _, measured = taken(own)
    drive, outputs, first = parts.drive, push.shape[0], parts.cable.shape[0] - tight.strain.shape[0]
    fill_seen(parts, tight, springs, softness, q, v, columns, measured)
    for c in range(springs.shape[0]):
        unit = per_newton(parts, springs, softness, q, c, first)
        columns[c, 2], columns[c, 3] = unit * elastic[c], unit * rate[c]
    move(tight.coupling, tight.pivots, tight.pull_solved, tight.inputs, tight.column, columns, moved)
    fill_moved(tight.pull_solved, tight.jacobian, columns, moved_output)
    for k in range(outputs):
        offset[k] = push[k] = 0.0
        for m in range(outputs):
            rows[k, m] = 0.0
    for a in range(drive.shape[0]):
        lack = seen[a] - (q[drive_q[a]] - moved[a, 0]) + late * (seen_rate[a] - (v[drive[a]] - moved[a, 1]))
        for k in range(outputs):
            force = stiffness[a] * directions[k, drive[a]]
            offset[k] += force * lack
            for m in range(outputs):
                rows[k, m] += force * directions[m, drive[a]]
    lu_factor(rows, outputs, order)
    for k in range(outputs):
        if rows[k, k] == 0.0:
            return
    lu_solve(rows, outputs, order, offset)
    for k in range(outputs):
        offset[k] += moved_output[k, 2] - moved_output[k, 0] + late * (moved_output[k, 3] - moved_output[k, 1])
    for k in range(outputs):
        for m in range(outputs):
            push[k] += slopes[k, m] * offset[m]


class SetPointOffset:
    """See the module.

    Args:
        equations, stretch, growth: of the controller. stiffness: of the actuators' impedances (a,) [N m/rad or N/m].
    """

    def __init__(self, equations: TightCables, stretch: CableStretch, growth: HeldGrowth, stiffness: Array) -> None:
        self._equations, self._stretch, self._growth, self._stiffness = equations, stretch, growth, stiffness
        k = growth.slopes.shape[0]
        self._scratch = np.zeros((k, k)), np.zeros(k, dtype=np.int64), np.zeros(k), np.zeros((k, 4))
        self._push = QuickCall(fill_push)

    def push(self, q: Array, v: Array, seen: Array, seen_rate: Array, late: float) -> Array:
        """S d (k,) [m/s^2 or rad/s^2] when the next command acts, at the state of the last `equations.update`, after
        `equations.see` of the measured state.

        The offset d is that of the actuators, weighted by their stiffness, and that by which cables are stretched
        otherwise than the last command intended. It goes on at its rate.

        Args:
            q, v: measured. seen, seen_rate: set points (a,) and their rates at that time. late: s until the command
                acts.
        """
        push = np.empty(self._growth.slopes.shape[0])
        self._push(
            self._equations.kept, self._stretch.kept, self._growth.directions, self._growth.slopes, q, v,
            self._equations.drive_q, self._stiffness, seen, seen_rate, late, *self._scratch, push,
        )  # fmt: skip
        return push

    def expected(self, solution: MotionSolution, push: Array) -> MotionSolution:
        """The solution for efforts against this push (k,), with the accelerations that the set points see: the push
        acts only as long as the output is off them."""
        more = push @ self._growth.directions
        return solution._replace(
            output=solution.output + push,
            actuator=solution.actuator + more[self._equations.parts.drive],
            motion=solution.motion + np.concatenate((more, push)),
        )
