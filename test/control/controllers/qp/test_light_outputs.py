"""Outputs so light that estimates of loads, taken from small deviations of the actuators, could throw them about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_control.controllers.qp.controller import QPController
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.mechanisms.estimation.error_growth import efforts_per_force
from tensegrity_dynamics.mechanisms.estimation.kalman_observer import MechanismObserver
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays


def light_platform(mass):
    """The shipped cable robot with a platform of `mass` kg on soft cables."""
    path = Path(load_robot("cable_robot").path)
    text = path.read_text(encoding="utf-8")
    changes = {
        "mass: 10}": f"mass: {mass}}}", '"10 GPa"': '"300 MPa"', '"30 MPa s"': '"0.9 MPa s"',
        "strain: 0.000594": f"strain: {0.0016 * mass}", "strain: 0.000541": f"strain: {0.0015 * mass}",
        '"15 N m", minimum_tension: 5': f'"{mass} N m", minimum_tension: {0.5 * mass}',
    }  # fmt: skip
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    return parse_robot(text, "light.yaml")


@pytest.mark.parametrize(("mass", "period"), [(0.5, 0.01), (1.0, 0.005)])
def test_a_light_platform_on_cables_is_held_by_estimated_states(mass, period):
    """Without a limit of the load estimates it was lost from rest, after 0.1 to 0.8 s."""
    robot = light_platform(mass)
    loop = DelayedLoop(robot, make_controller("qp", robot, period=period), period, observer=True)
    loop.run(1.0)
    assert max(loop.errors) < 1e-5
    home = np.array(loop.simulation.observe().pose[0])
    accepted = loop.control.set_goal(loop.stamp, home + [0.05, 0.03, 0.04])
    loop.run(accepted.duration + 1.0)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - home - [0.05, 0.03, 0.04]) < 1e-4
    assert loop.least() > 1.0


def test_a_light_platform_takes_up_a_payload_that_nobody_announced():
    robot = light_platform(1.0)
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.01), 0.01, Delays(commands=(0, 1)), observer=True)
    loop.run(0.5)
    loop.simulation.attach("weight", robot.output.body, 0.2, np.zeros(3), np.zeros((3, 3)))
    loop.run(3.0)
    assert loop.errors[-1] < 1e-3 and loop.least() > 1.0


@pytest.mark.parametrize("name", ["manipulator", "cable_robot", "single_strut", "three_rrr"])
def test_loads_are_followed_as_fast_as_their_prior_says_where_errors_do_not_grow(name):
    robot = load_robot(name)
    period = QPController.period_for(robot).seconds
    simulation, observer = Simulation(robot), MechanismObserver(robot)
    for _ in range(3):
        seen = simulation.observe()
        observer.update(simulation.time, seen.positions, seen.efforts)
        simulation.advance(duration=period)
    assert observer.load_bandwidth == np.inf


def test_efforts_per_force_are_those_of_an_equilibrium_under_load():
    robot = load_robot("cable_robot")
    observer = MechanismObserver(robot)
    model, unknown = observer.reduced, observer.unknown
    simulation = Simulation(robot)
    rest = simulation.observe()
    q, effort = simulation.state.q, np.array(list(rest.efforts.values()))
    values, given = np.zeros(unknown.count), np.zeros((len(robot.mechanism.bodies), 6))
    count = model.index.size
    matrix, _, _ = model.linearised(q, np.zeros(count), unknown.given(effort, values))
    forces = unknown.columns(model, q, effort, values, rest.pose, given)[:, : unknown.forces]
    per_force = efforts_per_force(model.mass(q), matrix[count:, :count], forces, model.basis(q)[model.drives])
    force = np.array([0.3, -0.2, 0.4])
    for _ in range(40):
        simulation.apply_forces({robot.output.body: force})
        simulation.advance(duration=0.1, position=rest.positions)
    change = np.array(list(simulation.observe().efforts.values())) - effort
    np.testing.assert_allclose(per_force[:, :3] @ force, change, atol=0.01 * np.max(np.abs(change)))
