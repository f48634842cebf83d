"""Rest lengths for a goal pose, along a path of stable equilibria (document 001, section 6, Algorithm 2, corrected).

Continuation from the start shape: the exact Jacobian (`pose_jacobian`) predicts how the shape answers to the rest
lengths, a quadratic program (`redundancy`) chooses the next change within the limits (`tendon_guard`), and forward
kinematics corrects the prediction. A step counts only when the new shape is a stable equilibrium close to the predicted
one with every guarded tendon tight; otherwise it is tried again at half the size. So the way never jumps to another
equilibrium, and every shape on it can be held. Near the goal the same steps are Newton's and converge quadratically.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import StructureEquilibriumSolver

from .broyden import broyden_search
from .continuation import Continuation
from .ik_result import InverseKinematicsResult
from .pose_goal import make_goal
from .start_equilibrium import shape_solver, start_shape

METHODS = ("newton", "broyden")


def inverse_kinematics(
    robot: Robot,
    position: ArrayLike | None = None,
    quaternion: ArrayLike | None = None,
    *,
    start: StructureEquilibrium | None = None,
    preferred: StructureEquilibrium | None = None,
    tension_floor: float | Mapping[str, float] | None = None,
    rigid_bars: bool = False,
    method: str = "newton",
    tolerance: float = 1e-9,
    max_iterations: int = 300,
    length_weight: float = 1.0,
    solver: StructureEquilibriumSolver | None = None,
) -> InverseKinematicsResult:
    """Find rest lengths that put the output frame at a goal pose, and the equilibria on the way.

    Args:
        robot: a pin-jointed robot with actuators and an output frame.
        position: (3,) m in the world frame; None keeps the present one.
        quaternion: (4,) w, x, y, z; None keeps the present one. Only the axes that the output controls are asked for.
        start: the shape to start from; None is the shape at the robot file's rest lengths.
        preferred: the shape whose tensions and lengths redundant tendons keep near; None is the start shape. Passing
            the same one at every call makes the lengths of a goal independent of where the way to it began.
        tension_floor: N for all actuated tendons, or by actuator name; None takes each actuator's minimum tension.
        rigid_bars: bars keep exactly their rest length instead of yielding by their stiffness.
        method: "newton" with the exact Jacobian, or "broyden" as in the document, for comparison.
        tolerance: m and rad, largest pose error on a controlled axis that counts as reached.
        max_iterations: steps tried before giving up.
        length_weight: how much redundant tendons keep their rest length against their tension. A deviation by half
            the mean travel and one by the mean tension count alike at 1; smaller values hold the tensions more evenly.
        solver: from `shape_solver` with the same `rigid_bars`, for callers that plan often.

    Returns:
        The plan; `rest_lengths` by actuator name.

    Raises:
        UnreachableGoalError: no way leads there; carries the nearest reachable shape and the binding tendons.
        TensegrityError: the goal or an option is not a number, or the start shape is not a stable, tight equilibrium.
    """
    if method not in METHODS:
        raise TensegrityError(unknown_name("method", method, METHODS))
    for name, value in (("tolerance", tolerance), ("length_weight", length_weight)):
        if not (np.isfinite(value) and value > 0.0):
            raise TensegrityError(f"{name} is {value}; give a number above zero.")
    output = robot.output
    present = None if position is not None and quaternion is not None else (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    make_goal(output, position, quaternion, present)
    if solver is None:
        solver = shape_solver(robot, rigid_bars)
    first = start_shape(robot, start, solver)
    goal = make_goal(output, position, quaternion, first.pose)
    liked = first if preferred is None else preferred
    search = Continuation(robot, goal, first, liked, tension_floor, solver, length_weight)
    if method == "broyden":
        return broyden_search(search, tolerance, max_iterations)
    return search.run(tolerance, max_iterations)
