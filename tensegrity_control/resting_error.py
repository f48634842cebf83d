"""Watches that a robot that holds is where it is held: a caught spool that no servo notices shows there."""

from __future__ import annotations

import math

import numpy as np

from tensegrity_dynamics.robots.output_frame import Pose, pose_error
from tensegrity_dynamics.robots.robot import Robot

from .controller import Status

SETTLING = 3.0
"""s after the end of a motion from which on the output counts as at rest."""
POSITION_TOLERANCE, ORIENTATION_TOLERANCE = 0.001, math.radians(0.2)
"""m and rad by which the output may be off, over the axes that it controls."""


class RestingError:
    """How far the output of one robot is from where it is held.

    Args:
        robot: with an output, or without one, of which nothing is said.
    """

    def __init__(self, robot: Robot) -> None:
        self._rows = np.zeros(0, dtype=np.intp) if robot.output is None else robot.output.rows

    def look(self, time: float, status: Status, held: Pose, seen: Pose | None) -> str:
        """What is off at a time [s] of the robot; empty while it moves or settles, and where all is within tolerance.

        Args:
            status: of the controller. held: pose of its reference. seen: as estimated, None where it is not known.
        """
        rests = status.phase in ("holding", "stopped") and time >= status.arrival + SETTLING
        if not rests or seen is None or not self._rows.size:
            return ""
        error = np.zeros(6)
        error[self._rows] = pose_error(held, seen)[self._rows]
        distance, angle = float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))
        if not (distance > POSITION_TOLERANCE or angle > ORIENTATION_TOLERANCE):  # nan: nothing is known
            return ""
        return f"the output is {1e3 * distance:.2f} mm and {math.degrees(angle):.2f} deg off where it is held"
