"""A motion in time along a curve of equilibria, and how it is broken off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium

from ..trajectories.time_scaling import Brake, Cubic, MinimumJerk, TimeLaw, Waypoints
from .equilibrium_path import EquilibriumPath

Array = NDArray[np.float64]

SAMPLES = 201
NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class TimedPath:
    """A walk along a curve that begins at `begin` [s]."""

    begin: float
    law: TimeLaw
    curve: EquilibriumPath

    @property
    def end(self) -> float:
        """Time [s] at which it is over."""
        return self.begin + self.law.duration

    def at(self, time: float) -> tuple[float, float]:
        """Place on the curve and its rate [1/s]."""
        return self.law.at(time - self.begin)

    def brake(self, now: float, longest: float) -> TimedPath:
        """The same way from `now` on, coming to rest within `longest` s; a motion that brakes already goes on."""
        if isinstance(self.law, Brake):
            return self
        place, rate = self.at(now)
        rate = max(rate, 0.0)
        time = longest if rate == 0.0 else min(longest, 2.0 * (1.0 - place) / rate)
        return TimedPath(now, Brake(max(time, NOTHING), place, rate), self.curve)


@dataclass(frozen=True, eq=False)
class RestPoint:
    """A place on a curve where the robot rests."""

    curve: EquilibriumPath
    place: float

    @property
    def lengths(self) -> Array:
        """(a,) m."""
        return self.curve.lengths(self.place)

    @property
    def pose(self) -> Pose:
        """Of the output frame."""
        return self.curve.pose(self.place)

    def shape(self) -> StructureEquilibrium:
        """The equilibrium, solved now where the place is none of the curve's ends."""
        return self.curve.shape_at(self.place)


def timed(
    curve: EquilibriumPath,
    duration: float | None,
    law: type[MinimumJerk] | type[Cubic],
    rate_margin: float,
    swing_periods: float,
) -> tuple[TimeLaw, str]:
    """A time law from rest to rest, and a note where it takes longer than asked for.

    Args:
        duration: s, or None for the shortest that uses at most `rate_margin` of every rate limit and lasts at least
            `swing_periods` of the slowest periods at both ends.
    """
    if curve.span <= 0.0:
        return law(duration or NOTHING), ""
    places, rates = np.array([law(1.0).at(u) for u in np.linspace(0.0, 1.0, SAMPLES)]).T
    used, worst = curve.largest_rate(places, rates)
    by_rate = used / rate_margin
    if duration is None:
        by_swing = 0.0
        if swing_periods > 0.0:
            by_swing = swing_periods * curve.longest_period()
        return law(max(by_rate, by_swing)), ""
    if duration >= by_rate:
        return law(duration), ""
    name = curve.robot.actuators[worst].name
    return law(by_rate), f"{duration:.3g} s asked for, {by_rate:.3g} s needed by the rate limit of {name}"


def through(curve: EquilibriumPath, times: list[float], places: Array) -> TimeLaw:
    """A time law through places at given times. Raises InfeasibleControlError where an actuator is too slow."""
    law = Waypoints(times, places)
    instants = np.linspace(0.0, law.duration, max(SAMPLES, 20 * len(times)))
    used, worst = curve.largest_rate(*np.array([law.at(float(time)) for time in instants]).T)
    if used > 1.0:
        actuator = curve.robot.actuators[worst]
        raise InfeasibleControlError(
            f"the waypoints ask {actuator.name} for {used * actuator.rate:.4g} {actuator.units[1]}, above its rate "
            f"limit of {actuator.rate:.4g} {actuator.units[1]}; stretch all times by a factor of {used:.3g} or more."
        )
    return law
