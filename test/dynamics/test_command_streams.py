"""Who may command: one sender at a time, nothing that began before a release, nothing that broke off."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_dynamics.command_gate import CommandGate, Mode
from tensegrity_dynamics.command_streams import MAX_STREAMS, publisher_names
from tensegrity_dynamics.robots.actuator import Actuator

PERIOD, FRESHNESS, RATE = 0.02, 0.5, 0.015
ACTUATOR = Actuator("draw_1", "draw_1", (0.1, 0.3), RATE, 30.0)


class Robot:
    """A spool behind a gate, which goes to its set point at its rate and stands where the gate says that it must."""

    def __init__(self) -> None:
        self.gate = CommandGate([ACTUATOR], freshness=FRESHNESS)
        self.now, self.position = 1.0, 0.2
        self.goal: float | None = None

    def send(self, session: int, value: float = 0.28, source: str = "controller", age: float = 0.0):
        verdict = self.gate.check(
            ["draw_1"], [value], Mode.POSITION, source=source, session=session, stamp=self.now - age, now=self.now
        )
        if verdict.set_points:
            self.goal = verdict.set_points["draw_1"][1]
        return verdict

    def run(self, seconds: float, *streams: int, value: float = 0.28) -> float:
        """So much time with streams that command in every period; returns how far the spool moved [m]."""
        before = self.position
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            for session in streams:
                self.send(session, value)
            if self.gate.must_hold(self.now) is not None:
                self.goal = None
            if self.goal is not None:
                step = self.goal - self.position
                self.position += min(max(step, -RATE * PERIOD), RATE * PERIOD)
        return abs(self.position - before)


# -- after a release ---------------------------------------------------------------------------------------------------


def test_after_a_release_nothing_moves_until_a_goal_or_hold_that_came_after_it() -> None:
    robot = Robot()
    assert robot.run(0.5, 7) > 5e-3
    robot.gate.stop("button")
    robot.run(0.5, 7)
    robot.gate.release(robot.now)
    assert robot.run(60.0, 7) == 0.0
    assert "before the release" in str(robot.send(7).refusals[0])
    assert robot.run(0.5, 8) > 5e-3


def test_a_goal_that_came_while_the_stop_was_pressed_does_not_count_after_the_release() -> None:
    robot = Robot()
    robot.run(0.5, 7)
    robot.gate.stop("button")
    robot.run(0.5, 8)
    robot.gate.release(robot.now)
    assert robot.run(60.0, 8) == 0.0


def test_a_goal_that_was_being_planned_at_the_release_does_not_count_after_it() -> None:
    robot = Robot()
    robot.run(0.5, 7)
    announced = robot.gate.check([], [], Mode.POSITION, source="controller", session=8, stamp=robot.now, now=robot.now)
    assert not announced.accepted and not announced.refusals
    robot.run(0.2, 7)
    assert robot.gate.must_hold(robot.now) is None, "announcing changes nothing"
    robot.gate.stop("button")
    robot.run(0.2, 7)
    robot.gate.release(robot.now)
    assert robot.run(0.5, 7) == 0.0
    assert robot.run(60.0, 8) == 0.0
    assert robot.run(0.5, 9) > 5e-3


def test_an_announced_session_takes_over_without_a_contest() -> None:
    robot = Robot()
    robot.run(0.1, 7)
    robot.gate.check([], [], Mode.POSITION, source="controller", session=8, stamp=robot.now, now=robot.now)
    robot.run(0.1, 7)
    assert robot.run(0.5, 8) > 5e-3


def test_a_command_on_its_way_at_the_release_does_not_begin_a_stream() -> None:
    robot = Robot()
    robot.gate.stop("button")
    robot.run(0.2)
    robot.gate.release(robot.now)
    robot.now += PERIOD
    assert not robot.send(9, age=2 * PERIOD).accepted
    assert robot.run(1.0, 9) == 0.0


def test_a_stream_that_slept_through_stop_and_release_does_not_count_when_it_wakes() -> None:
    robot = Robot()
    robot.run(0.2, 7)
    robot.gate.stop("button")
    robot.run(20.0)
    robot.gate.release(robot.now)
    robot.run(5.0)
    assert robot.run(10.0, 7) == 0.0


def test_a_sender_without_sessions_counts_again_only_after_a_silence() -> None:
    robot = Robot()
    robot.run(0.2, 0)
    robot.gate.stop("button")
    robot.run(0.2, 0)
    robot.gate.release(robot.now)
    assert robot.run(60.0, 0) == 0.0
    robot.run(FRESHNESS + 2 * PERIOD)
    assert robot.run(0.5, 0) > 5e-3


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 3]), st.floats(0.05, 2.0)), max_size=8), st.integers(0, 3))
def test_no_stream_from_before_a_release_moves_anything_whatever_came_before(before, last) -> None:
    robot = Robot()
    for session, seconds in before:
        robot.run(seconds, session)
    robot.gate.stop("button")
    robot.run(0.1, last)
    robot.gate.release(robot.now)
    for session in {last, *(each for each, _ in before)} - {0}:
        assert robot.run(1.0, session) == 0.0


# -- gaps --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [0.1, 0.3, 0.48])
def test_a_gap_below_the_freshness_is_no_end_of_a_stream(gap: float) -> None:
    robot = Robot()
    robot.run(0.2, 7)
    robot.run(gap)
    assert robot.send(7).accepted


@pytest.mark.parametrize("gap", [0.54, 1.0, 3.0, 10.0])
def test_a_stream_that_broke_off_counts_again_only_with_a_new_goal_or_hold(gap: float) -> None:
    robot = Robot()
    robot.run(0.2, 7)
    robot.run(gap)
    assert robot.run(2.0, 7) == 0.0
    assert "broke off" in str(robot.send(7).refusals[0])
    assert robot.run(0.2, 8) > 1e-3


# -- one sender at a time ----------------------------------------------------------------------------------------------


def test_two_senders_of_one_name_hold_the_robot_until_one_is_left() -> None:
    robot = Robot()
    robot.run(0.2, 7)
    moved = robot.run(5.0, 7, 8)
    assert moved <= RATE * PERIOD + 1e-12
    assert "two senders of one name" in robot.gate.must_hold(robot.now)
    robot.run(FRESHNESS + 2 * PERIOD, 8)
    assert robot.gate.must_hold(robot.now) is None
    assert robot.run(0.5, 8) > 5e-3


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32))
def test_two_senders_are_found_whatever_their_rates_and_the_order_of_their_messages(first, second, seed) -> None:
    """At most one change of the set point passes: until the one that was there speaks again."""
    robot, chance = Robot(), random.Random(seed)
    robot.run(0.2, 7)
    accepted = []
    for k in range(200):
        robot.now += 0.005
        streams = [7] * (k % first == 0) + [8] * (k % second == 0)
        chance.shuffle(streams)
        accepted += [session for session in streams if robot.send(session).accepted]
    changes = sum(a != b for a, b in itertools.pairwise(accepted))
    assert changes <= 1
    assert 8 not in accepted or accepted.count(8) <= 40 // second + 41


def test_a_controller_that_was_killed_and_started_again_is_taken_at_once() -> None:
    robot = Robot()
    robot.run(0.5, 7)
    assert robot.run(PERIOD, 8) > 0.0
    assert robot.run(0.5, 8) > 5e-3


def test_two_publishers_hold_the_robot_though_one_says_nothing() -> None:
    robot = Robot()
    robot.run(0.2, 7)
    robot.gate.streams.publishers = publisher_names([("/", "controller"), ("/", "controller")])
    assert robot.run(5.0, 7) == 0.0
    held = robot.gate.must_hold(robot.now)
    assert "2 nodes publish commands (/controller, /controller; a killed one counts for 25 s)" in held
    robot.gate.streams.publishers = ()
    assert robot.run(0.5, 7) > 5e-3


TWINS = publisher_names([("/", "controller"), ("/", "controller")])


def test_a_killed_controller_that_is_back_is_followed_though_the_graph_still_lists_the_killed_one() -> None:
    robot = Robot()
    robot.run(0.5, 7)
    robot.run(3.0)
    robot.gate.streams.publishers = TWINS
    robot.run(1.0)
    assert robot.run(0.5, 8) > 5e-3
    robot.run(3.0)
    robot.gate.streams.publishers = (*TWINS, TWINS[0])
    assert robot.run(0.5, 9) > 5e-3
    assert robot.gate.must_hold(robot.now) is None
    assert robot.run(2.0, 9, 8) <= RATE * PERIOD + 1e-12, "one that was not killed, but stood still"
    assert robot.run(2.0, 9) > 5e-3


def test_of_two_senders_of_one_name_the_other_is_followed_soon_after_one_is_killed() -> None:
    robot = Robot()
    robot.run(0.2, 7)
    robot.gate.streams.publishers = TWINS
    assert robot.run(2.0, 7) == 0.0
    assert robot.run(2.0, 7, 8) <= RATE * PERIOD + 1e-12
    assert robot.run(FRESHNESS + 0.5, 8) > 5e-3


def test_a_new_goal_or_a_reset_does_not_make_a_silent_second_publisher_of_the_same_name_a_killed_one() -> None:
    robot = Robot()
    robot.run(0.2, 7)
    robot.gate.streams.publishers = TWINS
    assert robot.run(2.0, 7) == robot.run(2.0, 8) == 0.0
    robot.gate.forget()
    assert robot.run(2.0, 8) == 0.0
    robot.gate.streams.publishers = (TWINS[0], "/other")
    robot.run(2.0)
    assert robot.run(2.0, 9) == 0.0, "another name"


def test_a_flood_of_sessions_is_a_contest_and_takes_no_memory() -> None:
    robot = Robot()
    robot.run(0.2, 1)
    for session in range(2, 3 * MAX_STREAMS):
        robot.send(session, source="controller")
        robot.send(1)
        robot.now += 1e-4
    streams = robot.gate.streams
    assert robot.gate.must_hold(robot.now) is not None
    assert len(streams.heard) <= MAX_STREAMS and len(streams.over) <= MAX_STREAMS


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2), st.floats()), max_size=30))
def test_no_clock_and_no_stream_raises(messages) -> None:
    gate = CommandGate([ACTUATOR])
    for source, session, now in messages:
        gate.check(["draw_1"], [0.2], Mode.POSITION, source=source, session=session, stamp=now, now=now)
        gate.must_hold(now)
