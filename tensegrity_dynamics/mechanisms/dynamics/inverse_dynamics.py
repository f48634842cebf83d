"""Inverse dynamics: efforts that produce an acceleration, for a tree or for closed loops.

For a tree, tau = M a + c - p. With loops, the efforts u of the driven coordinates must produce the reduced force
G' (M a + c - p) = G' B u (000, 1.2.38). With as many drives as degrees of freedom the solution is unique; with more
drives it is the solution of least norm.

With limits |u| <= u_max the efforts are those that give the nearest acceleration in the metric of the inertia,
least |G' (B u - M a - c + p)| in the norm of (G' M G)^-1, and of these the ones of least norm relative to the limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError, unknown_name
from ..mechanism import Mechanism
from .reduced_equations import reduced_equations

LEAST_NORM = 1e-7
"""Weight of the norm of efforts among those that give the same acceleration, relative to that of the acceleration."""
AT_LIMIT = 1e-9
"""Relative distance from a limit at which an effort counts as limited."""


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Efforts for an acceleration.

    Attributes:
        effort: (nv,) N or N m on the coordinates, zero on coordinates without a drive.
        multipliers: (nc,) corresponding loop forces.
        missing: largest reduced force [N or N m] that the drives cannot produce; zero if they can produce all.
        limited: names of the driven joints whose efforts are at their limits.
        impossible: largest acceleration [m/s^2 or rad/s^2] by which the requested one violates the loops.
    """

    effort: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    missing: float
    impossible: float
    limited: tuple[str, ...] = ()


def inverse_dynamics(
    mechanism: Mechanism,
    q: NDArray,
    v: NDArray,
    acceleration: ArrayLike,
    driven: Sequence[str] | None = None,
    limits: ArrayLike | None = None,
) -> InverseDynamics:
    """Efforts that produce an acceleration.

    Args:
        q, v: (nq,) and (nv,) state. acceleration: (nv,).
        driven: names of the joints with drives; None for all joints.
        limits: largest efforts [N or N m], above zero: one number for all driven coordinates, or (nv,); infinite or
            None for none. Where they are too small for the acceleration, `missing` says by how much, `limited` where.

    Raises:
        TensegrityError: a joint is unknown, or an array has a wrong shape or is not finite, or a limit is not above
            zero.
    """
    target = np.array(acceleration, dtype=np.float64)
    if target.shape != (mechanism.velocity_count,) or not np.all(np.isfinite(target)):
        raise TensegrityError(f"acceleration must be ({mechanism.velocity_count},) finite numbers.")
    reduced = reduced_equations(mechanism, q, v)
    full, basis = reduced.full, reduced.coordinates.basis
    rows = np.ones(target.size, dtype=bool)
    if driven is not None:
        rows[:] = False
        for name in driven:
            if name not in [joint.name for joint in mechanism.joints]:
                raise TensegrityError(unknown_name("joint", name, [joint.name for joint in mechanism.joints]))
            rows[mechanism.velocities_of(name)] = True
    force = full.mass @ target + full.bias - full.passive
    if driven is None and not full.loop.size and limits is None:
        return InverseDynamics(force, np.zeros(0), 0.0, 0.0)
    effort = np.zeros(target.size)
    effort[rows] = np.linalg.lstsq(basis[rows].T, basis.T @ force, rcond=None)[0]
    limited: tuple[str, ...] = ()
    if limits is not None:
        most = _limits(limits, target.size)[rows]
        if np.any(np.abs(effort[rows]) > most):
            effort[rows] = _within(basis[rows].T, basis.T @ force, reduced.mass, most)
        at_end = np.zeros(target.size, dtype=bool)
        at_end[rows] = np.abs(effort[rows]) >= most * (1.0 - AT_LIMIT)
        limited = tuple(joint.name for joint in mechanism.joints if np.any(at_end[mechanism.velocities_of(joint.name)]))
    missing = float(np.max(np.abs(basis.T @ (force - effort)), initial=0.0))
    impossible = float(np.max(np.abs(full.loop @ target - full.loop_bias), initial=0.0))
    multipliers = np.linalg.lstsq(full.loop.T, force - effort, rcond=None)[0] if full.loop.size else np.zeros(0)
    return InverseDynamics(effort, multipliers, missing, impossible, limited)


def _limits(limits: ArrayLike, size: int) -> NDArray[np.float64]:
    most = np.array(limits, dtype=np.float64)
    if most.shape not in ((), (size,)) or not np.all(most > 0.0):
        raise TensegrityError(f"limits must be one effort above zero, or ({size},) of them.")
    return np.broadcast_to(most, (size,))


def _within(
    columns: NDArray[np.float64], force: NDArray[np.float64], mass: NDArray[np.float64], most: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Efforts (m,) within +- most (m,) whose reduced force columns (y, m) @ effort is nearest to `force` (y,)."""
    from scipy.optimize import lsq_linear  # imported here to keep the package import fast

    factor = np.linalg.cholesky(mass)
    size = np.where(np.isfinite(most), most, max(float(np.max(np.abs(force), initial=0.0)), 1.0))
    system, target = np.linalg.solve(factor, columns * size), np.linalg.solve(factor, force)
    least = LEAST_NORM * max(float(np.linalg.norm(system, 2)), 1e-300) * np.eye(size.size)
    found = lsq_linear(
        np.vstack((system, least)), np.concatenate((target, np.zeros(size.size))), bounds=(-most / size, most / size),
        method="bvls", tol=1e-14,
    )  # fmt: skip
    return np.asarray(np.clip(size * found.x, -most, most))
