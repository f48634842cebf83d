"""Wrenches on bodies of a mechanism in simulation: against the equations of motion, the wrench Jacobian and work."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, TensegrityError, load_robot
from tensegrity_dynamics.mechanisms import equations, forward_dynamics, wrench_jacobian

ROBOT = load_robot("manipulator")  # its output is the origin of a body, and free in all directions
BODIES = ROBOT.model.body_names
FORCE, MOMENT = np.array([3.0, -2.0, 5.0]), np.array([0.2, 0.1, -0.15])
WRENCH = np.concatenate((FORCE, MOMENT))
OUTPUT = ROBOT.output.body
REST = Simulation(ROBOT)


def balanced(**options):
    """The robot at rest with the efforts that hold it, which stay as they are."""
    simulation = Simulation(ROBOT, start=REST.state.q, **options)
    simulation.command("effort", REST.observe().efforts)
    return simulation


@pytest.mark.parametrize("body", [OUTPUT, BODIES[0], BODIES[-1]])
def test_a_wrench_accelerates_as_its_efforts_by_the_wrench_jacobian_do(body):
    simulation, mechanism = balanced(time_step=1e-9), ROBOT.mechanism
    q, v = simulation.state.q, np.zeros(mechanism.velocity_count)
    effort = wrench_jacobian(mechanism, q, body).T @ np.concatenate((MOMENT, FORCE))
    for each in ROBOT.actuators:
        effort[mechanism.velocities_of(ROBOT.model.joint_of(each.drives))] += REST.observe().efforts[each.name]
    expected = forward_dynamics(mechanism, q, v, effort).acceleration
    simulation.apply_forces({body: WRENCH})
    simulation.advance(1)
    np.testing.assert_allclose(simulation.state.v / 1e-9, expected, rtol=1e-4, atol=1e-4 * np.max(np.abs(expected)))


@pytest.mark.parametrize("integrator", ["rk4", "implicit", "adaptive"])
def test_energy_stays_in_balance_under_a_wrench(integrator):
    simulation = balanced(integrator=integrator, time_step=1e-4)
    simulation.apply_forces({OUTPUT: WRENCH})
    before = simulation.energy()
    simulation.advance(duration=0.02)
    after = simulation.energy()
    assert after.forces > 1e-3
    limit = 0.02 if integrator == "implicit" else 1e-5  # it damps fast vibrations by itself
    assert after.balance == pytest.approx(before.balance, abs=limit * after.forces)


def test_work_of_a_force_is_force_times_the_path_of_the_body():
    simulation = balanced(time_step=5e-5)

    assert not np.any(ROBOT.output.frame.origin)
    simulation.apply_forces({OUTPUT: FORCE})
    start = simulation.observe().pose[0]
    simulation.advance(duration=0.02)
    path = simulation.observe().pose[0] - start
    assert np.linalg.norm(path) > 1e-4
    assert simulation.energy().forces == pytest.approx(FORCE @ path, rel=1e-5)


def test_power_of_a_wrench_is_wrench_times_twist():
    simulation = balanced(time_step=1e-5)
    simulation.apply_forces({OUTPUT: WRENCH})
    simulation.advance(duration=0.02)
    twists, works = [], []
    for _ in range(3):
        jacobian = wrench_jacobian(ROBOT.mechanism, simulation.state.q, OUTPUT)
        twists.append(jacobian @ simulation.state.v)
        works.append(simulation.energy().forces)
        simulation.advance(1)
    power = np.concatenate((MOMENT, FORCE)) @ twists[1]
    assert (works[2] - works[0]) / 2e-5 == pytest.approx(power, rel=1e-3)


def test_no_forces_and_reset_take_a_wrench_away():
    free, pushed = balanced(time_step=1e-4), balanced(time_step=1e-4)
    forces = np.zeros((len(BODIES), 6))
    forces[BODIES.index(OUTPUT)] = WRENCH
    pushed.apply_forces(forces)
    pushed.apply_forces(None)
    for simulation in (free, pushed):
        simulation.advance(100)
    np.testing.assert_array_equal(free.state.q, pushed.state.q)
    pushed.apply_forces({OUTPUT: WRENCH})
    pushed.advance(10)
    assert np.max(np.abs(pushed.state.v)) > 1e-3
    pushed.reset()
    assert pushed.energy().forces == 0.0
    pushed.command("effort", REST.observe().efforts)
    pushed.advance(100)
    np.testing.assert_allclose(pushed.state.q, free.state.q, atol=1e-12)


def test_motion_that_is_given_keeps_the_loops_closed():
    simulation = balanced()
    simulation.set_motion(np.random.default_rng(0).normal(size=ROBOT.mechanism.velocity_count))
    state = simulation.state
    assert np.linalg.norm(state.v) > 0.1
    assert np.max(np.abs(equations(ROBOT.mechanism, state.q, state.v).loop @ state.v)) < 1e-9


@pytest.mark.parametrize(
    ("forces", "message"),
    [
        ({"elbow": FORCE}, "There is no body 'elbow'"),
        ({"world": FORCE}, "There is no body 'world'"),
        ({OUTPUT: FORCE[:2]}, r"shape \(2,\)"),
        ({OUTPUT: (0.0, float("nan"), 0.0)}, "not finite"),
        (np.zeros((2, 6)), r"expected \(\d+, 6\)"),
    ],
)
def test_bad_wrenches_are_refused(forces, message):
    with pytest.raises(TensegrityError, match=message):
        balanced().apply_forces(forces)


def test_a_motion_of_the_wrong_size_is_refused():
    with pytest.raises(TensegrityError):
        balanced().set_motion(np.zeros(3))


def test_an_unknown_mode_is_refused_by_name():
    with pytest.raises(TensegrityError, match="no mode 'torque'"):
        balanced().command("torque", {})
