"""How a robot that only the ground holds follows its actuators.

Equilibria do not determine where such a robot stands: translations along the ground and a rotation about its normal
change no force at rest. Friction determines them. A foot sticks where the motion lets it. Where feet have to slide, the
motion is the one with the least dissipation of Coulomb friction: the sum of the slip speeds, weighted by the normal
forces, is least. So wheels roll, a robot that shifts its body over its feet leaves them where they are, and of two feet
that cannot both stick the one that carries less slides.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...errors import NoEquilibriumError
from ..kinematics.configuration_space import displaced
from .equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from .sensitivity import EquilibriumSensitivity, sensitivity

LARGEST_STEP = 0.1
"""rad or m, largest change of a held joint between two shapes, so that slip is integrated accurately."""
SLIPS = 1e-4
"""m of a foot per rad or m of the actuators, above which the foot counts as sliding."""
FALLS = 0.3
"""Distance between the foreseen and the found position of a body after one such step, relative to the size of the
robot, above which the robot has fallen into another shape (in the worst case one that hangs below its ground)."""
ITERATIONS, SMOOTH = 60, 1e-6
"""Iterations for the motion with the least dissipation, and the slip below which a foot sticks, relative to the
largest slip."""


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
        first = _least_dissipation(slopes, change)
        ahead = displaced(mechanism, shape.q, first)
        foreseen = solver.solve(ahead, there, slip=shape.slip)
        _refuse_fall(solver, ahead, foreseen)
        after = sensitivity(solver, foreseen)
        second = _least_dissipation(after, change)
        half = displaced(mechanism, shape.q, 0.5 * first)  # the trapezoidal rule, of second order
        slip = 0.5 * (slopes.tangential @ first + after.tangential @ second)
        size = np.linalg.norm(slip, axis=1)
        slid += size
        along = slip / np.where(size > SLIPS * np.max(np.abs(change)), size, np.inf)[:, None]
        rubbed = np.einsum("pxh,px->h", after.slip, friction * after.pressed[:, None] * along)
        drag[after.held] = np.maximum(drag[after.held], np.abs(rubbed))
        ahead = displaced(mechanism, half, 0.5 * second)
        shape = solver.solve(ahead, there, slip=shape.slip)
        _refuse_fall(solver, ahead, shape)
        slopes = after
    return shape, slid, drag


def _refuse_fall(solver: MechanismEquilibriumSolver, ahead: NDArray[np.float64], found: MechanismEquilibrium) -> None:
    """Raise NoEquilibriumError if the shape found is not the one that continues the motion to q (nq,)."""
    off = float(np.max(np.linalg.norm(found.positions - solver.positions_at(ahead), axis=1)))
    size = float(np.linalg.norm(np.ptp(found.positions, axis=0)))
    if off > FALLS * size:
        raise NoEquilibriumError(
            f"the robot falls on the way: the nearest shape in which it stands has a body {off:.3g} m from where the "
            "motion leads."
        )


def _least_dissipation(slopes: EquilibriumSensitivity, change: NDArray[np.float64]) -> NDArray[np.float64]:
    """(nv,) motion with the least dissipation of Coulomb friction for a change (h,) of the held joints.

    Iteratively reweighted least squares: each iteration takes the slip of the last one for the weights.
    """
    motion = slopes.motion @ change
    if not slopes.neutral.shape[1]:
        return np.asarray(motion)
    feet = slopes.pressed > 0.0
    pressed, rows = slopes.pressed[feet], slopes.tangential[feet]
    slip, sliding = rows @ motion, rows @ slopes.neutral
    largest = float(np.max(np.linalg.norm(slip, axis=1), initial=0.0))
    if largest <= SLIPS * float(np.max(np.abs(change))):
        return np.asarray(motion)
    part = np.zeros(slopes.neutral.shape[1])
    for iteration in range(ITERATIONS):
        size = np.linalg.norm(slip + sliding @ part, axis=1)
        smooth = max(SMOOTH, 0.1 * 0.7**iteration) * largest
        weights = np.sqrt(pressed / np.sqrt(size**2 + smooth**2))[:, None]
        matrix = (weights[:, :, None] * sliding).reshape(-1, part.size)
        part = -np.linalg.lstsq(matrix, (weights * slip).ravel(), rcond=1e-9)[0]
    return np.asarray(motion + slopes.neutral @ part)
