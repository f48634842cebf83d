"""The control problem of a mechanism at one state, in one call: efforts for what its output shall do.

With the driven cables tight everything is affine in the efforts u (`tight_cables`):

    min  1/2 |u / u_max|^2 + 1/2 |(T - T_level) / T_level|^2    s.t.  b_0 + B u = y'',  T_low <= T_0 + T_1 u <= T_high

(000, (3.2.5)-(3.2.8).) Limits of efforts are never broken, floors and ceilings of tensions yield last, tracking first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from .control_problem import Inequalities, InputProblem, Task


def mechanism_problem(
    robot: Robot,
    desired: ArrayLike,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    floor: ArrayLike | None = None,
    ceiling: ArrayLike = np.inf,
    level: ArrayLike | None = None,
) -> InputProblem:
    """Input optimisation problem: efforts of a robot's actuators for a desired acceleration of its output.

    Args:
        desired: (k,) m/s^2 and rad/s^2 along the axes that the output controls. q, v: (nq,), (nv,) state; None for the
            start, at rest. floor, ceiling: N, of all driven cables or (c,) of each; None for the `minimum_tension` of
            the robot file. level: N that is desired in them; None where the least efforts decide alone.

    Raises:
        TensegrityError: the robot is no such mechanism, an array has a wrong shape, or a level is not above zero.
        InfeasibleControlError: a floor above its ceiling; names the cable.
    """
    equations = TightCables(robot)
    start = np.array(robot.model_as(MechanismModel).start)
    q = _of_shape(start if q is None else q, start.shape, "q")
    v = _of_shape(np.zeros(equations.mechanism.velocity_count) if v is None else v, equations.arrays.full[0].shape, "v")
    tight = equations.update(q, v)
    output, effort = robot.output, np.array([each.effort for each in robot.actuators])
    target = _of_shape(desired, tight.output_0.shape, "desired") - tight.output_0
    rows: Inequalities | None = None
    tasks: tuple[Task, ...] = ()
    if equations.cables:
        count, there = len(equations.cables), tight.tension_0
        low = _of_cables(equations.floors if floor is None else floor, count, "floor")
        high = _of_cables(ceiling, count, "ceiling")
        for name, least, most in zip(equations.cables, low.tolist(), high.tolist(), strict=True):
            if not least <= most:
                raise InfeasibleControlError(
                    f"cable {name}: the floor {least:g} N is above the ceiling {most:g} N; lower the floor or raise "
                    "the ceiling."
                )
        rows = Inequalities(tight.tension_1, low - there, high - there, equations.cables)
        if level is not None:
            tension = _of_cables(level, count, "level")
            if not np.all(tension > 0.0):
                raise TensegrityError("level: give tensions above zero, in N.")
            tasks = (Task(tight.tension_1 / tension[:, None], (tension - there) / tension),)
    return InputProblem(
        tight.output_1, target, -effort, effort, weights=1.0 / effort, rows=rows, tasks=tasks,
        names=[each.name for each in robot.actuators], tracked=output.controlled,  # type: ignore[union-attr]
    )  # fmt: skip


def _of_shape(given: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    array = np.array(given, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise TensegrityError(f"{what} must be {shape} finite numbers; found shape {array.shape}.")
    return array


def _of_cables(given: ArrayLike, count: int, what: str) -> Array:
    """(c,) from one number for all driven cables, or one of each."""
    array = np.asarray(given, dtype=np.float64)
    if array.shape not in ((), (count,)):
        raise TensegrityError(f"{what} must be one tension or {count} of them, in N; found shape {array.shape}.")
    return np.broadcast_to(array, (count,))
