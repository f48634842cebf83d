"""Numbers and motions in words, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, rotation_vector

LENGTH_UNITS = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "in": 0.0254}
MOTIONS = ("along x", "along y", "along z", "turning about x", "turning about y", "turning about z")


def millimetres(lengths: ArrayLike, digits: int = 2) -> str:
    """Lengths [m] as "1.00, 2.00 mm", without a minus before zero."""
    return ", ".join(f"{round(1e3 * x, digits) + 0.0:.{digits}f}" for x in np.atleast_1d(np.asarray(lengths))) + " mm"


def turned(quaternion: ArrayLike) -> str:
    """A rotation (4,) wxyz as its rotation vector in degrees."""
    degrees = np.degrees(rotation_vector(matrix_from_quaternion(quaternion)))
    if np.max(np.abs(degrees)) < 5e-4:
        return "not turned"
    return "turned " + ", ".join(f"{round(x, 3) + 0.0:.3f}" for x in degrees) + " deg"


def pose_words(shape: Any) -> str:
    """Where the output of a shape is, in mm and, where it has an orientation, degrees."""
    position, quaternion = shape.pose
    place = millimetres(position)
    return place if shape.output.nodes.size == 1 else f"{place}, {turned(quaternion)}"


def span(values: ArrayLike, unit: str) -> str:
    """Lowest and highest of some numbers."""
    array = np.asarray(values, dtype=np.float64)
    low, high = float(array.min()), float(array.max())
    return f"{low:.4g} {unit}" if abs(high - low) < 1e-6 * abs(high) else f"{low:.4g} to {high:.4g} {unit}"


def motion(shape: Any) -> str:
    """What the softest motion of a shape does: to the output where it moves that, else to the node that moves most."""
    structure, direction = shape.structure, shape.softest_direction
    mover = structure.node_names[int(np.argmax(np.linalg.norm(direction, axis=1)))]
    if shape.output is None or shape.output.nodes.size < 3:
        return f"node {mover} moves most"
    twist = shape.output.jacobian(shape.nodes) @ direction.ravel()
    spread = shape.output.points - shape.output.points.mean(axis=0)
    twist[3:] *= np.sqrt(np.mean(np.sum(spread**2, axis=1)))
    size = float(np.linalg.norm(twist))
    if size < 0.2:
        return f"{shape.output.name} hardly moves, node {mover} moves most"
    order = np.argsort(-np.abs(twist))
    main = [MOTIONS[k] for k in order if abs(twist[k]) > 0.4 * size]
    return f"{shape.output.name} {' and '.join(main)}"


def listing(names: Sequence[str], most: int = 8) -> str:
    """Names, not too many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
