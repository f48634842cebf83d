"""Style of all pictures: colours, opacity, display radii, and the colour scale of tension."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Colour = tuple[int, int, int]  # red, green, blue, 0 to 255

# A perceptually uniform map (plasma of matplotlib, public domain) at equal steps. It stops before the yellow end,
# which is hard to see on a light ground.
TENSION_COLOURS = np.array(
    [
        [13, 8, 135], [56, 4, 154], [89, 1, 165], [122, 2, 168], [150, 19, 161], [177, 42, 144],
        [198, 65, 125], [217, 88, 106], [232, 112, 89], [245, 139, 71], [252, 166, 54],
    ],
    dtype=np.float64,
)  # fmt: skip
BAR_COLOUR = (66, 72, 84)
FIXED_COLOUR = (38, 42, 50)
PULLEY_COLOUR = (84, 158, 214)
PLATE_COLOUR = (150, 158, 172)
EDGE_COLOUR = (96, 106, 124)
SLACK_COLOUR = (150, 152, 156)
UNKNOWN_COLOUR = (120, 170, 120)
GOAL_COLOUR = (38, 139, 110)
CONTACT_COLOUR = (196, 84, 148)
REFUSED_COLOUR = (200, 52, 44)
TRACE_COLOUR = (64, 112, 190)
TEXT_COLOUR = (38, 42, 50)
PAYLOAD_COLOUR = (172, 126, 34)


@dataclass(frozen=True)
class Look:
    """Colour (0 to 255) and opacity (0 to 1) of a solid."""

    colour: Colour
    opacity: float = 1.0


# Look of a solid by its role in the robot.
LOOKS = {
    "bars": Look(BAR_COLOUR),
    "bodies": Look(BAR_COLOUR),
    "rods": Look(BAR_COLOUR),
    "points": Look(PULLEY_COLOUR),
    "blocks": Look((150, 162, 184), opacity=0.25),  # transparent, otherwise it would hide its pulley
    "pulleys": Look(PULLEY_COLOUR),
    "marks": Look((38, 52, 70)),
    "joints": Look(FIXED_COLOUR),
    "rails": Look((176, 182, 192)),
}

SLACK_FRACTION = 1e-6  # of the full scale of tension; a tendon or cable at or below it is drawn as slack


@dataclass(frozen=True)
class Sizes:
    """Display dimensions of a robot [m].

    Args:
        span: diagonal of the box around the robot; cameras and grids follow it.
        bar, tendon, spring, node: radii; `spring` is the outer radius of the coil.
        axes: length of the axes that show the output frame and a goal.
        axes_radius: radius of the axes of the output frame.
    """

    span: float
    bar: float
    tendon: float
    spring: float
    node: float
    axes: float
    axes_radius: float


def tension_colours(tensions: ArrayLike, full_scale: float) -> NDArray[np.uint8]:
    """Colours (m, 3), 0 to 255, of tensions (m,) [N] on a scale from 0 to `full_scale` [N]; NaN means unknown."""
    values = np.asarray(tensions, dtype=np.float64)
    finite = np.isfinite(values)
    steps = len(TENSION_COLOURS) - 1
    position = np.clip(np.where(finite, values, 0.0) / max(full_scale, 1e-12), 0.0, 1.0) * steps
    low = np.minimum(position.astype(np.int64), steps - 1)
    fraction = (position - low)[:, None]
    colours = (1.0 - fraction) * TENSION_COLOURS[low] + fraction * TENSION_COLOURS[low + 1]
    colours[~finite] = UNKNOWN_COLOUR
    return np.rint(colours).astype(np.uint8)


def round_up(value: float) -> float:
    """Next value of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten that is not below `value`.

    Values that are not finite and positive give 1.
    """
    if not np.isfinite(value) or value <= 0.0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    for step in (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0):
        if value <= step * power * (1.0 + 1e-9):
            return float(step * power)
    return float(10.0 * power)


def scale_ticks(full_scale: float) -> NDArray[np.float64]:
    """(3 to 5 + 1,) values from 0 to a full scale of `round_up`, in equal steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(full_scale))
    steps = (full_scale / (step * power) for step in (2.0, 1.0, 0.5, 0.2))
    count = next((round(n) for n in steps if n > 2.5 and abs(n - round(n)) < 1e-6), 5)
    return np.linspace(0.0, full_scale, count + 1)


def smallest_full_scale(axial_stiffness: ArrayLike) -> float:
    """Smallest useful full scale of tension [N], so that rounding errors are not magnified.

    Args:
        axial_stiffness: E A of the members or cables [N]; the result is a millionth of the largest one.
    """
    forces = np.asarray(axial_stiffness, dtype=np.float64)
    return round_up(1e-6 * float(forces.max())) if forces.size else 1.0
