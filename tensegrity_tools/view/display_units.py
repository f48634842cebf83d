"""Units of the display: lengths in a unit that suits the size of the robot, and angles in degrees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.numerics import rotations


@dataclass(frozen=True)
class LengthUnit:
    """Unit of length for display.

    Args:
        name: symbol of the unit.
        metres: size of the unit [m].
        decimals: number of decimals to display.
    """

    name: str
    metres: float
    decimals: int

    @classmethod
    def for_span(cls, span: float) -> LengthUnit:
        """Millimetres for robots with a span below 3 m, else metres."""
        return cls("mm", 1e-3, 1) if span < 3.0 else cls("m", 1.0, 4)

    def text(self, metres: float) -> str:
        """Length [m] as text with its unit."""
        return f"{metres / self.metres:.{self.decimals}f} {self.name}"


def roll_pitch_yaw(quaternion: ArrayLike) -> NDArray[np.float64]:
    """(3,) angles about the fixed x, y and z axes, in this order (REP 103) [deg], of a quaternion wxyz (4,)."""
    return np.degrees(rotations.roll_pitch_yaw(rotations.matrix_from_quaternion(quaternion)))


def quaternion_from_roll_pitch_yaw(degrees: ArrayLike) -> NDArray[np.float64]:
    """(4,) quaternion wxyz from roll, pitch and yaw (3,) [deg]."""
    return rotations.quaternion_from_matrix(rotations.matrix_from_roll_pitch_yaw(np.radians(degrees)))


def numbers(values: Iterable[float], decimals: int) -> str:
    """Numbers with fixed decimals, without a minus sign before zero, separated by commas."""
    return ", ".join(f"{round(float(value), decimals) + 0.0:.{decimals}f}" for value in values)
