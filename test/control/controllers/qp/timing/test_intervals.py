"""Which intervals between commands count for the next one."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tensegrity_control.controllers.qp.timing.command_timing import CommandTiming

PERIOD = 0.01


def after(*elapsed: float) -> CommandTiming:
    timing = CommandTiming(PERIOD, 1.0)
    for each in elapsed:
        timing.came(each)
    return timing


def test_a_single_gap_is_no_repeated_one_and_a_second_one_is():
    assert after(0.01, 0.4, 0.01).repeated == PERIOD
    assert 0.15 < after(0.01, 0.4, 0.01, 0.2, 0.01).repeated <= 0.2


def test_gaps_are_forgotten():
    timing = after(0.3, 0.2, *[PERIOD] * 1000)
    assert timing.latest - PERIOD < 1e-4 and timing.repeated - PERIOD < 1e-4


@given(st.lists(st.floats(0.0, 0.5), min_size=1, max_size=30))
def test_the_longest_interval_is_never_below_the_repeated_one_or_the_last(elapsed: list[float]):
    timing = after(*elapsed)
    assert timing.latest >= timing.repeated >= PERIOD
    assert timing.latest >= elapsed[-1] and math.isfinite(timing.latest)
