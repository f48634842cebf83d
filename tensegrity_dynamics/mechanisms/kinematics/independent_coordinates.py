"""Independent coordinates of closed loops and the equations reduced to them (000, 1.2.32 to 1.2.38).

All velocities that keep the loops closed are v = G w with w a choice of the velocity coordinates themselves, and all
accelerations a = G w' + g with K G = 0, K g = k. With the bias that the printed right side lacks,

    (G' M G) w' + G' (M g + c) = G' (p + tau + J' f).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError, unknown_name
from ..dynamics.equations_of_motion import Equations, check_state, equations, evaluate, make_work
from ..dynamics.forward_dynamics import independent_basis, make_solver, reduce_rows
from ..mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class IndependentCoordinates:
    """G and g at one state.

    Attributes:
        index: (y,) which velocity coordinates are the independent ones. names: theirs.
        basis: G (nv, y), the identity in the rows `index`. offset: g (nv,), zero in these rows.
        dependent_rows: loop rows that depend on others here.
    """

    index: NDArray[np.int64]
    names: tuple[str, ...]
    basis: NDArray[np.float64]
    offset: NDArray[np.float64]
    dependent_rows: int


@dataclass(frozen=True, eq=False)
class ReducedEquations:
    """mass w' + bias = G' tau (+ G' J' f) in independent coordinates; `passive` (y,) is already in the bias.

    Attributes:
        coordinates: which, with G and g. mass: (y, y). bias: (y,). full: the equations that were reduced.
    """

    coordinates: IndependentCoordinates
    mass: NDArray[np.float64]
    bias: NDArray[np.float64]
    full: Equations


def independent_coordinates(
    mechanism: Mechanism, q: NDArray, v: NDArray | None = None, *, prefer: Sequence[str] = ()
) -> IndependentCoordinates:
    """G and g at position q (nq,) and velocity v (nv,), zero without it.

    Args:
        prefer: names of velocity coordinates (`Mechanism.coordinate_names`) that shall be independent where they can.

    Raises:
        TensegrityError: the state is not finite, a name is unknown, or the preferred coordinates depend on each other.
    """
    speed = np.zeros(mechanism.velocity_count) if v is None else v
    q, speed = check_state(mechanism, q, speed)
    flat = mechanism.flat
    work, solver = make_work(flat), make_solver(flat)
    names = mechanism.coordinate_names()
    wanted = []
    for name in prefer:
        if name not in names:
            raise TensegrityError(unknown_name("coordinate", name, names))
        wanted.append(names.index(name))
    evaluate(flat, q, speed, work)
    # columns of preferred coordinates are the last ones to become pivots
    solver.weight[wanted] *= 1e-9
    dependent = reduce_rows(work.loop, work.loop_bias, solver, False)
    lost = [names[k] for k in wanted if solver.is_pivot[k]]
    if lost:
        raise TensegrityError(
            f"the coordinates {', '.join(prefer)} are not independent here: {', '.join(lost)} follows from the others."
        )
    count = independent_basis(flat.dof_parent.size, solver)
    index = solver.independent[:count].copy()
    return IndependentCoordinates(
        index, tuple(names[k] for k in index), solver.basis[:, :count].copy(), solver.offset.copy(), int(dependent)
    )


def reduced_equations(mechanism: Mechanism, q: NDArray, v: NDArray, *, prefer: Sequence[str] = ()) -> ReducedEquations:
    """The equations of motion in independent coordinates (000, 1.2.35 and 1.2.36). Arguments and errors as above."""
    coordinates = independent_coordinates(mechanism, q, v, prefer=prefer)
    full = equations(mechanism, q, v)
    basis = coordinates.basis
    bias = basis.T @ (full.mass @ coordinates.offset + full.bias - full.passive)
    return ReducedEquations(coordinates, basis.T @ full.mass @ basis, bias, full)


def wrench_jacobian(mechanism: Mechanism, q: NDArray, body: str, point: NDArray | None = None) -> NDArray[np.float64]:
    """J (6, nv): velocity of a point of a body, angular [rad/s] then linear [m/s] in world axes, per coordinate.

    A moment and force f (6,) N m and N at that point adds J' f to the efforts (W of 000, 1.2.31).

    Args:
        body: its name. point: (3,) m in the body's frame; its origin without.
    """
    q, still = check_state(mechanism, q, np.zeros(mechanism.velocity_count))
    if body not in mechanism.body_index:
        raise TensegrityError(unknown_name("body", body, mechanism.body_index))
    flat, work = mechanism.flat, make_work(mechanism.flat)
    evaluate(flat, q, still, work)
    i = mechanism.body_index[body]
    jacobian = np.zeros((6, still.size))
    if i < 0:
        return jacobian
    place = work.position[i] + work.rotation[i] @ (np.zeros(3) if point is None else np.asarray(point, dtype=float))
    while i >= 0:
        for d in range(flat.v_start[i], flat.v_start[i] + flat.v_count[i]):
            angular, linear = work.jacobian[d, :3], work.jacobian[d, 3:]
            jacobian[:3, d] = angular
            jacobian[3:, d] = linear + np.cross(angular, place)
        i = int(flat.parent[i])
    return jacobian
