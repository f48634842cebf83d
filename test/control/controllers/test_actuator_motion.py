"""Motions of actuators pass their waypoints, keep the limits of the actuators all the way, and brake on their path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control.controllers.actuator_motion import ActuatorMotion
from tensegrity_control.trajectories.actuator_table import table_between, table_of
from tensegrity_control.trajectories.trajectory_file import parse_trajectory
from tensegrity_dynamics import Robot, TensegrityError, load_robot

PRISM = load_robot("three_prism")
FILE = """
kind: {kind}
columns: [t, {a}, {b}, {a}_rate, {b}_rate]
quantities: {{{a}: length, {b}: length}}
units: {{length: mm}}
rows:
- [0, 0, 0, 0, 0]
- [1, -2, 1, 0, 1.5]
- [2.5, 1, 2, 0, 0]
"""


@pytest.fixture(scope="module")
def robot() -> Robot:
    return PRISM


def names_of(robot: Robot) -> list[str]:
    return [each.name for each in robot.actuators]


def start_of(robot: Robot) -> np.ndarray:
    return np.array([0.5 * sum(each.position) for each in robot.actuators])


def motion(robot: Robot, times, values, velocities=None, accelerations=None, **more) -> ActuatorMotion:
    return ActuatorMotion(
        robot, more.pop("begin", 5.0), start_of(robot), more.pop("rates", None), names_of(robot)[:2], times,
        start_of(robot)[:2] + np.array(values), velocities, accelerations,
    )  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-1.0, 1.0), min_size=len(PRISM.actuators), max_size=len(PRISM.actuators)),
    st.floats(0.0, 1.0), st.floats(0.1, 2.0),
)  # fmt: skip
def test_actuators_that_a_new_motion_does_not_name_brake_smoothly_within_their_limits(parts, place, duration) -> None:
    low, high = np.array([each.position for each in PRISM.actuators]).T
    top, start = np.array([each.rate for each in PRISM.actuators]), low + place * (high - low)
    rates = top * np.array(parts)
    start[0], rates[0] = 0.5 * (low[0] + high[0]), 0.0
    made = ActuatorMotion(PRISM, 5.0, start, rates, names_of(PRISM)[:1], [duration], start[:1])
    step = 1e-3
    times = np.arange(5.0, made.end + 0.1, step)
    points, speeds = (np.array(each) for each in zip(*(made.set_points(when) for when in times), strict=True))
    room = np.where(rates > 0.0, high - start, start - low)
    can_brake = room > 0.0
    np.testing.assert_allclose(points[0], start, atol=1e-12)
    np.testing.assert_allclose(speeds[0][can_brake], rates[can_brake])
    assert np.all(points >= low - 1e-12) and np.all(points <= high + 1e-12)
    assert np.all(np.abs(speeds) <= top + 1e-12)
    np.testing.assert_array_equal(speeds[-1], 0.0)
    np.testing.assert_allclose(np.diff(points, axis=0), step * speeds[:-1], atol=step * 2.0 * top.max())
    assert made.end >= 5.0 + duration - 1e-9


def test_waypoints_are_passed_with_their_rates_and_the_others_stay(robot: Robot) -> None:
    values, rates = [[1e-3, 2e-3], [-1e-3, 0.0]], [[5e-4, -3e-4], [0.0, 0.0]]
    made = motion(robot, [2.0, 4.0], values, rates)
    for when, value, rate in zip((7.0, 9.0), values, rates, strict=True):
        points, speeds = made.set_points(when)
        np.testing.assert_allclose(points[:2], start_of(robot)[:2] + value, atol=1e-12)
        np.testing.assert_allclose(speeds[:2], rate, atol=1e-9)
        np.testing.assert_array_equal(points[2:], start_of(robot)[2:])
        np.testing.assert_array_equal(speeds[2:], 0.0)
    first, _ = made.set_points(5.0)
    np.testing.assert_array_equal(first, start_of(robot))
    assert made.end == 9.0 and made.command(12.0).mode == "position"


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 6), with_rates=st.booleans())
def test_an_accepted_motion_never_leaves_the_limits(seed: int, count: int, with_rates: bool) -> None:
    robot, rng = PRISM, np.random.default_rng(seed)
    rates = np.array([each.rate for each in robot.actuators])[:2]
    times = np.cumsum(rng.uniform(0.2, 2.0, count))
    values = rng.normal(scale=0.05, size=(count, 2))
    velocities = np.vstack((rng.normal(scale=0.7 * rates, size=(count - 1, 2)), np.zeros(2))) if with_rates else None
    try:
        made = motion(robot, times, values, velocities)
    except TensegrityError:
        with pytest.raises(TensegrityError, match="limit"):
            motion(robot, times, values, velocities)
        return
    low, high = np.array([each.position for each in robot.actuators]).T
    seen = [made.set_points(t) for t in np.linspace(4.0, 6.0 + times[-1], 400)]
    positions, speeds = (np.array([each[k] for each in seen]) for k in range(2))
    assert np.all(positions >= low - 1e-8) and np.all(positions <= high + 1e-8)
    assert np.all(np.abs(speeds[:, :2]) <= rates * (1.0 + 1e-6))
    np.testing.assert_allclose(np.diff(positions, axis=0), 0.5 * (speeds[1:] + speeds[:-1]) * (2.0 + times[-1]) / 399,
                               atol=2e-2 * rates.max() * (2.0 + times[-1]) / 399)  # fmt: skip
    np.testing.assert_array_equal(speeds[-1], 0.0)


def test_a_motion_goes_on_from_the_rates_that_the_set_points_have(robot: Robot) -> None:
    rates = np.array([each.rate for each in robot.actuators]) * 0.3
    made = motion(robot, [1.0, 2.0], [[1e-3, 0.0], [0.0, 1e-3]], rates=rates)
    np.testing.assert_allclose(made.set_points(5.0)[1][:2], rates[:2], rtol=1e-9)


def test_a_brake_comes_to_rest_on_the_path(robot: Robot) -> None:
    made = motion(robot, [4.0], [[8e-3, 0.0]])
    at_brake = made.set_points(7.0)[1][0]
    made.brake(7.0, 0.3)
    assert made.end == pytest.approx(7.3) and at_brake != 0.0
    np.testing.assert_allclose(made.set_points(7.0)[1][0], at_brake)
    np.testing.assert_array_equal(made.set_points(7.3)[1], 0.0)
    travelled = made.set_points(9.0)[0][0] - made.set_points(7.0)[0][0]
    assert travelled == pytest.approx(0.5 * 0.3 * at_brake, rel=0.1)


@pytest.mark.parametrize(
    ("times", "values", "velocities", "words"),
    [
        ([1.0], [[9.0, 0.0]], None, "its position limits are"),
        ([1e-3], [[1e-2, 0.0]], None, "stretch all times"),
        ([1.0], [[0.0, 0.0]], [[1e-3, 0.0]], "still moves"),
        ([0.0, 1.0], [[0.1, 0.0], [0.0, 0.0]], None, "start at its present position"),
        ([0.0, 1.0], [[0.0, 0.0], [0.0, 0.0]], [[1e-3, 0.0], [0.0, 0.0]], "not the present ones"),
        ([1.0, 1.0], [[0.0, 0.0]] * 2, None, "repeats"),
        ([-1.0], [[0.0, 0.0]], None, "give 0 s or later"),
        ([2e9], [[1e-3, 0.0]], None, "the last waypoint is at 2e.09 s; give up to 600 s"),
        ([1.0], [[np.nan, 0.0]], None, "not finite|finite numbers"),
        ([], np.zeros((0, 2)), None, "0 waypoints"),
    ],
)
def test_what_is_no_motion_is_refused(robot: Robot, times, values, velocities, words: str) -> None:
    with pytest.raises(TensegrityError, match=words):
        motion(robot, times, values, velocities)


def test_names_must_be_those_of_actuators(robot: Robot) -> None:
    start, (one, *_) = start_of(robot), names_of(robot)
    for names, words in (([one, one], "twice"), (["x"], "x"), ([], "no actuator")):
        with pytest.raises(TensegrityError, match=words):
            ActuatorMotion(robot, 0.0, start, None, names, [1.0], np.zeros((1, len(names))))


@pytest.mark.parametrize("kind", ["cubic Hermite", "quintic"])
def test_a_file_and_its_table_are_the_same_motion(robot: Robot, kind: str) -> None:
    a, b = names_of(robot)[:2]
    motion_of_file = parse_trajectory(FILE.format(kind=kind, a=a, b=b))
    table = table_of(motion_of_file)
    moved = table.moved(start_of(robot)[:2])
    made = ActuatorMotion(
        robot, 0.0, start_of(robot), None, table.names, moved.times, moved.positions, moved.velocities,
        moved.accelerations,
    )  # fmt: skip
    for when in np.linspace(0.0, 2.5, 23):
        expected = start_of(robot)[:2] + motion_of_file.trajectory.value(when)
        np.testing.assert_allclose(made.set_points(when)[0][:2], expected, atol=1e-12)


def test_the_way_to_a_place_uses_half_of_the_rate(robot: Robot) -> None:
    start, rates = start_of(robot), np.array([each.rate for each in robot.actuators])
    table = table_between(tuple(names_of(robot)), start, start + 1e-2, rates)
    made = ActuatorMotion(robot, 0.0, start, None, table.names, table.times, table.positions, table.velocities)
    peak = max(np.max(np.abs(made.set_points(t)[1]) / rates) for t in np.linspace(0.0, table.times[-1], 101))
    assert 0.35 < peak < 0.55
