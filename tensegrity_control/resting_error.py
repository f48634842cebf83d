"""Monitor of the output at rest: detects, for example, a blocked spool that no servo reports."""

from __future__ import annotations

import math

from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from .controller import Status

SETTLING = 3.0
"""s after the end of a motion after which the output counts as at rest."""
POSITION_TOLERANCE, ORIENTATION_TOLERANCE = 0.001, math.radians(0.2)
"""m and rad, tolerated errors of the output over its controlled axes."""


class RestingError:
    """Error of the output of one robot at rest.

    Args:
        robot: robot; without an output nothing is monitored.
    """

    def __init__(self, robot: Robot) -> None:
        self._output = robot.output

    def look(self, time: float, status: Status, held: Pose, seen: Pose | None) -> str:
        """Message about the error at a time [s] of the robot; empty while it moves or settles, and if it is within
        tolerance.

        Args:
            status: status of the controller.
            held: pose of its reference.
            seen: estimated pose; None if unknown.
        """
        rests = status.phase in ("holding", "stopped") and time >= status.arrival + SETTLING
        if not rests or seen is None or self._output is None:
            return ""
        distance, angle = self._output.distance(held, seen)
        if not (distance > POSITION_TOLERANCE or angle > ORIENTATION_TOLERANCE):  # nan: unknown
            return ""
        return f"the output is {1e3 * distance:.2f} mm and {math.degrees(angle):.2f} deg off where it is held"
