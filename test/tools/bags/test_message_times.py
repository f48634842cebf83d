"""Times of recorded messages, while somebody sets the computer's clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_driver.robot_clock import RobotClock
from tensegrity_tools.bags.message_times import LONGEST_WAY, MessageTimes

MILLI, SECOND = 10**6, 10**9
JUMPS = [sign * size for size in (30 * MILLI, SECOND, 3600 * SECOND, 10**8 * SECOND) for sign in (1, -1)]


class Computer:
    """A computer whose clock is set by `jump`, and messages that need 1 ms, are taken every 20 ms."""

    def __init__(self) -> None:
        self.steady, self.set_by = 5 * SECOND, 1_800_000_000 * SECOND
        self.times = MessageTimes(RobotClock(lambda: self.steady + self.set_by, lambda: self.steady))
        self.began = self.times.now

    @property
    def clock(self) -> int:
        return self.steady + self.set_by

    def record(self, jumps: dict[int, int], count: int) -> list[tuple[int, int]]:
        """Time passed and time in the bag when each of the messages was sent, 4 ms apart; jumps by message."""
        kept, waiting = [], []
        for k in range(count):
            sent, really = self.clock, self.times.now - self.began
            self.steady += MILLI // 2
            self.set_by += jumps.get(k, 0)  # on its way
            self.steady += MILLI // 2
            waiting.append((really, self.clock, sent))
            self.steady += 3 * MILLI
            if k % 5 == 4:
                self.times.begin_round()
                self.set_by += jumps.get(-k, 0)  # while they are taken
                kept += [(really, self.times.of(received, sent) - self.began) for really, received, sent in waiting]
                waiting.clear()
        return kept


@given(st.dictionaries(st.integers(-79, 79), st.sampled_from(JUMPS), max_size=3))
def test_messages_keep_their_order_and_their_times_whoever_sets_the_clock(jumps) -> None:
    kept = Computer().record(jumps, 80)
    assert all(abs(recorded - really) <= 25 * MILLI for really, recorded in kept)
    if all(abs(jump) >= SECOND for jump in jumps.values()):
        assert [recorded for _, recorded in kept] == sorted(recorded for _, recorded in kept)


def test_times_are_those_at_which_messages_were_sent_also_after_the_clock_was_set() -> None:
    computer = Computer()
    assert all(really == recorded for really, recorded in computer.record({}, 20))
    computer.record({3: 3600 * SECOND}, 10)
    computer.steady += LONGEST_WAY
    computer.record({}, 10)
    assert all(really == recorded for really, recorded in computer.record({}, 20))


@pytest.mark.parametrize(("received", "sent"), [(0, 0), (-1, -1), (2**63 - 1, 2**63 - 1)])
def test_a_message_without_a_time_that_can_be_gets_the_present_one(received: int, sent: int) -> None:
    times = Computer().times
    times.begin_round()
    assert times.of(received, sent) == times.now
