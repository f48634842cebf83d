"""Payloads that are announced while the robot runs: `qp` and the observer reckon with them."""

import numpy as np
import pytest

from tensegrity_control import RobotState, make_controller
from tensegrity_control.external_loads import ExternalLoads
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import CommandRefused
from tensegrity_dynamics.mechanisms.estimation.kalman_observer import MechanismObserver
from tensegrity_dynamics.mechanisms.loads import Payload

PERIOD = 0.005


def put_on(announced):
    """Largest distance [m] of a strut's output from where it is held, after 5 % of its mass were hung on it."""
    robot = load_robot("single_strut")
    simulation, control = Simulation(robot, 1e-3), make_controller("qp", robot, period=PERIOD)
    mass, off = 0.05 * sum(body.mass for body in robot.mechanism.bodies), []
    control.reset(0.0, RobotState.of(simulation))
    home = RobotState.of(simulation).pose[0]
    for k in range(60):
        if k == 20:
            simulation.attach("weight", robot.output.body, mass, [0.02, 0.0, 0.0])
            if announced:
                control.carry([Payload("weight", robot.output.body, mass, np.array([0.02, 0.0, 0.0]))])
        command = control.command(k * PERIOD, RobotState.of(simulation))
        simulation.command(command.mode, command.set_points(), period=PERIOD)
        simulation.advance(duration=PERIOD)
        off.append(float(np.linalg.norm(RobotState.of(simulation).pose[0] - home)))
    return max(off)


def test_payload_that_is_announced_moves_the_output_a_tenth_as_far_as_one_that_is_not():
    assert put_on(True) < 0.1 * put_on(False)


def test_what_the_observer_is_announced_is_no_part_of_the_unknown_load():
    robot = load_robot("single_strut")
    simulation, observer = Simulation(robot, 1e-3), MechanismObserver(robot)
    mass = 0.2 * sum(body.mass for body in robot.mechanism.bodies)
    simulation.attach("weight", robot.output.body, mass, [0.0, 0.0, 0.0])
    observer.attach("weight", robot.output.body, mass)
    assert np.allclose(observer.reduced.flat.mass, simulation.simulator.flat.mass)
    assert np.allclose(observer.simulated.flat.mass, simulation.simulator.flat.mass)
    observer.reset()
    assert np.allclose(observer.reduced.flat.mass, robot.mechanism.flat.mass)


def test_controller_that_takes_over_learns_what_the_robot_carries():
    robot = load_robot("single_strut")
    loads, body = ExternalLoads(robot), robot.output.body
    loads.take_payload(body, 0.3, [0, 0, 0], np.zeros((3, 3)), 1.0, 1.0)
    first, second = (make_controller("qp", robot, period=PERIOD) for _ in range(2))
    loads.update(first, 1.0)
    loads.update(second, 1.1)
    row = list(robot.mechanism.body_index).index(body)
    for each in (first, second):
        carried = each.equations.flat.mass.sum() - robot.mechanism.flat.mass.sum()
        assert carried == pytest.approx(0.3), row
    loads.forget()
    loads.update(second, 0.0)
    assert second.equations.flat.mass.sum() == pytest.approx(robot.mechanism.flat.mass.sum())


def test_payload_of_a_body_that_is_not_there_is_refused_by_name():
    with pytest.raises(CommandRefused, match="nobody"):
        ExternalLoads(load_robot("single_strut")).take_payload("nobody", 1.0, [0, 0, 0], np.zeros((3, 3)), 0.0, 0.0)
