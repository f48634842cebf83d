"""What the view is told about a robot at one instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.robots.output_frame import Pose

if TYPE_CHECKING:
    from .kinds import Kind


class Answer(NamedTuple):
    """What becomes of something that a person asked for.

    Args:
        accepted: whether it is done.
        text: why not, or a remark (that it takes longer than asked for, say).
        nearest: the nearest pose that can be reached, where a goal is refused because it cannot.
    """

    accepted: bool
    text: str = ""
    nearest: Pose | None = None


@dataclass(frozen=True, eq=False)
class ViewState:
    """One instant of a robot.

    Args:
        time: s, of the robot's clock.
        nodes: of a structure: (n, 3) m in the world frame.
        tensions: (m,) N by member or cable, NaN where not known; None where none is known.
        goal: the last accepted goal: position (3,) m and quaternion wxyz (4,); None before there is one.
        mode: what the controller does, as it says ("idle", "holding", "moving", "stopped").
        source: who knows the shape ("simulator", "estimator").
        real_time_factor: robot seconds per second, NaN where not known.
        converged: False where the shape is a guess that should not be trusted.
        notes: further lines for the status text (a lost topic, a stale state).
        q: of a mechanism: its position (nq,).
    """

    time: float
    nodes: NDArray[np.float64] | None = None
    tensions: NDArray[np.float64] | None = None
    goal: Pose | None = None
    mode: str = ""
    source: str = ""
    real_time_factor: float = float("nan")
    converged: bool = True
    notes: tuple[str, ...] = field(default=())
    q: NDArray[np.float64] | None = None

    def problem(self, kind: Kind) -> str | None:
        """Why this state cannot be drawn, or None where it can."""
        trouble = kind.check(self)
        if trouble is not None:
            return trouble
        if not np.isfinite(self.time):
            return "the time is not finite"
        if self.tensions is not None and np.asarray(self.tensions).shape != (len(kind.names),):
            return f"tensions have shape {np.asarray(self.tensions).shape}, this robot needs ({len(kind.names)},)"
        if self.goal is not None and not np.all(np.isfinite(np.concatenate((self.goal[0], self.goal[1])))):
            return "the goal pose is not finite"
        return None
