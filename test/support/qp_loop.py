"""A robot under the controller `qp` in closed loop through the libraries, and a robot of the tests' own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.controllers.qp.controller import QPController
from tensegrity_dynamics import Robot, Simulation, load_robot
from tensegrity_dynamics.robots.load_robot import parse_robot

BALL_MAST = """
kind: mechanism
name: ball_mast
gravity: [0, 0, -9.81]
density: 1500
bodies:
  mast: {shapes: [{kind: cylinder, size: [0.015, 0.8], frame: {at: [0, 0, 0.4]}}]}
joints:
  - {name: ball, kind: spherical, parent: world, body: mast}
repeat:
  count: 4
  about: z
  cables:
    - name: stay$
      body: world
      at: [0.6, 0, 0]
      block_axis: [0, 0, 1]
      pulley_axis: [0, 1, 0]
      pulley_radius: 0.04
      anchor: {body: mast, at: [0, 0, 0.8]}
      young: "1 GPa"
      damping: "5 MPa s"
      cable_radius: "1 mm"
      length: 2.5
      strain: 0.02
      block: [{kind: cube, size: [0.05]}]
      pulley: [{kind: cylinder, size: [0.04, 0.02]}]
  actuators:
    - {drives: stay$, position: [-20, 20], rate: "20 rad/s", effort: "8 N m", minimum_tension: 10}
outputs:
  - {name: tip, body: mast, frame: {at: [0, 0, 0.8]}, controlled: [x, y]}
"""
"""A mast on a ball joint with four stays: two self-stresses, and a spin about its own axis that nothing drives."""


@cache
def robot_named(name: str) -> Robot:
    """A shipped robot, or "ball_mast"."""
    return parse_robot(BALL_MAST, "ball_mast.yaml") if name == "ball_mast" else load_robot(name)


@dataclass
class Loop:
    """Simulation and controller; `run` steps both and returns outputs (k, 3) and tensions (k, c) after each period."""

    simulation: Simulation
    control: QPController
    delay: int = 0
    time: float = 0.0

    def __post_init__(self) -> None:
        self.commands: list[Any] = []

    def look(self) -> RobotState:
        state, seen = self.simulation.state, self.simulation.observe()
        positions = np.array(list(seen.positions.values()))
        return RobotState(positions=positions, pose=seen.pose, q=state.q, v=state.v)

    def run(self, duration: float, each: Callable[[float], None] | None = None) -> tuple[np.ndarray, np.ndarray]:
        period, outputs, tensions = self.control.period, [], []
        for _ in range(round(duration / period)):
            if each is not None:
                each(self.time)
            self.commands.append(self.control.command(self.time, self.look()))
            command = self.commands[max(0, len(self.commands) - 1 - self.delay)]
            timing = {"age": min(self.delay, len(self.commands) - 1) * period, "period": period}
            self.simulation.command(
                command.mode, command.set_points(), **(timing if command.position is not None else {})
            )
            self.simulation.advance(duration=period)
            self.time += period
            seen = self.simulation.observe()
            outputs.append(seen.pose[0])
            tensions.append(list(seen.tensions.values()))
        return np.array(outputs), np.array(tensions)


def loop(
    name: str, *, period: float = 0.005, plant: Robot | None = None, delay: int = 0, **parameters: Any
) -> Loop:  # fmt: skip
    """At rest at the robot's own shape, reset."""
    robot = robot_named(name)
    natural = Simulation(plant or robot)
    steps = max(1, int(np.ceil(period / min(natural.time_step, 1e-3) - 1e-9)))
    control = make_controller("qp", robot, period=period, **parameters)
    made = Loop(Simulation(plant or robot, period / steps), control, delay)  # type: ignore[arg-type]
    control.reset(0.0, made.look())  # type: ignore[arg-type]
    return made
