"""Inverse dynamics: efforts that produce an acceleration, for a tree or for closed loops.

For a tree, tau = M a + c - p. With loops, the efforts u of the driven coordinates must produce the reduced force
G' (M a + c - p) = G' B u (000, 1.2.38). With as many drives as degrees of freedom the solution is unique; with more
drives it is the solution of least norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError, unknown_name
from ..mechanism import Mechanism
from .reduced_equations import reduced_equations


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Efforts for an acceleration.

    Attributes:
        effort: (nv,) N or N m on the coordinates, zero on coordinates without a drive.
        multipliers: (nc,) corresponding loop forces.
        missing: largest reduced force [N or N m] that the drives cannot produce; zero if they can produce all.
        impossible: largest acceleration [m/s^2 or rad/s^2] by which the requested one violates the loops.
    """

    effort: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    missing: float
    impossible: float


def inverse_dynamics(
    mechanism: Mechanism,
    q: NDArray,
    v: NDArray,
    acceleration: ArrayLike,
    driven: Sequence[str] | None = None,
) -> InverseDynamics:
    """Efforts that produce an acceleration.

    Args:
        q, v: (nq,) and (nv,) state. acceleration: (nv,).
        driven: names of the joints with drives; None for all joints.

    Raises:
        TensegrityError: a joint is unknown, or an array has a wrong shape or is not finite.
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
    if driven is None and not full.loop.size:
        return InverseDynamics(force, np.zeros(0), 0.0, 0.0)
    effort = np.zeros(target.size)
    effort[rows] = np.linalg.lstsq(basis[rows].T, basis.T @ force, rcond=None)[0]
    missing = float(np.max(np.abs(basis.T @ (force - effort)), initial=0.0))
    impossible = float(np.max(np.abs(full.loop @ target - full.loop_bias), initial=0.0))
    multipliers = np.linalg.lstsq(full.loop.T, force - effort, rcond=None)[0] if full.loop.size else np.zeros(0)
    return InverseDynamics(effort, multipliers, missing, impossible)
