"""Says in words why a goal pose is out of reach, how near the robot gets, and what binds."""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.errors import UnreachableGoalError
from tensegrity_dynamics.robots.output_frame import AXES
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium

from .pose_goal import PoseGoal
from .tension_limits import TendonGuard


def unreachable(
    goal: PoseGoal,
    guard: TendonGuard,
    bound: StructureEquilibrium,
    nearest: StructureEquilibrium,
    binding: tuple[int, ...],
    trouble: str,
) -> UnreachableGoalError:
    """The error for a goal out of reach.

    Args:
        bound: the shape at the limits, where the motion stopped; its values are quoted.
        nearest: the shape that is offered instead, a little inside the limits.
        binding: rows of the guard's limits that stop the motion.
        trouble: why steps were refused, where no limit binds.
    """
    error = goal.error(nearest.nodes)
    axes = [AXES[row] for row in goal.output.rows]
    distance = [value for axis, value in zip(axes, error, strict=True) if not axis.startswith("r")]
    turn = [value for axis, value in zip(axes, error, strict=True) if axis.startswith("r")]
    short = []
    if distance:
        short.append(f"{1e3 * float(np.linalg.norm(distance)):.3g} mm")
    if turn:
        short.append(f"{np.degrees(float(np.linalg.norm(turn))):.3g} deg")
    position, quaternion = nearest.pose
    place = ", ".join(f"{value:.4f}" for value in position)
    orientation = ", ".join(f"{value:.4f}" for value in quaternion)

    values = guard.values(bound)
    rows = binding or tuple(guard.limits.touched(values, 1e-3))
    reasons = [guard.limits.describe(row, values[row]) for row in rows]
    if not reasons:
        reasons = [trouble or "the pose does not answer to the tendons in that direction"]
    return UnreachableGoalError(
        f"the goal pose is out of reach. Nearest reachable pose: position ({place}) m, quaternion ({orientation}); "
        f"it misses the goal by {' and '.join(short)}. What stops it: {'; '.join(reasons)}. Ask for a pose nearer to "
        "that one, or widen these limits in the robot file.",
        nearest=nearest,
        rest_lengths={nearest.structure.member_names[k]: float(nearest.rest_lengths[k]) for k in guard.members},
        binding=tuple(dict.fromkeys(guard.limits.names[row] for row in rows)),
    )
