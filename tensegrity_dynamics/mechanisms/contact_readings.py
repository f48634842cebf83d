"""Ground contact of a mechanism after `evaluate`: points, forces and energy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .kinematics.body_kinematics import body_kinematics
from .late_kernels import POINTS
from .mechanism import FlatMechanism, Mechanism
from .touch.columns import AWAY, BODY, CENTRE, FORCE, NORMAL, POINT, STORED
from .touch.late_call import call_contacts
from .workspace import Workspace, make_workspace


def read_contacts(mechanism: Mechanism, work: Workspace) -> dict[str, NDArray[np.float64]]:
    """(k, 2, 3) per touching part: position [m] and ground force [N] of each of its touching points."""
    found, first = {}, 0
    if not mechanism.touches:
        return {}
    for part in mechanism.contact_parts:
        count = len(part.balls[0])
        rows = work.contact_state[first : first + count]
        first += count
        rows = rows[rows[:, NORMAL] > 0.0]
        if len(rows):
            found[part.name] = np.stack((rows[:, POINT : POINT + 3], rows[:, FORCE : FORCE + 3]), axis=1)
    return found


def point_centres(mechanism: Mechanism, q: NDArray[np.float64]) -> NDArray[np.float64]:
    """(p, 3) m, centres of all contact points at a configuration (nq,)."""
    work = make_workspace(mechanism.flat)
    body_kinematics(mechanism.flat, np.ascontiguousarray(q), np.zeros(mechanism.velocity_count), work)
    points = mechanism.contact_points
    bodies = points[:, BODY].astype(np.int64)
    local = points[:, CENTRE : CENTRE + 3]
    return np.asarray(work.position[bodies] + np.einsum("pij,pj->pi", work.rotation[bodies], local))


def contacts_at(
    mechanism: Mechanism, q: NDArray[np.float64], v: NDArray[np.float64], work: Workspace
) -> dict[str, NDArray[np.float64]]:
    """As `read_contacts`, at a state q (nq,) and v (nv,)."""
    if not mechanism.touches:
        return {}
    q, v = (np.ascontiguousarray(each, dtype=np.float64) for each in (q, v))
    body_kinematics(mechanism.flat, q, v, work)
    call_contacts(mechanism.flat, work)
    return read_contacts(mechanism, work)


def contact_forces(contacts: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """(3,) N, total ground force on each touching part, from the result of `read_contacts`."""
    return {name: each[:, 1].sum(axis=0) for name, each in contacts.items()}


def ground_energy(work: Workspace) -> float:
    """Elastic energy [J] stored in the ground."""
    return float(work.contact_state[-1, STORED])


def point_jacobians(flat: FlatMechanism, work: Workspace) -> NDArray[np.float64]:
    """(p, 3, nv), Jacobian of every contact point in the coordinates, after `evaluate`."""
    count = flat.late_kernels[POINTS]
    jacobians = np.zeros((count, 3, flat.dof_parent.size))
    for row, entry in enumerate(flat.contact[:count]):
        body, point = int(entry[BODY]), work.contact_state[row, POINT : POINT + 3]
        while body >= 0 and flat.v_count[body] == 0:
            body = int(flat.parent[body])
        d = int(flat.v_start[body] + flat.v_count[body] - 1) if body >= 0 else -1
        while d >= 0:
            turning, moving = work.jacobian[d, :3], work.jacobian[d, 3:]
            jacobians[row, :, d] = moving + np.cross(turning, point)
            d = int(flat.dof_parent[d])
    return jacobians


def point_normals(work: Workspace) -> NDArray[np.float64]:
    """(p, 3), unit normals of the ground at all contact points, after `evaluate`."""
    away = work.contact_state[:-1, AWAY : AWAY + 3]
    return np.asarray(away / np.linalg.norm(away, axis=1, keepdims=True))


def touching_points(work: Workspace) -> NDArray[np.int64]:
    """Rows of the touching points, after `evaluate`."""
    return np.flatnonzero(work.contact_state[:-1, NORMAL] > 0.0)


def set_standing(work: Workspace, toward: NDArray[np.float64]) -> None:
    """Set the direction (3,) along which friction at rest supports the mechanism; zeros for the ground normals."""
    work.contact_state[-1, FORCE : FORCE + 3] = toward
