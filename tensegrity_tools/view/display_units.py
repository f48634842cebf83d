"""Numbers for people: lengths in a unit that suits the robot, and angles in degrees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, quaternion_from_matrix


@dataclass(frozen=True)
class LengthUnit:
    """A unit of length for display.

    Args:
        name: its symbol.
        metres: m in one unit.
        decimals: places that are worth reading.
    """

    name: str
    metres: float
    decimals: int

    @classmethod
    def for_span(cls, span: float) -> LengthUnit:
        """Millimetres for robots below a span of 3 m, else metres."""
        return cls("mm", 1e-3, 1) if span < 3.0 else cls("m", 1.0, 4)

    def text(self, metres: float) -> str:
        """A length with its unit."""
        return f"{metres / self.metres:.{self.decimals}f} {self.name}"


def roll_pitch_yaw(quaternion: ArrayLike) -> NDArray[np.float64]:
    """(3,) degrees about the fixed x, y and z axes, in this order (REP 103), of a quaternion wxyz (4,)."""
    m = matrix_from_quaternion(quaternion)
    pitch = np.arcsin(np.clip(-m[2, 0], -1.0, 1.0))
    if abs(m[2, 0]) > 1.0 - 1e-9:  # looking straight up or down, roll and yaw are one turn: call it yaw
        return np.degrees([0.0, pitch, np.arctan2(-m[0, 1], m[1, 1])])
    return np.degrees([np.arctan2(m[2, 1], m[2, 2]), pitch, np.arctan2(m[1, 0], m[0, 0])])


def quaternion_from_roll_pitch_yaw(degrees: ArrayLike) -> NDArray[np.float64]:
    """(4,) wxyz of roll, pitch and yaw (3,) in degrees."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return quaternion_from_matrix(
        np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )
    )
