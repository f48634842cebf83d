"""Runge-Kutta integration with a control law evaluated at every stage, as in the simulations of the documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics import Robot
from tensegrity_dynamics.mechanisms.dynamics.forward_dynamics import accelerate
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import configuration_rate, normalise_quaternions
from tensegrity_dynamics.mechanisms.kinematics.loop_closure import project_onto_loops
from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import make_reduction_workspace
from tensegrity_dynamics.mechanisms.workspace import make_stage_workspace, make_workspace
from tensegrity_dynamics.numerics.types import Array

INSIDE = 1e-6
"""Smallest distance of the evaluation times of the law from the ends of a step, relative to the step. It excludes jumps
of the path between two steps from both."""


def every_stage(
    robot: Robot,
    start: Array,
    drives: Sequence[int] | NDArray[np.int64],
    law: Callable[[float, Array, Array], Array],
    step: float,
    duration: float,
) -> Iterator[tuple[float, Array]]:
    """Time [s] and position (nq,) after every step of a motion from rest.

    Args:
        start: (nq,) initial position. drives: indices of velocity coordinates on which the efforts (u,) of the law act.
        law: efforts as a function of time, q and v. step, duration: s.
    """
    flat = robot.mechanism.flat
    work, solver, stages = make_workspace(flat), make_reduction_workspace(flat), make_stage_workspace(flat)
    q, v = np.array(start), np.zeros(flat.dof_parent.size)
    effort = np.zeros(v.size)
    for k in range(round(duration / step)):
        q_sum, v_sum, q_here, v_here = q.copy(), v.copy(), q.copy(), v.copy()
        for weight, ahead, delay in ((6.0, 0.5, 0.0), (3.0, 0.5, 0.5), (3.0, 1.0, 0.5), (6.0, 0.0, 1.0)):
            inside = min(max(delay, INSIDE), 1.0 - INSIDE)
            effort[drives] = law((k + inside) * step, q_here, v_here)
            accelerate(flat, q_here, v_here, effort, 0.0, work, solver, False)
            configuration_rate(flat, q_here, v_here, stages.q_rate)
            q_sum += step / weight * stages.q_rate
            v_sum += step / weight * solver.acceleration
            q_here, v_here = q + ahead * step * stages.q_rate, v + ahead * step * solver.acceleration
        q, v = q_sum, v_sum
        normalise_quaternions(flat, q)
        project_onto_loops(flat, q, v, work, solver, stages)
        yield (k + 1) * step, q
