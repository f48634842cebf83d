"""Position loops reach their goals, never ask for more than the rate, and do not wind up against any limit."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spool_bench import COUNT, PERIOD, RADIUS, Axis, spool

from tensegrity_driver.spools.position_loop import CycleCounter, FreeRunLoop, PositionLoop, SetPoint
from tensegrity_driver.spools.readings import Drive, DriveCommand, ServoReading
from tensegrity_driver.spools.spool import Line
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.impedance import ImpedanceSetPoint

RATE = 0.015


def follow(loop, axis: Axis, goal: float, cycles: int, *, ceiling=math.inf, periods=None) -> list[float]:
    """Run a loop on a bench axis; returns the lengths. `ceiling` is a limit on speed that somebody else sets."""
    sent: DriveCommand | None = None
    lengths = []
    for k in range(cycles):
        period = PERIOD if periods is None else periods[k % len(periods)]
        measured = axis.spool.observe(axis.read()).length
        command = loop.update(goal, measured, period, sent)
        if command.kind is Drive.VELOCITY:
            value = min(max(command.value, -ceiling), ceiling)
            command = DriveCommand(command.kind, value, command.rate, command.tension, command.goal)
        axis.move(command, period)
        sent = command
        lengths.append(axis.length)
    return lengths


# -- free run ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 1, 2, 3])
@pytest.mark.parametrize("gain", [0.7, 1.0, 1.3])
def test_a_free_running_servo_settles_within_two_counts_at_every_delay_and_gain(delay: int, gain: float) -> None:
    axis = Axis(spool(), length=0.22, reach=0.2, delay=delay, gain=gain)
    lengths = follow(FreeRunLoop(axis.spool, PERIOD), axis, 0.20, 250)
    assert max(abs(each - 0.20) for each in lengths[-50:]) <= 2.0 * COUNT
    assert min(lengths) >= 0.20 - 1.5e-3


def test_a_load_that_drags_the_spool_leaves_no_error() -> None:
    dragged, plain = (Axis(spool(), length=0.21, reach=0.2, drift=0.004) for _ in range(2))
    follow(FreeRunLoop(dragged.spool, PERIOD), dragged, 0.205, 500)
    follow(FreeRunLoop(plain.spool, PERIOD, integral=0.0), plain, 0.205, 500)
    assert abs(dragged.length - 0.205) <= 2.0 * COUNT
    assert abs(plain.length - 0.205) >= 8.0 * COUNT  # which is what the integral is for


def test_the_sum_does_not_wind_up_while_the_spool_is_held() -> None:
    axis = Axis(spool(), length=0.22, reach=0.2, jammed=True)
    loop = FreeRunLoop(axis.spool, PERIOD)
    follow(loop, axis, 0.20, 1000)
    axis.jammed = False
    lengths = follow(loop, axis, 0.20, 300)
    assert min(lengths) >= 0.20 - 1.5e-3
    assert abs(lengths[-1] - 0.20) <= 2.0 * COUNT


def test_the_sum_does_not_wind_up_against_a_limit_that_another_layer_sets() -> None:
    axis = Axis(spool(), length=0.22, reach=0.2)
    loop = FreeRunLoop(axis.spool, PERIOD)
    follow(loop, axis, 0.20, 400, ceiling=0.0)
    assert abs(loop.sum) <= RATE
    lengths = follow(loop, axis, 0.20, 400, ceiling=0.003)
    assert min(lengths) >= 0.20 - 0.5e-3
    assert abs(lengths[-1] - 0.20) <= 2.0 * COUNT


def test_irregular_periods_reach_the_same_place() -> None:
    axis = Axis(spool(), length=0.22, reach=0.2)
    lengths = follow(FreeRunLoop(axis.spool, PERIOD), axis, 0.20, 300, periods=[0.02, 0.01, 0.035, 0.02, 0.0])
    assert max(abs(each - 0.20) for each in lengths[-40:]) <= 3.0 * COUNT


@settings(max_examples=80, deadline=None)
@given(
    goals=st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=30),
    data=st.data(),
)
def test_no_reading_or_goal_makes_the_loop_ask_for_more_than_the_rate(goals, data) -> None:
    loop = FreeRunLoop(spool(), PERIOD)
    sent = None
    for goal in goals:
        length, period = data.draw(st.floats()), data.draw(st.floats())
        command = loop.update(goal, length, period, sent)
        assert abs(command.value) <= RATE
        assert abs(loop.sum) <= 0.5 * RATE
        if not (math.isfinite(goal) and math.isfinite(length)):
            assert command.value == 0.0
        sent = command


def test_taking_over_starts_at_rest_whatever_was_before() -> None:
    loop = FreeRunLoop(spool(), PERIOD)
    for _ in range(100):
        loop.update(0.25, 0.2, PERIOD, None)
    loop.take_over(0.2)
    assert loop.update(0.2, 0.2, PERIOD, None).value == 0.0


@pytest.mark.parametrize(
    "gains", [{"proportional": 0.0}, {"proportional": 30.0}, {"integral": 99.0}, {"dead_band": math.nan}]
)
def test_gains_that_no_bus_could_stand_are_refused(gains) -> None:
    with pytest.raises(TensegrityError, match="position loop of draw_1"):
        FreeRunLoop(spool(), PERIOD, **gains)


# -- servos that count turns -------------------------------------------------------------------------------------------


def test_a_servo_that_counts_turns_is_sent_no_faster_than_its_rate() -> None:
    axis = Axis(spool(encoder=True), length=0.22, reach=0.2)
    loop = PositionLoop(axis.spool, PERIOD)
    loop.take_over(0.22)
    sent = None
    before = 0.22
    for _ in range(120):
        sent = loop.update(0.20, axis.length, PERIOD, sent)
        assert abs(sent.value - before) <= RATE * PERIOD + 1e-12
        assert sent.rate == RATE
        before = sent.value
        axis.move(sent, PERIOD)
    assert axis.length == pytest.approx(0.20, abs=1e-6)


def test_several_turns_and_both_directions_go_to_radians_and_back() -> None:
    for direction in (1, -1):
        command = spool(direction=direction).command(DriveCommand(Drive.VELOCITY, -0.01, RATE, 100.0))
        assert command.speed == pytest.approx(direction * 0.01 / RADIUS)
    line = Line(-RADIUS, 0.21)
    turns = spool(encoder=True).command(DriveCommand(Drive.POSITION, 0.21 - 5 * 2 * math.pi * RADIUS, RATE, 100.0))
    assert turns.position == pytest.approx(10.0 * math.pi)
    assert line(turns.position) == pytest.approx(0.21 - 10 * math.pi * RADIUS)


def test_a_tension_ceiling_becomes_current_and_torque_limits() -> None:
    each = spool(encoder=True, torque_constant=1.8)
    loop = PositionLoop(each, PERIOD, tension=90.0)
    command = each.command(loop.update(0.2, 0.21, PERIOD, None))
    assert command.current == pytest.approx(90.0 * RADIUS / 1.8)
    assert command.torque_fraction == pytest.approx(90.0 * RADIUS / 1.5)
    with pytest.raises(TensegrityError, match="at most the effort limit"):
        PositionLoop(each, PERIOD, tension=500.0)


def test_a_servo_at_its_tension_ceiling_yields_and_does_not_rush_afterwards() -> None:
    axis = Axis(spool(encoder=True), length=0.2125)
    loop = PositionLoop(axis.spool, PERIOD, tension=60.0)
    follow(loop, axis, 0.20, 300)
    assert axis.tension <= 60.0 + axis.stiffness * RATE * PERIOD


def test_positions_need_an_encoder_that_counts_turns_and_turns_that_it_counts() -> None:
    with pytest.raises(TensegrityError, match="does not count turns"):
        PositionLoop(spool(), PERIOD)
    with pytest.raises(TensegrityError, match="cannot be commanded by position"):
        spool().command(DriveCommand(Drive.POSITION, 0.2, RATE, 100.0))
    far = replace(spool(encoder=True), encoder=Line(-1e-6, 0.21))
    with pytest.raises(TensegrityError, match="wind it to the middle"):
        far.command(DriveCommand(Drive.POSITION, 0.2, RATE, 100.0))


def test_a_loop_does_not_catch_up_on_a_pause() -> None:
    paused = PositionLoop(spool(encoder=True), PERIOD)
    paused.take_over(0.22)
    assert paused.update(0.2, 0.22, 100.0, None).value == pytest.approx(0.22 - 5.0 * PERIOD * RATE)
    summing = FreeRunLoop(spool(), PERIOD)
    summing.update(0.219, 0.22, 100.0, None)
    assert abs(summing.sum) <= summing.integral * 1e-3 * 5.0 * PERIOD + 1e-12


def test_a_position_goes_on_from_what_was_really_sent() -> None:
    loop = PositionLoop(spool(encoder=True), PERIOD)
    loop.take_over(0.22)
    loop.update(0.2, 0.22, PERIOD, None)
    held = DriveCommand(Drive.POSITION, 0.225, RATE, 200.0)  # another layer sent it elsewhere
    assert loop.update(0.2, 0.225, PERIOD, held).value == pytest.approx(0.225 - RATE * PERIOD)


def test_a_tension_is_never_negative_and_is_taken_from_the_current_where_there_is_one() -> None:
    each = spool(torque_constant=1.8)
    load, current = ServoReading("draw_1", load=0.1), ServoReading("draw_1", load=0.1, current=0.05)
    assert each.tension(load) == pytest.approx(0.15 / RADIUS)
    assert each.tension(current) == pytest.approx(0.09 / RADIUS)
    assert each.tension(ServoReading("draw_1", load=-0.1)) == 0.0
    assert each.pull(ServoReading("draw_1", load=-0.1)) == pytest.approx(-0.15 / RADIUS)
    assert replace(each, direction=-1).tension(load) == 0.0
    assert math.isnan(each.tension(ServoReading("draw_1")))


# -- set points --------------------------------------------------------------------------------------------------------


def test_a_velocity_moves_the_goal_and_stops_at_the_limit() -> None:
    point = SetPoint(spool(), lead=0.2)
    point.hold(0.2)
    length = 0.2
    for _ in range(1000):
        length = point.update((Mode.VELOCITY, 0.01), length, math.nan, PERIOD)
    assert length == pytest.approx(0.27)


def test_a_goal_does_not_run_away_from_a_spool_that_is_held_up() -> None:
    point = SetPoint(spool(), lead=0.2)
    for _ in range(1000):
        goal = point.update((Mode.VELOCITY, -0.01), 0.2, math.nan, PERIOD)
    assert goal == pytest.approx(0.2 - RATE * 0.2)


def test_a_tension_is_reached_and_held() -> None:
    axis = Axis(spool(), length=0.2125)
    loop, point = FreeRunLoop(axis.spool, PERIOD), SetPoint(axis.spool, lead=0.2)
    sent = None
    for _ in range(500):
        tendon = axis.spool.observe(axis.read())
        goal = point.update((Mode.EFFORT, 80.0), tendon.length, tendon.tension, PERIOD)
        sent = loop.update(goal, tendon.length, PERIOD, sent)
        axis.move(sent, PERIOD)
    assert axis.tension == pytest.approx(80.0, abs=2.0 * COUNT * axis.stiffness)


def test_a_tension_is_refused_where_none_is_measured() -> None:
    with pytest.raises(TensegrityError, match="cannot be commanded by tension"):
        SetPoint(spool(), 0.2).update((Mode.EFFORT, 80.0), 0.2, math.nan, PERIOD)


# -- counting ----------------------------------------------------------------------------------------------------------


def test_cycles_and_overruns_are_counted_from_the_measured_periods() -> None:
    counter = CycleCounter(PERIOD)
    late = [counter.count(each) for each in (0.02, 0.02, 0.031, 0.02, math.nan, 0.029, -1.0)]
    assert late == [False, False, True, False, True, False, True]
    assert (counter.cycles, counter.overruns) == (7, 3)
    assert counter.longest == 0.031
    assert counter.rate == pytest.approx(7 / 0.12)
    with pytest.raises(TensegrityError, match="planned period"):
        CycleCounter(0.0)


def test_a_soft_servo_that_is_to_hold_is_held_where_it_is_and_not_pulled_to_where_it_was_sent() -> None:
    soft = ImpedanceSetPoint(0.205, 0.0, 0.0, 8e3, 40.0)
    sent = DriveCommand(Drive.POSITION, 0.205, 0.015, 200.0, 0.205, soft)
    loop = PositionLoop(spool(encoder=True), PERIOD)
    loop.take_over(0.21)  # 40 N from there
    for _ in range(3):
        sent = loop.update(0.21, 0.21, PERIOD, sent)
        assert sent.value == pytest.approx(0.21) and sent.impedance is None
