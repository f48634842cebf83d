"""A first motion that no robot follows, so that later ones find all their functions compiled and loaded.

A compiled function is loaded when it is first called, which may hold up all threads of a process for some tenths of a
second. If a node did this while it plans its first motion, no commands would come in the meantime.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tensegrity_dynamics import Simulation
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from .controller import RobotState

STEP = 1e-4
"""m, displacement of the goals."""
PERIODS, LATE = 12, 4
"""Number of commands, and the first of them that answers a late state."""

_rehearsed: set[tuple[str, str]] = set()  # controllers and robots in this process


def rehearse_once(control: Callable[[], Any], name: str, robot: Robot) -> None:
    """`rehearse` with a controller that `control` makes, unless this process has done it; refusals are passed over.

    Args:
        control: makes a controller that does not control a robot.
        name: of the controller.
        robot: its robot.
    """
    if (name, robot.name) not in _rehearsed:
        _rehearsed.add((name, robot.name))
        with contextlib.suppress(TensegrityError):  # reported where the controller takes over
            rehearse(control(), robot)


def rehearse(control: Any, robot: Robot, estimator: Any = None, *, followed: bool = False) -> None:
    """From rest towards a goal and to a stop.

    Args:
        control: a controller that does not control a robot.
        robot: its robot.
        estimator: provides the states; None: the simulation.
        followed: whether a simulation follows the commands; otherwise the states stay at rest.

    Raises:
        TensegrityError: the controller does not support the robot.
    """
    period = getattr(control, "period", None) or control.default_period
    simulation = Simulation(robot)
    for k in range(PERIODS):
        time = simulation.time if followed else k * period
        seen = simulation.observe()
        estimate = estimator and estimator.update(time, seen.positions, seen.efforts)
        state = replace(RobotState.of(simulation, estimate, seen), age=period if k >= LATE else 0.0)
        if k == 0:
            control.reset(0.0, state)
            for axis in np.eye(3) if seen.pose is not None else ():
                with contextlib.suppress(TensegrityError):  # out of reach, or an axis that it does not control
                    control.set_goal(0.0, seen.pose[0] + STEP * axis)
        command = control.command(time, state)
        if followed:
            simulation.command(command.mode, command.set_points(), period=period)
            simulation.advance(duration=period if k != LATE else 3.0 * period)
        if k == PERIODS // 2:
            control.stop(time)
