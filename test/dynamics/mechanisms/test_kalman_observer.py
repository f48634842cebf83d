"""The observer of mechanisms beside the simulated truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elbow import ELBOW

from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.impedance import ImpedanceSetPoint
from tensegrity_dynamics.mechanisms.cable_substitution import with_cables
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.mechanisms.estimation.covariance import white_noise_system
from tensegrity_dynamics.mechanisms.estimation.kalman_observer import MechanismObserver, Noise, simulated_copy
from tensegrity_dynamics.mechanisms.estimation.quasi_static_estimator import MechanismEstimator
from tensegrity_dynamics.mechanisms.simulation.mechanism_simulator import MechanismSimulator
from tensegrity_dynamics.robots.load_robot import parse_robot

PERIOD = 5e-3
FINGER = str(Path(__file__).parents[3] / "examples" / "finger.yaml")


def run(simulation: Simulation, observer: MechanismObserver, cycles: int, effort, tensions: bool = False):
    """Let both run; returns the truth and the estimate at the end, and the largest errors of q on the way."""
    errors = []
    for k in range(cycles):
        simulation.advance(duration=PERIOD, effort=effort(k * PERIOD))
        seen, state = simulation.observe(), simulation.state
        estimate = observer.update(state.time, seen.positions, seen.efforts, seen.tensions if tensions else None)
        errors.append(float(np.max(np.abs(estimate.q - state.q))))
    return state, estimate, errors


def holding(simulation: Simulation):
    held = simulation.observe().efforts
    return lambda time: {
        name: value * (1.0 + 0.05 * np.sin(9.0 * time + k)) for k, (name, value) in enumerate(held.items())
    }


@pytest.mark.parametrize("name", ["single_strut", "manipulator", "biglide"])
def test_observer_follows_positions_and_velocities_of_a_moving_mechanism(name):
    robot = load_robot(name)
    simulation = Simulation(robot)
    state, estimate, errors = run(simulation, MechanismObserver(robot), 60, holding(simulation))
    assert estimate.converged and max(errors) < 1e-3
    np.testing.assert_allclose(estimate.q, state.q, atol=2e-5)
    np.testing.assert_allclose(estimate.v, state.v, atol=2e-3)
    seen = simulation.observe()
    np.testing.assert_allclose(estimate.twist, seen.twist, atol=2e-3)
    for cable, tension in seen.tensions.items():
        assert estimate.tensions[cable] == pytest.approx(tension, abs=0.2)


@pytest.mark.parametrize(("name", "integrator"), [(FINGER, "implicit"), ("manipulator", "rk4")])
def test_observer_takes_the_steps_that_are_less_work(name, integrator):
    robot = load_robot(name)
    copy = simulated_copy(robot, None, ReducedModel(robot).index)
    assert copy.integrator == integrator
    assert 5e-3 / copy.time_step < 10.0  # steps in a usual period
    assert simulated_copy(robot, 1e-5, ReducedModel(robot).index).time_step == 1e-5


def test_observer_follows_a_robot_whose_gears_rub_too_stiffly_for_explicit_steps():
    """Its simulation takes implicit steps by itself; the observer was refused, and the nodes did not start."""
    geared = 'minimum_tension: "5 N", gear: 10, motor_friction: "2 mN m"'
    robot = parse_robot(ELBOW.replace('minimum_tension: "5 N"', geared), "here")
    simulation, observer = Simulation(robot), MechanismObserver(robot)
    assert simulation.integrator == "implicit"
    _, _, errors = run(simulation, observer, 40, holding(simulation))
    assert max(errors[5:]) < 5e-4


def test_observer_of_a_light_finger_follows_it_in_long_steps():
    robot = load_robot(FINGER)
    simulation, observer = Simulation(robot, integrator="rk4"), MechanismObserver(robot)
    held, before = simulation.observe().efforts["winch"], simulation.state.q
    observer.update(0.0, simulation.observe().positions, {"winch": held})
    state, estimate, errors = run(simulation, observer, 80, lambda time: {"winch": held - 0.01 * np.sin(20.0 * time)})
    assert np.max(np.abs(state.q - before)) > 0.05
    assert max(errors) < 2e-3
    np.testing.assert_allclose(estimate.q, state.q, atol=2e-4)
    np.testing.assert_allclose(estimate.v, state.v, atol=0.05)


@pytest.mark.parametrize("name", ["manipulator", "biglide"])
def test_a_state_in_one_call_is_that_of_its_parts(name):
    robot = load_robot(name)
    model, rng = ReducedModel(robot), np.random.default_rng(1)
    start = robot.model.start
    for _ in range(5):
        w = start[model.q_index] + 1e-2 * rng.normal(size=model.index.size)
        rate = rng.normal(size=model.index.size)
        q, v, tension = model.state_at(start, w, rate)
        np.testing.assert_allclose(q, model.closed_configuration(start, w), rtol=0, atol=1e-12)
        np.testing.assert_allclose(v, model.velocity(q, rate), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(tension, equations(robot.mechanism, q, v).tension)
    with pytest.raises(TensegrityError, match=r"cannot close|stop being independent"):
        model.state_at(start, np.full(model.index.size, np.nan), rate)


def test_a_copy_put_where_it_was_goes_on_as_if_its_state_had_been_set():
    robot = load_robot("manipulator")
    copies = [MechanismSimulator(robot, None, "rk4", start="file") for _ in range(2)]
    simulation = Simulation(robot)
    held = simulation.observe().efforts
    state = simulation.advance(40, effort={name: 1.05 * value for name, value in held.items()})
    efforts = np.array([1.02 * value for value in held.values()])
    copies[0].set_closed_state(state.q, state.v)
    copies[0].give_efforts(efforts)
    copies[1].set_state(state.q, state.v)
    copies[1].command("effort", dict(zip(held, efforts.tolist(), strict=True)))
    for each in copies:
        each.advance(5)
    np.testing.assert_allclose(copies[0].state.q, copies[1].state.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(copies[0].state.v, copies[1].state.v, rtol=0, atol=1e-9)


def test_a_swing_that_was_not_known_at_the_start_is_found():
    robot = load_robot("manipulator")
    simulation = Simulation(robot)
    held = simulation.observe().efforts
    push = holding(simulation)
    for k in range(40):
        simulation.advance(duration=PERIOD, effort=push(k * PERIOD))
    observer = MechanismObserver(robot)  # begins now, with a shape at rest
    state, estimate, _ = run(simulation, observer, 1, lambda _: held)
    assert np.max(np.abs(estimate.v - state.v)) > 1.0
    state, estimate, _ = run(simulation, observer, 200, lambda _: held)
    assert np.max(np.abs(estimate.v - state.v)) < 5e-3


def test_measured_tensions_correct_a_model_with_wrong_cables():
    robot = load_robot("single_strut")
    young = robot.model.entries[0].young
    other = replace(robot, model=with_cables(robot.model, young=0.9 * young))
    found = {}
    for tensions in (False, True):
        simulation = Simulation(other, start="file")
        observer = MechanismObserver(robot, Noise(tension=0.01))
        effort = {each.name: 0.07 * 60.0 for each in robot.actuators}
        run(simulation, observer, 60, lambda _, given=effort: given, tensions)
        true = simulation.observe().tensions
        found[tensions] = max(abs(observer.last.tensions[name] - true[name]) for name in true)
    assert found[True] < 0.7 * found[False]


def test_without_efforts_it_answers_as_the_estimator_of_shapes_at_rest():
    robot = load_robot("single_strut")
    positions = Simulation(robot).observe().positions
    observer, still = MechanismObserver(robot), MechanismEstimator(robot)
    for time in (0.0, 0.1):
        np.testing.assert_array_equal(observer.update(time, positions).q, still.update(time, positions).q)
    broken = {name: float("nan") for name in positions}
    assert not observer.update(0.2, broken, broken).converged


def test_readings_far_from_the_model_bring_back_the_shape_at_rest_without_motion():
    robot = load_robot("single_strut")
    seen = Simulation(robot).observe()
    observer = MechanismObserver(robot)
    observer.update(0.0, seen.positions, seen.efforts)
    observer.update(PERIOD, seen.positions, seen.efforts)
    moved = {name: value + 0.3 for name, value in seen.positions.items()}
    estimate = observer.update(2 * PERIOD, moved, seen.efforts)
    assert estimate.converged and not np.any(estimate.v)
    np.testing.assert_allclose(estimate.q, MechanismEstimator(robot).update(0.0, moved).q, atol=1e-6)


def test_the_same_time_gives_the_same_answer_and_an_earlier_one_starts_anew():
    robot = load_robot("single_strut")
    seen = Simulation(robot).observe()
    observer = MechanismObserver(robot)
    first = observer.update(1.0, seen.positions, seen.efforts)
    second = observer.update(1.0 + PERIOD, seen.positions, seen.efforts)
    assert observer.update(1.0 + PERIOD, {}, {}) is second
    again = observer.update(0.5, seen.positions, seen.efforts)
    np.testing.assert_allclose(again.q, first.q, atol=1e-9)
    assert not np.any(again.v)


def test_noise_and_unknown_cables_are_refused():
    with pytest.raises(TensegrityError, match="noise effort is -1"):
        Noise(effort=-1.0)
    robot = load_robot("three_prism")
    with pytest.raises(TensegrityError, match="estimated from equilibria"):
        make_estimator(robot, observer=True)


def test_missed_readings_cost_no_new_gain_and_little_accuracy():
    """The actuators close impedances meanwhile: the efforts of the time between are not what is read at last."""
    robot = load_robot("single_strut")
    simulation, observer, random = Simulation(robot), MechanismObserver(robot), np.random.default_rng(2)
    seen, worst, gains = simulation.observe(), 0.0, set()
    for k in range(60):
        swing = 0.02 * np.sin(10.0 * k * PERIOD)
        asked = {name: ImpedanceSetPoint(at + swing, 0.0, 0.0, 40.0, 1.0) for name, at in seen.positions.items()}
        simulation.advance(duration=PERIOD, impedance=asked)
        if k > 5 and random.random() < 0.5:
            continue
        now = simulation.observe()
        estimate = observer.update(simulation.time, now.positions, now.efforts)
        worst = max(worst, float(np.max(np.abs(estimate.q - simulation.state.q)))) if k > 5 else worst
        gains |= set() if observer.system is None else {id(observer.system)}
    assert len(gains) == 1
    assert worst < 2e-3


@pytest.mark.parametrize("first", [1e-5, 1e-3, 2e-2])
def test_readings_that_come_at_varying_times_get_the_linear_system_of_their_rhythm(first):
    """Times as of hardware, 2 % apart, after a first interval that is not theirs."""
    robot = load_robot("single_strut")
    observer, seen, random = MechanismObserver(robot), Simulation(robot).observe(), np.random.default_rng(4)
    observer.update(0.0, seen.positions, seen.efforts)
    observer.update(first, seen.positions, seen.efforts)
    assert observer.system.interval == max(first, 1e-4)  # a shorter one takes thousands of predictions per reading
    time = first
    for _ in range(8):
        time += PERIOD * (1.0 + random.uniform(-0.02, 0.02))
        observer.update(time, seen.positions, seen.efforts)
    assert observer.system.interval == pytest.approx(PERIOD, rel=0.05)


def test_a_gap_in_the_readings_of_an_arm_that_falls_at_constant_efforts_leaves_a_covariance():
    robot = parse_robot(ELBOW, "elbow.yaml")  # its errors grow by a factor of e in 16 ms under constant efforts
    simulation, observer = Simulation(robot), MechanismObserver(robot)
    simulation.hold()
    step = 2.0 * np.pi / 4096.0
    for k in range(200):
        simulation.advance(duration=0.6 if k == 100 else 1e-3)
        seen = simulation.observe()
        read = {name: step * round(value / step + 0.1 * (k % 9)) for name, value in seen.positions.items()}
        estimate = observer.update(seen.time, read, seen.efforts)
        np.testing.assert_allclose(estimate.q, simulation.state.q, atol=2.0 * step)
        assert k == 0 or np.min(np.linalg.eigvalsh(observer.covariance.value)) > 0.0


def test_noise_that_pushes_a_mass_at_any_time_is_integrated_as_the_textbook_says():
    """A mass (its rate is a random walk), and a rate that dies out within the interval, in closed form."""
    t, density, decay = 0.02, 3.0, 4000.0
    ahead, process = white_noise_system(np.array([[0.0, 1.0], [0.0, 0.0]]), np.diag([0.0, density]), t)
    np.testing.assert_allclose(ahead, [[1.0, t], [0.0, 1.0]], rtol=1e-12)
    np.testing.assert_allclose(process, density * np.array([[t**3 / 3.0, t**2 / 2.0], [t**2 / 2.0, t]]), rtol=1e-12)
    ahead, process = white_noise_system(np.array([[-decay]]), np.array([[density]]), t)
    assert ahead[0, 0] == pytest.approx(np.exp(-decay * t), rel=1e-6)
    assert process[0, 0] == pytest.approx(density / (2.0 * decay), rel=1e-4)


@pytest.mark.parametrize("name", ["single_strut", "biglide", "three_rrr"])
def test_what_a_reading_got_wrong_does_not_ring_from_one_reading_to_the_next(name):
    """Modes of the observer by itself, (1 - K H) F: none changes its sign with more than about 2 - sqrt 3 left."""
    robot = load_robot(name)
    simulation, observer = Simulation(robot), MechanismObserver(robot)
    held = simulation.observe().efforts
    run(simulation, observer, 3, lambda _: held)
    system, covariance = observer.system, observer.covariance.value.copy()
    variance = observer.noise.position**2 * np.eye(system.rows.shape[0])
    for _ in range(100):
        covariance = system.ahead @ covariance @ system.ahead.T + system.process
        gain = np.linalg.solve(system.rows @ covariance @ system.rows.T + variance, system.rows @ covariance).T
        covariance = covariance - gain @ system.rows @ covariance
    modes = np.linalg.eigvals((np.eye(len(covariance)) - gain @ system.rows) @ system.ahead)
    assert modes.real.min() > -(2.0 - np.sqrt(3.0)) - 0.05 and np.abs(modes).max() < 1.0 + 1e-6


def test_a_known_payload_that_is_no_number_is_refused_as_by_the_simulation():
    observer = MechanismObserver(load_robot("single_strut"))
    with pytest.raises(TensegrityError, match="payload tool: mass is '1 kg'; give a finite number of kg"):
        observer.attach("tool", "strut", "1 kg")
    with pytest.raises(TensegrityError, match="payload tool: its position in m must be real numbers; found 'up'"):
        observer.attach("tool", "strut", 1.0, "up")
