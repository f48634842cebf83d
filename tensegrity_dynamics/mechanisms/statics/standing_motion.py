"""How a robot that only the ground holds follows its actuators.

Equilibria do not determine where such a robot stands: translations along the ground and a rotation about its normal
change no force at rest. Friction determines them. A foot sticks where the motion lets it. Where feet have to slide, the
motion is the one with the least slip, weighted by the normal forces. (With Coulomb friction the dissipation is least.
That is the same motion where the feet that slide do so equally fast.) So wheels roll, and a robot that shifts its body
over its feet leaves them where they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..kinematics.configuration_space import displaced
from .equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from .sensitivity import sensitivity

LARGEST_STEP = 0.1
"""rad or m, largest change of a held joint between two shapes, so that slip is integrated accurately."""
SLIPS = 1e-4
"""m of a foot per rad or m of the actuators, above which the foot counts as sliding."""


def follow(
    solver: MechanismEquilibriumSolver, shape: MechanismEquilibrium, positions: Mapping[str, float]
) -> tuple[MechanismEquilibrium, NDArray[np.float64], NDArray[np.float64]]:
    """Equilibrium to which a standing robot moves from another one when its held joints turn straight to `positions`.

    Args:
        positions: of all or some held joints by name [rad or m].

    Returns:
        The equilibrium, (p,) the distance [m] that each contact point has slid on the way, and (nv,) the largest effort
        [N or N m] with which friction of sliding feet loads each held joint.

    Raises:
        NoEquilibriumError: there is none on the way.
    """
    mechanism = solver.mechanism
    friction = mechanism.ground.friction if mechanism.ground is not None else 0.0
    start = {name: float(shape.q[mechanism.positions_of(name)][0]) for name in positions}
    largest = max((abs(positions[name] - start[name]) for name in positions), default=0.0)
    slid = np.zeros(len(mechanism.contact_points))
    drag = np.zeros(mechanism.velocity_count)
    count = int(np.ceil(largest / LARGEST_STEP))
    if not count:
        return solver.solve(shape.q, positions, slip=shape.slip), slid, drag
    slopes = sensitivity(solver, shape)
    change = np.zeros(slopes.held.size)
    for name in positions:
        at = int(np.flatnonzero(slopes.held == mechanism.velocities_of(name).start)[0])
        change[at] = (positions[name] - start[name]) / count
    for k in range(1, count + 1):
        there = {name: start[name] + k / count * (positions[name] - start[name]) for name in positions}
        foreseen = solver.solve(displaced(mechanism, shape.q, slopes.motion @ change), there, slip=shape.slip)
        after = sensitivity(solver, foreseen)
        half = displaced(mechanism, shape.q, 0.5 * slopes.motion @ change)  # the trapezoidal rule, of second order
        slip = 0.5 * (slopes.slip + after.slip) @ change
        size = np.linalg.norm(slip, axis=1)
        slid += size
        along = slip / np.where(size > SLIPS * np.max(np.abs(change)), size, np.inf)[:, None]
        rubbed = np.einsum("pxh,px->h", after.slip, friction * after.pressed[:, None] * along)
        drag[after.held] = np.maximum(drag[after.held], np.abs(rubbed))
        shape = solver.solve(displaced(mechanism, half, 0.5 * after.motion @ change), there, slip=shape.slip)
        slopes = after
    return shape, slid, drag
