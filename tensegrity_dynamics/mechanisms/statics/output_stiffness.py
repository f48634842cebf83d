"""Stiffness of the output of a mechanism at an equilibrium with held actuators, see
`linear_models.output_stiffness`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...linear_models.output_stiffness import OutputStiffness, SelfStress, stiffness_of
from ...robots.robot import Robot
from ..body_frame import BodyFrame
from ..kinematics.independent_coordinates import wrench_jacobian
from ..mechanism import Mechanism
from ..mechanism_model import MechanismModel
from .equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from .sensitivity import sensitivity

STRESS_STEP = 1e-4
"""Finite difference step along a self-stress, relative to the largest tension."""

NO_STIFFNESS = 1e-8
"""Threshold, relative to the largest stiffness; smaller values are rounding errors of the finite differences."""
LOOSE = 1e-3
"""Fraction of the output motion along motions without stiffness, above which the output has no stiffness."""


def output_jacobian(mechanism: Mechanism, q: NDArray[np.float64], output: BodyFrame) -> NDArray[np.float64]:
    """(6, nv) Jacobian of an output in world axes, linear then angular, for the velocity coordinates."""
    return wrench_jacobian(mechanism, q, output.body, np.asarray(output.frame.origin))[[3, 4, 5, 0, 1, 2]]


def compliance_along(
    stiffness: NDArray[np.float64], along: NDArray[np.float64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(m, m) compliance J K^-1 J' of K (n, n) and J (m, n), without motions that have no stiffness (spin of a strut).

    Args:
        stiffness: K. along: J. rows: indices of the rows of J that are checked.

    Raises:
        TensegrityError: a motion without stiffness moves the output along one of the checked rows of J.
    """
    left, values, right = np.linalg.svd(stiffness)
    kept = values > NO_STIFFNESS * float(values.max(initial=0.0))
    if np.linalg.norm(along[rows] @ right[~kept].T) > LOOSE * np.linalg.norm(along[rows]):
        raise TensegrityError("a motion without stiffness remains, so that its output bends without force.")
    return np.asarray((along @ right[kept].T / values[kept]) @ (left[:, kept].T @ along.T))


def output_compliance(
    solver: MechanismEquilibriumSolver, shape: MechanismEquilibrium, output: BodyFrame
) -> NDArray[np.float64]:
    """(6, 6) compliance of the output: motion per force and moment on it, with the joints of the solver held.

    Motions without stiffness are excluded.

    Raises:
        TensegrityError: a motion without stiffness moves the output along an axis that it controls.
    """
    effort = np.where(solver._held, 0.0, shape.effort)
    count = solver._residual(shape.q, effort, reuse=False).size
    stiffness, basis = solver._stiffness(shape.q, effort, count)
    return compliance_along(stiffness, output_jacobian(solver.mechanism, shape.q, output) @ basis, output.rows)


def output_stiffness(robot: Robot, shape: MechanismEquilibrium | None = None) -> OutputStiffness:
    """Stiffness of the output of a robot at an equilibrium; by default at the start of the robot.

    Self-stresses are changes of the tensions by winding that move no body (except cables, their blocks and pulleys).
    The slopes are finite differences between equilibria near this one.

    Raises:
        TensegrityError: the robot has no output, or it has a motion without stiffness.
        NoEquilibriumError: there is no equilibrium.
    """
    model = robot.model_as(MechanismModel)
    mechanism = model.mechanism
    if not robot.outputs:
        raise TensegrityError(f"{robot.name} has no output, so no stiffness of it; name one in its file.")
    output: BodyFrame = robot.outputs[0]  # type: ignore[assignment]
    joints = model.driven_joints(robot.actuators)
    solver = MechanismEquilibriumSolver(mechanism, joints)
    if shape is None:
        shape = solver.solve(model.start)
    compliance = output_compliance(solver, shape, output)
    positions = shape.positions - shape.positions.mean(axis=0)
    reach = max(float(np.sqrt(np.mean(np.sum(positions**2, axis=1)))), 1e-9)
    jacobian: NDArray[np.float64] = np.zeros((6, 0))
    stresses: tuple[SelfStress, ...] = ()
    if robot.actuators:
        answer = sensitivity(solver, shape)
        order = [int(np.flatnonzero(answer.held == mechanism.velocities_of(name).start)[0]) for name in joints]
        jacobian = (output_jacobian(mechanism, shape.q, output) @ answer.motion)[:, order]
        stresses = _self_stresses(robot, solver, shape, output, answer.motion[:, order], answer.tension[:, order])
    return OutputStiffness(
        output.name, tuple(output.controlled), compliance, stresses, jacobian,
        tuple(each.name for each in robot.actuators), reach,
    )  # fmt: skip


def _self_stresses(
    robot: Robot,
    solver: MechanismEquilibriumSolver,
    shape: MechanismEquilibrium,
    output: BodyFrame,
    motion: NDArray[np.float64],
    tension: NDArray[np.float64],
) -> tuple[SelfStress, ...]:
    """Self-stresses: directions of winding that change tensions but move no body, and the slope of the stiffness along
    each of them."""
    model = robot.model_as(MechanismModel)
    mechanism = model.mechanism
    if not tension.size:
        return ()
    of_cables = {name for entry in model.entries for name in entry.joints}
    own = [mechanism.velocities_of(joint.name) for joint in mechanism.joints if joint.name not in of_cables]
    rows = np.vstack([motion[each] for each in own]) if own else np.zeros((0, motion.shape[1]))
    _, values, vectors = np.linalg.svd(rows, full_matrices=True)
    rank = int(np.count_nonzero(values > 1e-6 * float(values.max(initial=0.0))))
    names = [cable.name for cable in mechanism.cables]
    joints = model.driven_joints(robot.actuators)
    starts = {name: float(shape.q[mechanism.positions_of(name)][0]) for name in joints}
    result = []
    for vector in vectors[rank:]:
        pull = tension @ vector
        size = float(np.linalg.norm(pull))
        if not size > 1e-9 * float(np.abs(tension).max()):
            continue
        wound, pull = vector / size, pull / size
        if pull[int(np.argmax(np.abs(pull)))] < 0.0:
            wound, pull = -wound, -pull
        step = STRESS_STEP * float(np.abs(shape.tension).max(initial=0.0))
        if not step > 0.0:
            continue
        sides = []
        for sign in (1.0, -1.0):
            aside = {name: starts[name] + sign * step * float(turn) for name, turn in zip(joints, wound, strict=True)}
            sides.append(stiffness_of(output_compliance(solver, solver.solve(shape.q, aside), output), output.rows))
        slope = (sides[0] - sides[1]) / (2.0 * step)
        result.append(SelfStress(dict(zip(names, pull.tolist(), strict=True)), slope))
    return tuple(result)
