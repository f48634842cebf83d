"""Formatting of numbers and poses for reports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.rotations import matrix_from_quaternion, rotation_vector


def millimetres(lengths: ArrayLike, digits: int = 2) -> str:
    """Lengths [m] as text such as "1.00, 2.00 mm"; zero has no minus sign."""
    return ", ".join(f"{round(1e3 * x, digits) + 0.0:.{digits}f}" for x in np.atleast_1d(np.asarray(lengths))) + " mm"


def turned(quaternion: ArrayLike) -> str:
    """Rotation (4,) wxyz as text: rotation vector in degrees."""
    turn = rotation_vector(matrix_from_quaternion(quaternion))
    return "not turned" if np.max(np.abs(np.degrees(turn))) < 5e-4 else f"turned {in_degrees(turn)}"


def in_degrees(angles: ArrayLike) -> str:
    """Angles [rad] as text such as "1.000, 2.000 deg"; zero has no minus sign."""
    return ", ".join(f"{round(x, 3) + 0.0:.3f}" for x in np.degrees(angles)) + " deg"


def span(values: ArrayLike, unit: str) -> str:
    """Lowest and highest value as text."""
    array = np.asarray(values, dtype=np.float64)
    low, high = float(array.min()), float(array.max())
    return f"{low:.4g} {unit}" if abs(high - low) < 1e-6 * abs(high) else f"{low:.4g} to {high:.4g} {unit}"


def listing(names: Sequence[str], most: int = 8) -> str:
    """List of names as text, limited to `most` names."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
