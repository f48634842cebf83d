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
from tensegrity_dynamics.errors import BusError, unknown_name
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.simulation import Observation

SNAPPED_LENGTH_M = 0.3
"""Additional rest length of a snapped tendon [m]."""
SNAPPING_RATE, MENDING_RATE = 20.0, 0.2
"""Rates of the additional rest length when a tendon snaps and when it is mended [m/s]."""


@dataclass
class Winding:
    """State of one spool and its tendon.

    Attributes:
        radius: m. direction: +1 where positive rotation winds in, else -1.
        start: rest length at angle zero [m]. angle: rad. extra: additional rest length of a snapped tendon [m].
        stiffness: N/m. snapped: the tendon carries no tension.
    """

    name: str
    radius: float
    direction: int
    start: float
    stiffness: float
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
        robot: of pin-jointed bars and tendons, with servos. start: initial configuration, see `Simulation`.

    Raises:
        BusError: a mechanism, or no servos, or a servo whose actuator or radius is missing.
    """

    def __init__(self, robot: Robot, start: Any = None) -> None:
        if any(robot.model.tendon_stiffness(each.drives) is None for each in robot.actuators):
            raise BusError(
                f"{robot.name} is {robot.model.noun}; the emulator winds tendons of pin-jointed "
                "structures only. Choose a robot of kind structure."
            )
        rows = robot.servos.get("servos") or ()
        if not rows:
            raise BusError(f"{robot.name} has no servos to emulate; add a servos block to its file.")
        free = tuple(
            replace(each, position=(1e-4, 1e3), rate=1e3, effort=1e9, minimum_tension=0.0) for each in robot.actuators
        )
        # the output pose is computed on demand, not in every step
        self.simulation = Simulation(replace(robot, actuators=free, outputs=()), start=start)
        self._output = robot.outputs[0] if robot.outputs else None
        self.simulation.advance(
            0, velocity={each.name: 0.0 for each in free}
        )  # compile before the first bus cycle waits for it
        self.observation: Observation = self.simulation.observe()
        names = [each.name for each in robot.actuators]
        self.windings: dict[str, Winding] = {}
        for row in rows:
            name = row["actuator"]
            if name not in names:
                raise BusError(f"servo {row['id']}: " + unknown_name("actuator", name, names))
            if row.get("spool_radius") is None:
                raise BusError(f"servo {row['id']} ({name}) has no spool radius; give it in the robot file.")
            self.windings[name] = Winding(
                name=name,
                radius=float(row["spool_radius"]),
                direction=int(row.get("direction") or 1),
                start=float(self.observation.positions[name]),
                stiffness=float(robot.model.tendon_stiffness(robot.actuator(name).drives) or 0.0),
            )
        self._forces: dict[str, np.ndarray] = {}

    @property
    def time(self) -> float:
        """Simulated time since the start [s]."""
        return float(self.observation.time)

    def observe(self) -> Observation:
        """True state of the robot, with its output pose."""
        if self._output is None:
            return self.observation
        state = self.simulation.state
        twist = self._output.jacobian(state.nodes) @ state.velocities.ravel()
        return replace(self.observation, pose=self._output.pose(state.nodes), twist=twist)

    def load(self, name: str) -> tuple[float, float]:
        """Torque of the tendon on the shaft in its positive direction [N m], and its stiffness [N m/rad]."""
        winding = self.windings[name]
        tension = 0.0 if winding.snapped else max(0.0, float(self.observation.efforts[name]))
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
            goal = max(winding.length + winding.extra, 1e-4)
            rates[name] = (
                goal - self.observation.positions[name]
            ) / step  # corrects the drift between spool and simulation
        self.simulation.advance(steps, velocity=rates)
        self.observation = self.simulation.observe()

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
