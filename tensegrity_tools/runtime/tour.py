"""Demonstration tour of a robot: goals relative to its pose at rest; each is sent, awaited and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensegrity_control.tension_floor import TensionFloor
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, quaternion_from_matrix
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot, TourStop

from .tour_time import ByTheClock, InLockstep

POSITION_TOLERANCE = 1e-3  # m
ORIENTATION_TOLERANCE = np.radians(0.2)
SETTLING = 10.0  # s of the robot's time after the predicted arrival
SECOND_TRY = "the goal was sent a second time"
LATEST = 10.0  # longest duration of a motion, in predicted durations


@dataclass(frozen=True)
class Arrival:
    """Result of one stop: errors at the end [m, rad], and duration in the robot's time [s].

    `fault` states a fault during the motion: a tension below its floor, or a missing command.
    """

    name: str
    reached: bool
    position_error: float
    orientation_error: float
    duration: float
    reason: str = ""
    fault: str = ""
    unreported: tuple[str, ...] = ()
    """Tendons with a floor whose tension was not reported during the motion, so that it could not be checked."""

    @property
    def success(self) -> bool:
        """Whether the stop was reached without a fault."""
        return self.reached and not self.fault


def goal_of(stop: TourStop, home: Pose) -> Pose:
    """Absolute pose of a stop."""
    rotation = matrix_from_vector(stop.turn) @ matrix_from_quaternion(home[1])
    return np.asarray(home[0]) + np.asarray(stop.move), quaternion_from_matrix(rotation)


def errors(robot: Robot, goal: Pose, pose: Pose) -> tuple[float, float]:
    """Distance [m] and angle [rad] to a goal along the controlled axes."""
    return robot.output.distance(goal, pose)


def fault_of(robot: Robot, lowest: Mapping[str, tuple[float, float]], missed: str) -> str:
    """Fault during a motion; "" if there was none.

    Args:
        lowest: smallest tension [N] and its time [s] by tendon, see `Watcher`. missed: report of a missing command.
    """
    return TensionFloor(robot).worst(lowest) or missed


def run_tour(
    robot: Robot,
    watcher: Any,
    show: Callable[[str, Pose | None], None],
    alive: Callable[[], None],
    passing: ByTheClock | InLockstep | None = None,
) -> list[Arrival]:
    """Send every stop as a goal and wait for its arrival.

    A stop on whose way commands were missing is sent once more: its motion has ended where the robot was held. The
    result keeps the fault, so that the tour is no success.

    Args:
        watcher: a `robot_client.Watcher`. show: function that is called often with name and goal of the stop.
        alive: function that raises if a process has ended. passing: progress of time; None: real time.
    """
    passing = passing or ByTheClock(watcher)
    passing.settle()
    home, arrivals = watcher.pose, []
    for stop in robot.tour:
        goal = goal_of(stop, home)
        arrival = _go(robot, stop, goal, watcher, show, alive, passing)
        if not arrival.reached and arrival.fault and watcher.missed:  # such a motion ends on the way
            again = _go(robot, stop, goal, watcher, show, alive, passing)
            faults = dict.fromkeys(filter(None, (arrival.fault, again.fault)))
            arrival = replace(
                again, duration=arrival.duration + again.duration, fault="; ".join((*faults, SECOND_TRY)),
                unreported=tuple(dict.fromkeys((*arrival.unreported, *again.unreported))),
            )  # fmt: skip
        arrivals.append(arrival)
    passing.end()
    return arrivals


def _go(
    robot: Robot,
    stop: TourStop,
    goal: Pose,
    watcher: Any,
    show: Callable[[str, Pose | None], None],
    alive: Callable[[], None],
    passing: ByTheClock | InLockstep,
) -> Arrival:
    """Send one stop as a goal and wait for its arrival."""
    start = watcher.time
    watcher.forget()
    answer = watcher.send_goal(*goal, duration=stop.duration or 0.0)
    if not answer.accepted:
        return Arrival(stop.name, False, *errors(robot, goal, watcher.pose), 0.0, answer.reason)
    arrival = answer.predicted_arrival.sec + 1e-9 * answer.predicted_arrival.nanosec
    last, latest = watcher.time, LATEST * arrival - (LATEST - 1.0) * start
    passing.forget()
    while True:
        passing.go_on(arrival, alive)
        show(stop.name, goal)
        if passing.moving and watcher.time < latest:
            arrival = max(arrival, watcher.time)  # a motion waits for the computer
        if watcher.time > last:
            last, latest = watcher.time, LATEST * arrival - (LATEST - 1.0) * start
        position, orientation = errors(robot, goal, watcher.pose)
        allowed = stop.tolerance or POSITION_TOLERANCE
        reached = position < allowed and orientation < ORIENTATION_TOLERANCE
        if watcher.time >= arrival and (reached or watcher.time > arrival + SETTLING):
            reason = "" if reached else f"not within {1e3 * allowed:g} mm and 0.2 deg"
            fault = fault_of(robot, watcher.lowest, watcher.missed)
            taken, unreported = watcher.time - start, tuple(TensionFloor(robot).unreported(watcher.lowest))
            return Arrival(stop.name, reached, position, orientation, taken, reason, fault, unreported)
