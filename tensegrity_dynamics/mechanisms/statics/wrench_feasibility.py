"""Feasible wrenches on the output of a cable-driven robot, with tensions between a lower and an upper limit.

At rest, the forces along all closed-loop motions (G of 000, 1.2.32) are in balance: the cable tensions T, the actuator
efforts u, the passive forces p of weight, springs and specified loads, and a wrench f on the output,

    P' T = B u + p + J' f,    T_low <= T <= T_high,  |u| <= u_max

with P the generalised forces per unit tension of each cable. The efforts of the pulleys follow from the tensions, so
that only the self-stresses remain free. The tensions are chosen nearest to the desired ones. This is a strictly convex
program, so that they change continuously from pose to pose. The largest feasible wrench is the solution of a linear
program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError
from ...robots.robot import Robot
from .. import joints
from ..body_frame import BodyFrame
from ..dynamics.equations_of_motion import evaluate
from ..kinematics.loop_reduction import independent_basis, make_reduction_workspace, reduce_rows
from ..mechanism_model import MechanismModel
from ..workspace import make_workspace
from .output_stiffness import output_jacobian

UNBOUNDED = 1e12
"""Upper bound of the factor of a wrench; a factor above a tenth of it counts as unbounded."""


@dataclass(frozen=True, eq=False)
class CableStatics:
    """Force balance at one configuration, see the module.

    Attributes:
        cables: names of the driven cables.
        pull: P (c, n). drive: B (n, a). passive: p (n,). output: J (6, n), linear then angular.
        tension_low, tension_high: (c,) limits of the tensions [N]. effort: (a,) largest efforts [N m or N].
    """

    cables: tuple[str, ...]
    pull: NDArray[np.float64]
    drive: NDArray[np.float64]
    passive: NDArray[np.float64]
    output: NDArray[np.float64]
    tension_low: NDArray[np.float64]
    tension_high: NDArray[np.float64]
    effort: NDArray[np.float64]

    @property
    def balance(self) -> NDArray[np.float64]:
        """(n, c + a) matrix A of the equations A (T, u) = p + J' f."""
        return np.hstack((self.pull.T, -self.drive))

    @property
    def self_stress_count(self) -> int:
        """Number of independent self-stresses: free tensions at a given wrench and configuration."""
        return int(len(self.cables) + self.drive.shape[1] - np.linalg.matrix_rank(self.balance, tol=1e-9 * self.scale))

    @property
    def scale(self) -> float:
        """Largest singular value of the matrix of the force balance."""
        return float(np.linalg.norm(self.balance, 2))


def cable_statics(
    robot: Robot, q: NDArray, *, floor: float | None = None, ceiling: float | None = None
) -> CableStatics:
    """Force balance of a robot at q (nq,) with closed loops.

    Args:
        floor, ceiling: lower and upper limit of the tension of every driven cable [N]; by default the `minimum_tension`
            of the robot and the limit given by its efforts.

    Raises:
        TensegrityError: the robot has no driven cables or no output, or the floor is not below the ceiling.
    """
    model = robot.model_as(MechanismModel)
    mechanism, flat = model.mechanism, model.mechanism.flat
    driven = model.driven_joints(robot.actuators)
    entries = [entry for entry in model.entries if entry.variant != "rigid" and entry.joints[1] in driven]
    if not entries or not robot.outputs:
        what = "output" if entries else "driven cables"
        if not entries and (model.entries or mechanism.routes):
            what += " but routed or rigid ones, which are not counted here"
        raise TensegrityError(f"{robot.name} has no {what}; wrenches are computed for outputs that driven cables hold.")
    work, reduction = make_workspace(flat), make_reduction_workspace(flat)
    evaluate(flat, np.ascontiguousarray(q, dtype=np.float64), np.zeros(mechanism.velocity_count), work)
    reduce_rows(work.loop, work.loop_bias, reduction, False)
    basis = reduction.basis[:, : independent_basis(mechanism.velocity_count, reduction)].copy()
    along = np.zeros((len(entries), mechanism.velocity_count))
    passive = work.passive - work.bias
    index = {cable.name: k for k, cable in enumerate(mechanism.cables)}
    for row, entry in zip(along, entries, strict=True):
        joint = mechanism.joint(entry.joints[2])
        a, b = mechanism.positions_of(joint.name).start, mechanism.velocities_of(joint.name).start
        kind = joints.JOINT_KINDS[joint.kind]
        row[b + 1] = 1.0
        if kind == joints.INVOLUTE_EPSILON:
            row[b], row[b + 1] = joint.radius * q[a + 1], joint.radius * q[a]
        elif kind == joints.INVOLUTE_LENGTH:
            row[b] = -joint.radius
        passive = passive + work.tension[index[entry.name]] * row  # the cable tensions at q are unknowns, not loads
    drive = np.zeros((mechanism.velocity_count, len(driven)))
    drive[[mechanism.velocities_of(name).start for name in driven], np.arange(len(driven))] = 1.0
    by_cable = {each.drives: each for each in robot.actuators}
    low = np.array([by_cable[entry.name].minimum_tension if floor is None else floor for entry in entries])
    most = [by_cable[entry.name].effort / entry.radius if ceiling is None else ceiling for entry in entries]
    high = np.array(most)
    for entry, least, largest in zip(entries, low, high, strict=True):
        if not 0.0 <= least < largest:
            raise TensegrityError(
                f"cable {entry.name} has the floor {least:.4g} N and the ceiling {largest:.4g} N; give a floor from 0 "
                "on, below the ceiling."
            )
    output: BodyFrame = robot.output  # type: ignore[assignment]
    return CableStatics(
        tuple(entry.name for entry in entries), along @ basis, basis.T @ drive, basis.T @ passive,
        output_jacobian(mechanism, q, output) @ basis, low, high, np.array([each.effort for each in robot.actuators]),
    )  # fmt: skip


