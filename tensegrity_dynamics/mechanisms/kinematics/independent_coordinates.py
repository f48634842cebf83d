"""Independent coordinates of closed loops (000, 1.2.32).

All velocities that keep the loops closed are v = G w with w a choice of the velocity coordinates themselves, and all
accelerations a = G w' + g with K G = 0, K g = k.
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
        index: (y,) velocity coordinates that are independent. names: of these.
        basis: G (nv, y), the identity in the rows `index`. offset: g (nv,), zero in these rows.
        dependent_rows: loop rows that depend on others here.
    """

    index: NDArray[np.int64]
    names: tuple[str, ...]
    basis: NDArray[np.float64]
    offset: NDArray[np.float64]
    dependent_rows: int


def independent_coordinates(mechanism: Mechanism, q: NDArray, v: NDArray | None = None) -> IndependentCoordinates:
    """G and g at position q (nq,) and velocity v (nv,), zero without it. Raises TensegrityError: not finite."""
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
    """J (6, nv): velocity of a point of a body, angular [rad/s] then linear [m/s] in world axes, per coordinate.

    A moment and force f (6,) N m and N at that point adds J' f to the efforts (W of 000, 1.2.31).

    Args:
        q: (nq,). body: its name. point: (3,) m in the body's frame; its origin without.

    Raises:
        TensegrityError: unknown body, or a position of another size or that is not finite.
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
