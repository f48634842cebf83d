"""Torque controllers whose actuators close impedances: late commands, frozen computers, gains from the model."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.motion_planning.impedance_gains import (
    CABLE_SHARE,
    closed_loop,
    driven_rows,
    impedance_gains,
)
from tensegrity_control.trajectories.time_scaling import PathClock
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.robots.load_robot import parse_robot

PERIOD = 0.01
CASES = [
    ("manipulator", "task", (0.0, 0.01, -0.03)),
    ("single_strut", "near_rigid", (0.06, 0.04, 0.0)),
    ("biglide", "computed_torque", (0.05, 0.03, 0.0)),
]


class Machine:
    """A simulated mechanism whose controller is late by some periods and may freeze."""

    def __init__(self, robot: str, controller: str, delay: int):
        self.robot, self.delay = load_robot(robot), delay
        self.simulation = Simulation(self.robot, 1e-3, "implicit")
        self.control = make_controller(controller, self.robot, period=PERIOD)
        self.sent: list[tuple[float, object]] = []
        self.least, self.worst, self.frozen = np.inf, 0.0, False
        self.control.reset(0.0, self.state())
        self.home = np.array(self.simulation.observe().pose[0])
        self.tick = 0

    @property
    def now(self) -> float:
        return self.tick * PERIOD

    def state(self) -> RobotState:
        seen, state = self.simulation.observe(), self.simulation.state
        return RobotState(np.array(list(seen.positions.values())), pose=seen.pose, q=state.q, v=state.v)

    @property
    def position(self) -> np.ndarray:
        return np.array(self.simulation.observe().pose[0])[self.robot.output.rows]

    def run(self, until: float) -> None:
        while self.now < until - 1e-9:
            if not self.frozen:
                self.sent.append((self.now, self.control.command(self.now, self.state())))
                stamp, command = self.sent[max(0, len(self.sent) - 1 - self.delay)]
                self.simulation.command(command.mode, command.set_points(), age=self.now - stamp, period=PERIOD)
            self.simulation.advance(duration=PERIOD)
            self.tick += 1
            self.least = min([self.least, *self.simulation.observe().tensions.values()])
            if not self.frozen:
                desired = self.control.reference(self.now).pose[0][self.robot.output.rows]
                self.worst = max(self.worst, float(np.linalg.norm(self.position - desired)))


@pytest.fixture(params=CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES], scope="module")
def case(request):
    return request.param


@pytest.mark.sampled(1)
def test_a_goal_is_reached_with_commands_three_periods_late_and_floors_are_kept(case):
    robot, controller, move = case
    machine = Machine(robot, controller, 3)
    machine.run(0.2)
    assert machine.worst < 1e-6  # it holds without moving
    accepted = machine.control.set_goal(machine.now, machine.home + move, duration=0.6)
    machine.run(accepted.arrival + 0.5)
    assert machine.worst < 2e-3
    goal = (machine.home + move)[machine.robot.output.rows]
    np.testing.assert_allclose(machine.position, goal, atol=2e-4)
    floors = [each.minimum_tension for each in machine.robot.actuators]
    assert machine.least > max(floors)


@pytest.mark.sampled(1)
def test_a_frozen_computer_loses_neither_the_robot_nor_its_goal(case):
    robot, controller, move = case
    machine = Machine(robot, controller, 0)
    accepted = machine.control.set_goal(0.0, machine.home + move, duration=0.6)
    machine.run(0.3)
    machine.frozen = True
    machine.run(0.8)
    machine.frozen = False
    machine.run(0.82)  # it goes on from where the actuators are, with no jump to where the plan would be by now
    assert machine.worst < 6e-3
    assert machine.control.gaps == 1
    assert machine.control.status(machine.now).arrival > accepted.arrival + 0.2
    machine.run(machine.control.status(machine.now).arrival + 0.5)
    goal = (machine.home + move)[machine.robot.output.rows]
    np.testing.assert_allclose(machine.position, goal, atol=1e-3)
    floors = [each.minimum_tension for each in machine.robot.actuators]
    assert machine.least > max(floors)


@cache
def model_of(robot: str) -> tuple[ReducedModel, np.ndarray, np.ndarray]:
    loaded = load_robot(robot)
    simulation = Simulation(loaded)
    effort = np.array(list(simulation.observe().efforts.values()))
    return ReducedModel(loaded), simulation.state.q, effort


@pytest.mark.parametrize("robot", ["manipulator", "single_strut", "biglide"])
@pytest.mark.parametrize("period", [5e-4, 1e-3, 2e-3])
def test_gains_hold_the_shape_alone_at_every_delay_up_to_the_margin(robot, period):
    model, q, effort = model_of(robot)
    gains = impedance_gains(model, q, effort, period=period)
    rows, _ = driven_rows(model, q)
    dynamics, push, _ = model.linearised(q, np.zeros(model.index.size), effort)
    assert np.max(np.linalg.eigvals(closed_loop(dynamics, push, rows, gains.stiffness, gains.damping)).real) < 0.0
    # the same loop stepped in time, late by the margin: a small push dies out
    step = np.linalg.inv(np.eye(len(dynamics)) - 0.05 * period * dynamics)
    state, late = 1e-3 * np.ones(len(dynamics)), [np.zeros(len(gains.stiffness))] * gains.delay
    start = np.linalg.norm(rows @ state[: model.index.size])
    for _ in range(round(1.0 / period)):
        seen, rate = rows @ state[: model.index.size], rows @ state[model.index.size :]
        late.append(-gains.stiffness * seen - gains.damping * rate)
        torque = late.pop(0)
        for _ in range(20):
            state = step @ (state + 0.05 * period * (push @ torque))
    assert np.linalg.norm(rows @ state[: model.index.size]) < 2.0 * start


def test_stiffness_follows_the_cables():
    model, q, effort = model_of("single_strut")
    cable = model.mechanism.cables[0]
    gains = impedance_gains(model, q, effort)
    rest = 0.07 * q[model.mechanism.positions_of(cable.joint).start]
    assert gains.stiffness[0] == pytest.approx(CABLE_SHARE * 0.07**2 * cable.area * cable.young / rest)


def test_loops_too_slow_for_the_robot_are_refused():
    model, q, effort = model_of("manipulator")
    with pytest.raises(InfeasibleControlError, match="shorten"):
        impedance_gains(model, q, effort, period=0.2)


ARM = """
kind: mechanism
name: arm
gravity: [0, 0, -9.81]
density: 1500
bodies:
  cross: {}
  mast: {shapes: [{kind: cylinder, size: [0.04, 2.0], frame: {at: [0, 0, 1.0]}}]}
  link: {shapes: [{kind: cylinder, size: [0.03, 1.2], frame: {at: [0, 0, 0.6]}}]}
