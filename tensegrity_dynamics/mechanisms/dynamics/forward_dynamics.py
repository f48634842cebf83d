"""Forward dynamics of closed loops through independent coordinates (000, 1.2.30 to 1.2.36).

With a = G y + g from the reduction of the loops, (G' M G) y = G'(W f + tau + p - c - M g) is solved by Cholesky.
M itself may be singular: a massless body is allowed if the loops prevent independent motion of it.
If loop rows are dependent, the motion is still unique, and the loop forces are those of least norm.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError
from ...numerics.compilation import allocation_free, inlined_part
from ...numerics.linear_algebra import cholesky, cholesky_solve
from ..kinematics.loop_reduction import independent_basis, make_reduction_workspace, reduce_rows
from ..mechanism import Mechanism, check_state
from ..workspace import make_workspace
from .equations_of_motion import evaluate

REGULAR, SINGULAR_MASS = 0, 1


@allocation_free
def accelerate(flat, q, v, effort, gain, work, reduction, reuse):
    """Fill solver.acceleration for efforts (nv,) on the coordinates; returns (status, dependent rows).

    gain [1/s] reduces loop errors: K a = k - 2 gain K v - gain^2 error, critically damped with time constant 1/gain.
    """
    evaluate(flat, q, v, work)
    dofs = flat.dof_parent.shape[0]
    if gain > 0.0:
        for r in range(flat.row_kind.shape[0]):
            rate = 0.0
            for d in range(dofs):
                rate += work.loop[r, d] * v[d]
            work.loop_bias[r] -= 2.0 * gain * rate + gain * gain * work.loop_error[r]
    for d in range(dofs):
        reduction.effort[d] = effort[d] + work.passive[d]
    return solve_reduced(flat, work, reduction, reuse)


@inlined_part
def project_mass(flat, work, reduction, count):
    """Fill the lower triangle of reduced with G' M G, and right with G'(effort - c - M g).

    M = L + L'; L holds the rows of M towards the root, with half of the diagonal. Then G' M G = S + S' with S = G' (L
    G).
    """
    dofs = flat.dof_parent.shape[0]
    basis, columns, filled = reduction.basis, reduction.basis_columns, reduction.basis_filled
    reduced, right, force, line = reduction.reduced, reduction.right, reduction.force, reduction.product[0]
    for i in range(count):
        right[i] = 0.0
        for j in range(count):
            reduced[i, j] = 0.0
    for a in range(dofs):
        force[a] = reduction.effort[a] - work.bias[a]
    for a in range(dofs):
        if work.mass[a, a] == 0.0:  # the whole row is zero
            continue
        for i in range(count):
            line[i] = 0.0
        b = a
        while b >= 0:
            entry = work.mass[a, b]
            force[a] -= entry * reduction.offset[b]
            if b == a:
                entry *= 0.5
            else:
                force[b] -= entry * reduction.offset[a]
            for n in range(filled[b]):
                i = columns[b, n]
                line[i] += entry * basis[b, i]
            b = flat.dof_parent[b]
        for n in range(filled[a]):
            i = columns[a, n]
            factor = basis[a, i]
            for j in range(count):
                reduced[i, j] += factor * line[j]
    for a in range(dofs):
        for n in range(filled[a]):
            i = columns[a, n]
            right[i] += basis[a, i] * force[a]
    for i in range(count):
        for j in range(i + 1):
            reduced[i, j] += reduced[j, i]


@inlined_part
def solve_reduced(flat, work, reduction, reuse):
    """Accelerations for solver.effort and the present M, c, K, k in work; returns (status, dependent rows)."""
    dofs = flat.dof_parent.shape[0]
    dependent = reduce_rows(work.loop, work.loop_bias, reduction, reuse)
    count = independent_basis(dofs, reduction)
    project_mass(flat, work, reduction, count)
    failed = cholesky(reduction.reduced, count)
    if failed >= 0:
        return SINGULAR_MASS, reduction.independent[failed]
    cholesky_solve(reduction.reduced, count, reduction.right)
    for a in range(dofs):
        total = reduction.offset[a]
        for n in range(reduction.basis_filled[a]):
            i = reduction.basis_columns[a, n]
            total += reduction.basis[a, i] * reduction.right[i]
        reduction.acceleration[a] = total
    return REGULAR, dependent


@dataclass(frozen=True, eq=False)
class Accelerations:
    """Result of forward dynamics.

    Attributes:
        acceleration: (nv,). multipliers: (nc,), forces of the loops; their efforts on the coordinates are K'
            multipliers.
        strain, tension: of each cable, - and N. dependent_rows: number of loop rows that depend on others at this
            state.
    """

    acceleration: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    strain: NDArray[np.float64]
    tension: NDArray[np.float64]
    dependent_rows: int


def forward_dynamics(
    mechanism: Mechanism,
    q: NDArray,
    v: NDArray,
    effort: ArrayLike | None = None,
    *,
    stabilisation: float = 0.0,
) -> Accelerations:
    """Accelerations and loop forces (000, 1.2.30, with the bias missing from the printed right side).

    Args:
        mechanism: the mechanism.
        q, v: (nq,) and (nv,) state.
        effort: (nv,) N or N m on the tree coordinates, without the efforts of the cables; None for zero.
        stabilisation: gain [1/s] of the critically damped loop error correction; 0 for none.

    Raises:
        TensegrityError: the state is not finite, or a massless body (named in the message) can move independently.

    Warns:
        RuntimeWarning: loop rows depend on each other (redundant loops or a singular position).
    """
    q, v = check_state(mechanism, q, v)
    flat = mechanism.flat
    tau = np.zeros(v.size) if effort is None else np.ascontiguousarray(effort, dtype=np.float64)
    if tau.shape != v.shape or not np.all(np.isfinite(tau)):
        raise TensegrityError(f"effort must be ({v.size},) finite numbers.")
    work, reduction = make_workspace(flat), make_reduction_workspace(flat)
    status, count = accelerate(flat, q, v, tau, float(stabilisation), work, reduction, False)
    if status == SINGULAR_MASS:
        raise TensegrityError(massless_message(mechanism, int(count)))
    if count:
        warnings.warn(
            f"{count} of {flat.row_kind.size} loop rows depend on the others here: redundant loops or a singular "
            "position. The motion is the consistent one, the loop forces are those of least norm.",
            RuntimeWarning,
            stacklevel=2,
        )
    residual = work.mass @ reduction.acceleration + work.bias - reduction.effort
    multipliers = np.linalg.lstsq(work.loop.T, residual, rcond=None)[0]
    return Accelerations(reduction.acceleration, multipliers, work.strain, work.tension, int(count))


def massless_message(mechanism: Mechanism, coordinate: int) -> str:
    """Message that names the coordinate and the body whose motion has no inertia."""
    name = mechanism.coordinate_names()[coordinate]
    body = mechanism.joints[int(mechanism.flat.dof_body[coordinate])].body
    for cable in mechanism.cables:  # a robot file can give mass to pulley and block, not to the cable body itself
        pulley = mechanism.joint(cable.joint).parent
        block = next((each.parent for each in mechanism.joints if each.body == pulley), pulley)
        weightless = pulley in mechanism.body_index and not mechanism.flat.mass[mechanism.body_index[pulley]]
        if weightless and body in (mechanism.joint(cable.joint).body, pulley, block):
            return (
                f"cable {cable.name} can be wound without moving any mass (found at {name}): its pulley has none. "
                "Give the cable a pulley with mass (pulley: [{kind: cylinder, ...}]), or its actuator a rotor_inertia."
            )
    return (
        f"coordinate {name} can move without moving any mass (body {body} and all it carries are massless there). "
        f"Give {body} a mass, or close a loop that holds it."
    )
