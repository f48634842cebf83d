"""IMUs on rods: what they read, what is refused, and faces that the rolling estimator finds by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import CommandRefused, RobotFileError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.numerics.rotations import matrix_from_vector
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_dynamics.structures.analysis.footing import FootingReader
from tensegrity_dynamics.structures.estimation.face_search import tip_sequences
from tensegrity_dynamics.structures.estimation.imu_readings import ImuReadings
from tensegrity_dynamics.structures.imu import Imu, elevation, elevations, read_imu

ROBOT = load_robot("six_bar")
RODS = tuple(each.bar for each in ROBOT.structure.imus)  # three directions
PLAIN = replace(ROBOT, model=replace(ROBOT.structure, imus=()))
NODES, READER = PLAIN.structure.nodes, FootingReader(PLAIN.structure)
ENDS = PLAIN.structure.members[[PLAIN.structure.member(each) for each in RODS]]
GRAVITY = np.array([0.0, 0.0, -9.80665])

angle = st.floats(-3.1, 3.1)


@given(tilt=st.floats(-1.5, 1.5), about=angle, turn=angle)
@settings(max_examples=15, deadline=None)
def test_a_reading_tells_the_elevation_of_the_rod_however_it_is_turned_about_itself(tilt, about, turn) -> None:
    axis = np.array([np.cos(tilt) * np.cos(about), np.cos(tilt) * np.sin(about), np.sin(tilt)])
    reading = read_imu(Imu("rod"), axis, GRAVITY, 0)
    assert np.linalg.norm(reading) == pytest.approx(9.80665) and reading[0] >= 0.0 == reading[1]
    assert elevation(matrix_from_vector([0.0, 0.0, turn]) @ reading) == pytest.approx(tilt, abs=1e-7)


def test_noise_has_the_stated_size_and_the_same_reading_the_same_noise() -> None:
    imu, axis = Imu("rod", noise=0.02, seed=3), np.array([0.6, 0.0, 0.8])
    clean = read_imu(replace(imu, noise=0.0), axis, GRAVITY, 0) / 9.80665
    readings = np.array([read_imu(imu, axis, GRAVITY, k) for k in range(400)])
    noisy = readings / 9.80665
    np.testing.assert_allclose(np.linalg.norm(noisy, axis=1), 1.0)
    assert np.sqrt(np.mean(np.sum((noisy - clean) ** 2, axis=1))) == pytest.approx(0.02 * np.sqrt(2.0), rel=0.1)
    np.testing.assert_array_equal(read_imu(imu, axis, GRAVITY, 7), readings[7])


FILE = """
kind: structure
name: two
nodes: {a: {position: [0, 0, 0], fixed: true}, b: {position: [0, 0, 1]}, c: {position: [1, 0, 0], fixed: true}}
defaults: {bar: {stiffness: 1.0e+6, rest_length: 1}, tendon: {stiffness: 100, rest_length: 1}}
members:
  - {name: rod, kind: bar, nodes: [a, b]}
  - {name: cord, kind: tendon, nodes: [b, c]}
