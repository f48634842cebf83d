"""Watches that no tendon falls below the tension that plans keep in it, and remembers where one did."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tensegrity_dynamics.robots.robot import Robot

TOLERANCE = 0.01
"""Part of the floor by which tensions may be below it, for whoever watches: noise of what is measured or estimated."""


class TensionFloor:
    """The floors of one robot, `minimum_tension` of its actuators.

    Args:
        robot: with actuators.

    Attributes:
        breaches: how often a tendon has fallen below its floor.
    """

    def __init__(self, robot: Robot) -> None:
        floors = robot.model.tension_floors(robot.actuators)
        self._floors = {name: floor for name, floor in floors.items() if floor > 0.0}
        self._below: dict[str, tuple[float, float]] = {}
        self.breaches = 0
        self.last = ""
        """What was broken last: tendon, tension, floor and time; empty where nothing ever was."""

    def unreported(self, reported: Iterable[str]) -> list[str]:
        """Tendons with a floor whose tension was not reported: whether it was kept is not known."""
        heard = set(reported)
        return [name for name in self._floors if name not in heard]

    def is_broken(self, name: str, tension: float) -> bool:
        """Whether a tension [N] is below the floor of a tendon; never where there is none, or nothing is known."""
        return tension < (1.0 - TOLERANCE) * self._floors.get(name, -math.inf)

    def worst(self, lowest: Mapping[str, tuple[float, float]]) -> str:
        """What was broken most, of the lowest tensions [N] and their times [s] by name; empty where all was kept."""
        broken = [
            (self._floors[name] - least, name) for name, (least, _) in lowest.items() if self.is_broken(name, least)
        ]
        if not broken:
            return ""
        name = max(broken)[1]
        least, when = lowest[name]
        floor = self._floors[name]
        return f"tension floor broken: {name} fell to {least:.3g} N at {when:.2f} s, its floor is {floor:.3g} N"

    def look(self, time: float, names: Iterable[str], tensions: Iterable[float]) -> str:
        """What is broken at a time [s], tensions in N by name; empty where all floors are kept."""
        now = []
        for name, tension in zip(names, tensions, strict=False):
            floor = self._floors.get(name)
            if floor is None or not math.isfinite(tension):
                continue
            if not self.is_broken(name, tension):
                self._below.pop(name, None)
                continue
            if name not in self._below:
                self.breaches += 1
            since, least = self._below.get(name, (time, tension))
            self._below[name] = (since, min(least, tension))
            now.append(
                f"tension floor broken: {name} has {tension:.3g} N, its floor is {floor:.3g} N, since {since:.2f} s"
            )
        if now:
            self.last = "; ".join(now)
        return "; ".join(now)
