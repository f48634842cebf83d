"""State of a robot in the view, and answer to a request from the browser."""

from __future__ import annotations

from collections.abc import Mapping
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
        accepted: whether the request is executed.
        text: reason of a refusal, or a remark (for example that the motion takes longer than requested).
        nearest: nearest reachable pose, if a goal is refused because it is out of reach.
        binding: names of the tendons that limit the motion there.
    """

    accepted: bool
    text: str = ""
    nearest: Pose | None = None
    binding: tuple[str, ...] = ()


LATEST = 1e11
"""Largest time of a state [s], some thousand years: the clock of the computer counts from 1970."""


@dataclass(frozen=True, eq=False)
class ViewState:
    """State of a robot at one time.

    Args:
        time: time of the robot's clock [s].
        configuration: nodes (n, 3) of a structure in the world frame [m], or position q (nq,) of a mechanism.
        tensions: (m,) by member or cable [N], NaN if unknown; None if all are unknown.
        goal: last accepted goal: position (3,) [m] and quaternion wxyz (4,); None before the first goal.
        mode: mode of the controller ("idle", "holding", "moving", "stopped").
        source: node that published the state ("simulator", "estimator").
        real_time_factor: ratio of robot time to wall time, NaN if unknown.
        converged: whether the estimate of the configuration has converged.
        notes: further warnings for the status text. errors: errors that stop the robot until a user acts.
        velocity: velocity that corresponds to the configuration, or None if unknown; contact forces are computed from
        it.
        payloads: payloads in addition to those of the robot file.
        positions: measured positions of the actuators by name [m or rad]; those that are unknown are missing.
        strains: (m,) strains of the members or cables, NaN if unknown; None if all are unknown.
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
    positions: Mapping[str, float] = field(default_factory=dict)
    strains: NDArray[np.float64] | None = None

    def problem(self, picture: Picture) -> str | None:
        """Reason why this state cannot be drawn, or None."""
        problem = picture.problem(self.configuration)
        if problem is not None:
            return problem
        if not abs(self.time) <= LATEST:  # true for NaN, too
            return f"its time is {self.time:g} s, which is no time of a robot or a clock"
        count = len(picture.tension_names)
        for what, values in (("tensions", self.tensions), ("strains", self.strains)):
            if values is not None and np.asarray(values).shape != (count,):
                return f"{what} have shape {np.asarray(values).shape}, this robot needs ({count},)"
        if self.goal is not None and not np.all(np.isfinite(np.concatenate((self.goal[0], self.goal[1])))):
            return "the goal pose is not finite"
        return None
