"""A path of equilibria walked in time: the plan of controllers by actuator positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.numerics.types import Array

from ..controller import Reference, RobotState
from ..trajectories.time_scaling import Progress, TimeLaw, Waypoints
from .equilibrium_path import EquilibriumPath

SAMPLES = 201
"""Points of a time law at which rates are compared with their limits."""


class TimedPath:
    """A path with a time law; it is followed without feedback.

    Args:
        path: of equilibria. law: path parameter over time.

    Attributes:
        duration: s.
    """

    def __init__(self, path: EquilibriumPath, law: TimeLaw) -> None:
        self.path, self.law, self.duration = path, law, law.duration

    def at(self, progress: Progress) -> tuple[float, float]:
        """Path parameter and its rate [1/s]."""
        parameter, rate = self.law.at(progress.time)
        return parameter, progress.pace * rate

    def reference(self, progress: Progress) -> Reference:
        """Pose and twist of the output."""
        parameter, rate = self.at(progress)
        return Reference(self.path.pose(parameter), rate * self.path.pose_rates(parameter))

    def command(self, progress: Progress, state: RobotState | None = None) -> Array:
        """(a,) m or rad."""
        return self.path.positions(self.at(progress)[0])

    def equilibrium(self, time: float) -> Any:
        """The equilibrium at a time [s] of the law, solved anew between those of the path."""
        return self.path.equilibrium(self.law.at(time)[0])


def shortest_duration(path: EquilibriumPath, law: type[Any]) -> tuple[float, int]:
    """Shortest duration [s] of a time law that keeps all rate limits, and the index of the actuator that sets it."""
    parameters, rates = np.array([law(1.0).at(u) for u in np.linspace(0.0, 1.0, SAMPLES)]).T
    return path.largest_rate(parameters, rates)


def through(path: EquilibriumPath, times: list[float], parameters: Array) -> TimeLaw:
    """A time law through path parameters at times [s]. Raises InfeasibleControlError where an actuator is too slow."""
    law = Waypoints(times, parameters)
    instants = np.linspace(0.0, law.duration, max(SAMPLES, 20 * len(times)))
    used, worst = path.largest_rate(*np.array([law.at(float(time)) for time in instants]).T)
    if used > 1.0:
        actuator = path.robot.actuators[worst]
        raise InfeasibleControlError(
            f"the waypoints ask {actuator.name} for {used * actuator.rate:.4g} {actuator.units[1]}, above its rate "
            f"limit of {actuator.rate:.4g} {actuator.units[1]}; stretch all times by a factor of {used:.3g} or more."
        )
    return law
