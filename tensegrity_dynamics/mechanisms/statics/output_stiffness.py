"""Stiffness of the output of a mechanism at an equilibrium with held actuators, see
`linear_models.output_stiffness`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...linear_models.output_stiffness import OutputStiffness, SelfStress, stiffness_of
from ...robots.robot import Robot
from ..body_frame import BodyFrame
from ..dynamics.equations_of_motion import evaluate
from ..kinematics.configuration_space import displaced
from ..kinematics.independent_coordinates import wrench_jacobian
from ..mechanism import Mechanism
from ..mechanism_model import MechanismModel
from .equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from .sensitivity import sensitivity

STRESS_STEP = 1e-3
"""Finite difference step along a self-stress, relative to the largest tension."""
ROUNDING = 1e-9
"""Rounding error of a stiffness by finite differences, relative to its largest entry."""
STRAND_STEP = 1e-6
"""Finite difference step [rad or m] of the tensions of strands."""

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

    Motions without stiffness are excluded. Feet of a robot that only the ground holds stick,
    and so do routed cables at contacts with friction.

    Raises:
        TensegrityError: a motion without stiffness moves the output along an axis that it controls.
    """
    effort = np.where(solver._held, 0.0, shape.effort)
    with solver.sticking(shape):
        count = solver._residual(shape.q, effort, reuse=False).size
        stiffness, basis = solver._stiffness(shape.q, effort, count)
    if solver.stands:
        evaluate(solver._flat, shape.q, np.zeros(effort.size), solver._work)
        stiffness = stiffness + solver.held_by_friction(basis)
    return compliance_along(stiffness, output_jacobian(solver.mechanism, shape.q, output) @ basis, output.rows)


def output_stiffness(robot: Robot, shape: MechanismEquilibrium | None = None) -> OutputStiffness:
    """Stiffness of the output of a robot at an equilibrium; by default at the start of the robot.

    The effect of the actuators is that of motions which are large compared with the friction of routed cables: these
    slide freely over guides, as in plans. Self-stresses are changes of the tensions by winding that move no body,
    except cables, their blocks and pulleys, and the drums and slides at the ends of routed cables. The slopes are
    finite differences between equilibria near this one.

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
        free = mechanism.sliding_freely()
        if free is not mechanism:
            solver = MechanismEquilibriumSolver(free, joints)
            shape = solver.solve(shape.q)
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
    mechanism = solver.mechanism
    names = [cable.name for cable in mechanism.cables]
    for name, strands in solver.route_tensions_at(shape.q).items():
        names += [name] if len(strands) == 1 else [f"{name}[{k}]" for k in range(len(strands))]
    if not names:
        return ()
    tension = np.vstack((tension, _strand_slopes(solver, shape.q, motion)))
    winding = {name for entry in model.entries for name in entry.joints} | _winches(robot)
    own = [mechanism.velocities_of(joint.name) for joint in mechanism.joints if joint.name not in winding]
    rows = np.vstack([motion[each] for each in own]) if own else np.zeros((0, motion.shape[1]))
    _, values, vectors = np.linalg.svd(rows, full_matrices=True)
    rank = int(np.count_nonzero(values > 1e-6 * float(values.max(initial=0.0))))
    joints = model.driven_joints(robot.actuators)
    starts = {name: float(shape.q[mechanism.positions_of(name)][0]) for name in joints}
    largest = float(np.abs(shape.tension).max(initial=0.0))
    largest = max([largest, *(reading.tension for reading in shape.routes.values())])
    result = []
    free = vectors[rank:].T
    pulls, sizes, mixtures = np.linalg.svd(tension @ free, full_matrices=False)
    for pull, size, mixture in zip(pulls.T, sizes.tolist(), mixtures, strict=True):
        if not size > 1e-9 * float(np.abs(tension).max()):
            continue  # it winds slack cables, or turns what nothing resists
        wound = free @ mixture / size
        if pull[int(np.argmax(np.abs(pull)))] < 0.0:
            wound, pull = -wound, -pull
        step = STRESS_STEP * largest
        if not step > 0.0:
            continue
        sides = []
        for sign in (1.0, -1.0):
            aside = {name: starts[name] + sign * step * float(turn) for name, turn in zip(joints, wound, strict=True)}
            sides.append(stiffness_of(output_compliance(solver, solver.solve(shape.q, aside), output), output.rows))
        slope = (sides[0] - sides[1]) / (2.0 * step)
        slope[np.abs(slope) < ROUNDING * np.abs(sides).max() / step] = 0.0
        result.append(SelfStress(dict(zip(names, pull.tolist(), strict=True)), slope))
    return tuple(result)


def _strand_slopes(
    solver: MechanismEquilibriumSolver, q: NDArray[np.float64], motion: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(s, a) derivatives [N per rad or m] of the tensions of the strands of elastic routed cables along motions (nv,
    a)."""
    columns = []
    for direction in motion.T:
        step = STRAND_STEP / max(1.0, float(np.max(np.abs(direction))))
        sides = []
        for sign in (1.0, -1.0):
            there = displaced(solver.mechanism, q, sign * step * direction)
            sides.append([pull for pulls in solver.route_tensions_at(there).values() for pull in pulls])
        columns.append((np.array(sides[0]) - np.array(sides[1])) / (2.0 * step))
    return np.array(columns).reshape(motion.shape[1], -1).T


def _winches(robot: Robot) -> set[str]:
    """Driven joints that only wind or pull routed cables: cables end on their bodies, which carry nothing else."""
    model = robot.model_as(MechanismModel)
    mechanism = model.mechanism
    ends = [point for route in model.routes for point in (route.route[0], route.route[-1])]
    pulled = {point.body for point in ends} | {mechanism.joint(point.joint).body for point in ends if point.joint}
    busy = {joint.parent for joint in mechanism.joints} | {part.body for part in mechanism.contact_parts}
    busy |= {body for loop in mechanism.loops for body in (loop.predecessor, loop.successor)}
    busy |= {each.body for each in robot.outputs if isinstance(each, BodyFrame)}
    driven = (mechanism.joint(name) for name in model.driven_joints(robot.actuators))
    return {joint.name for joint in driven if joint.body in pulled - busy}
