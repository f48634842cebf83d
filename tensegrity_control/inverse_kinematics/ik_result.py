"""A plan: the rest lengths of a goal pose and the equilibria that lead there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium


@dataclass(frozen=True, eq=False)
class InverseKinematicsResult:
    """What the inverse kinematics found.

    Attributes:
        rest_lengths: m by actuator name, at the goal.
        shape: the equilibrium at the goal.
        path: shapes from the start (first) to the goal (last), each a stable equilibrium within the limits.
        pose_error: (p,) m and rad that remains on the controlled axes.
        margins: N by member name: tension above its floor at the goal, for every guarded tendon and spring.
        lowest_margin: (tendon, N) the smallest such margin along the whole path.
        iterations: steps taken, rejected ones included.
        solves: forward kinematics solved on the way.
        method: "newton" or "broyden".
    """

    rest_lengths: dict[str, float]
    shape: StructureEquilibrium
    path: tuple[StructureEquilibrium, ...]
    pose_error: NDArray[np.float64]
    margins: dict[str, float]
    lowest_margin: tuple[str, float]
    iterations: int
    solves: int
    method: str

    def commands(self, robot: Robot) -> NDArray[np.float64]:
        """(s, a) m: rest lengths of the actuators, in the robot's order, for each shape of the path."""
        members = robot.actuated_members()
        return np.array([shape.rest_lengths[members] for shape in self.path])