"""


def test_imus_of_a_file_are_read_with_units_and_wrong_ones_are_refused_by_line_and_name() -> None:
    robot = parse_robot(FILE + 'imu: [{bar: rod, noise: "1 deg", rate: 50}]')
    assert robot.structure.imus == (Imu("rod", np.radians(1.0), 50.0, 0),)
    for block, words in (
        ("[{bar: rot}]", r"yaml:9: imu\[0\].bar: There is no bar 'rot'. Did you mean 'rod'"),
        ("[{bar: cord}]", "cord is a tendon, and an IMU sits on a bar"),
        ("[{bar: rod}, {bar: rod}]", r"imu\[1\].bar: rod carries imu\[0\] already"),
        ("[{bar: rod, noise: -1}]", r"imu\[0\].noise"),
        ("[{bar: rod, rate: 0}]", r"imu\[0\].rate"),
        ("[{bar: rod}]\ngravity: [0, 0, 0]", "imu: it measures the direction of gravity, and there is none"),
    ):
        with pytest.raises(RobotFileError, match=words):
            parse_robot(FILE + "imu: " + block)


def test_readings_without_sense_are_refused_by_name_and_counted() -> None:
    readings = ImuReadings((Imu("rod_1"), Imu("rod_2")), 9.8)
    readings.take("rod_1", [0.0, 0.0, 9.8], 1.0)
    assert readings.at(1.1)[0] == pytest.approx(np.pi / 2) and readings.stale(1.1) == ("rod_2",)
    for rod, value, stamp, words in (
        ("world", [0, 0, 9.8], 1.1, "no IMU on a rod 'world'"),
        ("rod_2", [0, np.nan, 9.8], 1.1, "imu of rod_2: three finite numbers"),
        ("rod_2", [0, 0, 1.0], 1.2, "imu of rod_2: 1 m/s.2 is not gravity"),
        ("rod_1", [0, 0, 9.8], 0.9, "imu of rod_1: the reading of 0.900 s is stale"),
        ("rod_2", [0, 0, 9.8], np.nan, "its time is nan"),
    ):
        with pytest.raises(CommandRefused, match=words):
            readings.take(rod, value, stamp)
    assert readings.refused == 5 and readings.at(1.2)[0] == pytest.approx(np.pi / 2)
    assert np.isnan(readings.at(2.0)).all()  # nothing new for longer than it counts
    readings.take("rod_1", [0.0, 0.0, -9.8], 100.0)  # by another clock: what comes in time counts again
    assert np.isnan(readings.at(2.1)).all()
    readings.take("rod_1", [0.0, 0.0, -9.8], 2.1)
    assert readings.at(2.1)[0] == pytest.approx(-np.pi / 2)


def test_tips_turn_by_the_printed_angles_and_lay_the_next_face_on_the_ground() -> None:
    """Closed to open 39.232 deg, open to open 53.130 deg, wherever they lead."""
    sequences = tip_sequences(READER, NODES, ENDS, 2)
    assert [each.tips for each in sequences] == [0] + 3 * [1] + 6 * [2]
    for sequence in sequences:
        low = NODES[:, 2].min()
        assert tuple(np.flatnonzero(sequence.nodes[:, 2] < low + 1e-6)) == sequence.faces[-1]
        np.testing.assert_allclose(sequence.passed[-1], elevations(sequence.nodes, ENDS, READER.up), atol=1e-9)
    closed, opened = sequences[0], sequences[1]
    relative = (opened.nodes - opened.nodes.mean(axis=0)).T @ np.linalg.pinv((NODES - NODES.mean(axis=0)).T)
    turned = np.degrees(np.arccos((np.trace(relative) - 1.0) / 2.0))
    assert turned == pytest.approx(39.232, abs=1e-3)
    assert closed.faces == ((0, 4, 8),)


def test_feet_that_slide_downhill_while_a_cable_is_wound_are_followed_however_often_it_looks() -> None:
    """On 5 deg without IMUs; the equilibrium laid onto its last feet was 37 mm and 9 deg off before it tips."""
    ground = replace(PLAIN.structure.ground, slope=np.radians(5.0))
    robot = replace(PLAIN, model=replace(PLAIN.structure, ground=ground))
    simulation, estimator = Simulation(robot, 1e-3, "rattle"), make_estimator(robot)
    start = simulation.state.nodes
    estimator.update(0.0, simulation.observe().positions)
    simulation.command("velocity", {"cable_1": -0.09})
    for steps in (20, 300, 7, 1000, 120, 500):
        simulation.advance(steps)
        estimate = estimator.update(simulation.time, simulation.observe().positions)
        assert estimate.converged and estimate.equilibrium.stable
    assert np.abs(simulation.state.nodes - start)[[0, 4, 8]].max() > 0.05
    np.testing.assert_allclose(estimate.nodes, simulation.state.nodes, atol=1e-3)


def test_one_wrong_reading_moves_it_by_what_a_spool_can_wind_and_readings_that_stay_away_are_reported() -> None:
    estimator = make_estimator(PLAIN)
    right = {each.name: 0.5 for each in PLAIN.actuators}
    wrong = {**right, "cable_1": 0.2}
    before = estimator.update(0.0, right)
    once = estimator.update(0.02, wrong)
    assert not once.converged and "cable_1 is read 0.298 m away" in once.reason
    after = estimator.update(0.5, right)
    assert after.converged and np.abs(after.nodes - before.nodes).max() < 2e-3
    for time in (1.0, 1.5, 2.0):
        assert not estimator.update(time, wrong).converged
    assert estimator.update(3.6, wrong).converged  # 0.3 m at 0.1 m/s


def roll_by_a_push(push: np.ndarray):
    """Truth and estimate after a push at the top that nobody told the estimator, released once it tips."""
    simulation, estimator = Simulation(ROBOT, integrator="rattle"), make_estimator(ROBOT)
    steps, top = round(0.125 / simulation.time_step), np.argsort(NODES[:, 2])[-3:]
    simulation.apply_forces({ROBOT.structure.node_names[k]: push / 3.0 for k in top.tolist()})
    for _ in range(28):
        seen = simulation.observe()
        if READER.margin(simulation.state.nodes, (0, 4, 8)) < 0.0:
            simulation.apply_forces(None)
        for rod, value in seen.imus.items():
            estimator.readings.take(rod, value, simulation.time)
        estimate = estimator.update(simulation.time, seen.positions)
        off = np.abs(elevations(estimate.nodes, ENDS, READER.up) - estimator.readings.at(simulation.time))
        assert estimate.converged == bool((off <= 0.1 + 4.0 * 0.01).all())  # FIT, and four deviations of the noise
        assert estimate.converged or "IMUs say otherwise: rod_" in estimate.reason
        simulation.advance(steps)
    return simulation.state.nodes, estimate, estimator


def test_a_roll_that_the_model_does_not_expect_is_followed_within_a_quarter_of_its_way() -> None:
    """Without IMUs the estimate would stay where it was; while they contradict it, it is not called converged."""
    nodes, estimate, estimator = roll_by_a_push(np.array([-7.0, 12.0, 0.0]))
    sequence = np.linalg.norm((nodes - NODES).mean(axis=0)[:2])
    off = np.linalg.norm((nodes - estimate.nodes).mean(axis=0)[:2])
    assert sequence > 0.3 and estimate.converged and estimator.corrections == 1
    assert READER.touching(estimate.nodes) == READER.touching(nodes) != (0, 4, 8)
    assert off < 0.25 * sequence
    assert "corrected: 1" in estimator.notes["position"]


def test_where_no_face_agrees_the_estimate_is_lost_and_comes_back_with_readings_that_agree() -> None:
    estimator = make_estimator(ROBOT)
    lengths = {each.name: 0.5 for each in ROBOT.actuators}

    def look(readings, times):
        for time in times:
            for rod, value in zip(RODS, readings, strict=True):
                estimator.readings.take(rod, value, time)
            estimate = estimator.update(time, lengths)
        return estimate

    here = [[9.80665 * np.cos(each), 0.0, 9.80665 * np.sin(each)] for each in elevations(NODES, ENDS, READER.up)]
    assert look(here, [0.0, 0.2]).converged
    lost = look(3 * [[0.0, 0.0, 9.80665]], np.arange(0.4, 2.6, 0.2))  # all rods upright, which they never are
    assert not lost.converged and lost.reason.startswith("lost: no face within 4 tips of n1-n5-n9")
    assert look(here, [2.6]).converged


def test_without_imus_it_says_that_its_place_is_dead_reckoning() -> None:
    assert "dead reckoning" in make_estimator(PLAIN).notes["position"]
