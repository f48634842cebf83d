"""Vibration modes of a mechanism at rest with held actuators: M y'' + C y' + K y = 0 along the closed-loop motions.

K is the stiffness of the equilibrium solver (finite differences along closed loops), C the derivative of the passive
efforts with respect to the rates, and M the inertia reduced by G. The coordinates are scaled to unit inertia, so that
the modes have the form of `linear_models.modes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...linear_models.linear_model import LinearModel
from ...linear_models.modes import Mode, find_modes, main_parts, motion_words, shares
from ..body_frame import BodyFrame
from ..contact_readings import set_standing
from ..dynamics.equations_of_motion import evaluate
from ..kinematics.independent_coordinates import wrench_jacobian
from ..routing.columns import COUNT, FIRST, HOLDS, LINE_MASS, LOOP_ROW, REST_NOW, STIFFNESS, STRAIN, STRAIN_RATE
from .equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver

RATE_STEP = 1e-4
"""Finite difference step of the rates [rad/s or m/s]; the efforts of dampers are linear in the rates."""


def vibration_model(solver: MechanismEquilibriumSolver, shape: MechanismEquilibrium) -> tuple[LinearModel, NDArray]:
    """Linear model of the free motions about an equilibrium in coordinates of unit inertia, and strain gradients.

    Contacts of routed cables with friction stick.

    Returns:
        The model without inputs, whose lift gives displacements along the velocity coordinates, and (c, y) the
        derivative of the strain of each cable along the coordinates of the model.

    Raises:
        TensegrityError: a motion without inertia remains.
    """
    with solver.sticking(shape):
        return _vibration_model(solver, shape)


def _vibration_model(solver: MechanismEquilibriumSolver, shape: MechanismEquilibrium) -> tuple[LinearModel, NDArray]:
    flat, mechanism = solver._flat, solver.mechanism
    q, effort = shape.q, np.where(solver._held, 0.0, shape.effort)
    still = np.zeros(effort.size)
    count = solver._residual(q, effort, reuse=False).size
    stiffness, basis = solver._stiffness(q, effort, count)
    gradients = solver._strain_gradients(q, basis)
    work = solver._work
    set_standing(work, np.zeros(3))  # the ground of simulations: that of statics has neither dampers nor friction
    evaluate(flat, q, still, work)
    mass = basis.T @ work.mass @ basis
    damping = np.zeros((count, count))
    for i in range(count):
        h = RATE_STEP / max(1e-12, float(np.max(np.abs(basis[:, i]))))
        for sign in (1.0, -1.0):
            evaluate(flat, q, sign * h * basis[:, i], work)
            damping[:, i] -= sign * (basis.T @ (work.passive - work.bias)) / (2.0 * h)
    solver.stand()
    try:
        root = np.linalg.cholesky(mass) if count else np.zeros((0, 0))
    except np.linalg.LinAlgError:
        raise TensegrityError(
            "a motion without inertia remains with the actuators held, so that its frequency is not determined; give "
            "the bodies that move in it a mass."
        ) from None
    scale = np.linalg.inv(root).T if count else root
    matrix = np.zeros((2 * count, 2 * count))
    matrix[:count, count:] = np.eye(count)
    matrix[count:, :count] = -scale.T @ stiffness @ scale
    matrix[count:, count:] = -scale.T @ damping @ scale
    names = [f"motion {k + 1}" for k in range(count)]
    all_names = mechanism.coordinate_names()
    model = LinearModel(
        matrix, np.zeros((2 * count, 0)), np.zeros(2 * count), np.zeros(2 * count), np.zeros(0),
        (*names, *(f"velocity of {name}" for name in names)), (), np.kron(np.eye(2), basis @ scale),
        full_names=(*all_names, *(f"velocity of {name}" for name in all_names)),
    )  # fmt: skip
    return model, gradients @ scale


def mechanism_modes(
    solver: MechanismEquilibriumSolver, shape: MechanismEquilibrium, output: BodyFrame | None = None
) -> list[Mode]:
    """Modes about an equilibrium with the joints of the solver held.

    Args:
        output: frame whose motion is reported, or None.

    Raises:
        TensegrityError: a motion without inertia remains.
    """
    mechanism, q, flat = solver.mechanism, shape.q, solver.mechanism.flat
    model, gradients = vibration_model(solver, shape)
    count = model.state.size // 2
    bodies = {body.name: body for body in mechanism.bodies}
    heavy = [
        joint.body for joint in mechanism.joints
        if bodies[joint.body].mass > 0.0 or np.trace(bodies[joint.body].inertia) > 0.0
    ]  # fmt: skip
    jacobians = {name: wrench_jacobian(mechanism, q, name, bodies[name].centre) for name in heavy}
    turned = {name: shape.rotations[mechanism.body_index[name]] for name in heavy}
    positions = np.array([shape.positions[mechanism.body_index[name]] for name in heavy]).reshape(-1, 3)
    reach = (
        float(np.sqrt(np.mean(np.sum((positions - positions.mean(axis=0)) ** 2, axis=1)))) if len(heavy) > 1 else 1.0
    )
    rest = np.array([flat.radius[i] * q[flat.q_start[i]] for i in flat.cable_joint])
    weights = flat.cable_young * flat.cable_area * rest * (shape.strain > 0.0)
    lift = np.asarray(model.lift)
    back = np.linalg.pinv(lift[: lift.shape[0] // 2, :count]) if count else np.zeros((0, 0))
    seen = None
    if output is not None:
        seen = wrench_jacobian(mechanism, q, output.body, np.asarray(output.frame.origin))[[3, 4, 5, 0, 1, 2]]

    routed = _route_stretching(solver, q)
    cable_names = [cable.name for cable in mechanism.cables] + [route.name for route in mechanism.routes]

    def describe(mode: Mode) -> Mode:
        parts = shares(heavy, np.array([_kinetic(name, mode) for name in heavy]))
        strain = np.abs(gradients @ (back @ mode.shape)) ** 2
        energy = weights * strain
        energies = np.concatenate((np.where(energy > 1e-12 * weights, energy, 0.0), routed(mode.shape)))
        cables = shares(cable_names, energies)
        words = main_parts(parts)
        if seen is not None and output is not None:
            twist = seen @ mode.shape
            most = max((np.linalg.norm((jacobians[name] @ mode.shape)[3:]) for name in heavy), default=0.0)
            if np.linalg.norm(twist * np.array([1.0, 1.0, 1.0, reach, reach, reach])) > 0.2 * most:
                words = f"{output.name} {motion_words(twist, reach)}; {words}"
        return replace(mode, what=words, parts=parts, cables=cables)

    def _kinetic(name: str, mode: Mode) -> float:
        rate, body = jacobians[name] @ mode.shape, bodies[name]
        spin = turned[name].T @ rate[:3]
        turning = float(np.real(np.conj(spin) @ body.inertia @ spin))
        return body.mass * float(np.sum(np.abs(rate[3:]) ** 2)) + turning

    with solver.sticking(shape):
        return find_modes(model, count, describe)


def _route_stretching(solver: MechanismEquilibriumSolver, q: NDArray) -> Callable[[NDArray], NDArray]:
    """Function from a displacement (nv,) to twice the elastic energies (r,) [J] of routed cables with sticking
    contacts.

    The energy is zero for slack cables, for inextensible cables, and for cables whose elongation cannot be separated
    from their sag.
    """
    flat, work = solver.mechanism.flat, solver._work
    evaluate(flat, q, np.zeros(solver.mechanism.velocity_count), work)
    rows = []
    for cable in flat.routed_cables:
        first = int(cable[FIRST])
        strands = np.arange(first, first + int(cable[COUNT]) - 1)
        state = work.route_state[strands]
        stretches = (flat.route_elements[strands, HOLDS] > 0.0) & (state[:, STRAIN] > 0.0)
        stretches &= cable[LOOP_ROW] < 0.0 and cable[LINE_MASS] == 0.0
        rows.append((strands[stretches], cable[STIFFNESS] * state[stretches, REST_NOW]))

    def energies(shape: NDArray) -> NDArray[np.float64]:
        found = np.zeros(len(rows))
        for part in (shape.real, shape.imag) if rows else ():
            evaluate(flat, q, np.ascontiguousarray(part), work)
            found += [float(weights @ work.route_state[strands, STRAIN_RATE] ** 2) for strands, weights in rows]
        return found

    return energies
