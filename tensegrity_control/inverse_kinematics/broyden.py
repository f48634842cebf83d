"""Inverse kinematics of the document: Algorithm 2 with Broyden's update (001, section 6, corrected), for comparison.

The Jacobian of the pose is computed once and then updated from the observed changes by the rank-one update

    J+ = J + (dP - J dd) dd' / (dd' dd)

(the printed formula lacks the transpose). The step uses the pseudo-inverse of the 6 x 12 matrix, since the printed
inverse does not exist. The printed method makes tendons slack, and the pose then no longer responds to them. Here
tensions have a Jacobian with the same update, and if a step would violate a tension floor, the smallest change that
keeps all floors replaces it. Unlike "newton" it has no preferred posture: lengths depend on the path, which may cross a
floor by 1 % of the mean tension.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.robots.output_frame import pose_error
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium

from .continuation import Continuation
from .ik_result import InverseKinematicsResult
from .structure_jacobian import Sensitivity
from .tension_limits import TOLERANCE


def broyden_search(search: Continuation) -> InverseKinematicsResult:
    """Run Algorithm 2 from the start of `search`. Raises UnreachableGoalError if it does not reach the goal."""
    goal, guard = search.goal, search.guard
    slopes = search.slopes(search.equilibrium)
    while search.steps < search.options.max_iterations:
        equilibrium = search.equilibrium
        if search.reached():
            return search.result("broyden")
        step = search.solve(
            equilibrium, slopes, goal.error(equilibrium.pose), guard.limits, None, search.unmoved(equilibrium)
        )
        if step.progress < 1e-3 and not step.confined:
            break
        search.steps += 1
        moved, _ = search.attempt(equilibrium, slopes, step.change)
        allowed = max(TOLERANCE, guard.limits.violation(guard.values(equilibrium)))
        if moved is None or guard.limits.violation(guard.values(moved)) > max(allowed, 0.01):
            search.radius = 0.5 * float(np.abs(step.change).max())
            if search.radius_spent():
                break
            # With such an error of the prediction the estimate is outdated.
            slopes = search.slopes(equilibrium)
            continue
        search.path.append(moved)
        slopes = follow(slopes, equilibrium, moved, step.change)
    raise search.give_up()


def follow(
    slopes: Sensitivity, before: StructureEquilibrium, after: StructureEquilibrium, change: NDArray[np.float64]
) -> Sensitivity:
    """Broyden's update of all three Jacobians from the effect of a change (a,) m of the actuated lengths."""
    direction = change / float(change @ change)

    def update(jacobian: NDArray[np.float64], observed: NDArray[np.float64]) -> NDArray[np.float64]:
        return jacobian + np.outer(observed - jacobian @ change, direction)

    assert slopes.pose is not None
    return Sensitivity(
        members=slopes.members,
        nodes=update(slopes.nodes, (after.nodes - before.nodes).ravel()),
        tensions=update(slopes.tensions, after.tensions - before.tensions),
        pose=update(slopes.pose, pose_error(after.pose, before.pose)),
    )
