"""Monitor of the tension floors of tendons; it counts and stores violations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tensegrity_dynamics.robots.robot import Robot

TOLERANCE = 0.01
"""Fraction of the floor by which tensions may be below it, for noise of measurements and estimates."""


class TensionFloor:
    """Tension floors of one robot, `minimum_tension` of its actuators.

    Args:
        robot: robot with actuators.

    Attributes:
        breaches: number of violations so far.
    """

    def __init__(self, robot: Robot) -> None:
        floors = robot.model.tension_floors(robot.actuators)
        self._floors = {name: floor for name, floor in floors.items() if floor > 0.0}
        self._below: dict[str, tuple[float, float]] = {}
        self._watched: dict[str, tuple[float, float]] = {}
        self.breaches = 0
        self.last = ""
        """Message about the last violation: tendon, tension, floor and time; empty without one."""

    def unreported(self, reported: Iterable[str]) -> list[str]:
        """Tendons with a floor but without a reported tension, for which violations are unknown."""
        heard = set(reported)
        return [name for name in self._floors if name not in heard]

    def is_broken(self, name: str, tension: float) -> bool:
        """Whether a tension [N] is below the floor of a tendon; False without a floor or if the tension is nan."""
        return tension < (1.0 - TOLERANCE) * self._floors.get(name, -math.inf)

    def worst(self, lowest: Mapping[str, tuple[float, float]]) -> str:
        """Message about the largest violation, from the lowest tensions [N] and their times [s] by name; empty without
        violations."""
        broken = [
            (self._floors[name] - least, name) for name, (least, _) in lowest.items() if self.is_broken(name, least)
        ]
        if not broken:
            return ""
        name = max(broken)[1]
        least, when = lowest[name]
        floor = self._floors[name]
        return f"tension floor broken: {name} fell to {least:.3g} N at {when:.2f} s, its floor is {floor:.3g} N"

    def watch(self) -> None:
        """Begin to watch a motion, see `seen`."""
        self._watched.clear()

    def seen(self) -> str:
        """Message about the largest violation that `look` found since `watch`; empty without violations."""
        return self.worst(self._watched)

    def look(self, time: float, names: Iterable[str], tensions: Iterable[float]) -> str:
        """Message about the violations at a time [s], tensions in N by name; empty without violations."""
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
            if tension < self._watched.get(name, (math.inf, 0.0))[0]:
                self._watched[name] = (tension, time)
            since, least = self._below.get(name, (time, tension))
            self._below[name] = (since, min(least, tension))
            now.append(f"{name} has {tension:.3g} N, its floor is {floor:.3g} N, since {since:.2f} s")
        said = f"tension floor broken: {'; '.join(now)}" if now else ""
        self.last = said or self.last
        return said
