"""The simulated robot behind the emulated servos: their spools turn, and the tendons load them.

    rest length = rest length at the start - direction · radius · turned angle
    torque on the shaft = -direction · radius · tension

The limits of the simulated actuators are lifted: as on the hardware, only the torque of a servo limits its winding. A
snapped tendon is modelled by a rest length at which it is slack in any configuration, while its spool turns on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics import Simulation
from tensegrity_dynamics.errors import BusError, TensegrityError, unknown_name
from tensegrity_dynamics.robots.actuator import Actuator
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.simulation import Observation

from ..spools.transmission import Transmission, transmission_of

SNAPPED_LENGTH_M = 0.3
"""Additional rest length of a snapped tendon [m]."""
SNAPPING_RATE, MENDING_RATE = 20.0, 0.2
"""Rates of the additional rest length when a tendon snaps and when it is mended [m/s]."""


def _unlimited(actuator: Actuator) -> Actuator:
    """An actuator without limits; nothing is left of a tendon at a rest length of zero."""
    low = 1e-4 if actuator.motion == "tendon" else -1e6
    return replace(actuator, position=(low, 1e6), rate=1e3, effort=1e9, minimum_tension=0.0)


@dataclass
class Winding:
    """State of one spool and its tendon.

    Attributes:
        radius: m. direction: +1 where positive rotation winds in, else -1.
        start: rest length at angle zero [m]. angle: rad. extra: additional rest length of a snapped tendon [m].
        stiffness: N/m. transmission: what the spool is in the simulation. snapped: the tendon carries no tension.
    """

    name: str
    radius: float
    direction: int
    start: float
    stiffness: float
    transmission: Transmission
    angle: float = 0.0
    extra: float = 0.0
    snapped: bool = False

    @property
    def length(self) -> float:
        """Rest length by the angle alone [m]."""
        return self.start - self.direction * self.radius * self.angle

    def wind(self, direction: int) -> None:
        """Wind the tendon on in this direction, at the same length."""
        length, self.direction = self.length, direction
        self.start = length + self.direction * self.radius * self.angle


class SpooledRobot:
    """A simulated robot with velocity-driven spools.

    Args:
        robot: with servos. start: initial configuration, see `Simulation`.

    Raises:
        BusError: no servos, or a servo whose actuator or radius is missing.
    """

    def __init__(self, robot: Robot, start: Any = None) -> None:
        rows = robot.servos.get("servos") or ()
        if not rows:
            raise BusError(f"{robot.name} has no servos to emulate; add a `servos` block to its robot file.")
        free = tuple(_unlimited(each) for each in robot.actuators)
        self.simulation = Simulation(replace(robot, actuators=free), start=start)
        self.simulation.advance(
            0, velocity={each.name: 0.0 for each in free}
        )  # compile before the first bus cycle waits for it
        self.readings = self.simulation.observe_sensors()
        names = [each.name for each in robot.actuators]
        self.windings: dict[str, Winding] = {}
        for row in rows:
            name = row["actuator"]
            if name not in names:
                raise BusError(f"servo {row['id']}: " + unknown_name("actuator", name, names))
            try:
                transmission = transmission_of(robot, row)
            except TensegrityError as error:
                raise BusError(str(error)) from error
            self.windings[name] = Winding(
                name=name,
                radius=transmission.radius,
                direction=int(row.get("direction") or 1),
                start=transmission.length(float(self.readings.positions[name])),
                stiffness=float(transmission.stiffness or 0.0),
                transmission=transmission,
            )
        self._forces: dict[str, np.ndarray] = {}

    @property
    def time(self) -> float:
        """Simulated time since the start [s]."""
        return self.simulation.time

    def observe(self) -> Observation:
        """True state of the robot, with its output pose."""
        return self.simulation.observe()

    def load(self, name: str) -> tuple[float, float]:
        """Torque of the tendon on the shaft in its positive direction [N m], and its stiffness [N m/rad]."""
        winding = self.windings[name]
        transmission = winding.transmission
        tension = 0.0 if winding.snapped else transmission.force(float(self.readings.efforts[name]))
        tension = max(0.0, tension) if transmission.pulls else tension
        stiffness = winding.stiffness * winding.radius**2 if tension > 0.0 else 0.0
        return -winding.direction * winding.radius * tension, stiffness

    def turn(self, speeds: Mapping[str, float], steps: int) -> None:
        """Turn the spools at speeds [rad/s], by actuator, for a number of steps of the simulation."""
        step = steps * self.simulation.time_step
        rates = {}
        for name, winding in self.windings.items():
            winding.angle += speeds[name] * step
            target = SNAPPED_LENGTH_M if winding.snapped else 0.0
            limit = (SNAPPING_RATE if winding.snapped else MENDING_RATE) * step
            winding.extra += min(max(target - winding.extra, -limit), limit)
            goal = winding.length + winding.extra
            goal = winding.transmission.position(max(goal, 1e-4) if winding.transmission.pulls else goal)
            rates[name] = (
                goal - self.readings.positions[name]
            ) / step  # corrects the drift between spool and simulation
        self.simulation.advance(steps, velocity=rates)
        self.readings = self.simulation.observe_sensors()

    def push(self, node: str, force: ArrayLike) -> None:
        """Apply a constant force to a node [N]; zero removes it."""
        vector = np.asarray(force, dtype=np.float64)
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise BusError(f"force {force!r} on node {node}: give three finite numbers in N.")
        self._apply({**self._forces, node: vector})

    def release(self) -> None:
        """Remove all forces."""
        self._apply({})

    def _apply(self, forces: dict[str, np.ndarray]) -> None:
        self.simulation.apply_forces(forces)  # refuses unknown nodes
        self._forces = forces