def wrench_margin(
    statics: CableStatics, direction: ArrayLike, base: ArrayLike | None = None
) -> tuple[float, NDArray[np.float64] | None]:
    """Largest factor of a wrench that the robot can resist beside a base wrench, and the tensions (c,) [N] there.

    Args:
        direction: (6,) wrench [N and N m] at the origin of the output, world axes.
        base: (6,) wrench [N and N m] that acts all the time; zero by default.

    Returns:
        Factor and tensions. The factor is infinite if no limit is reached. It is minus infinity, with None as tensions,
        if the base wrench alone is not feasible.

    Raises:
        TensegrityError: a wrench does not consist of six finite numbers.
    """
    from scipy.optimize import linprog  # imported here to keep the package import fast

    along, fixed = _wrench(direction, "direction"), _wrench(np.zeros(6) if base is None else base, "base")
    count = len(statics.cables)
    matrix = np.column_stack((statics.balance, -statics.output.T @ along))
    cost = np.zeros(matrix.shape[1])
    cost[-1] = -1.0
    bounds = [*zip(statics.tension_low, statics.tension_high, strict=True)]
    bounds += [(-most, most) for most in statics.effort] + [(0.0, UNBOUNDED)]
    found = linprog(cost, A_eq=matrix, b_eq=statics.passive + statics.output.T @ fixed, bounds=bounds)
    if found.status != 0:
        return -np.inf, None
    factor = float(found.x[-1])
    return (np.inf if factor > 0.1 * UNBOUNDED else factor), np.asarray(found.x[:count])


def tension_distribution(
    statics: CableStatics, wrench: ArrayLike | None = None, desired: ArrayLike | None = None
) -> NDArray[np.float64] | None:
    """(c,) tensions [N] within the limits that balance a wrench (6,) [N, N m] and are nearest to the desired ones.

    Args:
        desired: (c,) N or one number for all cables; by default the lower limit, which gives the smallest safe
            tensions. The mean of both limits gives a high prestress.

    Returns:
        The tensions, or None if no tensions within the limits balance the wrench.
    """
    from scipy.optimize import lsq_linear

    force = _wrench(np.zeros(6) if wrench is None else wrench, "wrench")
    if wrench_margin(statics, np.zeros(6), force)[1] is None:
        return None
    goal = np.broadcast_to(
        statics.tension_low if desired is None else np.asarray(desired, dtype=float), statics.tension_low.shape
    )
    count, inputs = len(statics.cables), statics.drive.shape[1]
    # the balance gives T = T_0 + N z; the nearest of these within the limits is a bounded least squares problem
    matrix, right = statics.balance, statics.passive + statics.output.T @ force
    size = np.concatenate((np.full(count, max(1.0, float(goal.max()))), np.maximum(statics.effort, 1e-9)))
    scaled = matrix * size
    heavy = 1e5 / max(float(np.linalg.norm(scaled, 2)), 1e-300)
    rows = np.vstack((heavy * scaled, np.eye(count + inputs)[:count]))
    target = np.concatenate((heavy * right, goal / size[:count]))
    low = np.concatenate((statics.tension_low, -statics.effort)) / size
    high = np.concatenate((statics.tension_high, statics.effort)) / size
    found = lsq_linear(rows, target, (low, high), method="bvls", tol=1e-14, max_iter=500)
    return np.asarray(found.x[:count] * size[:count])


AXES: Mapping[str, int] = {"x": 0, "y": 1, "z": 2, "rx": 3, "ry": 4, "rz": 5}


def wrench_margins(statics: CableStatics, base: ArrayLike | None = None) -> dict[str, tuple[float, float]]:
    """Largest force along [N] and moment about [N m] each world axis on the output: in negative and positive direction.

    Args:
        base: (6,) additional wrench [N and N m] that acts all the time; zero by default.
    """
    found = {}
    for axis, row in AXES.items():
        unit = np.zeros(6)
        unit[row] = 1.0
        found[axis] = (-wrench_margin(statics, -unit, base)[0], wrench_margin(statics, unit, base)[0])
    return found


def _wrench(values: ArrayLike, what: str) -> NDArray[np.float64]:
    wrench = np.asarray(values, dtype=np.float64)
    if wrench.shape != (6,) or not np.all(np.isfinite(wrench)):
        raise TensegrityError(
            f"{what} {values!r}: six finite numbers are needed, force x y z in N and moment x y z in N m."
        )
    return wrench
