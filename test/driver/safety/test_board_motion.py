"""Motion of a spool whose loop the potentiometer board closes: what its own law makes of its set point is no fault."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from spool_bench import PERIOD, spool

from tensegrity_driver.bus.potentiometer_protocol import ChannelSetup
from tensegrity_driver.emulator.driving_board import COUNTS_PER_SPEED, PERIOD_S, BoardLoop
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.safety.monitors import tendon_monitors
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.spools.position_loop import BOARD_PERIOD_S
from tensegrity_driver.spools.readings import Drive, DriveCommand, Readings, ServoReading, TendonReading

SPOOL = spool(on_board=True)
LINE = SPOOL.potentiometer
assert LINE is not None
RATE = SPOOL.actuator.rate
SETTINGS = SafetySettings(period=PERIOD)
MOTION = (FaultKind.RUNAWAY, FaultKind.WRONG_SIGN, FaultKind.STUCK)


def watched(goals: list[float], sign: float = 1.0, turned_at: int = 0, jammed: bool = False) -> tuple[int, str] | None:
    """First cycle and kind of a fault of a spool on its way along set points [m], one a cycle, or None.

    Args:
        sign: of the speeds from cycle `turned_at` on; the servo turns the other way round where it is negative.
        jammed: it stands still from there on.
    """
    low, high = (int(LINE.inverse(each)) for each in SPOOL.actuator.position)
    loop = BoardLoop(ChannelSetup(0, 1, True, low, high, int(RATE / LINE.slope / COUNTS_PER_SPEED), 1023))
    monitors = tendon_monitors(SPOOL, SETTINGS, MOTION)
    counts, sent = LINE.inverse(goals[0]), DriveCommand(Drive.POSITION, goals[0], RATE, 200.0, goals[0])
    for cycle, goal in enumerate(goals):
        loop.desired = SPOOL.counts(sent.value)
        distance = sign if cycle >= turned_at else 1.0
        for _ in range(round(PERIOD / PERIOD_S)):
            speed = loop.speed(round(counts)) * COUNTS_PER_SPEED * distance
            counts += 0.0 if jammed and cycle >= turned_at else speed * PERIOD_S
        raw = ServoReading(SPOOL.name, sensor=float(round(counts)))
        tendon = TendonReading(SPOOL.name, LINE(round(counts)), math.nan, math.nan, raw)
        readings = Readings({SPOOL.name: tendon}, period=PERIOD)
        for monitor in monitors:
            if (fault := monitor.update(cycle, readings, {SPOOL.name: sent})) is not None:
                return cycle, fault.kind.value
        step = RATE * PERIOD
        value = min(max(goal, sent.value - step), sent.value + step)
        sent = DriveCommand(Drive.POSITION, value, RATE, 200.0, goal)
    return None


def sweep(stops: list[float], cycles: int) -> list[float]:
    return [stops[0]] * 10 + [stop for stop in stops for _ in range(cycles)]


def test_the_model_of_the_board_has_its_period() -> None:
    assert BOARD_PERIOD_S == PERIOD_S


@settings(max_examples=15)
@given(
    stops=st.lists(st.floats(0.17, 0.26), min_size=2, max_size=6),
    cycles=st.integers(1, 40),
    begin=st.floats(0.17, 0.26),
)
def test_no_set_points_that_turn_back_are_a_fault_of_a_spool_that_obeys(stops, cycles, begin) -> None:
    assert watched(sweep([begin, *stops], cycles)) is None


@settings(max_examples=10)
@given(start=st.floats(0.19, 0.24), sign=st.sampled_from((-0.02, 0.02)), at=st.integers(5, 25))
def test_a_spool_that_turns_the_wrong_way_in_motion_is_found_as_soon_as_without_a_board(start, sign, at) -> None:
    at += 70  # on its way from the first to the second
    found = watched(sweep([start, start + sign, start - sign], 60), -1.0, at)
    assert found is not None and found[1] in ("wrong_sign", "runaway")
    assert found[0] - at <= SETTINGS.lag + SETTINGS.window + 1


@settings(max_examples=10)
@given(start=st.floats(0.19, 0.24), sign=st.sampled_from((-0.02, 0.02)), at=st.integers(5, 25))
def test_a_spool_that_jams_in_motion_is_found_within_what_stuck_states(start, sign, at) -> None:
    at += 70
    found = watched(sweep([start, start + sign], 60), 1.0, at, jammed=True)
    bound = SETTINGS.lag + math.ceil(SETTINGS.stuck_distance / (RATE * PERIOD)) + 1
    assert found is not None and found[1] == "stuck"
    assert found[0] - at <= bound + 3  # its speed rises first
