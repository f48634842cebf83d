"""Linear model of a mechanism at a state: displacements along its independent coordinates, their rates, efforts.

The displacements y are measured from the state along its basis G, so that all kinds of joints are supported. A is
computed with central differences of the compiled state equation (`state_derivative`), B is M^-1 G' of the driven
coordinates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...linear_models.linear_model import LinearModel
from ..kinematics.loop_reduction import ReductionWorkspace, make_reduction_workspace
from ..mechanism import Mechanism
from ..routing.slip import hold_contacts
from ..workspace import make_stage_workspace, make_workspace
from .forward_dynamics import SINGULAR_MASS, accelerate, massless_message
from .state_derivative import make_displacement_workspace, state_derivative

DIFFERENCE_STEP = 1e-6
"""Step of the central differences [rad or m, rad/s or m/s]."""


def linearise(
    mechanism: Mechanism,
    q: NDArray[np.float64],
    v: NDArray[np.float64],
    effort: NDArray[np.float64],
    drives: NDArray[np.int64],
    drive_names: tuple[str, ...],
    load: NDArray[np.float64] | None = None,
) -> LinearModel:
    """Linear model at q (nq,), v (nv,) with closed loops, under efforts (nv,) and loads (b, 6).

    Args:
        drives: (u,) indices in v of the inputs; if possible, they are chosen as independent coordinates.

    Raises:
        TensegrityError: a motion has no inertia, or loops cannot be closed near the state.
    """
    flat, width = mechanism.flat, mechanism.velocity_count
    work, stages = make_workspace(flat), make_stage_workspace(flat)
    reduction: ReductionWorkspace = make_reduction_workspace(flat)
    scratch = make_displacement_workspace(flat, mechanism.position_count)
    if load is not None:
        work.load[:] = load
    reduction.weight[drives] *= 1e-9  # low priority to become passive
    status, coordinate = accelerate(flat, q, v, effort, 0.0, work, reduction, False)
    if status == SINGULAR_MASS:
        raise TensegrityError(massless_message(mechanism, int(coordinate)))
    # contacts of cables stick or slip as they do at this state
    hold_contacts(flat.route_elements, flat.routed_cables, work.route_state, True)
    free = np.flatnonzero(~reduction.is_pivot)
    count = free.size
    basis = reduction.basis[:, :count].copy()
    mass = basis.T @ work.mass @ basis
    scratch.independent[:count] = free
    scratch.basis[:, :count] = basis
    origin, ahead, behind = np.zeros(2 * width), np.zeros(2 * width), np.zeros(2 * width)
    origin[count : 2 * count] = v[free]
    matrix = np.zeros((2 * count, 2 * count))
    arguments = (work, reduction, stages, scratch)
    for k in range(2 * count):
        keep = origin[k]
        failed = 0
        for side, sign in ((ahead, 1.0), (behind, -1.0)):
            origin[k] = keep + sign * DIFFERENCE_STEP
            failed |= state_derivative(flat, q, origin, count, effort, side, *arguments)
        origin[k] = keep
        if failed:
            raise TensegrityError("the loops cannot close near this state; it is at the edge of the workspace.")
        matrix[:, k] = (ahead - behind)[: 2 * count] / (2.0 * DIFFERENCE_STEP)
    state_derivative(flat, q, origin, count, effort, ahead, *arguments)
    inputs = np.vstack((np.zeros((count, drives.size)), np.linalg.solve(mass, basis[drives].T)))
    all_names = mechanism.coordinate_names()
    names = [all_names[k] for k in free]
    lift = np.kron(np.eye(2), basis)
    return LinearModel(
        matrix, inputs, ahead[: 2 * count].copy(), np.concatenate((np.zeros(count), v[free])), effort[drives].copy(),
        (*names, *(f"velocity of {name}" for name in names)), tuple(f"effort of {name}" for name in drive_names), lift,
        full_names=(*all_names, *(f"velocity of {name}" for name in all_names)),
    )  # fmt: skip
