"""Set points that move on by themselves do so on hardware as in simulation, and no later command makes them jump."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spool_bench import PERIOD, Axis, spool

from tensegrity_driver.safety.spool_identification import SpoolIdentification
from tensegrity_driver.spools.moving_set_points import MovingSetPoints
from tensegrity_driver.spools.position_loop import FreeRunLoop, PositionLoop
from tensegrity_driver.spools.readings import Drive, Readings, ServoReading, TendonReading
from tensegrity_driver.spools.spool import Line
from tensegrity_dynamics.impedance import CATCH_UP, ImpedanceSetPoint, MovingPosition, lead_of
from tensegrity_dynamics.mechanisms.simulation.actuation import make_drives, move_set_points
from tensegrity_dynamics.simulation_interface import IMPEDANCE
from tensegrity_dynamics.simulation_interface import POSITION as MOVES

A, B = spool("a"), spool("b")
LOW, HIGH = A.actuator.position
LENGTHS = st.floats(LOW - 0.05, HIGH + 0.05)
RATES = st.floats(-0.03, 0.03)
ORDERS = st.lists(st.tuples(st.integers(0, 12), LENGTHS, RATES, st.booleans(), st.floats(0.0, 0.3)), min_size=1)
law = getattr(move_set_points, "py_func", move_set_points)


@given(orders=ORDERS)
def test_they_move_as_those_of_the_simulation(orders) -> None:
    spools = {"a": A, "b": B}
    mine, start = MovingSetPoints(spools), 0.5 * (LOW + HIGH)
    drives = make_drives([A.actuator, B.actuator], [0, 1], [0, 1], 2)
    drives.set_point[:] = start
    for cycles, length, rate, soft, age in orders:
        value = ImpedanceSetPoint(length, rate, 3.0, 100.0, 1.0) if soft else MovingPosition(length, rate)
        for k, name in enumerate(spools):
            mine.take(name, value, start, drives.feed_forward[k], age, PERIOD)
            drives.mode[k] = IMPEDANCE if soft else MOVES
            drives.command[k], drives.speed[k], drives.feed[k] = length, rate, 3.0 if soft else drives.feed_forward[k]
            drives.age[k], drives.lead[k] = age, lead_of(PERIOD, age)
        for _ in range(cycles):
            law(drives, PERIOD)
            points = mine.advance(PERIOD)
            for k, point in enumerate(points.values()):
                assert point.position == pytest.approx(drives.set_point[k], abs=1e-12)
                assert point.rate == pytest.approx(drives.moving[k], abs=1e-9)


def test_a_stream_that_stops_lets_them_brake_and_one_that_comes_back_is_caught_up_with_slowly() -> None:
    points, rate = MovingSetPoints({"a": A}), 0.5 * A.actuator.rate
    positions, start = [0.5 * (LOW + HIGH)], 0.5 * (LOW + HIGH)
    for k in range(120):
        if k < 10 or k >= 60:  # half a second and more without a command
            points.take(
                "a", MovingPosition(start + rate * PERIOD * min(k, 60), rate * (k < 60)), start, 0.0, 0.0, PERIOD
            )
        positions.append(points.advance(PERIOD)["a"].position)
    speeds = np.diff(positions) / PERIOD
    assert speeds[5] == pytest.approx(rate)
    assert np.all(np.diff(speeds[12:50]) <= 1e-12) and speeds[50] == 0.0  # brakes, then stands
    assert 0.0 < speeds[62] <= CATCH_UP * A.actuator.rate * (1.0 + 1e-9)
    # it went on for twelve periods at its rate: six, and half of the twelve in which it brakes
    assert positions[50] - positions[10] == pytest.approx(rate * PERIOD * 11.0, rel=0.02)


def test_a_rate_is_fed_forward_so_that_a_free_running_servo_does_not_lag() -> None:
    worst = {}
    for fed in (True, False):
        axis = Axis(spool(), length=0.20, reach=0.2)
        loop, goal, rate, sent = FreeRunLoop(axis.spool, PERIOD, integral=0.0), 0.20, 0.008, None
        for _ in range(100):
            goal += rate * PERIOD
            sent = loop.update(goal, axis.spool.observe(axis.read()).length, PERIOD, sent, rate if fed else None)
            axis.move(sent, PERIOD)
        worst[fed] = abs(axis.length - goal)
    assert worst[True] < 0.3 * worst[False]


TURNING = replace(
    spool(), measured_by="encoder", potentiometer=None, encoder=Line(-0.00485, 0.2), encoder_turn=False,
    load_at_rest=True, speed_step=0.0239,
)  # fmt: skip


@given(
    cycles=st.lists(st.floats(0.2, 3.5), min_size=60, max_size=60), share=st.floats(0.3, 0.7),
    sign=st.sampled_from((-1.0, 1.0)),
)  # fmt: skip
def test_a_servo_moves_evenly_with_its_set_point_however_unevenly_the_cycles_come(cycles, share, sign) -> None:
    loop, rate = PositionLoop(TURNING, PERIOD), sign * share * TURNING.actuator.rate
    loop.take_over(0.22)
    goal = own = 0.22
    sent, speeds = None, []
    for cycle in cycles:
        step = cycle * PERIOD
        if sent is not None:
            before, own = own, sent.carried_on(own, step)
            speeds.append((own - before) / step)
            goal += rate * step
        sent = loop.update(goal, own, step, sent, rate, (rate * PERIOD, rate * 5.0 * PERIOD))
    finest = TURNING.radius * TURNING.speed_step
    assert np.all(np.abs(np.array(speeds[-20:]) - rate) <= 2.0 * finest)
    assert abs(own - goal) <= 4.0 * finest * PERIOD


def test_a_servo_stands_where_its_set_point_does_though_it_was_sent_ahead_of_it() -> None:
    loop, rate = PositionLoop(TURNING, PERIOD), 0.4 * TURNING.actuator.rate
    loop.take_over(0.2)
    moving = loop.update(0.2, 0.2, PERIOD, None, rate, (rate * PERIOD, rate * 5.0 * PERIOD))
    assert moving.value == pytest.approx(0.2 + 5.0 * rate * PERIOD)
    assert moving.rate == pytest.approx(rate, abs=TURNING.radius * TURNING.speed_step)
    still = loop.update(0.2 + rate * PERIOD, 0.2, PERIOD, moving, 0.0)
    assert still.value == pytest.approx(0.2 + rate * PERIOD) and still.rate > 0.04 * TURNING.actuator.rate
    plain = loop.update(0.2 + 2.0 * rate * PERIOD, 0.2, PERIOD, still)
    assert plain.rate == TURNING.actuator.rate


def test_the_trial_of_the_spools_sends_those_of_a_board_there_and_back_by_positions() -> None:
    driven = spool("a", on_board=True)
    trial = SpoolIdentification([driven], 0.6e-3, PERIOD)
    length, goals = 0.2, []
    for cycle in range(trial.cycles):
        reading = Readings({"a": TendonReading("a", length, math.nan, math.nan, ServoReading("a"))})
        command = trial.update(cycle, reading)["a"]
        assert command.kind is Drive.POSITION
        goals.append(command.value)
        length += 0.15 * (command.value - length)  # a loop that takes its time
    assert max(goals) == pytest.approx(0.2 + 0.6e-3) and goals[-1] == pytest.approx(0.2)
    assert trial.answered and not trial.done and trial.update(trial.cycles, reading) == {}
    assert trial.done and not trial.faults


def test_a_motion_of_a_tenth_of_the_rate_goes_on_between_cycles_as_long_as_these_are_uneven() -> None:
    points, length, rate = MovingSetPoints({"a": A}), 0.5 * (LOW + HIGH), 0.1 * A.actuator.rate
    quick = []
    for k in range(80):
        period = 3.0 * PERIOD if k == 20 else PERIOD
        length += rate * period
        points.take("a", MovingPosition(length, rate), length, 0.0, 0.0, PERIOD)
        points.advance(period)
        quick.append(points.quick)
    assert not any(quick[:20]) and all(quick[20:45])
    for _ in range(30):  # it stands, and is slow again from the next motion on
        points.take("a", MovingPosition(length, 0.0), length, 0.0, 0.0, PERIOD)
        points.advance(PERIOD)
    assert not points.quick
