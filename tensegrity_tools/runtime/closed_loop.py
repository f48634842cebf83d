"""One trajectory of a mechanism with one of its controllers, with the libraries; `lockstep_run` uses the nodes.

Both have the same sequence: the simulation starts at rest, the trajectory starts at the same time, and in every period
the controller computes a command from the state, which is held until the next period.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensegrity_control import make_controller
from tensegrity_control.controller import Command, RobotState
from tensegrity_control.external_loads import ExternalLoads
from tensegrity_dynamics import Robot, Simulation
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.numerics.types import Array

Waypoint = tuple[float, Any, Any]


@dataclass(frozen=True, eq=False)
class TrajectoryRun:
    """Result of a run.

    Attributes:
        times: (k,) times from the start of the trajectory [s]. q, v: (k, nq) and (k, nv), true state.
        poses: (k, 3) positions of the output [m]. seen_q, seen_v: state received by the controller.
        commands: (k - 1, a), each held until the next time. tensions: (k, c) [N].
        wall: wall time of the run without planning [s]. planning: wall time of planning [s].
    """

    times: Array
    q: Array
    v: Array
    poses: Array
    seen_q: Array
    seen_v: Array
    commands: Array
    tensions: Array
    wall: float
    planning: float

    def after(self, start: float) -> TrajectoryRun:
        """Part of the run from a time [s] on, with times relative to it."""
        first = int(np.searchsorted(self.times, start - 1e-9))
        names = ("q", "v", "poses", "seen_q", "seen_v", "commands", "tensions")
        cut = {name: getattr(self, name)[first:] for name in names}
        return replace(self, times=self.times[first:] - start, **cut)


def planned_control(
    robot: Robot,
    controller: str,
    waypoints: Sequence[Waypoint],
    state: RobotState | None,
    period: float,
    interpolation: str,
    parameters: Mapping[str, Any] | None = None,
) -> Any:
    """Controller that starts the trajectory at time 0 from a state (None: the state at rest of the robot file)."""
    control = make_controller(controller, robot, period=period, **(parameters or {}))
    if state is None:
        state = RobotState.of(Simulation(robot))
    control.reset(0.0, state)  # type: ignore[arg-type]
    control.follow(0.0, waypoints, interpolation)  # type: ignore[attr-defined]
    return control


def through_libraries(
    robot: Robot,
    controller: str,
    waypoints: Sequence[Waypoint],
    *,
    period: float,
    time_step: float | None = None,
    interpolation: str = "cubic",
    hold: float = 0.0,
    plant: Robot | None = None,
    observer: bool = False,
    delay: int = 0,
    parameters: Mapping[str, Any] | None = None,
    control: Any = None,
) -> TrajectoryRun:
    """Run one trajectory.

    Args:
        robot: model of controller and observer. plant: simulated robot, if it differs from `robot`.
        controller: name of the controller. waypoints: (time from the start [s], position, quaternion).
        period: control period [s]. time_step: longest step of the simulation [s]; None: that of the robot.
        interpolation: see `GoalController.follow`. hold: duration of holding after the end [s].
        observer: whether the state is estimated by the observer. delay: delay of commands [periods].
        parameters: further parameters of the controller.
        control: controller with a planned trajectory, from `planned_control`; None: a new one.

    Raises:
        TensegrityError: the trajectory is refused, or the simulation or the controller fails.
    """
    model = plant or robot
    natural = Simulation(model, time_step)
    steps = max(1, int(np.ceil(period / natural.time_step - 1e-9)))
    simulation = Simulation(model, period / steps)
    estimator = make_estimator(robot, observer=True) if observer else None
    loads = ExternalLoads(robot)
    rows: list[tuple[Array, ...]] = []
    commands: list[Command] = []

    def look() -> RobotState:
        state, seen = simulation.state, simulation.observe()
        estimate = state if estimator is None else estimator.update(state.time, seen.positions, seen.efforts)
        q, v = estimate.configuration, estimate.velocity
        if (found := getattr(estimate, "unknown", None)) is not None and found.body:
            loads.take_estimate(found.body, found.wrench[:3], found.wrench[3:], state.time, state.time)
        rows.append((state.q, state.v, np.array(seen.pose[0]), q, v, np.array(list(seen.tensions.values()))))
        return RobotState.of(simulation, estimate, seen)

    state = look()
    began = time.perf_counter()
    if control is None:
        control = planned_control(robot, controller, waypoints, state, period, interpolation, parameters)
    planned = time.perf_counter()
    count = round((waypoints[-1][0] + hold) / period)
    for k in range(count):
        loads.update(control, k * period)
        command = control.command(k * period, state)
        commands.append(command)
        late = commands[max(0, k - delay)]
        simulation.command(late.mode, late.set_points(), age=min(k, delay) * period, period=period)
        simulation.advance(steps)
        state = look()
    wall = time.perf_counter() - planned
    q, v, poses, seen_q, seen_v, tensions = (np.array(each) for each in zip(*rows, strict=True))
    return TrajectoryRun(
        np.linspace(0.0, period * count, count + 1),
        q,
        v,
        poses,
        seen_q,
        seen_v,
        np.array([each.values for each in commands]),
        tensions,
        wall,
        planned - began,
    )
