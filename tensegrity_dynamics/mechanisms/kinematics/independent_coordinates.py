"""Independent coordinates of closed loops (000, 1.2.32).

All velocities that keep the loops closed are v = G w, where w is a subset of the velocity coordinates. All
accelerations are a = G w' + g with K G = 0 and K g = k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError, unknown_name
from ..mechanism import Mechanism, check_state
from ..workspace import make_workspace
from .body_kinematics import body_kinematics
from .loop_equations import loop_equations
from .loop_reduction import independent_basis, make_reduction_workspace, reduce_rows


@dataclass(frozen=True, eq=False)
class IndependentCoordinates:
    """G and g at one state.

    Attributes:
        index: (y,) indices of the independent velocity coordinates. names: their names.
        basis: G (nv, y), identity in the rows `index`. offset: g (nv,), zero in these rows.
        dependent_rows: number of loop rows that depend on others at this state.
    """

    index: NDArray[np.int64]
    names: tuple[str, ...]
    basis: NDArray[np.float64]
    offset: NDArray[np.float64]
    dependent_rows: int


def independent_coordinates(mechanism: Mechanism, q: NDArray, v: NDArray | None = None) -> IndependentCoordinates:
    """G and g at configuration q (nq,) and velocity v (nv,), zero by default.

    Raises:
        TensegrityError: a number is not finite.
    """
    speed = np.zeros(mechanism.velocity_count) if v is None else v
    q, speed = check_state(mechanism, q, speed)
    flat = mechanism.flat
    work, reduction = make_workspace(flat), make_reduction_workspace(flat)
    names = mechanism.coordinate_names()
    body_kinematics(flat, q, speed, work)
    loop_equations(flat, work)
    dependent = reduce_rows(work.loop, work.loop_bias, reduction, False)
    count = independent_basis(flat.dof_parent.size, reduction)
    index = reduction.independent[:count].copy()
    return IndependentCoordinates(
        index,
        tuple(names[k] for k in index),
        reduction.basis[:, :count].copy(),
        reduction.offset.copy(),
        int(dependent),
    )


def wrench_jacobian(mechanism: Mechanism, q: NDArray, body: str, point: NDArray | None = None) -> NDArray[np.float64]:
    """J (6, nv): Jacobian of a point of a body, angular then linear velocity in world axes.

    A moment and force f (6,) [N m and N] at this point adds J' f to the efforts (W of 000, 1.2.31).

    Args:
        q: (nq,) configuration. body: name of the body. point: (3,) point in the body frame [m]; its origin by default.

    Raises:
        TensegrityError: the body is unknown, or q has a wrong size or is not finite.
    """
    q, still = check_state(mechanism, q, np.zeros(mechanism.velocity_count))
    if body not in mechanism.body_index:
        raise TensegrityError(unknown_name("body", body, mechanism.body_index))
    flat, work = mechanism.flat, make_workspace(mechanism.flat)
    body_kinematics(flat, q, still, work)
    i = mechanism.body_index[body]
    jacobian = np.zeros((6, still.size))
    if i < 0:
        return jacobian
    origin = work.position[i] + work.rotation[i] @ (np.zeros(3) if point is None else np.asarray(point, dtype=float))
    dofs: list[int] = []
    while i >= 0:
        dofs.extend(range(flat.v_start[i], flat.v_start[i] + flat.v_count[i]))
        i = int(flat.parent[i])
    angular, linear = work.jacobian[dofs, :3], work.jacobian[dofs, 3:]
    jacobian[:3, dofs] = angular.T
    jacobian[3:, dofs] = (linear + np.cross(angular, origin)).T
    return jacobian
