"""The simulated robot behind the servos: spools turn, tendons pull back.

    rest length = rest length at the start - direction · radius · turned angle
    torque on the shaft = -direction · radius · tension

The simulation's own guards are lifted, because the real thing has none: only a servo's torque limits what it winds in.
A snapped tendon gets a rest length by which it is slack wherever the robot goes, while its spool turns on by itself.
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

SLACK = 0.3
"""m by which a snapped tendon is longer than its spool says."""
SNAPPING, KNOTTING = 20.0, 0.2
"""m/s with which a tendon goes slack when it snaps, and is wound to its length again when it is mended."""


@dataclass
class Winding:
    """One spool: radius [m], direction (+1: positive rotation winds in), where it stands, what became of its tendon.

    Attributes:
        start: rest length [m] at angle zero. angle: rad turned since. extra: m by which the tendon is longer than that.
        stiffness: N/m. snapped: the tendon carries nothing any more.
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
        """Rest length [m] by the turned angle alone."""
        return self.start - self.direction * self.radius * self.angle


class SpooledRobot:
    """A robot whose spools turn as they are told.

    Args:
        robot: of pin-jointed bars and tendons, with servos. start: see `Simulation`.

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
        # where the output stands is worked out when somebody asks, not in every step
        self.simulation = Simulation(replace(robot, actuators=free, outputs=()), start=start)
        self._output = robot.outputs[0] if robot.outputs else None
        self.simulation.advance(0, velocity={each.name: 0.0 for each in free})  # compiles before anybody waits for it
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
        """s since the start."""
        return float(self.observation.time)

    def observe(self) -> Observation:
        """Where the robot is, with its output."""
        if self._output is None:
            return self.observation
        state = self.simulation.state
        twist = self._output.jacobian(state.nodes) @ state.velocities.ravel()
        return replace(self.observation, pose=self._output.pose(state.nodes), twist=twist)

    def load(self, name: str) -> tuple[float, float]:
        """Torque [N m] of the tendon on the shaft, in its positive direction, and how it gives way [N m/rad]."""
        winding = self.windings[name]
        tension = 0.0 if winding.snapped else max(0.0, float(self.observation.efforts[name]))
        stiffness = winding.stiffness * winding.radius**2 if tension > 0.0 else 0.0
        return -winding.direction * winding.radius * tension, stiffness

    def turn(self, speeds: Mapping[str, float], steps: int) -> None:
        """Turn the spools at speeds [rad/s] for so many steps of the simulation."""
        step = steps * self.simulation.time_step
        rates = {}
        for name, winding in self.windings.items():
            winding.angle += speeds[name] * step
            wanted = SLACK if winding.snapped else 0.0
            limit = (SNAPPING if winding.snapped else KNOTTING) * step
            winding.extra += min(max(wanted - winding.extra, -limit), limit)
            goal = max(winding.length + winding.extra, 1e-4)
            rates[name] = (goal - self.observation.positions[name]) / step  # so that nothing drifts apart
        self.simulation.advance(steps, velocity=rates)
        self.observation = self.simulation.observe()

    def push(self, node: str, force: ArrayLike) -> None:
        """A steady force [N] on a node from now on; zero takes it away."""
        vector = np.asarray(force, dtype=np.float64)
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise BusError(f"force {force!r} on node {node}: give three finite numbers in N.")
        self._apply({**self._forces, node: vector})

    def release(self) -> None:
        """Nobody pushes any more."""
        self._apply({})

    def _apply(self, forces: dict[str, np.ndarray]) -> None:
        self.simulation.apply_forces(forces)  # refuses unknown nodes
        self._forces = forces
