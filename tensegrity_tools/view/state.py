"""State of a robot that the view shows, and the answer to a request from the browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.robots.carried_payload import CarriedPayload
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.visualization.picture import Picture


class Answer(NamedTuple):
    """Answer to a request from the browser (a goal, hold, stop).

    Args:
        accepted: whether the request is carried out.
        text: the reason for a refusal, or a remark (for example that the motion takes longer than requested).
        nearest: the nearest reachable pose, where a goal is refused because it is out of reach.
        binding: names of the tendons that stop it there.
    """

    accepted: bool
    text: str = ""
    nearest: Pose | None = None
    binding: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ViewState:
    """State of a robot at one instant.

    Args:
        time: s, of the robot's clock.
        configuration: nodes (n, 3) [m] of a structure in the world frame, or position q (nq,) of a mechanism.
        tensions: (m,) N by member or cable, NaN where unknown; None where all are unknown.
        goal: the last accepted goal: position (3,) m and quaternion wxyz (4,); None before there is one.
        mode: of the controller ("idle", "holding", "moving", "stopped").
        source: node that published the state ("simulator", "estimator").
        real_time_factor: robot time over wall time, NaN where unknown.
        converged: False where the estimate of the configuration has not converged.
        notes: further warnings for the status text. errors: what stops the robot until somebody does something.
        velocity: of the configuration's kind, or None where unknown: contact forces follow it.
        payloads: what it carries beside those of its file.
    """

    time: float
    configuration: NDArray[np.float64]
    tensions: NDArray[np.float64] | None = None
    goal: Pose | None = None
    mode: str = ""
    source: str = ""
    real_time_factor: float = float("nan")
    converged: bool = True
    notes: tuple[str, ...] = field(default=())
    errors: tuple[str, ...] = field(default=())
    velocity: NDArray[np.float64] | None = None
    payloads: tuple[CarriedPayload, ...] = ()

    def problem(self, picture: Picture) -> str | None:
        """Why this state cannot be drawn, or None."""
        problem = picture.problem(self.configuration)
        if problem is not None:
            return problem
        if not np.isfinite(self.time):
            return "the time is not finite"
        if self.tensions is not None and np.asarray(self.tensions).shape != (len(picture.tension_names),):
            count = len(picture.tension_names)
            return f"tensions have shape {np.asarray(self.tensions).shape}, this robot needs ({count},)"
        if self.goal is not None and not np.all(np.isfinite(np.concatenate((self.goal[0], self.goal[1])))):
            return "the goal pose is not finite"
        return None
