"""Sensitivity of an equilibrium to the held joints: derivatives of coordinates and tensions.

With the held coordinates p and the free independent coordinates y, R(y, p) = 0 gives dy/dp = -(dR/dy)^-1 dR/dp. All
other coordinates follow from the closed loops. The derivatives of R are central differences along closed-loop motions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import NoEquilibriumError
from .equilibrium_solver import NO_STIFFNESS, MechanismEquilibrium, MechanismEquilibriumSolver


@dataclass(frozen=True, eq=False)
class EquilibriumSensitivity:
    """Derivatives at one equilibrium.

    Attributes:
        held: (h,) indices of the held velocity coordinates.
        motion: (nv, h) displacement of all coordinates per unit displacement of each held one.
        tension: (c, h) quasi-static change of the tensions [N per rad or m].
        slowest_period: longest period [s] of small vibrations about the equilibrium with fixed held joints; 0 if
            nothing vibrates.
        inertia: (c, h) tensions due to the inertia of the masses that follow the held joints [N per rad/s^2 or m/s^2]:
            -dT/dy K^-1 G' M dq/dp.
        stretch: (c, h) instantaneous change of the tensions, with the masses still at rest [N per rad or m].
        slip: (p, 3, h) slip of the contact points per unit displacement of each held one, for robots that only the
            ground holds. pressed: (p,) normal forces [N] there.
        neutral: (nv, k) motions of such a robot that no stiffness resists; `motion` has the part of them with the least
            sum of squares of the slip, weighted by the normal forces. tangential: (p, 3, nv) Jacobian of the slip.
    """

    held: NDArray[np.int64]
    motion: NDArray[np.float64]
    tension: NDArray[np.float64]
    slowest_period: float
    inertia: NDArray[np.float64]
    stretch: NDArray[np.float64]
    slip: NDArray[np.float64]
    pressed: NDArray[np.float64]
    neutral: NDArray[np.float64]
    tangential: NDArray[np.float64]


def sensitivity(
    solver: MechanismEquilibriumSolver, shape: MechanismEquilibrium, *, step: float = 1e-6
) -> EquilibriumSensitivity:
    """Derivatives of a stable equilibrium with respect to the held joints of the solver.

    Args:
        step: step of the central differences [rad or m].

    Raises:
        NoEquilibriumError: the loops cannot close near the equilibrium, or its stiffness is singular.
    """
    work = solver._work
    q, effort = shape.q, np.where(solver._held, 0.0, shape.effort)
    held = np.flatnonzero(solver._held)
    force = solver._residual(q, effort, reuse=False)
    count = force.size
    index = solver._reduction.independent[:count].copy()
    basis = solver._reduction.basis[:, :count].copy()
    solver._at(q)
    full_mass = work.mass.copy()
    mass = basis.T @ full_mass @ basis
    passive = np.setdiff1d(np.arange(effort.size), np.concatenate((held, index)))
    driven = np.zeros((effort.size, held.size))
    driven[held] = np.eye(held.size)
    if passive.size:
        driven[passive] = -np.linalg.lstsq(work.loop[:, passive], work.loop[:, held], rcond=None)[0]
    cables = work.tension.size
    columns = np.hstack((basis, driven))
    steps = step / np.maximum(1.0, np.max(np.abs(columns), axis=0, initial=0.0))
    stiffness, _ = solver._slopes(q, effort, basis, steps, columns)
    pulls = solver._tangent.tension[: columns.shape[1]].T.copy()
    if not np.all(np.isfinite(stiffness)):
        raise NoEquilibriumError("the loops cannot close near this equilibrium; it is at the edge of the workspace.")
    if shape.idle.shape[1]:  # idle motions do not move
        carried = mass @ shape.idle[index]
        stiffness[:, :count] += np.max(np.abs(np.diag(stiffness)) / np.diag(mass)) * carried @ carried.T
    tangential, pressed, neutral = np.zeros((0, 3, effort.size)), np.zeros(0), np.zeros((effort.size, 0))
    if solver.stands:
        solver._at(q)
        tangential, pressed = solver.tangential_jacobians()
    if solver.stands and count:
        slips = (np.sqrt(pressed)[:, None, None] * tangential).reshape(-1, effort.size) @ columns
        answer, loose = _with_least_slip(stiffness, slips, mass)
        neutral = basis @ loose
    else:
        try:
            answer = -np.linalg.solve(stiffness[:, :count], stiffness[:, count:]) if count else np.zeros((0, held.size))
        except np.linalg.LinAlgError:
            raise NoEquilibriumError(
                "the stiffness of this equilibrium is singular, so it does not follow its joints."
            ) from None
    # feet stick in vibrations
    sprung = stiffness[:, :count] + (solver.held_by_friction(basis) if solver.stands else 0.0)
    squares = np.linalg.eigvals(np.linalg.solve(mass, sprung)).real if count else np.zeros(0)
    period = 2.0 * np.pi / np.sqrt(squares.min()) if count and squares.min() > 0.0 else 0.0
    motion = np.asarray(driven + basis @ answer, dtype=np.float64)
    tension = np.asarray(pulls[:, count:] + pulls[:, :count] @ answer, dtype=np.float64)
    inertia = np.zeros((cables, held.size))
    if count:
        pushed = basis.T @ full_mass @ motion
        # a pseudo-inverse where feet without friction resist no sliding
        moved = np.linalg.pinv(sprung, rcond=1e-12) @ pushed if solver.stands else np.linalg.solve(sprung, pushed)
        inertia = -pulls[:, :count] @ moved
    return EquilibriumSensitivity(
        held,
        motion,
        tension,
        float(period),
        inertia,
        pulls[:, count:].copy(),
        tangential @ motion,
        pressed,
        neutral,
        tangential,
    )


def _with_least_slip(
    stiffness: NDArray[np.float64], slips: NDArray[np.float64], mass: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(y, h) motion of the free coordinates of a robot that only the ground holds, per held one, and (y, k) neutral
    motions.

    The stiffness does not resist sliding of the whole robot; this part of the motion has the least slip.

    Args:
        stiffness: (y, y + h) along free and held coordinates. slips: (s, y + h) of the feet, with their weights.
        mass: (y, y), which makes coordinates comparable.
    """
    count = stiffness.shape[0]
    mass = mass + 1e-9 * np.trace(mass) / count * np.eye(count)
    scale = np.linalg.inv(np.linalg.cholesky(mass)).T
    left, size, right = np.linalg.svd(scale.T @ stiffness[:, :count] @ scale)
    rank = int(np.count_nonzero(size > NO_STIFFNESS * np.max(size, initial=0.0)))
    answer = -scale @ (right[:rank].T @ ((left[:, :rank].T @ scale.T @ stiffness[:, count:]) / size[:rank, None]))
    neutral = scale @ right[rank:].T
    if neutral.shape[1]:
        slipping = slips[:, :count] @ answer + slips[:, count:]
        answer -= neutral @ np.linalg.lstsq(slips[:, :count] @ neutral, slipping, rcond=1e-9)[0]
    return np.asarray(answer), neutral
