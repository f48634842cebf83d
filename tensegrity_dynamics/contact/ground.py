"""Ground as data: a plane or a height field, with laws of normal force and friction at a penetrating point.

| law | force over the depth d | source |
| --- | --- | --- |
| linear | k d for d > 0 | 003, 3.12 and 3.13 |
| exponential | k a (e^(d / a) - 1) for d > 0 | 003, 3.12; a = 1 m there |
| softplus | k (sqrt(d^2 + b^2) + d) / 2, at every d | 003, 3.18 and 3.32 (its missing stiffness put in) |

Damping adds c times the rate of d (softplus: times the slope of the law divided by k, 003 3.31 and 3.32), and the sum
is limited to at least zero: the ground never pulls. Friction at the sliding velocity v with the normal force N is

    F = -mu N v / sqrt(|v|^2 + v0^2) - e v

Coulomb friction with a regularisation speed v0 (below it a foot creeps instead of sticking: for a friction force of
x mu N it creeps at v0 x / sqrt(1 - x^2)), and viscous friction (003, 3.4.3, mentioned there without a formula) for N >
0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name

LAWS = ("linear", "exponential", "softplus")
"""Laws of the normal force, in the order of their numbers in the compiled kernels."""


@dataclass(frozen=True, eq=False)
class HeightField:
    """Heights on a regular grid, interpolated by a natural bicubic spline, and level outside the grid.

    The spline overshoots slightly near steps.

    Attributes:
        heights: (r, c) heights above the height of the ground [m]; rows along y, columns along x.
        origin: (2,) x and y of heights[0, 0] [m]. spacing: distance of neighbours [m].

    Raises:
        TensegrityError: there are fewer than two rows or columns, a number is not finite, or the spacing is not
            positive.
    """

    heights: NDArray[np.float64]
    origin: NDArray[np.float64]
    spacing: float

    def __post_init__(self) -> None:
        heights = np.array(self.heights, dtype=np.float64)
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise TensegrityError(f"a height field has two rows and two columns at least, found shape {heights.shape}.")
        if not np.isfinite(heights).all():
            row, column = np.argwhere(~np.isfinite(heights))[0].tolist()
            raise TensegrityError(f"the height in row {row}, column {column} is not finite; give a number in m.")
        origin = np.array(self.origin, dtype=np.float64)
        if origin.shape != (2,) or not np.isfinite(origin).all():
            raise TensegrityError(
                "the origin of a height field is two finite numbers in m, x and y of its first value."
            )
        if not (np.isfinite(self.spacing) and self.spacing > 0.0):
            raise TensegrityError(f"the spacing of a height field is {self.spacing} m, must be above zero.")
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "origin", origin)

    def holds(self, x: float, y: float) -> bool:
        """Whether a point (x, y) is inside the field."""
        far = self.origin + self.spacing * (np.array(self.heights.shape[::-1]) - 1)
        return bool(self.origin[0] <= x <= far[0] and self.origin[1] <= y <= far[1])


@dataclass(frozen=True, eq=False)
class Ground:
    """Ground of a robot.

    Attributes:
        stiffness: stiffness k at every contact point [N/m]. law: one of `LAWS`.
        damping: damping c along the normal [N s/m]. friction: coefficient mu. friction_speed: v0 [m/s].
        viscous: viscous friction e along the surface [N s/m]. smoothness: b of "softplus" [m].
        length: a of "exponential" [m].
        height: height along z of the plane at x = y = 0 [m], or added to all heights of the field.
        slope: slope angle [rad]. downhill: downhill direction, angle from x towards y [rad].
        hills: heights on level ground, or None.

    Raises:
        TensegrityError: a number is not finite or out of range, the law is unknown, or hills are on a slope.
    """

    stiffness: float
    law: str = "linear"
    damping: float = 0.0
    friction: float = 0.5
    friction_speed: float = 1e-3
    viscous: float = 0.0
    smoothness: float = 1e-3
    length: float = 1.0
    height: float = 0.0
    slope: float = 0.0
    downhill: float = 0.0
    hills: HeightField | None = None
    normal: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise TensegrityError(unknown_name("law of the ground", self.law, LAWS))
        above = ("stiffness", "friction_speed", "smoothness", "length")
        for name in (*above, "damping", "friction", "viscous", "height", "slope", "downhill"):
            value = float(getattr(self, name))
            if not np.isfinite(value):
                raise TensegrityError(f"contact: {name} is {value}; give a finite number.")
            if name in above and not value > 0.0:
                raise TensegrityError(f"contact: {name} is {value:g}, must be above zero.")
            if name in ("damping", "friction", "viscous") and value < 0.0:
                raise TensegrityError(f"contact: {name} is {value:g}, must not be negative.")
        if not abs(self.slope) < 0.5 * np.pi:
            raise TensegrityError(
                f"contact: a slope of {np.degrees(self.slope):.4g} deg is a wall; it must be below 90 deg."
            )
        if self.hills is not None and self.slope != 0.0:
            raise TensegrityError("contact: put the slope into the heights; a height field stands on level ground.")
        tilt, azimuth = self.slope, self.downhill
        normal = np.array([np.sin(tilt) * np.cos(azimuth), np.sin(tilt) * np.sin(azimuth), np.cos(tilt)])
        normal.setflags(write=False)
        object.__setattr__(self, "normal", normal)

    @property
    def words(self) -> str:
        """Description of the ground in one line."""
        shape = "level" if self.slope == 0.0 else f"slope of {np.degrees(self.slope):.4g} deg"
        if self.hills is not None:
            shape = f"hills on {self.hills.heights.shape[1]} x {self.hills.heights.shape[0]} points"
        at = f" at {self.height:g} m" if self.height else ""
        return (
            f"{shape}{at}, {self.law}, {self.stiffness:g} N/m, {self.damping:g} N s/m, friction {self.friction:g} "
            f"(regularised below {self.friction_speed:g} m/s)"
        )
