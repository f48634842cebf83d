"""Loads that nobody reported, as the observer finds them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.mechanisms.cable_substitution import with_cables
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.mechanisms.estimation.covariance import Covariance
from tensegrity_dynamics.mechanisms.estimation.kalman_observer import MechanismObserver, Noise
from tensegrity_dynamics.mechanisms.estimation.unknown_loads import UnknownLoads

PERIOD = 5e-3


def watched(plant, robot, wrench, cycles, given=None, noise=None):
    """The unknown load that an observer of `robot` finds on a plant at rest that is pushed, after some readings."""
    simulation, observer = Simulation(plant), MechanismObserver(robot, noise)
    if given is not None:
        observer.set_loads(given)
    body, still = robot.output.body, simulation.observe().positions
    for _ in range(cycles):
        simulation.apply_forces({body: wrench})
        simulation.advance(duration=PERIOD, position=still)
        seen = simulation.observe()
        observer.update(simulation.time, seen.positions, seen.efforts)
    return observer, simulation


def test_an_unannounced_wrench_is_found_and_the_pose_with_it():
    robot = load_robot("single_strut")
    force, arm = np.array([6.0, -4.0, 0.0]), np.array([0.0, 0.0, 1.0])
    observer, simulation = watched(robot, robot, np.concatenate((force, np.cross(arm, force))), 100)
    estimate = observer.last
    np.testing.assert_allclose(estimate.unknown.values[:2], force[:2], atol=0.1)
    np.testing.assert_allclose(estimate.unknown.wrench[:3], force, atol=0.1)
    np.testing.assert_allclose(estimate.unknown.wrench[3:], np.cross(arm, force), atol=0.15)
    np.testing.assert_allclose(estimate.pose[0], simulation.observe().pose[0], atol=2e-5)
    without, _ = watched(robot, robot, np.concatenate((force, np.cross(arm, force))), 100, noise=Noise(load=0.0))
    assert np.linalg.norm(without.last.pose[0] - simulation.observe().pose[0]) > 1e-4


def test_friction_in_gears_looks_like_a_load_and_moves_no_estimate_where_none_are_looked_for():
    robot = load_robot("single_strut")
    simulation = Simulation(robot)
    seen = simulation.observe()
    observers = [make_estimator(robot, observer=True, unknown_loads=each) for each in (True, False)]
    taken = dict(zip(seen.efforts, (0.02, -0.02, 0.02), strict=True))  # parts of the efforts
    for k in range(1, 101):
        efforts = {name: (1.0 + taken[name]) * effort for name, effort in seen.efforts.items()}
        found = [each.update(k * PERIOD, seen.positions, efforts) for each in observers]
    with_loads, without = (np.linalg.norm(np.subtract(each.pose[0], seen.pose[0])) for each in found)
    assert without < 2e-5 and with_loads > 1e-4


def test_gears_that_stick_are_not_seen_moving():
    """Efforts of servos hold friction, too, always the same way while a gear stands or turns one way."""
    robot = load_robot("single_strut")
    seen, step = Simulation(robot).observe(), np.pi / 4096
    learns = make_estimator(robot, observer=True, unknown_loads=False)
    trusts = MechanismObserver(robot, Noise(load=0.0, elasticity=0.0))
    taken = 0.01 * robot.actuators[0].effort * np.array([1.0, -1.0, 1.0])
    positions = {name: step * round(value / step) for name, value in seen.positions.items()}
    efforts = {name: value + part for (name, value), part in zip(seen.efforts.items(), taken, strict=True)}
    for k in range(1, 61):
        estimates = [each.update(0.02 * k, positions, efforts) for each in (learns, trusts)]
    speeds = [np.max(np.abs(each.v)) for each in estimates]
    assert speeds[0] < 1e-5 and speeds[1] > 0.1  # rad/s
    np.testing.assert_allclose(estimates[0].unknown.values, -taken, rtol=1e-3)


def test_a_load_that_is_known_is_no_unknown_one():
    robot = load_robot("single_strut")
    wrench = np.array([6.0, -4.0, 0.0, 4.0, 6.0, 0.0])
    observer, _ = watched(robot, robot, wrench, 120, given={robot.output.body: wrench})
    assert np.abs(observer.last.unknown.values[:2]).max() < 0.05


def test_cables_that_are_stiffer_than_stated_are_told_apart_from_a_load():
    robot = load_robot("single_strut")
    young = robot.model.entries[0].young
    plant = replace(robot, model=with_cables(robot.model, young=1.1 * young))
    observer, simulation = watched(plant, robot, np.zeros(6), 400)
    found, seen = observer.last, simulation.observe()
    assert np.abs(found.unknown.values[:2]).max() < 0.5
    assert 0.05 < found.unknown.values[2:].mean() < 0.12
    assert max(abs(found.tensions[name] - seen.tensions[name]) for name in seen.tensions) < 1.0


@pytest.mark.parametrize("name", ["single_strut", "manipulator"])
def test_how_accelerations_follow_unknown_loads_is_what_differences_of_the_simulation_say(name):
    """D against the change of velocities in a short step of the simulated plant under the same loads."""
    robot = load_robot(name)
    model, unknown = ReducedModel(robot), UnknownLoads(robot, 0.3, 0.15)
    simulation = Simulation(robot, 1e-6)
    q, effort = simulation.state.q, np.array(list(simulation.observe().efforts.values()))
    pose, given = robot.output_pose(q), np.zeros((len(robot.mechanism.bodies), 6))
    columns = unknown.columns(model, q, effort, np.zeros(unknown.count), pose, given)
    moved = []
    for values in (np.zeros(unknown.count), *np.diag(np.sqrt(np.diag(unknown.prior)))):
        rates = []
        for steps in (1, 2):
            simulation.reset()
            simulation.simulator.take_loads(*unknown.applied(values, pose, given))
            simulation.advance(steps, effort=dict(zip(simulation.observe().efforts, effort.tolist(), strict=True)))
            rates.append(simulation.state.v[model.index] / (steps * 1e-6))
        moved.append(2.0 * rates[0] - rates[1])  # what is linear in the step cancels
    sizes = np.sqrt(np.diag(unknown.prior))
    for k in range(unknown.count):
        expected = columns[:, k] * sizes[k]
        np.testing.assert_allclose(moved[k + 1] - moved[0], expected, rtol=0.0, atol=1e-4 * np.abs(expected).max())


def test_one_reading_after_the_other_is_all_of_them_at_once():
    """Against the formula with an inverse: K = P H' (H P H' + R)^-1, and P = (1 - K H) P."""
    rng = np.random.default_rng(3)
    covariance, root, rows = Covariance(5), rng.normal(size=(5, 5)), rng.normal(size=(3, 5))
    before = covariance.value[:] = root @ root.T
    before = before.copy()
    variance, innovation = rng.uniform(0.5, 2.0, 3), rng.normal(size=3)
    change, surprise = covariance.correct(rows, variance, innovation)
    spread = rows @ before @ rows.T + np.diag(variance)
    gain = before @ rows.T @ np.linalg.inv(spread)
    np.testing.assert_allclose(change, gain @ innovation, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(covariance.value, before - gain @ rows @ before, rtol=1e-9, atol=1e-12)
    assert surprise == pytest.approx(innovation @ np.linalg.solve(spread, innovation))
    ahead, process = rng.normal(size=(5, 5)), np.eye(5)
    predicted = ahead @ covariance.value @ ahead.T + process
    covariance.predict(ahead, process)
    np.testing.assert_allclose(covariance.value, predicted, rtol=1e-12, atol=1e-12)


def test_what_the_covariance_says_is_how_far_estimates_are_off():
    """Normalised squared errors of the unknown loads, over seeded runs of the linear system that the observer has:
    chi-square with as many degrees as there are states."""
    robot = load_robot("single_strut")
    observer, _ = watched(robot, robot, np.zeros(6), 3)
    system, unknown, rng = observer.system, observer.unknown, np.random.default_rng(11)
    size, count, runs, steps = system.ahead.shape[0], unknown.count, 40, 60
    values, vectors = np.linalg.eigh(system.process)
    noise = vectors * np.sqrt(np.maximum(values, 0.0))
    readings = np.full(len(system.rows), observer.noise.position)
    start = np.zeros((size, size))
    start[: size - count, : size - count] = 1e-8 * np.eye(size - count)
    start[size - count :, size - count :] = unknown.prior
    total = 0.0
    for _ in range(runs):
        covariance, guess = Covariance(size), np.zeros(size)
        covariance.value[:] = start
        truth = np.linalg.cholesky(start) @ rng.normal(size=size)
        for _ in range(steps):
            truth = system.ahead @ truth + noise @ rng.normal(size=size)
            guess = system.ahead @ guess
            covariance.predict(system.ahead, system.process)
            seen = system.rows @ truth + readings * rng.normal(size=readings.size)
            guess = guess + covariance.correct(system.rows, readings**2, seen - system.rows @ guess)[0]
        error, own = (truth - guess)[size - count :], covariance.value[size - count :, size - count :]
        total += float(error @ np.linalg.solve(own, error))
    low, high = chi2.ppf((1e-4, 1.0 - 1e-4), runs * count)
    assert low < total < high


def test_steps_of_encoders_are_seen_in_their_readings():
    robot = load_robot("single_strut")
    observer, step = MechanismObserver(robot), 2.0 * np.pi / 4096
    for k in range(8):
        observer.variances(step * np.round(np.array([0.3, 1.7, 0.9]) * k), 0)
    np.testing.assert_allclose(observer.resolution, step, rtol=1e-9)
    for k in range(4):
        observer.variances(1e-3 * np.sin(np.array([0.1, 0.2, 0.3]) + 1e-4 * k), 0)
    assert observer.resolution.max() < 1e-6


def test_loads_and_cables_can_be_left_out_and_bad_numbers_are_refused():
    robot = load_robot("single_strut")
    assert UnknownLoads(robot, 0.0, 0.0).count == 0
    assert UnknownLoads(robot, 0.3, 0.0).names == ("x", "y")
    assert UnknownLoads(load_robot("biglide"), 0.3, 0.15).names == ("x", "y")
    assert MechanismObserver(robot, Noise(load=0.0, elasticity=0.0)).covariance.value.shape == (10, 10)
    observer = MechanismObserver(robot, Noise(load=0.0, elasticity=0.0, friction=0.05))
    assert observer.unknown.names == tuple(f"friction of {each.name}" for each in robot.actuators)
    for name in ("load", "elasticity", "friction"):
        with pytest.raises(TensegrityError, match=f"noise {name} is -1"):
            Noise(**{name: -1.0})
