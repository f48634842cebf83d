"""Limits of tensions and actuator positions as rows, with texts that describe active limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensegrity_dynamics.errors import UnreachableGoalError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import AXES

from .pose_goal import PoseGoal

QUANTITIES = {
    "tension": ("N", "floor", "ceiling"), "rest length": ("m", "shortest", "longest"),
    "angle": ("rad", "lowest", "highest"), "position": ("m", "lowest", "highest"),
}  # fmt: skip
"""Unit, and words for the lower and upper end of a limited quantity."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Rows with lower and upper limits and their descriptions.

    Attributes:
        low, high: (r,) N, m or rad; infinite without a limit.
        scale: (r,) typical size of a value, for tolerances.
        names: r member names.
        quantities: r of `QUANTITIES`.
        usual: r texts, or empty if all limits come from the robot file: reason of a lower limit that no file contains.
    """

    low: Array
    high: Array
    scale: Array
    names: tuple[str, ...]
    quantities: tuple[str, ...]
    usual: tuple[str, ...] = ()

    def violation(self, values: Array) -> float:
        """Largest excess over a limit, relative to the scale of the rows; zero or negative inside."""
        return float(np.max(np.maximum(self.low - values, values - self.high) / self.scale, initial=-np.inf))

    def touched(self, values: Array, tolerance: float) -> list[int]:
        """Rows within `tolerance` (relative to their scale) of a limit."""
        distance = np.minimum(values - self.low, self.high - values) / self.scale
        return [int(row) for row in np.flatnonzero(distance < tolerance)]

    def describe_all(self, rows: Sequence[int], values: Array) -> str:
        """Active limits, each once: 'draw_1, draw_3: tension 4.45 N at its floor of 4.45 N; ...'."""
        names: dict[str, list[str]] = {}
        for row in rows:
            name, _, text = self.describe(row, values[row]).partition(": ")
            names.setdefault(text, []).append(name)
        return "; ".join(f"{', '.join(those)}: {text}" for text, those in names.items())

    def describe(self, row: int, value: float) -> str:
        """Active limit with its value: 'draw_3: tension 4.45 N at its floor of 4.45 N'."""
        at_low = value - self.low[row] < self.high[row] - value
        bound = self.low[row] if at_low else self.high[row]
        unit, lowest, highest = QUANTITIES[self.quantities[row]]
        word = lowest if at_low else highest
        why = f" ({self.usual[row]})" if at_low and self.usual and self.usual[row] else ""
        return f"{self.names[row]}: {self.quantities[row]} {value:.4g} {unit} at its {word} of {bound:.4g} {unit}{why}"


DOES_NOT_ANSWER = (
    "the pose does not answer to the actuators in that direction (a singular shape; begin the motion from another one)"
)
"""Cause where no limit stops a motion."""


def unreachable_goal(
    goal: PoseGoal,
    nearest: Any,
    limits: Limits,
    values: Array,
    rows: Sequence[int],
    trouble: str,
    *,
    reachable: bool = False,
    rest_lengths: Mapping[str, float] | None = None,
) -> UnreachableGoalError:
    """Error for an unreachable goal.

    Args:
        goal: the goal.
        nearest: equilibrium that is proposed instead.
        limits: limits of the robot.
        values: (r,) values of the limited quantities where the motion stopped.
        rows: rows of the active limits.
        trouble: why steps were rejected, used if no limit is active.
        reachable: whether the proposed pose was confirmed as a goal.
        rest_lengths: m of the nearest equilibrium, by tendon.
    """
    axes = [AXES[row] for row in goal.output.rows]
    error = list(zip(axes, goal.error(nearest.pose), strict=True))
    moved = [value for axis, value in error if not axis.startswith("r")]
    turned = [value for axis, value in error if axis.startswith("r")]
    short = [f"{round(1e3 * float(np.linalg.norm(moved)), 6):.5g} mm"] if moved else []
    short += [f"{round(np.degrees(float(np.linalg.norm(turned))), 6):.5g} deg"] if turned else []
    position, quaternion = (", ".join(f"{round(value, 4) + 0.0:.4f}" for value in part) for part in nearest.pose)
    where = f"position ({position}) m" + (f", quaternion ({quaternion})" if turned else "")
    why = limits.describe_all(rows, values) or trouble or DOES_NOT_ANSWER
    is_of_file = any(not (limits.usual and limits.usual[row]) for row in rows)
    return UnreachableGoalError(
        f"the goal pose is out of reach. Nearest {'reachable pose' if reachable else 'pose found'}: {where}; it misses "
        f"the goal by {' and '.join(short)}. Cause: {why}. Choose a goal nearer to that pose"
        f"{', or widen these limits in the robot file' if is_of_file else ''}.",
        nearest=nearest,
        rest_lengths=rest_lengths,
        cause=why,
        binding=tuple(dict.fromkeys(limits.names[row] for row in rows)),
    )
