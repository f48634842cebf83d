"""Enumeration of the working and assembly modes of a parallel mechanism by continuation.

If all coordinates except one are held, the configurations form a curve. It is followed with tangent and correction
steps. At a singularity the curve turns back, and it reaches the same value of this coordinate on another mode.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .configuration_space import displaced
from .parallel_kinematics import Coordinates, LoopKinematics

TOLERANCE_SAME_POSITION = 1e-6
"""Distance [rad or m] below which two configurations count as the same mode."""
MAX_CORRECTIONS = 10
"""Largest number of Newton steps of a correction to the curve."""
STEP, MAX_STEPS = 0.05, 1000
"""Step along a curve [rad or m], so short that it does not jump to a neighbouring curve, and largest number of
steps."""

Rows = tuple[NDArray[np.float64], NDArray[np.float64]]


def working_modes(kinematics: LoopKinematics, q: NDArray) -> dict[str, NDArray]:
    """Configurations (nq,) by mode with the same output as q (nq,), if continuation reaches them.

    The name of a mode has a sign for every active joint, in order: + if its b_i has the same sign as at q, else -, with
    continuous rows a_i along the curve. After a slash follows the sign of det A in the same way.
    """
    return _modes(kinematics, kinematics.output_coordinates, q)


def assembly_modes(kinematics: LoopKinematics, q: NDArray) -> dict[str, NDArray]:
    """Configurations (nq,) by mode with the same active joints as q (nq,), names as in `working_modes`."""
    return _modes(kinematics, kinematics.active_coordinates, q)


def _modes(kinematics: LoopKinematics, coordinates: Coordinates, q: NDArray) -> dict[str, NDArray]:
    """Follow the curves along which one coordinate varies; every return to its start value is another mode."""
    modes: dict[str, NDArray] = {}
    origin = _signed(kinematics, q, None)
    queue = [(np.array(q, dtype=float), origin)]
    while queue:
        position, rows = queue.pop(0)
        if any(np.max(np.abs(position - other)) < TOLERANCE_SAME_POSITION for other in modes.values()):
            continue
        name = _name(rows, origin)
        modes[name if name not in modes else f"{name} ({len(modes) + 1})"] = position
        for axis in range(len(kinematics.active)):
            queue += _trace(kinematics, coordinates, position, rows, axis)
    return modes


def _trace(
    kinematics: LoopKinematics, coordinates: Coordinates, q: NDArray, rows: Rows, axis: int
) -> list[tuple[NDArray, Rows]]:
    """Configurations on the curve through q with coordinate `axis` at its start value, with the continuous rows
    there."""
    start, held = coordinates.values(q), [k for k in range(len(kinematics.active)) if k != axis]
    returns: list[tuple[NDArray, Rows]] = []
    position, tangent = np.array(q, dtype=float), None
    for taken in range(MAX_STEPS):
        matrix = np.vstack((kinematics.loops(position)[1], coordinates.jacobian(position)[held]))
        null = np.linalg.svd(matrix)[2][-1]
        tangent = null if tangent is None or null @ tangent > 0.0 else -null
        last = coordinates.error(position, start)[axis]
        ahead = _correct(
            kinematics, coordinates, displaced(kinematics.mechanism, position, STEP * tangent), held, start
        )
        if ahead is None:
            break
        rows = _signed(kinematics, ahead, rows)
        if taken > 0 and last * coordinates.error(ahead, start)[axis] < 0.0:
            landed = kinematics.close(ahead, coordinates, start)
            if landed is not None:
                if np.max(np.abs(landed - q)) < TOLERANCE_SAME_POSITION:
                    break
                returns.append((landed, _signed(kinematics, landed, rows)))
        position = ahead
    return returns


def _correct(
    kinematics: LoopKinematics, coordinates: Coordinates, q: NDArray, held: list[int], start: NDArray
) -> NDArray[np.float64] | None:
    """Configuration on the curve near q, or None if Newton's method does not converge."""
    for _ in range(MAX_CORRECTIONS):
        loop_error, matrix = kinematics.loops(q)
        error = np.concatenate((-loop_error, coordinates.error(q, start)[held]))
        if np.max(np.abs(error), initial=0.0) < 1e-12:
            return q
        rows = np.vstack((matrix, coordinates.jacobian(q)[held]))
        q = displaced(kinematics.mechanism, q, np.linalg.lstsq(rows, error)[0])
    return None


def _signed(kinematics: LoopKinematics, q: NDArray, last: Rows | None) -> Rows:
    """Rows A and diagonal b at q, with the sign of each row chosen so that it continues the last one."""
    first = kinematics.first_order(q)
    a, b = first.a.copy(), np.diag(first.b).copy()
    if last is not None:
        turn = np.where(np.sum(a * last[0], axis=1) < 0.0, -1.0, 1.0)
        a, b = turn[:, None] * a, turn * b
    return a, b


def _name(rows: Rows, origin: Rows) -> str:
    signs = "".join("+" if value > 0.0 else "-" for value in rows[1] * origin[1])
    return f"{signs}/{'+' if np.linalg.det(rows[0]) * np.linalg.det(origin[0]) > 0.0 else '-'}"
