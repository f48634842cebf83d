"""Jumps of the computer's clock: the robot keeps its own time, and no stamp moves it or holds it for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control.command_latency import CommandLatency
from tensegrity_driver.robot_clock import RobotClock, steady_time
from tensegrity_dynamics.command_gate import CommandGate, Mode
from tensegrity_dynamics.command_streams import CommandStreams
from tensegrity_dynamics.external_wrenches import ExternalWrenches
from tensegrity_dynamics.robots.robot import Actuator

YEAR = 365.25 * 86400.0
JUMPS = [sign * size for size in (1.0, 3600.0, 10.0 * YEAR) for sign in (1.0, -1.0)]
SECOND = 10**9


class Computer:
    """Two clocks of a computer: one that somebody sets, and one that counts what passes, sleep too."""

    def __init__(self) -> None:
        self.steady, self.set_by = 5 * SECOND, 1_800_000_000 * SECOND
        self.robot = RobotClock(lambda: self.steady + self.set_by, lambda: self.steady)

    def passes(self, seconds: float) -> float:
        self.steady += round(seconds * SECOND)
        return 1e-9 * self.robot.now


@given(st.lists(st.tuples(st.floats(0.0, 1e4), st.sampled_from(JUMPS)), max_size=8))
def test_the_time_of_a_robot_is_what_passes_whatever_sets_the_clock(steps) -> None:
    computer = Computer()
    begin, passed, jumped = computer.robot.now, 0, 0
    for seconds, jump in steps:
        computer.passes(seconds)
        computer.set_by += round(jump * SECOND)
        passed += round(seconds * SECOND)
        jumped += round(jump * SECOND)
        assert computer.robot.now - begin == passed
        assert computer.robot.set_by == jumped
    computer.robot.begin()
    assert computer.robot.set_by == 0


def test_the_steady_time_counts_on() -> None:
    first = steady_time()
    assert 0 < first <= steady_time()


@settings(max_examples=40)
@given(jumps=st.lists(st.sampled_from(JUMPS), max_size=4), released=st.integers(0, 4))
def test_after_any_jumps_and_a_release_a_new_session_counts_and_an_old_one_does_not(jumps, released) -> None:
    streams, now = CommandStreams(0.5), 1.8e9
    for k, jump in enumerate([*jumps, 0.0]):
        streams.hear("controller", 1, now)
        if k == min(released, len(jumps)):
            streams.end(now)
        now += jump + 0.02
    streams.hear("controller", 1, now)
    streams.hear("controller", 2, now + 0.02)
    assert streams.contest(now + 0.02) is None
    assert streams.ended("controller", 2, now + 0.02) is None
    assert streams.ended("controller", 1, now + 0.02) is not None


@pytest.mark.parametrize("jump", JUMPS)
def test_no_command_of_before_a_jump_stays_fresh(jump: float) -> None:
    gate = CommandGate([Actuator("a", "a", (0.0, 1.0), rate=0.1, effort=10.0)])
    assert gate.check(["a"], [0.5], Mode.POSITION, source="s", session=1, stamp=50.0, now=50.0).accepted
    assert gate.must_hold(50.0 + jump) is not None
    assert gate.check(["a"], [0.5], Mode.POSITION, source="s", session=2, stamp=50.0 + jump, now=50.0 + jump).accepted
    assert gate.must_hold(50.0 + jump) is None


@pytest.mark.parametrize("jump", JUMPS)
def test_a_push_does_not_outlive_a_jump(jump: float) -> None:
    pushes = ExternalWrenches(("arm",), True, patience=0.5)
    pushes.take("arm", [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], stamp=50.0, now=50.0)
    assert pushes.changed(50.1)
    assert pushes.changed(50.1 + jump) == {}


@pytest.mark.parametrize("jump", JUMPS)
def test_the_latency_of_commands_is_measured_again_after_a_jump(jump: float) -> None:
    latency, now = CommandLatency(0.2), 100.0
    for begin in (now, now + 1.0 + jump):
        for k in range(20):
            stamp = begin + 0.02 * k
            latency.sent(stamp, stamp)
            assert latency.acted(stamp, stamp + 0.03)
    assert np.isclose(latency.delay, 0.03)