joints:
  - {name: a, kind: revolute, parent: world, body: cross, axis: [1, 0, 0]}
  - {name: b, kind: revolute, parent: cross, body: mast, axis: [0, 1, 0]}
  - {name: c, kind: revolute, parent: mast, body: link, frame: {at: [0, 0, 2.0]}, axis: [0, 1, 0]}
cables: [CABLES]
actuators: [ACTUATORS]
outputs: [{name: tip, body: link, frame: {at: [0, 0, 1.2]}, controlled: [x, y]}]
"""


@cache
def arm_with_slack_cables():
    """By its file all of its cables are tight; where it comes to rest two are not."""
    cables, actuators = [], []
    for k in range(5):
        x, y = np.cos(0.4 * np.pi * k), np.sin(0.4 * np.pi * k)
        body, height = ("mast", 2.0) if k % 2 else ("link", 1.2)
        cables.append(
            f"{{name: s{k}, body: world, at: [{1.5 * x}, {1.5 * y}, 0], block_axis: [0, 0, 1], pulley_axis: [{-y}, "
            f"{x}, 0], pulley_radius: 0.1, anchor: {{body: {body}, at: [{0.04 * x}, {0.04 * y}, {height}]}}, "
            "young: 1e9, damping: 5e6, cable_radius: 0.003, length: 8, strain: 0.008, "
            "block: [{kind: cube, size: [0.1]}], pulley: [{kind: cylinder, size: [0.1, 0.02]}]}"
        )
        actuators.append(f"{{drives: s{k}, position: [-12, 12], rate: 20, effort: 150, minimum_tension: 60}}")
    robot = parse_robot(ARM.replace("CABLES", ", ".join(cables)).replace("ACTUATORS", ", ".join(actuators)))
    return robot, RobotState.of(Simulation(robot))


def test_slack_cables_at_rest_are_said_or_refused():
    robot, state = arm_with_slack_cables()
    assert min(Simulation(robot).observe().tensions.values()) == 0.0
    with pytest.raises(TensegrityError, match="slack at rest: s0, s2"):
        make_controller("near_rigid", robot, period=PERIOD).reset(0.0, state)
    control = make_controller("task", robot, period=PERIOD)
    control.reset(0.0, state)
    goal = np.array(control.reference(0.0).pose[0]) + [0.02, 0.0, 0.0]
    assert "tension floor broken: s0 has 0 N, its floor is 60 N" in control.set_goal(0.0, goal).note


def test_an_unknown_actuation_is_refused():
    with pytest.raises(TensegrityError, match="actuation"):
        make_controller("task", load_robot("manipulator"), actuation="impedence")


@given(
    duration=st.floats(0.1, 10.0), share=st.floats(0.01, 0.95), pace=st.floats(0.0, 0.99), longest=st.floats(0.01, 1.0)
)
def test_a_resumed_motion_keeps_its_place_and_pace_and_still_comes_to_its_end(duration, share, pace, longest):
    clock = PathClock(1.0, duration)
    now = 1.0 + share * duration
    before = 0.5 * share * duration
    clock.resume(now, before, pace, longest)
    here = clock.at(now)
    assert here.time == pytest.approx(before) and here.pace == pytest.approx(pace, abs=1e-9)
    times = np.linspace(now, clock.end, 200)
    plan = np.array([clock.at(float(time)).time for time in times])
    assert np.all(np.diff(plan) >= -1e-12) and np.all(np.diff(plan) <= np.diff(times) + 1e-9)
    assert clock.at(clock.end + 1.0).time == pytest.approx(duration)
    assert clock.at(clock.end - 1e-9).time == pytest.approx(duration, abs=1e-6)
